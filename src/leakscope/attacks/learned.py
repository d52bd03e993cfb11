"""Attacks that learn from known members what a member's prediction looks like.

They are cross-fitted: the half of the records that teaches an attack is never scored by it.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from leakscope.errors import NotApplicableError
from leakscope.evidence import Evidence
from leakscope.probabilities import log_odds, split_by_truth
from leakscope.protocols import CLASSIFICATION, Attack, Bools, Floats, Knowledge, Task
from leakscope.registry import register

# From this rank correlation on, log-odds of membership and of the true class plainly rise together.
PLAIN = 0.1

# Beyond the true class and the nine most probable others, a prediction says next to nothing.
OTHERS = 9


@dataclass(frozen=True)
class LearnedAttack(Attack):
    """What the learned attacks share: cross-fitting, and a decision at even odds."""

    channel: ClassVar[str] = "probabilities"
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION
    knowledge: ClassVar[Knowledge] = "members of the other half"

    @abstractmethod
    def learner(self, seed: int) -> Any:
        """A fresh scikit-learn classifier."""

    def score(self, evidence: Evidence) -> Floats:
        """The log-odds of membership, (n,), each from learners taught by the other half.

        Members are taken to be those the model is surer about: where the log-odds plainly fall
        with those of the true class, their sign is turned. So what is learned is the shape of the
        difference and not its direction, swapped sides give the same scores and 1 − AUC, and a
        model that hides its members too well shows as an advantage below 0. Where neither rises
        nor falls with the other there is no such direction, and the sign is that learned.
        """
        odds = evidence.cross_fit(self._learn)
        sides = np.column_stack([rankdata(odds), rankdata(truth_first(evidence)[:, 0])])
        sides -= sides.mean(axis=0)
        products = sides.T @ sides
        plainly_falls = products[0, 1] < -PLAIN * np.sqrt(products[0, 0] * products[1, 1])
        return -odds if plainly_falls else odds

    def threshold(self, evidence: Evidence) -> float | None:
        """Even odds."""
        return 0.0

    def _learn(self, known: Evidence, membership: Bools) -> Callable[[Evidence], Floats]:
        """Half the difference of two learners, one of them taught that the sides are swapped.

        So what is learned is negated exactly if the sides are swapped, whatever the learner.
        """
        if membership.all() or not membership.any():
            raise NotApplicableError(
                f"The {self.name} attack has members or non-members only in one half of the "
                "records; give more records"
            )
        scaler = StandardScaler().fit(truth_first(known))
        learners = [
            self._teach(scaler.transform(truth_first(known)), told, known.seed)
            for told in (membership, ~membership)
        ]

        # Which side has more records must not be learned: its log-odds are taken out.
        before = np.log(membership.sum()) - np.log((~membership).sum())

        def score(asked: Evidence) -> Floats:
            vectors = scaler.transform(truth_first(asked))
            as_is, swapped = (log_odds(one.predict_proba(vectors)[:, 1]) for one in learners)
            return np.asarray((as_is - swapped) / 2 - before)

        return score

    def _teach(self, vectors: Floats, membership: Bools, seed: int) -> Any:
        with warnings.catch_warnings():
            # A fixed number of steps is the point: it is the regularization.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self.learner(seed).fit(vectors, membership)


@register("attack")
@dataclass(frozen=True)
class GradientBoosting(LearnedAttack):
    """Boosted trees taught on the prediction vectors of known members."""

    name: ClassVar[str] = "gradient-boosting"
    paper: ClassVar[str] = "Shokri et al. 2017, section V; Salem et al. 2019, section III"

    rounds: int = 50
    leaves: int = 8

    def learner(self, seed: int) -> HistGradientBoostingClassifier:
        """Shallow trees, no early stopping: the same work for the same records."""
        return HistGradientBoostingClassifier(
            max_iter=self.rounds,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=20,
            early_stopping=False,
            random_state=seed,
        )


@register("attack")
@dataclass(frozen=True)
class NeuralNetwork(LearnedAttack):
    """A small neural network taught on the prediction vectors of known members."""

    name: ClassVar[str] = "neural-network"
    paper: ClassVar[str] = "Salem et al. 2019, section III; Song & Mittal 2021"

    hidden: int = 16
    steps: int = 100
    l2: float = 0.1

    def learner(self, seed: int) -> MLPClassifier:
        """One hidden layer, full-batch L-BFGS: repeatable, and quick for a few numbers a record."""
        return MLPClassifier(
            hidden_layer_sizes=(self.hidden,),
            solver="lbfgs",
            alpha=self.l2,
            max_iter=self.steps,
            random_state=seed,
        )


def truth_first(evidence: Evidence) -> Floats:
    """Log-odds of the true class, then of the others from most to least probable, (n, ≤ 10).

    Sorted, so that what is learned holds for every class and needs few records of each.
    """
    truth = np.asarray(evidence.labels, dtype=np.int64)
    true_class, others = split_by_truth(evidence.observations, truth)
    ordered = -np.sort(-others, axis=1)[:, :OTHERS]
    return log_odds(np.column_stack([true_class, ordered]))
