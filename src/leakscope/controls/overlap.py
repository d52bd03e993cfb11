"""Overlap: a record that stands on both sides is a member, whatever the label says.

Such records are taken out of both sides and the non-members among them counted; taken out of one
side only, honest sides would differ, as a kind of record that is often equal would be left on one.
Above a share of 5 % the audit is refused, because then somebody split the training set instead of
holding records out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.controls import Control
from leakscope.protocols import Bools, Floats
from leakscope.records import Records

# Two values are equal within rounding if they differ by a millionth: that covers a trip through
# float32 or through a file with seven digits, and hardly ever joins two persons.
ROUNDING = 1e-6


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
    exact, near, unit = _found_in(nonmembers, members, by_features)
    back = _found_in(members, nonmembers, by_features)
    return Overlap(exact, near, unit, np.asarray(back[0] | back[1] | back[2]), limit)


def _found_in(asked: Records, there: Records, by_features: bool) -> tuple[Bools, Bools, Bools]:
    """Which of the records asked about are there too: exactly, within rounding, by unit."""
    nobody = np.zeros(len(asked), dtype=bool)
    exact, near, unit = nobody, nobody.copy(), nobody
    if by_features:
        exact = np.isin(asked.keys(), there.keys())
        left = np.flatnonzero(~exact)
        if len(left):
            near[left] = _near(there.values(), asked.values()[left])
    if asked.unit is not None and there.unit is not None:
        unit = np.isin(asked.unit, there.unit)
    return exact, near, unit


def _near(there: Floats, asked: Floats) -> Bools:
    """Which rows of asked equal some row of there within rounding, (len(asked),).

    Only fractions are rounded: whole numbers, texts (which are whole numbers here) and gaps must
    be equal. Rows that are near stay near on a random line, so that sorting along it leaves few
    pairs to compare in full.
    """
    both = np.concatenate([there, asked])
    with np.errstate(invalid="ignore"):
        rounded = ((both != np.floor(both)) & np.isfinite(both)).any(axis=0)
    found = np.zeros(len(asked), dtype=bool)
    if not rounded.any():
        return found
    size = np.abs(np.where(np.isnan(both), 0.0, both))
    scale = np.array([np.median(column[column > 0]) if column.any() else 1.0 for column in size.T])
    line = np.random.default_rng(0).normal(size=both.shape[1]) / scale
    # A gap has a place of its own on the line, where few numbers are.
    filled = np.where(np.isnan(both), 12.3456789 * scale, both)
    places, reach = filled @ line, 3 * ROUNDING * (np.abs(filled) @ np.abs(line))
    order = np.argsort(places[: len(there)])
    sorted_places = places[: len(there)][order]
    own, own_reach = places[len(there) :], reach[len(there) :]
    low = np.searchsorted(sorted_places, own - own_reach)
    high = np.searchsorted(sorted_places, own + own_reach)
    for row in np.flatnonzero(high > low):
        candidates, one = there[order[low[row] : high[row]]], asked[row]
        largest = np.maximum(np.abs(candidates), np.abs(one))
        close = np.abs(candidates - one) <= np.where(rounded, ROUNDING * largest, 0.0)
        close |= np.isnan(candidates) & np.isnan(one)
        found[row] = bool(close.all(axis=1).any())
    return found
