"""From many models to a figure with an interval: per record, averaged, by group, beside chance.

Models and records are both samples. The interval is for other models trained on other records of
the same kind: models are left out in groups (a delete-group jackknife), records count by the
person they belong to, and what both would count is taken off once (as the two-way clustering of
Cameron, Gelbach & Miller 2011).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from leakscope.errors import InputError
from leakscope.leakage.divergence import Measured
from leakscope.leakage.plans import Plan
from leakscope.metrics.groups import value_codes
from leakscope.metrics.intervals import Interval, finite, tail_of
from leakscope.metrics.jackknife import half_width
from leakscope.metrics.samples import Codes, record_units
from leakscope.protocols import Bools, Floats

# What the models show of some records (m, c, w), and a number per model that says which are judged
# together, become a function of membership.
Prepare = Callable[[Floats, Codes], Measured]
Read = Callable[[int, int], Floats]


@dataclass(frozen=True)
class Null:
    """What the measure shows where membership was shuffled, so that there is nothing to find.

    ``mean`` and ``high`` are of the averages over records: their mean and the value that one in
    twenty exceeds, shown as 0 where they are below 0. ``p_value`` is the chance that shuffling
    gives as much as was found.
    """

    mean: float
    high: float
    p_value: float
    permutations: int

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "mean": finite(self.mean),
            "high": finite(self.high),
            "p_value": finite(self.p_value),
            "permutations": self.permutations,
        }


@dataclass(frozen=True)
class GroupLeakage:
    """The leakage averaged over the records of one value of one group column."""

    group: str
    value: str
    n: int
    mean: Interval
    null: Null

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "group": self.group,
            "value": self.value,
            "n": self.n,
            "mean": self.mean.to_dict(),
            "null": self.null.to_dict(),
        }


@dataclass(frozen=True, eq=False)
class Leakage:
    """One measure of leakage: for each record (n,), averaged, and by group, with intervals.

    ``low`` and ``high`` (n,) are the ends of each record's own interval, for other models; the
    interval of the mean is for other models and other records. All figures are within what the
    measure can be: an estimate of mutual information below 0 is shown as 0. ``underestimate`` is
    how far the estimate is below 0 on average where membership was shuffled. The upper ends of
    intervals allow for it; the lower ends do not, and are lower bounds on the truth.

    ``bound`` is the most that the advantage of an adversary who sees the same could be if the
    estimated average, plus the underestimate, were exactly right, ``bound_low`` and ``bound_high``
    the same for the ends of its interval, and ``null_bound`` for the average that one shuffle in
    twenty exceeds; NaN where one shuffle in twenty exceeds this average, which bounds nothing, and
    for an advantage that was reached, which limits nobody. ``note`` says what the measure is, and
    what it is a bound on.
    """

    measure: str
    records: Floats
    low: Floats
    high: Floats
    mean: Interval
    null: Null
    bound: float
    bound_low: float
    bound_high: float
    null_bound: float
    underestimate: float
    models: int
    note: str
    groups: tuple[GroupLeakage, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON, without the records."""
        return {
            "measure": self.measure,
            **self.mean.to_dict(),
            "bound": finite(self.bound),
            "bound_low": finite(self.bound_low),
            "bound_high": finite(self.bound_high),
            "null": self.null.to_dict(),
            "null_bound": finite(self.null_bound),
            "underestimate": self.underestimate,
            "models": self.models,
            "note": self.note,
            "groups": [group.to_dict() for group in self.groups],
        }


