"""Noisy copies of records, for channels that ask about a record's neighbourhood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.protocols import Floats
from leakscope.records import Features


def noisy_copies(X: Features, scales: Iterable[float], seed: int) -> Iterator[Features]:
    """A copy of the features per scale.

    Numbers get Gaussian noise in units of their column's standard deviation; two-valued and text
    columns take the value of another record at random, with the same number as probability.
    """
    rng = np.random.default_rng(seed)
    for scale in scales:
        if isinstance(X, pd.DataFrame):
            yield perturb_frame(X, scale, rng)
        else:
            yield perturb_array(X, scale, rng)


def perturb_array(X: NDArray[Any], scale: float, rng: np.random.Generator) -> NDArray[Any]:
    """A noisy copy of the features, in their shape."""
    flat = X.reshape(len(X), -1)
    low, high = np.fmin.reduce(flat, axis=0), np.fmax.reduce(flat, axis=0)
    two_valued = ((flat == low) | (flat == high)).all(axis=0)
    noisy = flat + rng.normal(size=flat.shape) * (scale * spread(flat))
    if two_valued.any():
        noisy[:, two_valued] = _resampled(flat[:, two_valued], scale, rng)
    return noisy.reshape(X.shape).astype(np.result_type(X.dtype, np.float32), copy=False)


def perturb_frame(frame: pd.DataFrame, scale: float, rng: np.random.Generator) -> pd.DataFrame:
    """A noisy copy of the table, column by column."""
    noisy = {}
    for column in frame.columns:
        values = frame[column]
        if pd.api.types.is_numeric_dtype(values) and values.nunique() > 2:
            numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
            noisy[column] = pd.Series(
                numbers + rng.normal(size=len(numbers)) * (scale * spread(numbers)),
                index=frame.index,
            )
        else:
            index = _resampled(np.arange(len(values))[:, None], scale, rng)[:, 0]
            noisy[column] = values.iloc[index].set_axis(frame.index)
    return pd.DataFrame(noisy, copy=False)  # the columns are new: a large table is not there twice


def spread(values: NDArray[Any]) -> Floats:
    """The standard deviation of each column over what is not missing; 0 where all of it is."""
    missing = np.isnan(values)
    count = np.maximum((~missing).sum(axis=0), 1)
    centre = np.where(missing, 0.0, values).sum(axis=0) / count
    squares = np.where(missing, 0.0, values - centre) ** 2
    return np.asarray(np.sqrt(squares.sum(axis=0) / count))


def _resampled(values: NDArray[Any], share: float, rng: np.random.Generator) -> NDArray[Any]:
    """Each entry replaced, with this probability, by that of a random other row."""
    donors = rng.integers(len(values), size=values.shape)
    replaced = rng.random(values.shape) < share
    return np.where(replaced, np.take_along_axis(values, donors, axis=0), values)
