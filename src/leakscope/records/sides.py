"""Two sides as one: features, labels and groups that must be of the same kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.errors import RecordsError
from leakscope.records.checks import Features, holds_numbers, shown


def joined_features(members: Features, nonmembers: Features) -> Features:
    """Features of both sides, (n, …); columns of tables are matched by name."""
    if isinstance(members, pd.DataFrame) and isinstance(nonmembers, pd.DataFrame):
        return _joined_frames(members, nonmembers)
    if isinstance(members, pd.DataFrame) or isinstance(nonmembers, pd.DataFrame):
        raise RecordsError("One side is a DataFrame and the other an array; give both as one kind")
    if members.shape[1:] != nonmembers.shape[1:]:
        raise RecordsError(
            f"Members have features of shape {members.shape[1:]} and non-members of "
            f"{nonmembers.shape[1:]}; give both the same columns"
        )
    return np.concatenate([members, nonmembers])


def _joined_frames(members: pd.DataFrame, nonmembers: pd.DataFrame) -> pd.DataFrame:
    alone = set(members.columns) ^ set(nonmembers.columns)
    if alone:
        column = min(alone, key=str)
        side = "members" if column in members.columns else "non-members"
        raise RecordsError(f"Only the {side} have the column {shown(column)}; give both the same")
    return pd.DataFrame(
        {
            column: _joined_column(members[column], nonmembers[column], shown(column))
            for column in members.columns
        }
    )


def _joined_column(
    first: pd.Series[Any], second: pd.Series[Any], column: str
) -> pd.Series[Any] | pd.Categorical:
    categorical = [isinstance(one.dtype, pd.CategoricalDtype) for one in (first, second)]
    if all(categorical):
        # Side by side, unequal categories would become objects, which the model may not take.
        if first.dtype == second.dtype:
            return pd.concat([first, second], ignore_index=True)
        return pd.api.types.union_categoricals([first, second])
    if holds_numbers(first) != holds_numbers(second) and _any_value(first) and _any_value(second):
        raise RecordsError(
            f"Column {column} is like {shown(_any_value(first)[0])} for members and like "
            f"{shown(_any_value(second)[0])} for non-members; give both sides one kind"
        )
    return pd.concat([first, second], ignore_index=True)


def _any_value(column: pd.Series[Any]) -> list[Any]:
    """The first value that is not missing, in a list; empty if all are."""
    return column.dropna().head(1).tolist()


def joined_labels(members: NDArray[Any], nonmembers: NDArray[Any], what: str) -> NDArray[Any]:
    """Labels or units of both sides, (n,)."""
    # numpy would silently turn [0, 1] + ["0", "1"] into text: the sides must be of one kind.
    if (members.dtype.kind in "biuf") != (nonmembers.dtype.kind in "biuf"):
        raise RecordsError(
            f"The {what}s of members are like {shown(members[0])} and those of non-members like "
            f"{shown(nonmembers[0])}; give both sides one kind of {what}"
        )
    return np.concatenate([members, nonmembers])


def joined_groups(
    members: Mapping[str, NDArray[Any]], nonmembers: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Groups of both sides, {name: (n,)}."""
    alone = sorted(members.keys() ^ nonmembers.keys())
    if alone:
        side = "members" if alone[0] in members else "non-members"
        raise RecordsError(f"Only the {side} have the group {alone[0]!r}; give it for both")
    return {name: np.concatenate([values, nonmembers[name]]) for name, values in members.items()}
