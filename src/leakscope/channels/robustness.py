"""The robustness channel: how well the predicted label survives noise in the features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.channels.outputs import OneNumber
from leakscope.models.answers import class_numbers
from leakscope.protocols import Ability, Floats, Model
from leakscope.records import Features, Records
from leakscope.registry import register


@register("channel")
@dataclass(frozen=True)
class Robustness(OneNumber):
    """The share of noisy copies of the record that still get its true label.

    Numbers get Gaussian noise in units of their column's standard deviation; two-valued and text
    columns take the value of another record at random, with the same number as probability. Each
    scale is used for as many copies; the record itself is asked about once too.
    """

    name: ClassVar[str] = "robustness"
    paper: ClassVar[str] = "Choquette-Choo et al. 2021 (robustness to noise)"
    needs: ClassVar[frozenset[Ability]] = frozenset({"labels", "queries"})

    copies: int = 8
    scales: tuple[float, ...] = (0.05, 0.2, 0.5)
    seed: int = 0

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, 1), in steps of 1 / (1 + copies × scales)."""
        clean = model.predict(records.X)  # first: a plain function knows its classes once asked
        truth = class_numbers(model, records.y, records.name)
        right = (class_numbers(model, clean) == truth).astype(np.float64)
        asked = 1
        for noisy in self._copies(records.X):
            right += class_numbers(model, model.predict(noisy)) == truth
            asked += 1
        return np.asarray(right / asked)[:, None]

    def _copies(self, X: Features) -> Iterator[Features]:
        rng = np.random.default_rng(self.seed)
        perturb = _perturb_frame if isinstance(X, pd.DataFrame) else _perturb_array
        for scale in self.scales:
            for _ in range(self.copies):
                yield perturb(X, scale, rng)  # type: ignore[arg-type]  # chosen by the type of X


def _perturb_array(X: NDArray[Any], scale: float, rng: np.random.Generator) -> NDArray[Any]:
    flat = X.reshape(len(X), -1)
    low, high = np.fmin.reduce(flat, axis=0), np.fmax.reduce(flat, axis=0)
    two_valued = ((flat == low) | (flat == high)).all(axis=0)
    noisy = flat + rng.normal(size=flat.shape) * (scale * _spread(flat))
    if two_valued.any():
        noisy[:, two_valued] = _resampled(flat[:, two_valued], scale, rng)
    return noisy.reshape(X.shape).astype(np.result_type(X.dtype, np.float32), copy=False)


def _perturb_frame(frame: pd.DataFrame, scale: float, rng: np.random.Generator) -> pd.DataFrame:
    noisy = {}
    for column in frame.columns:
        values = frame[column]
        if pd.api.types.is_numeric_dtype(values) and values.nunique() > 2:
            numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
            noisy[column] = pd.Series(
                numbers + rng.normal(size=len(numbers)) * (scale * _spread(numbers)),
                index=frame.index,
            )
        else:
            index = _resampled(np.arange(len(values))[:, None], scale, rng)[:, 0]
            noisy[column] = values.iloc[index].set_axis(frame.index)
    return pd.DataFrame(noisy)


def _spread(values: NDArray[Any]) -> Floats:
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
