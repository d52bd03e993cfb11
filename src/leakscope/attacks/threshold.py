"""Attacks that compare one number with a threshold; the simplest, and often the strongest.

Thresholds per class without peeking: a score is the record's rank among all records of its class,
whoever they belong to. One threshold on that scale is another threshold on the raw scale for
every class, at the same share of it, and no membership enters the score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from leakscope.evidence import Evidence
from leakscope.protocols import (
    BOTH,
    CLASSIFICATION,
    REGRESSION,
    Attack,
    Bools,
    Floats,
    Knowledge,
    Task,
)
from leakscope.registry import register


@register("attack")
@dataclass(frozen=True)
class LossThreshold(Attack):
    """A member where the loss is at most the average training loss, which this adversary knows."""

    name: ClassVar[str] = "loss"
    paper: ClassVar[str] = "Yeom et al. 2018, section 6.2"
    channel: ClassVar[str] = "loss"
    tasks: ClassVar[frozenset[Task]] = BOTH
    knowledge: ClassVar[Knowledge] = "average training loss"

    def score(self, evidence: Evidence) -> Floats:
        """Minus the loss, (n,)."""
        return -evidence.observations[:, 0]

    def threshold(self, evidence: Evidence) -> float | None:
        """Minus the average training loss."""
        return -evidence.average_training_loss()


@register("attack")
@dataclass(frozen=True)
class LabelGap(Attack):
    """A member where the predicted label is right: all that a generalization gap gives away."""

    name: ClassVar[str] = "label-gap"
    paper: ClassVar[str] = "Yeom et al. 2018, section 3.2 (adversary 1); Choquette-Choo et al. 2021"
    channel: ClassVar[str] = "label"
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION

    def score(self, evidence: Evidence) -> Floats:
        """1 where the label is right, else 0, (n,)."""
        right: Bools = evidence.observations[:, 0] == evidence.labels
        return right.astype(np.float64)

    def threshold(self, evidence: Evidence) -> float | None:
        """Between right and wrong."""
        return 0.5


@register("attack")
@dataclass(frozen=True)
class Confidence(Attack):
    """A member where the true class is more probable than is usual for its class."""

    name: ClassVar[str] = "confidence"
    paper: ClassVar[str] = "Song & Mittal 2021, section 3.1"
    channel: ClassVar[str] = "margin"
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION

    def score(self, evidence: Evidence) -> Floats:
        """The rank of the margin within the class, (n,)."""
        return rank_in_class(evidence.observations[:, 0], evidence.labels)


@register("attack")
@dataclass(frozen=True)
class EntropyThreshold(Attack):
    """A member where the prediction is less uncertain than is usual for its class."""

    name: ClassVar[str] = "entropy"
    paper: ClassVar[str] = "Song & Mittal 2021, section 3.1; Salem et al. 2019, section V"
    channel: ClassVar[str] = "entropy"
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION

    def score(self, evidence: Evidence) -> Floats:
        """The rank of minus the entropy within the class, (n,)."""
        return rank_in_class(-evidence.observations[:, 0], evidence.labels)


@register("attack")
@dataclass(frozen=True)
class ModifiedEntropyThreshold(Attack):
    """A member where the modified entropy is lower than is usual for its class."""

    name: ClassVar[str] = "modified-entropy"
    paper: ClassVar[str] = "Song & Mittal 2021, section 3.2"
    channel: ClassVar[str] = "modified-entropy"
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION

    def score(self, evidence: Evidence) -> Floats:
        """The rank of minus the modified entropy within the class, (n,)."""
        return rank_in_class(-evidence.observations[:, 0], evidence.labels)


@register("attack")
@dataclass(frozen=True)
class RobustLabel(Attack):
    """A member where the label survives noise in the features: needs labels only."""

    name: ClassVar[str] = "robustness"
    paper: ClassVar[str] = "Choquette-Choo et al. 2021 (robustness to noise)"
    channel: ClassVar[str] = "robustness"
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION

    def score(self, evidence: Evidence) -> Floats:
        """The share of noisy copies with the true label, (n,)."""
        return evidence.observations[:, 0]


@register("attack")
@dataclass(frozen=True)
class GaussianError(Attack):
    """A member where a normal error is likelier with the members' smaller spread."""

    name: ClassVar[str] = "gaussian-error"
    paper: ClassVar[str] = "Yeom et al. 2018, section 3.2 (adversary 2)"
    channel: ClassVar[str] = "loss"
    tasks: ClassVar[frozenset[Task]] = REGRESSION
    knowledge: ClassVar[Knowledge] = "members of the other half"

    def score(self, evidence: Evidence) -> Floats:
        """The square at which both are equally likely, minus the squared error, (n,).

        With standard deviations s of members and d of non-members that square is
        ln(d²/s²) / (1/s² − 1/d²); s and d come from the other half.
        """
        return evidence.cross_fit(_fit_equal_square) - evidence.observations[:, 0]

    def threshold(self, evidence: Evidence) -> float | None:
        """Equally likely."""
        return 0.0


def _fit_equal_square(known: Evidence, membership: Bools) -> Callable[[Evidence], Floats]:
    squares = known.observations[:, 0]
    # A model that interpolates its members has s = 0 there: keep the ratio finite.
    floor = float(squares.mean()) * 1e-12 or 1.0
    inside = max(float(squares[membership].mean()), floor)
    outside = max(float(squares[~membership].mean()), floor)
    equal = inside
    if inside != outside:
        equal = float((np.log(outside) - np.log(inside)) / (1 / inside - 1 / outside))
    return lambda asked: np.full(len(asked), equal)


def rank_in_class(values: Floats, labels: NDArray[np.int64] | Floats) -> Floats:
    """The mid-rank of each value among those of its class, between 0 and 1, (n,)."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=np.nan))
    ranks = np.empty(len(values))
    for places in np.split(order, starts[1:]):
        ranks[places] = (rankdata(values[places]) - 0.5) / len(places)
    return ranks
