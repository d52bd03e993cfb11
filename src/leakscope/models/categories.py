"""The categories that a model of XGBoost was trained on, as its own file holds them.

XGBoost refuses a category that was not in training. Who serves a model gives the column the
categories of training, whereupon any other is a missing value; so it is done here. XGBoost 3.2 cuts
texts into pieces by their number of letters, where it should by bytes: with any letter beyond ASCII
it takes one category for another, and such a model is refused.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from leakscope.errors import ModelError
from leakscope.records.checks import shown


@dataclass(frozen=True)
class Categories:
    """The categories of one column: whole numbers, or texts."""

    values: frozenset[int] | frozenset[str]

    def column(self, name: str, column: pd.Series[Any]) -> pd.Categorical[Any]:
        """The column as categories of training; others are missing, and a warning says so."""
        codes, distinct = pd.factorize(column)
        own = [self._own(value) for value in distinct.tolist()]
        unseen = [value for value, mine in zip(distinct.tolist(), own, strict=True) if mine is None]
        if unseen:
            warnings.warn(
                f"Column {name!r} holds categories that were not in the training of XGBoost, such "
                f"as {shown(unseen[0])}; they are asked about as missing values",
                stacklevel=2,
            )
        # XGBoost takes no column without any category.
        there: Any = sorted({one for one in own if one is not None}) or sorted(self.values)[:1]
        return pd.Categorical(np.array([*own, None], dtype=object)[codes], categories=there)

    def _own(self, value: Any) -> int | str | None:
        """The category of training that a value is; None if it is none of them."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # a gap turns a column of whole numbers into floats
        return value if value in self.values else None


def categories_of(booster: Any) -> dict[int, Categories]:
    """The categories of each column that has some, by its place; empty where a file has none."""
    model = json.loads(booster.save_raw(raw_format="json"))["learner"]["gradient_booster"]
    model = model.get("gbtree", model).get("model", {})  # dart holds a gbtree
    held = model.get("cats", {}).get("enc", [])
    return {place: _read(one) for place, one in enumerate(held) if one["values"]}


def _read(held: dict[str, Any]) -> Categories:
    if "offsets" not in held:
        return Categories(frozenset(held["values"]))
    if min(held["values"]) < 0:
        raise ModelError(
            "This model of XGBoost has categories with letters beyond ASCII, which it does not "
            "tell apart; train it on other names, or save its answers and audit those"
        )
    text = bytes(held["values"]).decode("ascii")
    return Categories(frozenset(text[start:end] for start, end in pairwise(held["offsets"])))
