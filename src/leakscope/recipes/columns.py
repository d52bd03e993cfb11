"""Which columns of a table a model is trained on, and how each is read.

A table from a file says little about its columns: a number may be written as text, and a row's
number looks like a quantity. What a column is gets decided here, on both sides together and without
the labels, so that it says nothing about who is a member. Nothing is fitted here: means, medians
and categories are learned by each model from its own members, in ``preprocessing``.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from leakscope.recipes.preprocessing import is_prose
from leakscope.recipes.written import Written, as_texts, read_column, way_of
from leakscope.records.checks import as_floats, holds_numbers, listed

# With fewer records, many a plain column has a different value in each.
FEWEST = 50
# The share of different texts from which a column names its rows instead of describing them.
DIFFERENT = 0.9
# How much wider than their number whole numbers that count rows may lie.
SPARSE = 2

IDENTIFIER = "different in every row, as an identifier is"
CONSTANT = "the same in every row"
EMPTY = "without a value in any row"

_NAMED = re.compile(r"(^|[\W_])(?i:id|ids|key|uuid|guid|index|idx|nr|no|number|row)$|[a-z](Id|ID)$")


@dataclass(frozen=True)
class Reading:
    """How the columns of a table are read, and which are left out, with the reason for each.

    texts: columns that hold text, and that some file holds in another type.
    """

    features: tuple[Hashable, ...]
    written: Mapping[Hashable, Written] = field(default_factory=dict)
    texts: frozenset[Hashable] = frozenset()
    left_out: Mapping[Hashable, str] = field(default_factory=dict)

    def read(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table with its columns read; those that are left out of the features stay in it."""
        columns: dict[Any, Any] = {
            name: read_column(frame[name], way) for name, way in self.written.items()
        }
        columns |= {name: as_texts(frame[name]) for name in self.texts}
        return pd.DataFrame({name: columns.get(name, frame[name]) for name in frame.columns})

    def sentences(self) -> list[str]:
        """What was decided, for people."""
        told = []
        for kind, means in (("numbers", ""), ("dates", ", as days since 1970")):
            ways: dict[str, list[Any]] = {}
            for name, way in self.written.items():
                if way.kind == kind:
                    ways.setdefault(way.example, []).append(name)
            told += [
                f"Read as {kind} written like {example}{means}: {listed(names)}."
                for example, names in ways.items()
            ]
        for reason in (IDENTIFIER, CONSTANT, EMPTY):
            names = [name for name, why in self.left_out.items() if why == reason]
            if names:
                told.append(f"Left out, {reason}: {listed(names)}.")
        return told


def read_columns(
    tables: Sequence[pd.DataFrame], columns: Sequence[Hashable], *, keep: bool = False
) -> Reading:
    """What each of these columns of the tables holds; keep: nothing is left out of the features."""
    written: dict[Hashable, Written] = {}
    texts: set[Hashable] = set()
    left_out: dict[Hashable, str] = {}
    for name in columns:
        if not all(name in table.columns for table in tables):
            continue  # refused by Records, which says who lacks it
        parts = [table[name] for table in tables]
        # One at a time: no more than a column is there twice.
        whole = pd.concat(parts, ignore_index=True)
        if not holds_numbers(whole):
            distinct = as_texts(whole).dropna().unique().tolist()
            if (way := way_of(distinct)) is not None:
                written[name] = way
                whole = read_column(whole, way)
            elif any(part.dtype != "str" for part in parts):
                texts.add(name)
        if not keep and (reason := _why_not(str(name), whole, [len(part) for part in parts])):
            left_out[name] = reason
    used = {name: way for name, way in written.items() if name not in left_out}
    features = tuple(name for name in columns if name not in left_out)
    return Reading(features, used, frozenset(texts - set(left_out)), left_out)


def _why_not(name: str, column: pd.Series[Any], sizes: Sequence[int]) -> str:
    """Why a column tells a model nothing, or too much; empty where it is an ordinary one."""
    distinct = column.nunique()
    if distinct == 0:
        return EMPTY
    if distinct == 1 and column.notna().all():
        return CONSTANT
    if len(column) < FEWEST:
        return ""
    if holds_numbers(column):
        return IDENTIFIER if _counts_rows(name, column, sizes) else ""
    several = distinct >= DIFFERENT * column.notna().sum() >= DIFFERENT * FEWEST
    return IDENTIFIER if several and not is_prose(column) else ""


def _counts_rows(name: str, column: pd.Series[Any], sizes: Sequence[int]) -> bool:
    """Whether these are whole numbers, none of them twice, that count the rows or are named so."""
    numbers = as_floats(column)
    if np.isnan(numbers).any() or (numbers != np.floor(numbers)).any():
        return False
    if len(np.unique(numbers)) < len(numbers):
        return False
    dense = numbers.max() - numbers.min() < SPARSE * len(numbers)
    sides = np.split(numbers, np.cumsum(sizes)[:-1])
    ascending = all((np.diff(side) > 0).all() for side in sides)
    return bool(dense or ascending or _NAMED.search(name))
