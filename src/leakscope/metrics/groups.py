"""The attack within each group of people, corrected for how many groups were looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope.errors import InputError
from leakscope.metrics.intervals import NONE, Interval, finite, holm
from leakscope.metrics.rates import Rates, excess
from leakscope.metrics.samples import Codes, check_mask, check_scores, unit_codes
from leakscope.metrics.tail_test import TailTest, adjust_together, tail_tests
from leakscope.protocols import Bools


@dataclass(frozen=True)
class Group:
    """One value of one group column; NaN where a side is empty and nothing can be said.

    ``excess`` is the advantage within the group minus that on everyone else. ``tails`` test the
    highest scores of the group, whose records are all in them.
    """

    group: str
    value: str
    n: int
    members: int
    nonmembers: int
    advantage: Interval = NONE
    adjusted_p: float = math.nan
    excess: Interval = NONE
    excess_adjusted_p: float = math.nan
    tails: tuple[TailTest, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "group": self.group,
            "value": self.value,
            "n": self.n,
            "members": self.members,
            "nonmembers": self.nonmembers,
            "advantage": self.advantage.to_dict(),
            "adjusted_p": finite(self.adjusted_p),
            "excess": self.excess.to_dict(),
            "excess_adjusted_p": finite(self.excess_adjusted_p),
            "tails": [test.to_dict() for test in self.tails],
        }


def by_group(
    decisions: ArrayLike,
    membership: ArrayLike,
    groups: Mapping[str, ArrayLike],
    judged: ArrayLike | None = None,
    unit: ArrayLike | None = None,
    inflation: float = 1.0,
    confidence: float = 0.95,
) -> tuple[Group, ...]:
    """The advantage of the decisions (n,) within each value of each group column (n,).

    Only ``judged`` records (n,) count, those that had no part in choosing the threshold. The
    p-values are Holm's over all values of all columns: one-sided that the advantage is above 0,
    two-sided that it differs from everyone else's. Columns keep their order, values are sorted.
    """
    n = len(np.asarray(membership))
    members = check_mask(membership, n, "membership")
    called = check_mask(decisions, n, "decisions")
    inside = np.ones(n, dtype=bool) if judged is None else check_mask(judged, n, "judged mask")
    codes = unit_codes(unit, members)

    def rates_of(rows: Bools) -> Rates | None:
        if not (rows & members).any() or not (rows & ~members).any():
            return None
        return Rates.count(
            called[rows], members[rows], None if codes is None else codes[rows], inflation
        )

    found = []
    for name, column in groups.items():
        values, of = value_codes(column, n, name)
        for index, value in enumerate(values):
            mine, others = inside & (of == index), inside & (of != index)
            counts = int((mine & members).sum()), int((mine & ~members).sum())
            one = Group(name, value, int(mine.sum()), *counts)
            found.append(_measured(one, rates_of(mine), rates_of(others), confidence))
    adjusted = holm([one.adjusted_p for one in found])
    differences = holm([one.excess_adjusted_p for one in found])
    return tuple(
        replace(one, adjusted_p=p, excess_adjusted_p=difference)
        for one, p, difference in zip(found, adjusted, differences, strict=True)
    )


def with_tails(
    groups: tuple[Group, ...],
    scores: ArrayLike,
    membership: ArrayLike,
    columns: Mapping[str, ArrayLike],
    unit: ArrayLike | None = None,
    halves: ArrayLike | None = None,
) -> tuple[Group, ...]:
    """The groups with a test of their highest scores, Holm's over all groups and rates.

    Every record of a group counts, because the thresholds of these tests follow from ranks alone.
    """
    values, members = check_scores(scores, membership)
    codes = {name: value_codes(column, len(values), name) for name, column in columns.items()}
    tests: dict[int, tuple[TailTest, ...]] = {}
    for index, group in enumerate(groups):
        names, of = codes[group.group]
        rows = of == names.index(group.value)
        if members[rows].any() and not members[rows].all():
            tests[index] = tail_tests(
                values[rows],
                members[rows],
                unit=None if unit is None else np.asarray(unit)[rows],
                halves=None if halves is None else np.asarray(halves)[rows],
            )
    adjusted = adjust_together(tests)
    return tuple(
        replace(group, tails=adjusted.get(index, ())) for index, group in enumerate(groups)
    )


def value_codes(column: ArrayLike, n: int, name: str) -> tuple[list[str], Codes]:
    """The values of a group column, sorted and as text, and which of them each record has (n,)."""
    values = np.asarray(column)
    if values.shape != (n,):
        raise InputError(f"Group {name!r} has shape {values.shape}, but there are {n} records")
    if values.dtype == object:
        # As objects: numpy's own texts all take the room of the longest.
        texts = [str(value) for value in values.tolist()]
        place = {text: at for at, text in enumerate(sorted(set(texts)))}
        return [*place], np.array([place[text] for text in texts], dtype=np.intp)
    distinct, codes = np.unique(values, return_inverse=True)
    return [str(value) for value in distinct], codes


def _measured(group: Group, mine: Rates | None, others: Rates | None, confidence: float) -> Group:
    """The group with its figures and with p-values not yet adjusted."""
    if mine is None:
        return group
    group = replace(group, advantage=mine.advantage(confidence), adjusted_p=mine.p_value)
    if others is None:
        return group
    difference, p_value = excess(mine, others, confidence)
    return replace(group, excess=difference, excess_adjusted_p=p_value)
