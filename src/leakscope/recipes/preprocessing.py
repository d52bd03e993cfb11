"""What comes before an estimator: tables encoded and filled, images flattened."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from leakscope.records import Features
from leakscope.records.checks import as_floats

# Per column of text; the rarer ones share an indicator, or names and codes would fill the memory.
MOST_CATEGORIES = 100


def with_preprocessing(estimator: Any, X: Features) -> Any:
    """The estimator as it is for arrays of numbers; for images flattened; for tables encoded."""
    if isinstance(X, pd.DataFrame):
        numbers = make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
        )
        texts = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=MOST_CATEGORIES,
            sparse_output=False,
        )
        columns = make_column_transformer(
            (numbers, make_column_selector(dtype_include="number")),
            (texts, make_column_selector(dtype_exclude="number")),
        )
        return make_pipeline(FunctionTransformer(plain_table), columns, estimator)
    if X.ndim > 2:
        return make_pipeline(FunctionTransformer(flatten), estimator)
    return estimator


def plain_table(frame: pd.DataFrame) -> pd.DataFrame:
    """The same table in two types of column: numbers, with NaN for gaps, and text without gaps.

    Truth values are 0 and 1; dates are days since 1970.
    """
    return pd.DataFrame({str(column): _plain_column(frame[column]) for column in frame.columns})


def _plain_column(column: pd.Series[Any]) -> NDArray[Any]:
    if pd.api.types.is_datetime64_any_dtype(column):
        since = pd.to_datetime(column, utc=True) - pd.Timestamp(0, tz="UTC")
        return (since / pd.Timedelta(days=1)).to_numpy(dtype=np.float64)
    if pd.api.types.is_numeric_dtype(column):
        return as_floats(column)
    return column.astype(object).where(column.notna(), "missing").astype(str).to_numpy(dtype=object)


def flatten(X: NDArray[Any]) -> NDArray[Any]:
    """(n, …) as (n, d)."""
    return X.reshape(len(X), -1)
