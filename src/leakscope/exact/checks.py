"""What the exact functions are given, checked at the door, each refused in one sentence."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from leakscope.errors import InputError
from leakscope.protocols import Floats, Indices

# The largest ratio of the scales of two features: beyond it the smaller may pass for a rounding
# error of the larger.
UNEQUAL = 1e10


def checked_population(X: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Features (N, p) and targets (N,) as finite numbers."""
    advice = "encode them, a label of two classes as 0 and 1"
    features, targets = finite("features", X, advice), finite("targets", y, advice)
    if features.ndim != 2 or features.shape[1] == 0 or targets.shape != features.shape[:1]:
        raise InputError(
            f"Ridge regression needs features (N, p) and targets (N,), got shapes {features.shape} "
            f"and {targets.shape}"
        )
    if len(features) < 2:
        raise InputError(
            f"Ridge regression with and without a record needs at least 2, got {len(features)}"
        )
    _check_scales(features)
    return features, targets


def _check_scales(features: Floats) -> None:
    """Refuse columns so unequal that the small ones would be taken for rounding errors."""
    sizes = np.abs(features).max(axis=0)
    sizes = sizes[sizes > 0]
    if sizes.size and sizes.max() > UNEQUAL * sizes.min():
        raise InputError(
            f"The features differ too much in scale, from {sizes.min():g} to {sizes.max():g}; "
            "divide each by its standard deviation, or take other units"
        )


def finite(name: str, values: ArrayLike, advice: str = "encode them") -> Floats:
    """The values as finite numbers; advice: what to do about others."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InputError(f"The {name} must be numbers, got an array of {array.dtype}; {advice}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        row = np.argwhere(~np.isfinite(array))[0][0]
        raise InputError(f"The {name} must be finite, and row {row} is not; fill or drop it")
    return array


def checked_records(records: ArrayLike | None, size: int) -> Indices:
    """Distinct indices (r,) into the population."""
    if records is None:
        return np.arange(size)
    asked = np.asarray(records)
    if asked.dtype == np.bool_ and asked.shape == (size,):
        asked = np.flatnonzero(asked)
    if asked.ndim != 1 or asked.size == 0 or asked.dtype.kind not in "iu":
        raise InputError(
            f"The records must be indices or a mask of the {size} there are, at least one, "
            f"got an array of {asked.dtype} with shape {asked.shape}"
        )
    if asked.min() < 0 or asked.max() >= size or len(np.unique(asked)) < len(asked):
        raise InputError(
            f"The records must be distinct indices from 0 to {size - 1}, got {asked.min()} to "
            f"{asked.max()}, {len(np.unique(asked))} distinct of {len(asked)}"
        )
    return asked.astype(np.intp)
