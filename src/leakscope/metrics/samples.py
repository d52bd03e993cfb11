"""Scores and memberships checked at the door, and unit ids turned into codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope.errors import InputError
from leakscope.protocols import Bools, Floats

Codes = NDArray[np.intp]


def check_scores(scores: ArrayLike, membership: ArrayLike) -> tuple[Floats, Bools]:
    """The scores (n,) as finite floats and the membership (n,) as booleans, both sides present."""
    values = np.asarray(scores)
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        raise InputError(
            f"Scores must be one number per record, got an array of {values.dtype} "
            f"with shape {values.shape}"
        )
    values = values.astype(np.float64)
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(
            f"Scores must be finite, and {np.count_nonzero(~finite)} are not, the first in row "
            f"{row} ({values[row]}): clip or drop them before scoring"
        )
    members = check_mask(membership, len(values), "membership")
    if not members.any() or members.all():
        missing = "non-members" if members.any() else "members"
        raise InputError(f"There are no {missing} among the {len(values)} records: both are needed")
    return values, members


def check_booleans(mask: ArrayLike, name: str) -> Bools:
    """A boolean array of any shape, or an error that names it."""
    values = np.asarray(mask)
    if values.dtype != np.bool_:
        raise InputError(
            f"The {name} must be true or false for each record, got {values.dtype}: compare it "
            f"with the value that means true"
        )
    return values


def check_mask(mask: ArrayLike, n: int, name: str) -> Bools:
    """A boolean (n,) array, or an error that names it."""
    values = check_booleans(mask, name)
    if values.shape != (n,):
        raise InputError(f"The {name} has shape {values.shape}, but there are {n} scores")
    return values


def unit_codes(unit: ArrayLike | None, membership: Bools) -> Codes | None:
    """A number from 0 for each unit (n,), in the order of the ids; no unit may be on both sides."""
    if unit is None:
        return None
    ids = np.asarray(unit)
    if ids.shape != membership.shape:
        raise InputError(f"The unit has shape {ids.shape}, but there are {len(membership)} scores")
    names, codes = numbered_ids(ids)
    straddling = split_units(codes, membership)
    if straddling.any():
        raise InputError(
            f"Unit {str(names[np.argmax(straddling)])!r} is among the members and the non-members: "
            f"keep all its rows on one side"
        )
    return codes


def record_units(unit: ArrayLike | None, n: int) -> Codes:
    """A number from 0 for the unit of each record (n,), each its own without units."""
    if unit is None:
        return np.arange(n)
    ids = np.asarray(unit)
    if ids.shape != (n,):
        raise InputError(f"The unit has shape {ids.shape}, but there are {n} records")
    return numbered_ids(ids)[1]


def model_splits(membership: Bools) -> Codes:
    """For each model of the membership (m, n) a number from 0, (m,).

    It is the same where members are the same or exactly the others.
    """
    seen: dict[bytes, int] = {}
    return np.array(
        [seen.setdefault(np.packbits(row ^ row[0]).tobytes(), len(seen)) for row in membership]
    )


def numbered_ids(ids: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    """The different ids in order, and the place of each id (n,) among them."""
    names, codes = np.unique(ids.astype(str) if ids.dtype == object else ids, return_inverse=True)
    return names, codes


def split_units(codes: Codes, mask: Bools) -> Bools:
    """For each unit, whether some of its rows are in the mask (n,) and some are not."""
    inside = np.bincount(codes, weights=mask)
    return (inside > 0) & (inside < np.bincount(codes))