@dataclass(frozen=True, eq=False)
class Folded:
    """A measure of every record (n,), without some models (g, n), and shuffled (r, n)."""

    records: Floats
    without: Floats
    shuffled: Floats

    @classmethod
    def of(cls, read: Read, prepare: Prepare, membership: Bools, plan: Plan, size: int) -> Folded:
        """All of it for the membership (m, n), a part of so many records at a time."""
        folds, n = plan.folds, membership.shape[1]
        groups = np.unique(folds)
        found = cls(np.empty(n), np.empty((len(groups), n)), np.empty((len(plan.nulls), n)))
        for start in range(0, n, size):
            part = slice(start, start + size)
            seen, members = read(start, min(start + size, n)), membership[:, part]
            measure = prepare(seen, folds)
            found.records[part] = measure(members)
            for row in range(len(plan.nulls)):
                found.shuffled[row, part] = measure(plan.null(row, part))
            for row, group in enumerate(groups):
                kept = folds != group
                found.without[row, part] = prepare(seen[kept], folds[kept])(members[kept])
        return found

    def less(self, chance: float) -> Folded:
        """The same, with so much subtracted throughout."""
        return Folded(self.records - chance, self.without - chance, self.shuffled - chance)

    def mean(self, chosen: Bools, unit: Codes, confidence: float) -> Interval:
        """The mean over the chosen records (n,) with its interval; units (n,) count together."""
        records, without = self.records[chosen], self.without[:, chosen]
        value, n, g = float(records.mean()), len(records), len(without)
        _, codes = np.unique(unit[chosen], return_inverse=True)
        units = int(codes.max()) + 1
        if units < 2:
            return Interval(value, math.nan, math.nan)
        means = without.mean(axis=1)
        by_models = (g - 1) / g * float(np.square(means - means.mean()).sum())
        moved = np.bincount(codes, weights=records - value) / n
        by_records = units / (units - 1) * float(np.square(moved).sum())
        # What moves one record in some models, and not the others, is in both of them.
        own = without - means[:, None]
        own = np.stack([np.bincount(codes, weights=row) for row in own - own.mean(axis=0)]) / n
        cells = (g - 1) / g * float(np.square(own).sum())
        variance = max(by_models + by_records - cells, by_models, by_records)
        if variance == 0:
            return Interval(value, value, value)
        freedom = variance**2 / (by_models**2 / (g - 1) + by_records**2 / (units - 1))
        width = -float(stdtrit(freedom, tail_of(confidence))) * math.sqrt(variance)
        return Interval(value, value - width, value + width)

    def ends(self, confidence: float) -> tuple[Floats, Floats]:
        """The ends of each record's own interval, (n,) each."""
        half = half_width(self.without.T, tail_of(confidence))
        return self.records - half, self.records + half

    def null(self, chosen: Bools) -> Null:
        """What shuffling gives on average over the chosen records (n,)."""
        means = self.shuffled[:, chosen].mean(axis=1)
        # What is equal but for rounding is as much.
        reached = means >= self.records[chosen].mean() - 1e-12
        return Null(
            mean=float(means.mean()),
            high=float(np.quantile(means, 0.95, method="higher")),
            p_value=(1 + int(reached.sum())) / (1 + len(means)),
            permutations=len(means),
        )


def leakage_of(
    folded: Folded,
    *,
    measure: str,
    note: str,
    bound: Callable[[float], float],
    limits: tuple[float, float],
    models: int,
    groups: Mapping[str, ArrayLike] | None,
    unit: ArrayLike | None,
    confidence: float,
) -> Leakage:
    """The result; figures are kept within what the measure can be.

    The interval holds what the estimator aims at, which is below the truth: what shuffled
    membership shows below 0 is added to the upper end, and the lower end is left as it is.
    """
    n = len(folded.records)
    codes, everyone = record_units(unit, n), np.ones(n, dtype=bool)
    average, chance = folded.mean(everyone, codes, confidence), folded.null(everyone)
    error = _underestimate(chance, limits)

    def inside(value: float) -> float:
        return float(np.clip(value, *limits))

    def shown(chosen: Bools) -> tuple[Interval, Null]:
        mean, null = folded.mean(chosen, codes, confidence), folded.null(chosen)
        high = mean.high + _underestimate(null, limits)
        interval = Interval(inside(mean.value), inside(mean.low), inside(high))
        # Chance finds nothing: a level below 0, also of an advantage, is the estimator's error.
        return interval, replace(null, mean=max(null.mean, 0.0), high=max(null.high, 0.0))

    rows = []
    for name, column in (groups or {}).items():
        values, of = value_codes(column, n, name)
        for index, value in enumerate(values):
            mine = of == index
            rows.append(GroupLeakage(name, value, int(mine.sum()), *shown(mine)))
    low, high = folded.ends(confidence)

    def implied(value: float) -> float:
        # What one shuffle in twenty exceeds is no ground for a bound.
        unknown = math.isnan(value) or average.value <= chance.high
        return math.nan if unknown else bound(max(value + error, 0.0))

    mean, null = shown(everyone)
    return Leakage(
        measure=measure,
        records=np.clip(folded.records, *limits),
        low=np.clip(low, *limits),
        high=np.clip(high + error, *limits),
        mean=mean,
        null=null,
        bound=implied(average.value),
        bound_low=implied(average.low),
        bound_high=implied(average.high),
        null_bound=implied(chance.high),
        underestimate=error,
        models=models,
        note=note,
        groups=tuple(rows),
    )


def _underestimate(null: Null, limits: tuple[float, float]) -> float:
    """How far the estimate is below the least it can be where there is nothing to find."""
    return max(limits[0] - null.mean, 0.0)


def check_membership(membership: ArrayLike, models: int, needed: int) -> Bools:
    """The membership (m, n) of so many models, enough of them with and without each record."""
    members = np.asarray(membership)
    if members.dtype != np.bool_ or members.ndim != 2 or 0 in members.shape:
        raise InputError(
            f"The membership must be true or false for each model and record, (models, records), "
            f"got {members.dtype} with shape {members.shape}"
        )
    if len(members) != models:
        raise InputError(f"The membership is of {len(members)} models, but {models} were observed")
    counts = np.count_nonzero(members, axis=0)
    fewest = np.minimum(counts, models - counts)
    if fewest.min() < needed:
        record = int(np.argmin(fewest))
        raise InputError(
            f"Record {record} is a member of {counts[record]} of {models} models, and leakage "
            f"needs at least {needed} with each record and {needed} without: train more models"
        )
    return members
