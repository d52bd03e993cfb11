"""Overlap: a record that stands on both sides is a member, whatever the label says.

Such records are taken out of both sides and the non-members among them counted; taken out of one
side only, honest sides would differ, as a kind of record that is often equal would be left on one.
Above a share of 5 % the audit is refused, because then somebody split the training set instead of
holding records out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.controls import Control
from leakscope.protocols import Bools, Floats
from leakscope.records import Records

# Two values are equal within rounding if they differ by a millionth: that covers a trip through
# float32 or through a file with seven digits, and hardly ever joins two persons.
ROUNDING = 1e-6

# Rows, or pairs of rows, looked at together.
CHUNK = 2**15


@dataclass(frozen=True)
class Overlap:
    """Which non-members are also members: exactly, within rounding, or by unit; each (n,).

    members: which members are also non-members, in any of these senses.
    """

    exact: Bools
    near: Bools
    unit: Bools
    members: Bools
    limit: float

    @property
    def found(self) -> Bools:
        """Non-members that are members in any of the three senses, (n,)."""
        return np.asarray(self.exact | self.near | self.unit)

    @property
    def share(self) -> float:
        """The share of non-members found."""
        return float(self.found.mean())

    @property
    def refused(self) -> bool:
        """Whether there is too much of it for an audit, or nothing left."""
        return self.share > self.limit

    def control(self) -> Control:
        """What the report says."""
        found, total = int(self.found.sum()), len(self.found)
        kinds = (
            f"{self.exact.sum()} equal, {(self.near & ~self.exact).sum()} equal within rounding, "
            f"{(self.unit & ~self.exact & ~self.near).sum()} of a person who is also a member"
        )
        if not found:
            detail = f"None of the {total} non-members is also a member."
        elif self.refused:
            detail = (
                f"{found} of {total} non-members ({self.share:.1%}) are also members ({kinds}), "
                f"more than the {self.limit:.0%} allowed: give records it was not trained on."
            )
        else:
            detail = (
                f"{found} of {total} non-members ({self.share:.1%}) are also members ({kinds}) and "
                "were taken out of both sides."
            )
        return Control("overlap", passed=not self.refused, fatal=True, detail=detail)


def find_overlap(
    members: Records, nonmembers: Records, limit: float = 0.05, *, by_features: bool = True
) -> Overlap:
    """Non-members who are members too; units count where both sides have them."""
    sides = members, nonmembers
    exact = [np.zeros(len(side), dtype=bool) for side in sides]
    near, unit = [one.copy() for one in exact], [one.copy() for one in exact]
    if by_features:
        exact = [np.isin(a.keys(), b.keys()) for a, b in (sides, sides[::-1])]
        values = [side.values() for side in sides]
        for at, left in enumerate(~one for one in exact):
            near[at][left] = _near(values[1 - at], values[at][left])
    if members.unit is not None and nonmembers.unit is not None:
        unit = [
            np.isin(a, b)
            for a, b in ((members.unit, nonmembers.unit), (nonmembers.unit, members.unit))
        ]
    found = [exact[at] | near[at] | unit[at] for at in (0, 1)]
    return Overlap(exact[1], near[1], unit[1], np.asarray(found[0]), limit)


def _near(there: Floats, asked: Floats) -> Bools:
    """Which rows of asked equal some row of there within rounding, (len(asked),).

    Only fractions are rounded: whole numbers, texts (which are whole numbers here) and gaps must
    be equal. Rows that are near stay near on a random line, so that sorting along it leaves few
    pairs to compare in full.
    """
    found = np.zeros(len(asked), dtype=bool)
    rounded = np.array([_holds_fractions(column) for column in _columns(there, asked)])
    if not rounded.any():
        return found
    scale = np.array([_usual_size(column) for column in _columns(there, asked)])
    line = np.random.default_rng(0).normal(size=len(scale)) / scale
    places, _ = _along(line, scale, there)
    order = np.argsort(places)
    places = places[order]
    own, reach = _along(line, scale, asked)
    low, high = np.searchsorted(places, own - reach), np.searchsorted(places, own + reach)
    for rows, candidates in _pairs(low, high):
        close = _equal(there[order[candidates]], asked[rows], rounded)
        found[rows[close]] = True
    return found


def _columns(there: Floats, asked: Floats) -> Iterator[Floats]:
    """Each column of both, one at a time."""
    return (np.concatenate(both) for both in zip(there.T, asked.T, strict=True))


def _holds_fractions(column: Floats) -> bool:
    with np.errstate(invalid="ignore"):
        return bool(((column != np.floor(column)) & np.isfinite(column)).any())


def _usual_size(column: Floats) -> float:
    size = np.abs(np.where(np.isnan(column), 0.0, column))
    return float(np.median(size[size > 0])) if size.any() else 1.0


def _along(line: Floats, scale: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Where each row lies on a line, and how far from there rows that are near can lie, (n,)."""
    places, reach = np.empty(len(rows)), np.empty(len(rows))
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        # A gap has a place of its own on the line, where few numbers are.
        filled = np.where(np.isnan(rows[part]), 12.3456789 * scale, rows[part])
        places[part] = filled @ line
        reach[part] = 3 * ROUNDING * (np.abs(filled) @ np.abs(line))
    return places, reach


def _pairs(
    low: NDArray[np.intp], high: NDArray[np.intp]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Each row with every place from its low to its high, some thousand pairs at a time."""
    left = np.flatnonzero(high > low)
    ends = np.cumsum((high - low)[left])
    start = 0
    while start < len(left):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + CHUNK, side="right")))
        some = left[start:stop]
        counts = (high - low)[some]
        first = np.repeat(low[some] - (np.cumsum(counts) - counts), counts)
        yield np.repeat(some, counts), first + np.arange(counts.sum())
        start = stop


def _equal(first: Floats, second: Floats, rounded: Bools) -> Bools:
    """Which rows of two tables (n, d) are equal within rounding, (n,)."""
    largest = np.maximum(np.abs(first), np.abs(second))
    close = np.abs(first - second) <= np.where(rounded, ROUNDING * largest, 0.0)
    close |= np.isnan(first) & np.isnan(second)
    return np.asarray(close.all(axis=1))
