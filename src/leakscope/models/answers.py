"""What every kind of model shares: answers checked, losses, labels as class numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.errors import ModelError, RecordsError
from leakscope.protocols import Floats, Labels, Model
from leakscope.records.checks import listed, one_kind, shown

# Rows of probabilities rounded to two decimals still pass; logits and percentages do not.
SUM_TOLERANCE = 0.02
# A softmax in single precision may leave the range from 0 to 1 by a few ten-millionths.
RANGE_TOLERANCE = 1e-5
# More classes than this, and one of them unseen: such labels are rather numbers to predict.
MANY_CLASSES = 20
MOST_TOLD = 250  # characters of an error of somebody else's, which may quote a whole cell
MEANT = "; to predict a number take a regression, such as --recipe forest-regressor or ridge"


def checked_probabilities(answer: Any, n: int, name: str, classes: int | None = None) -> Floats:
    """Probabilities as floats, (n, k), or one sentence about what is wrong with them.

    One number per record, (n,) or (n, 1), is the probability of the second of two classes.
    """
    given = _numbers(answer, name)
    probabilities = given[:, 0] if given.ndim == 2 and given.shape[1] == 1 else given
    if probabilities.ndim == 1:
        probabilities = np.column_stack([1 - probabilities, probabilities])
    if probabilities.ndim != 2 or len(probabilities) != n:
        raise ModelError(
            f"{name} answered with shape {given.shape} for {n} records; "
            "one row of class probabilities per record is needed"
        )
    if classes is not None and classes != probabilities.shape[1]:
        raise ModelError(
            f"{name} answered {probabilities.shape[1]} probabilities per record where there are "
            f"{classes} classes; pass classes= in the order of its columns"
        )
    missing = np.flatnonzero(~np.isfinite(probabilities).all(axis=1))
    if len(missing):
        raise ModelError(
            f"{name} answered {row_text(given[missing[0]])} for record {missing[0]} of the {n} "
            f"asked about (counting from 0) and {len(missing) - 1} others; answers must be finite"
        )
    bad = improbable(probabilities)
    if len(bad):
        raise ModelError(
            f"{name} answered {row_text(given[bad[0]])} for record {bad[0]} of the {n} asked about "
            "(counting from 0), which are not probabilities summing to 1; apply a softmax to "
            "logits (a sigmoid to one score), divide percentages by 100, or pass task='regression' "
            "for numbers"
        )
    return np.clip(probabilities, 0.0, 1.0)


def in_order_of(classes: Labels | None, answer: Any) -> Any:
    """Probabilities with their columns in the order of the classes, where a table names them.

    Without classes, column j stands for the label j.
    """
    if not isinstance(answer, pd.DataFrame):
        return answer
    columns: Any = answer.columns
    if isinstance(columns, pd.RangeIndex):
        return answer
    labels = range(answer.shape[1]) if classes is None else np.asarray(classes).tolist()
    named = {str(column): column for column in columns}
    wanted = [str(label) for label in labels]
    return answer[[named[label] for label in wanted]] if set(wanted) == set(named) else answer


def improbable(values: Floats) -> NDArray[np.intp]:
    """The rows of (n, k) numbers that are not probabilities summing to 1, but for rounding."""
    low, high = values.min(axis=1), values.max(axis=1)
    off = np.abs(values.sum(axis=1) - 1)
    sound = (low >= -RANGE_TOLERANCE) & (high <= 1 + RANGE_TOLERANCE) & (off <= SUM_TOLERANCE)
    return np.flatnonzero(~sound)  # NaN is neither above nor below anything


def checked_numbers(answer: Any, n: int, name: str) -> Floats:
    """The predictions of a regression as floats, (n,), or one sentence about what is wrong."""
    predictions = checked_labels(_numbers(answer, name), n, name)
    missing = np.flatnonzero(~np.isfinite(predictions))
    if len(missing):
        raise ModelError(
            f"{name} answered {shown(predictions[missing[0]])} for record {missing[0]} of the {n} "
            f"asked about (counting from 0) and {len(missing) - 1} others; answers must be finite"
        )
    return predictions


def checked_labels(answer: Any, n: int, name: str) -> Labels:
    """One answer per record, (n,); models of several outputs are refused."""
    labels = np.asarray(answer)
    if labels.shape == (n, 1):
        labels = labels[:, 0]
    if labels.ndim == 2 and len(labels) == n:
        raise ModelError(
            f"{name} has {labels.shape[1]} outputs per record; audit one output at a time"
        )
    if labels.shape != (n,):
        raise ModelError(
            f"{name} answered with shape {labels.shape} for {n} records; one answer per record is "
            "needed"
        )
    return labels


def class_numbers(model: Model, y: Labels, name: str = "records") -> NDArray[np.int64]:
    """The column of predict_proba that stands for each label, (n,)."""
    if model.classes is None:
        raise ModelError(f"{model.name} has no classes, or has not been asked for them yet")
    classes = one_kind(np.asarray(model.classes), "class", model.name)
    y = one_kind(np.asarray(y), "label", name)
    if (classes.dtype.kind in "biuf") != (y.dtype.kind in "biuf"):
        raise RecordsError(
            f"Labels of the {name} are like {shown(y[0])} (row 0) where the classes of "
            f"{model.name} are like {shown(classes[0])}; give the labels the model was trained on"
        )
    if classes.dtype.kind not in "biuf":
        classes, y = classes.astype(str), y.astype(str)
    order = np.argsort(classes, kind="stable")
    place = np.searchsorted(classes, y, sorter=order).clip(max=len(classes) - 1)
    numbers = order[place]
    unseen = np.flatnonzero(classes[numbers] != y)
    if len(unseen):
        row = unseen[0]
        known = listed(shown(label) for label in classes)
        raise RecordsError(
            f"The label {shown(y[row])} in row {row} (counting from 0) of the {name} is unknown to "
            f"{model.name}, whose classes are {known}; correct it, or name the column of the labels"
            + (MEANT if y.dtype.kind in "iuf" and len(classes) > MANY_CLASSES else "")
        )
    return np.asarray(numbers, dtype=np.int64)


def squared_error(predictions: Any, y: Labels, name: str) -> Floats:
    """(prediction − y)², (n,)."""
    error: Floats = checked_numbers(predictions, len(y), name) - np.asarray(y, dtype=np.float64)
    return error**2


def first_line(error: BaseException) -> str:
    """The beginning of an error's message: its first line, without a closing full stop or colon."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:MOST_TOLD].rstrip(".: ")


def _numbers(answer: Any, name: str) -> Floats:
    try:
        given = np.asarray(answer)
        if given.dtype.kind == "c":  # of which numpy would drop the imaginary part
            raise TypeError("it holds complex ones")
        return np.asarray(given if given.dtype.kind in "biuf" else answer, dtype=np.float64)
    except Exception as error:  # whatever the conversion of a foreign type may raise
        raise ModelError(
            f"{name} answered with a {type(answer).__name__} that is not an array of numbers: "
            f"{first_line(error)}"
        ) from error


def row_text(values: NDArray[Any]) -> str:
    """A row of numbers as it is read in a sentence."""
    return listed(f"{value:.4g}" for value in np.atleast_1d(values))
