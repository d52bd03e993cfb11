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

    def mean(self, tail: float = TAIL) -> Interval:
        """The mean over the seeds; tail: the chance left at each end of its interval."""
        s, value = len(self.values), float(self.values.mean())
        by_records = float(np.square(self.influence.sum(axis=0)).sum()) / s**2
        cells = float(np.square(self.influence).sum()) / s**2
        by_seeds = float(self.values.var(ddof=1)) / s if s > 1 else 0.0
        variance = max(by_seeds + by_records - cells, by_records, self.least)
        freedom = math.inf if by_seeds == 0 else (s - 1) * (variance / by_seeds) ** 2
        half = -float(stdtrit(freedom, tail)) * math.sqrt(variance)
        return Interval(value, value - half, value + half)


def within(interval: Interval, low: float, high: float) -> Interval:
    """The interval with ends that the number can have."""
    return Interval(interval.value, max(interval.low, low), min(interval.high, high))
