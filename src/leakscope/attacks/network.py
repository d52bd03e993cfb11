"""The attack network: sub-networks for all that the adversary sees, joined to one logit.

Shokri, Strobel & Zick 2021, section 4.2 and Figure 11. Every network sees the predicted label; the
access scenarios of Figure 1 differ in what it sees beside it. Needs the extra ``leakscope[torch]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from leakscope.attacks.taught import Learned, TaughtAttack
from leakscope.evidence import Evidence
from leakscope.options import whole_number
from leakscope.protocols import CLASSIFICATION, Bools, Floats, Task
from leakscope.registry import register

if TYPE_CHECKING:
    from torch import Tensor, nn

# Records that the network is asked about at once.
ASKED = 1024


@dataclass(frozen=True)
class NetworkAttack(TaughtAttack):
    """What the attack networks share: how they are trained, and what they read where.

    Trained as in the paper: ReLU, weights from N(0, 0.01²), Adagrad with a rate of lr that decays,
    15 epochs of batches of 32 (the paper does not say how large). That is much for its 10,000
    records and little for a few hundred: then give more epochs. Each part is divided by its root
    mean square, one number for all of it, so that the units of an explanation do not matter and
    its sizes still differ between records. normalized: the control of section 4.3.3, which sees
    every explanation divided by its own 1-norm. One thread: the same seed gives the same scores.
    """

    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION
    paper: ClassVar[str] = "Shokri, Strobel & Zick 2021, section 4.2 and Figure 11"

    epochs: int = 15
    lr: float = 1e-3
    decay: float = 1e-6
    batch_size: int = 32
    normalized: bool = False

    def parts(self, evidence: Evidence) -> dict[str, Floats]:
        """What each sub-network reads, (n, size) by the names of networks.inference.PARTS."""
        k, seen = evidence.classes, dict[str, Floats]()
        columns = evidence.observations
        if self.channel.endswith("+probabilities"):
            seen["probabilities"], columns = columns[:, -k:], columns[:, :-k]
        seen["predicted"], columns = one_hot(columns[:, -1], k), columns[:, :-1]
        if columns.shape[1]:
            seen["explanation"] = unit_sized(columns) if self.normalized else columns
        return seen

    def expected(self, evidence: Evidence) -> Floats:
        """The ranks of the largest probability and of minus the 1-norm, as far as seen, (n,)."""
        seen, ranks = self.parts(evidence), np.zeros(len(evidence))
        if "probabilities" in seen:
            ranks += rankdata(seen["probabilities"].max(axis=1))
        if "explanation" in seen:
            ranks += rankdata(-np.abs(seen["explanation"]).sum(axis=1))
        return ranks

    def teach(self, known: Evidence, told: Bools) -> Learned:
        """A network trained on these records; its logit is the log-odds."""
        # First of all, as this package says in a sentence where torch is missing.
        from leakscope.networks.inference import AttackNetwork
        from leakscope.networks.optimizers import Updates
        from leakscope.networks.seeding import Purpose, drawing_from, generator, repeatable
        from leakscope.networks.training import Training, train

        seen = self.parts(known)
        scales = {name: _size(part) for name, part in seen.items()}
        settings = Training(
            Updates("adagrad", self.lr, decay=self.decay),
            whole_number("epochs", self.epochs, 1),
            whole_number("batch_size", self.batch_size, 1),
        )
        order = generator(known.seed, Purpose.ORDER)
        with repeatable():
            with drawing_from(generator(known.seed, Purpose.WEIGHTS)):
                network = AttackNetwork({name: part.shape[1] for name, part in seen.items()})
            given = _tensors(seen, scales)
            train(network, given, _tensors({"told": told}, {})["told"], settings, order=order)

        def score(asked: Evidence) -> Floats:
            with repeatable():
                return _logits(network, _tensors(self.parts(asked), scales))

        return score


@register("attack")
@dataclass(frozen=True)
class GradientNetwork(NetworkAttack):
    """The attack network on the gradient of the predicted class's logit."""

    name: ClassVar[str] = "network-gradient"
    channel: ClassVar[str] = "gradient+label"


@register("attack")
@dataclass(frozen=True)
class GradientLabelNetwork(NetworkAttack):
    """The attack network on the gradient and the true label."""

    name: ClassVar[str] = "network-gradient-label"
    channel: ClassVar[str] = "gradient+label"

    def parts(self, evidence: Evidence) -> dict[str, Floats]:
        """What the network of the gradient reads, and the true label."""
        return {**super().parts(evidence), "truth": one_hot(evidence.labels, evidence.classes)}


@register("attack")
@dataclass(frozen=True)
class PredictionNetwork(NetworkAttack):
    """The attack network on the prediction vector."""

    name: ClassVar[str] = "network-prediction"
    channel: ClassVar[str] = "label+probabilities"


@register("attack")
@dataclass(frozen=True)
class GradientPredictionNetwork(NetworkAttack):
    """The attack network on the gradient and the prediction vector."""

    name: ClassVar[str] = "network-gradient-prediction"
    channel: ClassVar[str] = "gradient+label+probabilities"


def one_hot(numbers: Any, classes: int) -> Floats:
    """Class numbers (n,) as a column each, (n, classes)."""
    return np.asarray(np.asarray(numbers)[:, None] == np.arange(classes), dtype=np.float64)


def unit_sized(explanations: Floats) -> Floats:
    """Explanations (n, d) divided by their 1-norms; those of 0 stay 0."""
    sizes = np.abs(explanations).sum(axis=1, keepdims=True)
    return np.asarray(explanations / np.where(sizes > 0, sizes, 1.0))


def _size(part: Floats) -> float:
    """The root mean square of all numbers of a part; 1 where all are 0."""
    return float(np.sqrt(np.square(part).mean())) or 1.0


def _tensors(seen: Mapping[str, NDArray[Any]], scales: Mapping[str, float]) -> dict[str, Tensor]:
    """Numbers in units of their scales, single precision; what has no scale as whole numbers."""
    import torch

    return {
        name: torch.from_numpy(part / scales[name]).float()
        if name in scales
        else torch.from_numpy(part).long()
        for name, part in seen.items()
    }


def _logits(network: nn.Module, given: Mapping[str, Tensor]) -> Floats:
    """What the network says of each record, (n,)."""
    import torch

    with torch.no_grad():
        logits = [
            network({name: part[first : first + ASKED] for name, part in given.items()})
            for first in range(0, len(next(iter(given.values()))), ASKED)
        ]
    return np.asarray(torch.cat(logits).numpy(), dtype=np.float64)
