"""Columns that look as if they name the person a row belongs to, where no unit was named.

The values of such a column repeat, and each keeps to one side of the audit. A split that puts rows
and not persons on their sides would tear most of them apart.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from leakscope.protocols import Bools
from leakscope.records import Records
from leakscope.records.checks import listed, shown
from leakscope.records.content import plain_column

# How many values would be on both sides, were rows drawn one by one: with fewer, a few towns or
# years would look like persons.
FEWEST = 20
# The share of them that may be on both sides all the same.
TORN = 0.05
# From this AUC on, the values of one side are larger: a date or an amount that drifts.
APART = 0.9

_NAMED = re.compile(
    r"(^|[\W_])(id|person|patient|subject|customer|user|client|participant|household|account)s?"
    r"($|[\W_])",
    re.IGNORECASE,
)


def person_columns(frame: pd.DataFrame, membership: Bools) -> list[str]:
    """The names of the columns, of features of both sides, that may name persons."""
    return [
        str(name)
        for name in frame.columns
        if not pd.api.types.is_datetime64_any_dtype(frame[name])
        and _keeps_to_one_side(str(name), frame[name], membership)
    ]


def unit_hint(names: list[str]) -> str:
    """What to do about columns that may name persons; empty where there are none."""
    if not names:
        return ""
    columns = listed(map(shown, names))
    return (
        f"The values of {columns} repeat and hardly ever stand on both sides. If they name the "
        "person a row belongs to, give that column as --unit (unit=)."
    )


def table_of(records: Records) -> pd.DataFrame:
    """Features and groups of records as a table; without the features of images."""
    X = records.X
    if not isinstance(X, pd.DataFrame):
        X = pd.DataFrame(X if X.ndim == 2 else np.empty((len(X), 0)))
    groups = {name: values for name, values in records.groups.items() if name not in X.columns}
    return X.assign(**groups)


def _keeps_to_one_side(name: str, column: pd.Series[Any], membership: Bools) -> bool:
    present = column.notna().to_numpy()
    values, inside = plain_column(column)[present], membership[present]
    if values.dtype.kind == "f" and (values != np.floor(values)).any():
        return False  # fractions are measured
    codes = np.unique(values, return_inverse=True)[1]
    rows, members = np.bincount(codes), np.bincount(codes, inside)
    share = membership.mean()
    expected = (1 - share**rows - (1 - share) ** rows).sum()
    torn = ((members > 0) & (members < rows)).sum()
    if expected < FEWEST or torn > TORN * expected:
        return False
    return not _apart(members == rows) or _NAMED.search(name) is not None


def _apart(inside: Bools) -> bool:
    """Whether values in ascending order, (k,), are of one side first and then of the other."""
    mine = int(inside.sum())
    others = len(inside) - mine
    if not mine or not others:
        return True
    ranks = np.flatnonzero(inside) + 1
    auc = (ranks.sum() - mine * (mine + 1) / 2) / (mine * others)
    return bool(max(auc, 1 - auc) > APART)
