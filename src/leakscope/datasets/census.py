"""Adult: the census data set inside the package."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.datasets.catalog import DataFolder, about
from leakscope.datasets.encoding import (
    UNKNOWN,
    as_features,
    codes,
    levels_of,
    one_hot,
    unit_components,
)
from leakscope.datasets.files import read_bundled
from leakscope.errors import InputError
from leakscope.options import one_of, whole_number
from leakscope.records import Features, Records
from leakscope.registry import register

NUMERIC = [
    "age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week",
]  # fmt: skip
CATEGORICAL = [
    "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex",
    "native-country",
]  # fmt: skip
COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country",
]  # fmt: skip
LABEL = "income"
POORER, RICHER = "<=50K", ">50K"

_BAND_STARTS = [25, 35, 45, 55, 65]
_BANDS = np.array(["under 25", "25-34", "35-44", "45-54", "55-64", "65+"], dtype=object)
_COMPONENTS = 5


@register("dataset", "adult", paper="Kohavi 1996 (KDD), Scaling up the accuracy of naive Bayes")
@about(
    source="https://doi.org/10.24432/C5XW20 (Becker & Kohavi 1996, UCI); inside the package",
    license="CC BY 4.0",
)
def adult(
    folder: DataFolder,
    *,
    encoding: str = "onehot",
    components: int = _COMPONENTS,
    frame: bool = False,
) -> Records:
    """Census of 1994, 48,842 adults: who earns more than 50,000 dollars a year.

    encoding:
      - ``onehot``: 104 numbers, as in Shokri, Strobel & Zick (2021, appendix B.4): the 6 numeric
        columns divided by twice their mean; one indicator per category, all zero where it is
        unknown; one column for sex. The label is 1 for ``>50K`` and 0 for ``<=50K``.
      - ``pca``: categories as integers in sorted order (unknown is one), standardized, principal
        components, each column of norm 1, as in Farokhi & Kaafar (2020, section 6.1); the label is
        the same.
      - ``table``: the 14 columns and the class names as they are, for a model with its own encoder.

    components: how many principal components, with ``pca`` only. frame: features as a DataFrame
    with names. Groups: ``sex``, ``race`` and bands of ``age``.
    """
    one_of("encoding", encoding, ["onehot", "pca", "table"])
    whole_number("components", components, 1, len(COLUMNS))
    if components != _COMPONENTS and encoding != "pca":
        raise InputError(
            f"The option components goes with encoding='pca', not with {encoding!r}; leave it out"
        )
    table = _read_table()
    richer = (table[LABEL] == RICHER).to_numpy()
    X: Features
    if encoding == "onehot":
        X = _one_hot_features(table, frame)
    elif encoding == "pca":
        scores = unit_components(codes(table[COLUMNS]), components)
        X = as_features(scores, [f"component {i + 1}" for i in range(components)], frame)
    else:
        X = table[COLUMNS]
    return Records(
        X=X,
        y=np.where(richer, RICHER, POORER) if encoding == "table" else richer.astype(np.int64),
        groups={
            "sex": table["sex"].to_numpy(dtype=object),
            "race": table["race"].to_numpy(dtype=object),
            "age": age_bands(table["age"].to_numpy()),
        },
        name="adult records",
    )


def age_bands(age: NDArray[Any]) -> NDArray[Any]:
    """The band of ten years each age is in, (n,); the youngest and the oldest are wider."""
    bands: NDArray[Any] = _BANDS[np.searchsorted(_BAND_STARTS, age, side="right")]
    return bands


def _read_table() -> pd.DataFrame:
    """Both files, the training part first; in the second a comment goes and the labels' dots."""
    parts = [
        pd.read_csv(
            BytesIO(read_bundled(name)),
            names=[*COLUMNS, LABEL],
            skipinitialspace=True,
            comment="|",
            keep_default_na=False,
        )
        for name in ("adult.data.xz", "adult.test.xz")
    ]
    table = pd.concat(parts, ignore_index=True)
    table[LABEL] = table[LABEL].str.removesuffix(".")
    return table


def _one_hot_features(table: pd.DataFrame, frame: bool) -> Features:
    numbers = table[NUMERIC].to_numpy(dtype=np.float64)
    levels = {
        column: [value for value in values if value != UNKNOWN]
        for column, values in levels_of(table, CATEGORICAL).items()
    }
    indicators, names = one_hot(table, levels)
    matrix = np.hstack([numbers / (2 * numbers.mean(axis=0)), indicators])
    return as_features(matrix, [*NUMERIC, *names], frame)
