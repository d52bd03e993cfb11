"""A figure over several seeds: its mean, with an interval that covers both seeds and records.

Two things could have come out otherwise: which records were drawn, some of which are judged under
several seeds, and how the models of these seeds turned out. A mean has the variance between seeds,
and what the same records add to several of them (clustering in two ways, as Cameron, Gelbach &
Miller 2011 do it): by seeds + by records − by both. Where that comes out less than the records
alone account for, as it may by chance with few seeds, the records count. The quantile is Student's,
by Satterthwaite's degrees of freedom: with three seeds it is a wide one, and it should be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from leakscope.metrics.intervals import Interval
from leakscope.protocols import Bools, Floats

TAIL = 0.025

# So many squared parts of a record a rate may be off where no record shows any variance: Wilson's
# interval at a rate of 0 of n is about 4/n wide at 95 %.
LEAST = 4.0


@dataclass(frozen=True, eq=False)
class Figure:
    """A number of one model, and how far each block of the pool moves it, (b,).

    least: a variance that so few records cannot rule out, whatever they show.
    """

    value: float
    influence: Floats
    least: float

    @classmethod
    def rate(cls, hits: Bools, place: NDArray[np.intp], blocks: int) -> Figure:
        """The share of hits (n,) among records of these blocks (n,) of so many."""
        moved = np.bincount(place, weights=hits - hits.mean(), minlength=blocks) / len(hits)
        return cls(float(hits.mean()), moved, LEAST / len(np.unique(place)) ** 2)

    @classmethod
    def accuracy(
        cls,
        called: Bools,
        membership: Bools,
        place: NDArray[np.intp],
        blocks: int,
        inflation: float = 1.0,
    ) -> Figure:
        """The balanced accuracy of calling records (n,) members, (1 + TPR − FPR)/2.

        inflation: by what to multiply variances.
        """
        hits, false = (
            cls.rate(called[side], place[side], blocks) for side in (membership, ~membership)
        )
        return cls(
            (1 + hits.value - false.value) / 2,
            (hits.influence - false.influence) * math.sqrt(inflation) / 2,
            (hits.least + false.least) * inflation / 4,
        )


@dataclass(frozen=True, eq=False)
class Figures:
    """The same number for each of s seeds: values (s,), influences (s, b), the least variance."""

    values: Floats
    influence: Floats
    least: float

    @classmethod
    def of(cls, figures: Sequence[Figure]) -> Figures:
        """One figure for each seed, in their order."""
        return cls(
            np.array([one.value for one in figures]),
            np.stack([one.influence for one in figures]),
            float(np.mean([one.least for one in figures])),
        )

    def __sub__(self, other: Figures) -> Figures:
        """The differences, seed by seed and record by record."""
        return Figures(
            self.values - other.values,
            self.influence - other.influence,
            max(self.least, other.least),
        )

    @property
    def all_zero(self) -> bool:
        """Whether every value and influence is 0, as of two models with the same answers."""
        return not self.values.any() and not self.influence.any()

    def spread(self) -> Spread:
        """The mean over the seeds, with the parts of its variance."""
        s = len(self.values)
        return Spread(
            value=float(self.values.mean()),
            seeds=s,
            by_seeds=float(self.values.var(ddof=1)) / s if s > 1 else 0.0,
            by_records=float(np.square(self.influence.sum(axis=0)).sum()) / s**2,
            cells=float(np.square(self.influence).sum()) / s**2,
            least=self.least,
        )

    def mean(self, tail: float = TAIL) -> Interval:
        """The mean over the seeds; tail: the chance left at each end of its interval."""
        return self.spread().interval(tail)


@dataclass(frozen=True)
class Spread:
    """A mean over seeds, and the parts of its variance: by seeds, by records and by both."""

    value: float
    seeds: int
    by_seeds: float
    by_records: float
    cells: float
    least: float

    def interval(self, tail: float = TAIL, margin: float = 0.0) -> Interval:
        """The interval of the mean; tail: the chance left at each end.

        margin: standard errors by which chance may move the mean the wrong way.
        """
        variance = max(self.by_seeds + self.by_records - self.cells, self.by_records, self.least)
        steady = self.by_seeds == 0
        freedom = math.inf if steady else (self.seeds - 1) * (variance / self.by_seeds) ** 2
        half = (margin - float(stdtrit(freedom, tail))) * math.sqrt(variance)
        return Interval(self.value, self.value - half, self.value + half)

    def with_seeds(self, n: int) -> Spread:
        """What n seeds would show if the mean and the spread stayed as observed.

        More seeds divide the variance between seeds; what seeds share through the same records
        stays. One observed seed shows neither, so n seeds cannot be predicted from it.
        """
        if self.seeds in (n, 1):
            return self
        less = self.seeds / n
        shared = (self.by_records - self.cells) * self.seeds / (self.seeds - 1) * (n - 1) / n
        cells = self.cells * less
        return Spread(self.value, n, self.by_seeds * less, shared + cells, cells, self.least)


def within(interval: Interval, low: float, high: float) -> Interval:
    """The interval with ends that the number can have."""
    return Interval(interval.value, max(interval.low, low), min(interval.high, high))
