"""Tables of numbers and categories as matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from leakscope.protocols import Floats
from leakscope.records import Features

UNKNOWN = "?"


def levels_of(frame: pd.DataFrame, columns: Sequence[str]) -> dict[str, list[Any]]:
    """The distinct values of each of these columns, sorted."""
    return {column: sorted(frame[column].unique()) for column in columns}


def one_hot(frame: pd.DataFrame, levels: Mapping[str, Sequence[Any]]) -> tuple[Floats, list[str]]:
    """Indicators of the levels of each column, (n, width), and their names, such as ``race=Black``.

    A column of two levels needs one indicator, of the second. A value that is not among the levels
    is zero in every indicator of its column.
    """
    shown = {
        column: list(values[1:] if len(values) == 2 else values)
        for column, values in levels.items()
    }
    names = [f"{column}={value}" for column, values in shown.items() for value in values]
    matrix = np.zeros((len(frame), len(names)))
    start = 0
    for column, values in shown.items():
        position = pd.Index(values).get_indexer(pd.Index(frame[column]))
        rows = np.flatnonzero(position >= 0)
        matrix[rows, start + position[rows]] = 1.0
        start += len(values)
    return matrix, names


def codes(frame: pd.DataFrame) -> Floats:
    """Numbers as they are and categories by their place in sorted order, (n, columns)."""
    columns = [
        frame[name]
        if pd.api.types.is_numeric_dtype(frame[name])
        else np.unique(frame[name].to_numpy(dtype=object), return_inverse=True)[1]
        for name in frame.columns
    ]
    return np.column_stack(columns).astype(np.float64)


def unit_components(matrix: Floats, components: int) -> Floats:
    """The principal component scores of the standardized columns, each of norm 1, (n, components).

    These are the left singular vectors. Their signs, which the decomposition leaves open, are
    chosen so that the largest loading of each is positive.
    """
    standard = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    scores, _, loadings = np.linalg.svd(standard, full_matrices=False)
    largest = np.abs(loadings).argmax(axis=1)
    signs = np.sign(loadings[np.arange(len(loadings)), largest])
    kept: Floats = scores[:, :components] * signs[:components]
    return kept


def as_features(matrix: Floats, names: Sequence[str], frame: bool) -> Features:
    """The matrix, as a DataFrame with names if that is wanted."""
    return pd.DataFrame(matrix, columns=list(names)) if frame else matrix
