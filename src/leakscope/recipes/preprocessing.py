"""What comes before an estimator: tables encoded and filled, images flattened.

All that is learned here (medians, scales, categories) is learned from the records that a model is
trained on, whenever one is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from leakscope.records import Features
from leakscope.records.checks import listed
from leakscope.records.content import is_quantity, plain_column

# Per column of text; the rarer ones share an indicator, or names and codes would fill the memory.
MOST_CATEGORIES = 100
# On average, in a column of sentences; categories have fewer.
WORDS = 4
# Columns that the words of a column of sentences are counted in.
HASHED = 64
# Texts that are looked at to tell whether they are sentences.
LOOKED_AT = 1000

NUMBERS, CATEGORIES, SENTENCES = "numbers", "categories", "sentences"


def with_preprocessing(estimator: Any, X: Features) -> Any:
    """The estimator as it is for arrays of numbers; for images flattened; for tables encoded."""
    if isinstance(X, pd.DataFrame):
        numbers = make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
        )
        categories = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=MOST_CATEGORIES,
            sparse_output=False,
        )
        columns = ColumnTransformer(
            [
                (NUMBERS, numbers, number_columns),
                (CATEGORIES, categories, category_columns),
                (SENTENCES, FunctionTransformer(counted_words), sentence_columns),
            ]
        )
        return make_pipeline(PlainTable(), columns, estimator)
    if X.ndim > 2:
        return make_pipeline(FunctionTransformer(flatten), estimator)
    return estimator


class PlainTable(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A table in two types of column: numbers, with NaN for gaps, and text without gaps.

    Each column keeps the type it has in the records of ``fit``, also where other records differ.
    """

    def fit(self, frame: pd.DataFrame, y: Any = None) -> PlainTable:
        """Learn which columns hold numbers, and the names of all, as scikit-learn keeps them."""
        if all(isinstance(name, str) for name in frame.columns):
            self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        self.numbers_ = [name for name in frame.columns if is_quantity(frame[name])]
        return self

    def transform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table in these types, its columns named by text."""
        numbers = {*self.numbers_}
        return pd.DataFrame(
            {str(name): plain_column(frame[name], name in numbers) for name in frame.columns}
        )


def number_columns(frame: pd.DataFrame) -> list[str]:
    """The columns of a plain table that hold numbers."""
    return [name for name in frame.columns if frame[name].dtype.kind == "f"]


def category_columns(frame: pd.DataFrame) -> list[str]:
    """The columns of a plain table that hold categories."""
    others = {*number_columns(frame), *sentence_columns(frame)}
    return [name for name in frame.columns if name not in others]


def sentence_columns(frame: pd.DataFrame) -> list[str]:
    """The columns of a plain table that hold sentences."""
    texts = [name for name in frame.columns if frame[name].dtype.kind != "f"]
    return [name for name in texts if is_prose(frame[name])]


def is_prose(column: pd.Series[Any]) -> bool:
    """Whether the texts are sentences: several words each, and more of them than categories."""
    distinct = pd.Series(column.dropna().unique())
    if len(distinct) <= MOST_CATEGORIES:
        return False
    words = [len(str(text).split()) for text in distinct.head(LOOKED_AT)]
    return bool(np.mean(words) >= WORDS)


def counted_words(frame: pd.DataFrame) -> NDArray[np.float64]:
    """How often the words of each column occur, in as many columns as a hash of words has."""
    count = HashingVectorizer(n_features=HASHED, alternate_sign=False)
    return np.hstack([count.transform(frame[name]).toarray() for name in frame.columns])


def describe_preprocessing(model: Any) -> list[str]:
    """What a fitted pipeline of with_preprocessing does to which columns; nothing for others."""
    columns = next(
        (step for _, step in getattr(model, "steps", ()) if isinstance(step, ColumnTransformer)),
        None,
    )
    if columns is None or {name for name, _, _ in columns.transformers} - {
        NUMBERS,
        CATEGORIES,
        SENTENCES,
    }:
        return []
    told = []
    for kind, fitted, names in columns.transformers_:
        if kind == NUMBERS and names:
            told.append(f"Numbers, gaps filled with the median, standardized: {listed(names)}.")
        if kind == CATEGORIES and names:
            told.append(f"Categories, an indicator per value, gaps too: {listed(names)}.")
            told += _shared(names, fitted)
        if kind == SENTENCES and names:
            told.append(f"Sentences, words counted in {HASHED} columns each: {listed(names)}.")
    return told


def _shared(names: Sequence[str], encoder: OneHotEncoder) -> list[str]:
    """Which columns had more values than there may be indicators."""
    rare = {
        name: len(values)
        for name, values, shared in zip(
            names, encoder.categories_, encoder.infrequent_categories_, strict=True
        )
        if shared is not None
    }
    if not rare:
        return []
    counts = listed(f"{name} ({count:,})" for name, count in rare.items())
    return [f"The {MOST_CATEGORIES - 1} most frequent values each, the others share one: {counts}."]


def flatten(X: NDArray[Any]) -> NDArray[Any]:
    """(n, …) as (n, d)."""
    return X.reshape(len(X), -1)
