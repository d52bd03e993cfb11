"""The attack by which Wang et al. (2020) judge: the inference network of Nasr et al. (2018).

Section 5.2: f_A sees what the network answers and the true label. It is also the opponent against
which the min-max game is played, and so the attack that a game should resist most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from scipy.stats import rankdata

from leakscope.attacks.taught import Learned, TaughtAttack
from leakscope.evidence import Evidence
from leakscope.protocols import CLASSIFICATION, Bools, Floats, Task
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

if TYPE_CHECKING:
    from torch import Tensor, nn

# Probabilities are kept this far from 0 and 1 before a logarithm.
SHORT = 1e-7


@dataclass(frozen=True)
class InferenceAttack(TaughtAttack):
    """The inference network on the prediction vector and the true label."""

    name: ClassVar[str] = "inference-network"
    paper: ClassVar[str] = "Nasr, Shokri & Houmansadr 2018; Wang et al. 2020, section 5.2"
    channel: ClassVar[str] = "probabilities"
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION

    epochs: int = 15

    def teach(self, known: Evidence, told: Bools) -> Learned:
        """A network trained on these records; its logit is the log-odds."""
        recipe = inference_recipe(self.epochs)
        model = recipe.fit(Records(_table_of(known), told.astype(int)), known.seed)

        def score(asked: Evidence) -> Floats:
            members = model.predict_proba(_table_of(asked))[:, 1]
            return np.asarray(logit(np.clip(members, SHORT, 1 - SHORT)))

        return score

    def expected(self, evidence: Evidence) -> Floats:
        """The rank of the probability of the true class, (n,)."""
        rows = np.arange(len(evidence))
        return np.asarray(rankdata(evidence.observations[rows, evidence.labels]))


def inference_recipe(epochs: int, **more: Any) -> TorchRecipe:
    """How the inference network is trained: Adam at a rate of 0.001, batches of 64."""
    return TorchRecipe(
        "inference network", _network, lr=1e-3, batch_size=64, epochs=epochs, stack=1, **more
    )


def seen_by_inference(probabilities: Floats, labels: NDArray[Any]) -> NDArray[np.float32]:
    """What the network is given: probabilities (n, k) beside true labels, one-hot, (n, 2k)."""
    truth = labels[:, None] == np.arange(probabilities.shape[1])
    return np.hstack([probabilities, truth]).astype(np.float32)


def _table_of(evidence: Evidence) -> NDArray[np.float32]:
    return seen_by_inference(evidence.observations, evidence.labels)


def _network(inputs: int, classes: int) -> nn.Module:
    """The inference network for tables with both things side by side."""
    from leakscope.networks.minmax import InferenceNetwork

    k = inputs // 2

    class OnTables(InferenceNetwork):
        def forward(self, seen: Tensor, labels: Tensor | None = None) -> Tensor:
            return super().forward(seen[:, :k], seen[:, k:])

    return OnTables(k)
