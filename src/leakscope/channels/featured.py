"""Features as numbers, for channels that show something of each feature."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from leakscope.errors import NotApplicableError
from leakscope.protocols import Floats
from leakscope.records import Records
from leakscope.records.checks import as_floats, holds_numbers


def array_of(records: Records) -> Floats:
    """The features of the records as floats, (n, …); text is refused by the name of its column."""
    X = records.X
    if not isinstance(X, pd.DataFrame):
        return np.asarray(X, dtype=np.float64)
    texts = [column for column in X.columns if not holds_numbers(X[column])]
    if texts:
        raise NotApplicableError(
            f"The column {texts[0]!r} of the {records.name} holds no numbers, by which features "
            "are explained; encode it before the model is trained"
        )
    return np.column_stack([as_floats(X[column]) for column in X.columns])


def reference(X: Floats, kind: Literal["zero", "mean"]) -> Floats:
    """The record of no features that others (n, …) are compared with, (1, …)."""
    return np.zeros_like(X[:1]) if kind == "zero" else X.mean(axis=0, keepdims=True)
