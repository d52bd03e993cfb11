"""Records as a network is trained on them: tensors of numbers, labels as class numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from leakscope.errors import InputError, RecordsError
from leakscope.models.answers import first_line
from leakscope.options import one_of
from leakscope.protocols import Labels, Task
from leakscope.records import Features, Records
from leakscope.records.checks import as_floats, holds_numbers, listed, shown

if TYPE_CHECKING:
    from torch import Tensor

Loss = str | Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False)
class Table:
    """Records as tensors: X (n, …), y (n,), class numbers or numbers; classes in their order."""

    X: Tensor
    y: Tensor
    classes: Labels | None
    loss: Loss

    @property
    def task(self) -> Task:
        """What is predicted."""
        return "regression" if self.classes is None else "classification"

    @property
    def inputs(self) -> int | tuple[int, ...]:
        """How many features a record has, or the shape of an image."""
        shape = tuple(self.X.shape[1:])
        return shape[0] if len(shape) == 1 else shape

    @property
    def outputs(self) -> int:
        """How many outputs a network needs."""
        return 1 if self.classes is None else len(self.classes)


def table_of(
    records: Records, loss: Loss | None, classes: Sequence[Any] | None, dtype: str
) -> Table:
    """The records of a pool as tensors of this type.

    loss: by default cross entropy, or squared error where the labels are numbers with a fraction.
    """
    import torch

    # A copy: a network may work in place, and the features belong to the records.
    X = torch.from_numpy(np.array(_numbers(records), dtype=dtype, order="C"))
    fractional = records.y.dtype.kind == "f"
    loss = loss or ("squared_error" if fractional else "cross_entropy")
    if isinstance(loss, str):
        one_of("loss", loss, ("cross_entropy", "squared_error"))
    if loss == "squared_error" or (callable(loss) and fractional):
        return Table(X, torch.from_numpy(_targets(records).astype(dtype)), None, loss)
    known, numbers = _class_numbers(records, classes)
    return Table(X, torch.from_numpy(numbers), known, loss)


def _numbers(records: Records) -> np.ndarray[Any, Any]:
    """The features as an array, none of them a text or missing."""
    X = _array(records.X, records.name)
    with np.errstate(invalid="ignore"):
        missing = np.argwhere(~np.isfinite(X.reshape(len(X), -1)))
    if len(missing):
        row, column = missing[0]
        raise RecordsError(
            f"Column {records.feature_names[column]!r} of the {records.name} is missing in row "
            f"{row} (counting from 0), and a network needs all of them; fill it or drop the row"
        )
    return X


def _array(X: Features, name: str) -> np.ndarray[Any, Any]:
    if not isinstance(X, pd.DataFrame):
        return X
    for column in X.columns:
        if not holds_numbers(X[column]):
            raise RecordsError(
                f"Column {shown(column)} of the {name} is not numeric: row 0 (counting from 0) "
                f"holds {shown(X[column].iloc[0])}; encode it, because a network takes numbers only"
            )
    return np.column_stack([as_floats(X[column]) for column in X.columns])


def _targets(records: Records) -> np.ndarray[Any, Any]:
    try:
        return records.y.astype(np.float64)
    except ValueError as error:
        raise RecordsError(
            f"The labels of the {records.name} are no numbers ({first_line(error)}); choose the "
            "loss cross_entropy"
        ) from None


def _class_numbers(
    records: Records, classes: Sequence[Any] | None
) -> tuple[Labels, np.ndarray[Any, Any]]:
    """The classes (k,), and the place of each record's label among them, (n,)."""
    labels, inverse = np.unique(records.y, return_inverse=True)
    known = labels if classes is None else np.asarray(classes)
    place = {label: number for number, label in enumerate(known.tolist())}
    if unknown := [label for label in labels.tolist() if label not in place]:
        raise RecordsError(
            f"The {records.name} have the label {shown(unknown[0])}, which is not among the "
            f"classes {listed(shown(label) for label in known)}; add it to classes"
        )
    if len(place) < 2:
        raise InputError(
            f"All of the {len(records)} {records.name} have the label {shown(known[0])}; a network "
            "needs two classes to tell apart"
        )
    numbers = np.array([place[label] for label in labels.tolist()], dtype=np.int64)
    return known, numbers[inverse]
