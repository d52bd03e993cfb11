"""Rates: how often members, and non-members, are called members, and how well that is known."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError
from leakscope.metrics.intervals import (
    Interval,
    advantage_p_value,
    crossing,
    fisher_p_value,
    newcombe,
    newcombe_ends,
    quantile_of,
    ratio_ends,
)
from leakscope.protocols import Bools

# Below so many expected in any of the four cells, intervals of rates are not trusted alone.
FEW = 10.0


@dataclass(frozen=True)
class Rates:
    """The true and false positive rates of decisions, with the effective number of each side."""

    tpr: float
    fpr: float
    members: float
    nonmembers: float

    @classmethod
    def count(
        cls,
        called: Bools,
        membership: Bools,
        unit: NDArray[np.intp] | None = None,
        inflation: float = 1.0,
    ) -> Rates:
        """Rates of the decisions called (n,), rows clustered by the unit codes (n,) if given."""
        sides = []
        for side in (membership, ~membership):
            if not side.any():
                raise InputError("A rate needs members and non-members, and one side is empty")
            hits = called[side]
            codes = None if unit is None else unit[side]
            sides.append((float(hits.mean()), effective_size(hits, codes, inflation)))
        (tpr, members), (fpr, nonmembers) = sides
        return cls(tpr, fpr, members, nonmembers)

    def to_dict(self) -> dict[str, float]:
        """For JSON."""
        return asdict(self)

    def advantage(self, confidence: float = 0.95) -> Interval:
        """The signed advantage, TPR − FPR, with Newcombe's interval."""
        return newcombe(self.tpr, self.members, self.fpr, self.nonmembers, confidence)

    def accuracy(self, confidence: float = 0.95) -> Interval:
        """The balanced accuracy, (1 + advantage) / 2."""
        of = self.advantage(confidence)
        return Interval((1 + of.value) / 2, (1 + of.low) / 2, (1 + of.high) / 2)

    def ppv(self, prior: float = 0.5, confidence: float = 0.95) -> Interval:
        """The share of members among those called members, where a share ``prior`` are members.

        It rises with TPR / FPR alone, so the interval is that ratio's. The value is NaN where
        nobody was called a member.
        """
        z = quantile_of(confidence)
        low, high = ratio_ends(self.tpr, self.members, self.fpr, self.nonmembers, z)
        called = prior * self.tpr + (1 - prior) * self.fpr
        value = prior * self.tpr / called if called > 0 else math.nan
        return Interval(value, _share(low, prior), _share(high, prior))

    @property
    def p_value(self) -> float:
        """One-sided, against an advantage of 0 or less; it agrees with the interval.

        Where few are called members, or few are not, the interval's level is not what it says (most
        of all on sides of unequal size), and Fisher's exact test has the last word if it is larger.
        """
        by_interval = advantage_p_value(self.tpr, self.members, self.fpr, self.nonmembers)
        sides = ((self.tpr, self.members), (self.fpr, self.nonmembers))
        fewest = min(n * share for rate, n in sides for share in (rate, 1 - rate))
        if fewest >= FEW:
            return by_interval
        hits1, hits0 = (round(rate * n) for rate, n in sides)
        return max(
            by_interval, fisher_p_value(hits1, round(self.members), hits0, round(self.nonmembers))
        )

    @property
    def reversed_p_value(self) -> float:
        """One-sided, against an advantage of 0 or more: whether non-members are called more often.

        It is not 1 − p_value: where nobody is called a member, neither shows anything.
        """
        return Rates(self.fpr, self.tpr, self.nonmembers, self.members).p_value


def excess(group: Rates, rest: Rates, confidence: float = 0.95) -> tuple[Interval, float]:
    """A group's advantage minus everyone else's, and the two-sided p-value that agrees with it.

    The ends combine those of the two advantages as Newcombe's combine those of two rates (MOVER:
    Zou & Donner 2008).
    """
    difference = (group.tpr - group.fpr) - (rest.tpr - rest.fpr)
    interval = Interval(difference, *_excess_ends(group, rest, quantile_of(confidence)))
    if difference == 0:
        return interval, 1.0
    end, sign = (0, 1) if difference > 0 else (1, -1)
    z = crossing(lambda z: sign * _excess_ends(group, rest, z)[end])
    return interval, math.erfc(z / math.sqrt(2))


def _excess_ends(group: Rates, rest: Rates, z: float) -> tuple[float, float]:
    one, other = group.tpr - group.fpr, rest.tpr - rest.fpr
    low1, high1 = newcombe_ends(group.tpr, group.members, group.fpr, group.nonmembers, z)
    low0, high0 = newcombe_ends(rest.tpr, rest.members, rest.fpr, rest.nonmembers, z)
    low = one - other - math.hypot(one - low1, high0 - other)
    return low, one - other + math.hypot(high1 - one, other - low0)


def effective_size(
    hits: Bools, unit: NDArray[np.intp] | None = None, inflation: float = 1.0
) -> float:
    """How many independent records would know the rate of the hits (n,) as well as these do.

    Rows of one unit move together. Their number is divided by the design effect, the variance
    between units over that of independent rows (Kish 1965, chapter 5), at least 1. Where there is
    no variance to see, at a rate of 0 or 1 and within a single unit, the rows of a unit count as
    one: (Σ rows)² / Σ rows² over the units. The inflation divides in any case.
    """
    n = len(hits)
    if unit is None:
        return n / inflation
    rows = np.bincount(unit)
    rate = float(hits.mean())
    units = np.count_nonzero(rows)
    if 0 < rate < 1 and units > 1:
        residuals = np.bincount(unit, weights=hits) - rate * rows
        between = float(residuals @ residuals) * units / (units - 1)
        independent = n * rate * (1 - rate) * n / (n - 1)
        effect = max(between / independent, 1.0)
    else:
        effect = float(rows @ rows) / n
    return n / effect / inflation


def _share(ratio: float, prior: float) -> float:
    """The share of members among those called, from the likelihood ratio of being called."""
    if math.isinf(ratio):
        return 1.0
    return prior * ratio / (prior * ratio + 1 - prior)
