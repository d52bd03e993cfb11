"""Disclosure: what an extraction brought back, with intervals where it is a share, and by group."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope.errors import InputError
from leakscope.metrics.groups import value_codes
from leakscope.metrics.intervals import Interval, wilson
from leakscope.metrics.rates import effective_size
from leakscope.metrics.samples import record_units
from leakscope.protocols import Bools, Show

# A curve in a report has no more points than this.
POINTS = 50
# Where a share is that of everyone, this stands for the name of a group column.
EVERYONE = "all"


@dataclass(frozen=True)
class Share:
    """How many of the n records of a group were recovered from explanations by k records each."""

    group: str
    value: str
    k: int
    n: int
    recovered: int
    share: Interval

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "group": self.group,
            "value": self.value,
            "k": self.k,
            "n": self.n,
            "recovered": self.recovered,
            "share": self.share.to_dict(),
        }


@dataclass(frozen=True, eq=False)
class Disclosure:
    """What one extraction brought back; the keys of ``to_dict`` hold those of a report.

    ``records`` (r,) are the numbers of all records the oracle showed it, in order, and ``first``
    (r,) the query of the run, counted from 1, at which each was first shown. ``recovered`` is how
    many of them the extraction counts as its own, ``bound`` how many it could at most, None where
    that is unknown. ``stopped`` says why it ended, ``details`` what else is to be told.
    """

    extraction: str
    paper: str
    k: int
    show: Show
    recovered: int
    bound: int | None
    queries: int
    records: NDArray[np.int64]
    first: NDArray[np.int64]
    stopped: str
    groups: tuple[Share, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.recovered > len(self.records):
            raise InputError(
                f"The extraction {self.extraction} claims {self.recovered} records, and the oracle "
                f"showed {len(self.records)}; count only what was shown"
            )

    def shown_after(self, queries: ArrayLike) -> NDArray[np.int64]:
        """How many distinct records had been shown after each of these numbers of queries."""
        return np.searchsorted(np.sort(self.first), np.asarray(queries), side="right")

    def among(
        self,
        n: int,
        groups: Mapping[str, ArrayLike] | None = None,
        unit: ArrayLike | None = None,
    ) -> Disclosure:
        """The same with the share of all n training records that was shown, and by group.

        For those who know that the oracle's numbers are positions from 0 to n − 1.
        """
        shown = np.zeros(n, dtype=bool)
        shown[self.records] = True
        return replace(self, groups=shares(shown, self.k, groups, unit))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        steps = np.unique(np.linspace(0, self.queries, POINTS).round().astype(np.int64))
        return {
            "extraction": self.extraction,
            "paper": self.paper,
            "k": self.k,
            "show": self.show,
            "recovered": self.recovered,
            "bound": self.bound,
            "queries": self.queries,
            "shown": len(self.records),
            "stopped": self.stopped,
            "groups": [group.to_dict() for group in self.groups],
            "curve": {"queries": steps.tolist(), "shown": self.shown_after(steps).tolist()},
            "details": dict(self.details),
        }


def shares(
    hits: Bools,
    k: int,
    groups: Mapping[str, ArrayLike] | None = None,
    unit: ArrayLike | None = None,
) -> tuple[Share, ...]:
    """The share of hits (n,) among everyone, then in each value of each group column (n,).

    Intervals are Wilson's; rows of one unit (n,), say of one person, count together.
    """
    check_columns(groups or {})
    n = len(hits)
    units = None if unit is None else record_units(unit, n)

    def share(group: str, value: str, rows: Bools) -> Share:
        size = effective_size(hits[rows], None if units is None else units[rows])
        rate = wilson(float(hits[rows].mean()) * size, size)
        return Share(group, value, k, int(rows.sum()), int(hits[rows].sum()), rate)

    found = [share(EVERYONE, "everyone", np.ones(n, dtype=bool))]
    for name, column in (groups or {}).items():
        values, codes = value_codes(column, n, name)
        found += [share(name, value, codes == code) for code, value in enumerate(values)]
    return tuple(found)


def check_columns(groups: Mapping[str, ArrayLike]) -> None:
    """Refuse a group column that could not be told from everyone."""
    if EVERYONE in groups:
        raise InputError(
            f"A group column is called {EVERYONE!r}, under which the share of everyone is told; "
            f"give the column another name"
        )


def excess(share: Interval, over: Interval) -> Interval:
    """How much larger a share is than that of other people, both with Wilson's intervals.

    The ends are those of Newcombe 1998, method 10, which takes nothing else from the two.
    """
    difference = share.value - over.value
    return Interval(
        difference,
        difference - math.hypot(share.value - share.low, over.high - over.value),
        difference + math.hypot(share.high - share.value, over.value - over.low),
    )
