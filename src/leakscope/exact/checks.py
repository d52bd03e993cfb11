"""What the exact functions are given, checked at the door, each refused in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope.errors import InputError
from leakscope.exact.bases import Indices
from leakscope.protocols import Floats


def checked_population(X: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Features (N, p) and targets (N,) as finite numbers."""
    features, targets = _finite("features", X), _finite("targets", y)
    if features.ndim != 2 or features.shape[1] == 0 or targets.shape != features.shape[:1]:
        raise InputError(
            f"Ridge regression needs features (N, p) and targets (N,), got shapes {features.shape} "
            f"and {targets.shape}"
        )
    return features, targets


def _finite(name: str, values: ArrayLike) -> Floats:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"The {name} must be numbers, got an array of {array.dtype}; encode them, a label of "
            "two classes as 0 and 1"
        )
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
            f"The records must be indices or a mask of the {size} in the population, at least one, "
            f"got an array of {asked.dtype} with shape {asked.shape}"
        )
    if asked.min() < 0 or asked.max() >= size or len(np.unique(asked)) < len(asked):
        raise InputError(
            f"The records must be distinct indices from 0 to {size - 1}, got {asked.min()} to "
            f"{asked.max()}, {len(np.unique(asked))} distinct of {len(asked)}"
        )
    return asked.astype(np.intp)


def whole_number(name: str, value: Any, low: int, high: int | None = None) -> None:
    """Refuse an option that is not a whole number from low to high, both included."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        bounds = f"at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(f"The option {name} must be a whole number {bounds}, got {value!r}")


def magnitude(name: str, value: Any, above: bool = False) -> None:
    """Refuse an option that is not a finite number of at least 0, or above 0 if that is asked."""
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or not 0 <= value < np.inf or (above and value == 0):
        bounds = "above 0" if above else "of at least 0"
        raise InputError(f"The option {name} must be a finite number {bounds}, got {value!r}")
