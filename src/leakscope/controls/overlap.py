"""Overlap: a record that stands on both sides is a member, whatever the label says.

Such non-members are taken out and counted; above a share of 5 % the audit is refused, because
then somebody split the training set instead of holding records out.
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
    """Which non-members are also members: exactly, within rounding, or by unit; each (n,)."""

    exact: Bools
    near: Bools
    unit: Bools
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
                "were taken out."
            )
        return Control("overlap", passed=not self.refused, fatal=True, detail=detail)


def find_overlap(
    members: Records, nonmembers: Records, limit: float = 0.05, *, by_features: bool = True
) -> Overlap:
    """Non-members who are members too; units count where both sides have them."""
    exact = np.zeros(len(nonmembers), dtype=bool)
    if by_features:
        exact = np.isin(nonmembers.keys(), members.keys())
    near = np.zeros_like(exact)
    left = np.flatnonzero(~exact)
    if by_features and len(left):
        near[left] = _near(_without_gaps(members), _without_gaps(nonmembers)[left])
    unit = np.zeros_like(exact)
    if members.unit is not None and nonmembers.unit is not None:
        unit = np.isin(nonmembers.unit, members.unit)
    return Overlap(exact, near, unit, limit)


def _without_gaps(records: Records) -> Floats:
    """Features and label as numbers, with one odd number for whatever is missing, (n, d+1)."""
    values = records.values()
    return np.where(np.isnan(values), -987654.321, values)


def _near(members: Floats, asked: Floats) -> Bools:
    """Which rows of asked equal some row of members within rounding, (len(asked),).

    Rows that are near stay near on a random line, so that sorting along it leaves few pairs to
    compare in full.
    """
    scale = np.abs(members).max(axis=0)
    scale[scale == 0] = 1.0
    members, asked = members / scale, asked / scale
    line = np.random.default_rng(0).normal(size=members.shape[1])
    order = np.argsort(members @ line)
    places = (members @ line)[order]
    # Twice the rounding, plus the rounding of the sums themselves.
    reach = 2 * ROUNDING * (np.abs(asked) @ np.abs(line)) + 1e-12
    low = np.searchsorted(places, asked @ line - reach)
    high = np.searchsorted(places, asked @ line + reach)
    found = np.zeros(len(asked), dtype=bool)
    for row in np.flatnonzero(high > low):
        candidates = members[order[low[row] : high[row]]]
        size = np.maximum(np.abs(candidates), np.abs(asked[row]))
        apart = np.abs(candidates - asked[row]) > ROUNDING * size + 1e-12
        found[row] = bool((~apart).all(axis=1).any())
    return found
