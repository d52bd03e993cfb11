"""The door: whatever a user hands in becomes a model and records, or one clear sentence."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.errors import InputError, ModelError, RecordsError
from leakscope.models import as_model, class_numbers
from leakscope.models.boosters import BoosterModel
from leakscope.models.callable import CallableModel
from leakscope.models.feature_columns import has_columns, matching_columns
from leakscope.protocols import Bools, Labels, Model, Task
from leakscope.records import Records
from leakscope.records.checks import checked_column, holds_numbers, listed, shown

PROBE = 5  # rows asked about before the long work starts
MOST_GROUPS = 100  # values of a group column: more are numbers, and no groups
MOST_VALUES = 200  # and as many different texts of each column, so that an encoder is tried


def enter_model(
    thing: Any, data: Any, label: str | None, classes: Labels | None, task: Task | None
) -> Model:
    """The model behind the protocol; functions and boosters take their classes from the labels."""
    unlabelled = CallableModel.accepts(thing) or BoosterModel.accepts(thing)
    if classes is None and task != "regression" and unlabelled:
        y = _labels_of(data, label)
        own = getattr(getattr(thing, "__self__", None), "classes_", None)
        if own is not None and y is not None and {*y.tolist()} <= {*np.asarray(own).tolist()}:
            classes = own  # a method of an estimator that was trained on these labels
        else:
            classes = None if y is None or _count_from_zero(y) else np.unique(y)
    return as_model(thing, classes=classes, task=task)


def _labels_of(data: Any, label: str | None) -> Labels | None:
    """The members' labels, (n,); None where they cannot be found, which is said later."""
    if isinstance(data, Records):
        return data.y
    if isinstance(data, pd.DataFrame):
        found = data[label] if label in data.columns else None
    else:
        found = data[1] if _is_pair(data) else None
    if found is None:
        return None
    return checked_column(found, len(found) if np.ndim(found) else 0, "label", "members")


def _count_from_zero(y: Labels) -> bool:
    """Whether the labels can be the numbers of a function's columns."""
    return y.dtype.kind in "biuf" and bool((y >= 0).all() and (y == np.floor(y)).all())


def _is_pair(data: Any) -> bool:
    return isinstance(data, tuple | list) and len(data) == 2


def feature_names(model: Model, data: Any) -> list[str] | None:
    """The names a model has for its columns; None where it has none.

    Default names, such as the Column_0 of LightGBM, count only where the table has them all.
    """
    names: list[str] | None = getattr(model, "feature_names", None)
    default = getattr(model, "default_names", None)
    table = data.X if isinstance(data, Records) else data[0] if _is_pair(data) else data
    by_default = isinstance(table, pd.DataFrame) and has_columns(table, default)
    return default if by_default else names


def column_notes(model: Model, side: Records, names: Sequence[str] | None) -> list[str]:
    """What the report says of a table whose columns have no names in the model."""
    if names is not None or not isinstance(side.X, pd.DataFrame):
        return []
    if not getattr(model, "reads_by_position", False):
        return []
    return [
        "The model has no column names, so its columns are those of the table in this order: "
        f"{listed(side.X.columns)}. Check that this is the order of its training."
    ]


def enter_records(
    data: Any,
    side: str,
    *,
    label: str | None,
    groups: Sequence[str] | None,
    unit: str | None,
    features: Sequence[str] | None,
) -> Records:
    """Records from Records, a DataFrame with label=, or a pair (X, y).

    features: the names a model has for its columns, taken from a table that may have more.
    """
    if isinstance(groups, str):
        raise InputError(f"The groups are {groups!r}; give a list of names, such as [{groups!r}]")
    if isinstance(data, Records):
        return _with_groups(_with_features(data, features), side, groups, unit)
    if isinstance(data, pd.DataFrame):
        if label is None:
            raise InputError(
                f"The {side} are a DataFrame; name the column of their labels with label="
            )
        return _from_frame(data, label, side, groups, unit, features)
    if not _is_pair(data):
        raise InputError(
            f"The {side} are a {type(data).__name__}; pass (X, y), a DataFrame with label=, or "
            "Records"
        )
    X, y = data
    if isinstance(X, pd.DataFrame):
        return _from_frame(X, y, side, groups, unit, features)
    wanted = [*(groups or ()), *([] if unit is None else [unit])]
    if wanted:
        raise InputError(
            f"The {side} are arrays, which have no column {wanted[0]!r}; pass Records with groups= "
            "and unit=, or a DataFrame"
        )
    return Records(X, y, name=side)


def _from_frame(
    frame: pd.DataFrame,
    label: Any,
    side: str,
    groups: Sequence[str] | None,
    unit: str | None,
    features: Sequence[str] | None,
) -> Records:
    columns = None if features is None else matching_columns(features, frame)
    for column in columns or ():
        if column not in frame.columns:
            raise InputError(
                f"The {side} have no column {column!r}, which the model was trained on; they have: "
                f"{listed(frame.columns)}"
            )
    return Records.from_frame(
        frame, label, groups=groups or (), unit=unit, features=columns, name=side
    )


def _with_features(records: Records, features: Sequence[str] | None) -> Records:
    """The records with the columns of a model in the order of its training, if they have them."""
    if not isinstance(records.X, pd.DataFrame) or not has_columns(records.X, features):
        return records  # a model that needs other columns says so
    return replace(records, X=records.X[matching_columns(features or (), records.X)])


def _with_groups(
    records: Records, side: str, groups: Sequence[str] | None, unit: str | None
) -> Records:
    for name in groups or ():
        if name not in records.groups:
            have = listed(records.groups) or "none"
            raise InputError(f"The {side} have no group {name!r}; they have: {have}")
    if unit is not None and records.unit is None:
        raise InputError(
            f"The {side} are Records without units, where unit is {unit!r}; make them with "
            "Records(X, y, unit=…)"
        )
    kept = records.groups if groups is None else {name: records.groups[name] for name in groups}
    return replace(records, groups=kept, name=side)


def check_side(model: Model, records: Records) -> None:
    """Refuse records the model cannot answer for, naming the column and the row."""
    for name, values in records.groups.items():
        if (found := len(set(values))) > MOST_GROUPS:
            raise InputError(
                f"The group {name!r} has {found} different values among {len(records)} "
                f"{records.name}, where {MOST_GROUPS} at most can be told apart; give bands of it"
            )
    if "queries" in model.abilities:
        _probe_features(model, records)
    if model.task == "regression":
        if records.y.dtype.kind not in "biuf":
            raise RecordsError(
                f"The label of the {records.name} is {shown(records.y[0])} in row 0 where "
                f"{model.name} predicts numbers; give numbers"
            )
        return
    truth = class_numbers(model, records.y, records.name)
    if (truth == truth[0]).all():
        raise RecordsError(
            f"All {len(records)} {records.name} have the label {shown(records.y[0])}; "
            "an audit needs records of two classes on both sides"
        )


def missing_values(records: Records) -> int:
    """How many features are missing in all."""
    return int(_missing(records).sum())


def _missing(records: Records) -> Bools:
    """Which features are missing, (n, d)."""
    if isinstance(records.X, pd.DataFrame):
        return records.X.isna().to_numpy()
    flat = records.X.reshape(len(records), -1)
    # Something is missing only if the sum is: images need no second array of their size.
    with np.errstate(over="ignore", invalid="ignore"):
        if flat.dtype.kind != "f" or not np.isnan(flat.sum()):
            return np.broadcast_to(np.False_, flat.shape)
    return np.isnan(flat)


def _probe_features(model: Model, records: Records) -> None:
    """Ask about a few telling records, so that what is wrong is said before the long work."""
    missing = _missing(records)
    complete = np.flatnonzero(~missing.any(axis=1))
    if len(complete):
        _ask(model, records, _telling_rows(records, complete))
    columns = np.flatnonzero(missing.any(axis=0))
    if len(columns):
        rows = missing.argmax(axis=0)[columns]  # the first gap of each column
        try:
            _ask(model, records, np.unique(rows))
        except ModelError as error:
            # Where every record has a gap, only the message can tell what the trouble is.
            if len(complete) or re.search(r"\bnan\b|missing", _cause(error), re.IGNORECASE):
                raise _gap(model, records, columns, rows) from error
            raise


def _telling_rows(records: Records, complete: NDArray[np.intp]) -> NDArray[np.intp]:
    """The first complete records, and the first with each text of each column."""
    rows = set(complete[:PROBE].tolist())
    for column in _text_columns(records):
        repeated = column.iloc[complete].astype(str).duplicated().to_numpy()
        rows.update(complete[~repeated][:MOST_VALUES].tolist())
    return np.array(sorted(rows))


def _text_columns(records: Records) -> list[pd.Series[Any]]:
    if not isinstance(records.X, pd.DataFrame):
        return []
    columns = [records.X[name] for name in records.X.columns]
    return [column for column in columns if not holds_numbers(column)]


def _ask(model: Model, records: Records, rows: NDArray[np.intp]) -> None:
    try:
        model.predict(records.take(rows).X)
    except ModelError as error:
        text = _text(model, records, rows, _cause(error))
        if text is None:
            raise
        raise text from error


def _cause(error: ModelError) -> str:
    """The whole message of what the model raised; ours keeps the first line."""
    return str(error.__cause__ or error)


def _text(
    model: Model, records: Records, rows: NDArray[np.intp], message: str
) -> RecordsError | None:
    """The text the model stumbled over, if its message names a value or a type of column."""
    for column in _text_columns(records):
        told = f"Column {shown(column.name)} of the {records.name}"
        # LightGBM: "Fields with bad pandas dtypes: job: str"; XGBoost: "Invalid columns:job: str".
        named = re.search(rf"(?<!\w){re.escape(str(column.name))}: ", message)
        by_type = "dtype" in message and named is not None
        for row in rows:
            value = column.iloc[row]
            if not by_type and not (isinstance(value, str) and repr(value) in message):
                continue
            if "unknown categor" in message.lower():
                return RecordsError(
                    f"{told} holds {value!r} in row {row} (counting from 0), which the encoder of "
                    f"{model.name} does not know; drop such rows, or let the encoder ignore them"
                )
            return RecordsError(
                f"{told} is not numeric (row {row}, counting from 0, holds {value!r}) and "
                f"{model.name} has no encoder for it; put an encoder into the model's pipeline"
            )
    return None


def _gap(
    model: Model, records: Records, columns: NDArray[np.intp], rows: NDArray[np.intp]
) -> RecordsError:
    """The first column whose gaps the model refuses, and its first such row."""
    place = next(
        (at for at, row in enumerate(rows) if not _answers(model, records, row)),
        0,
    )
    column, row = int(columns[place]), rows[place]
    name: Hashable = column
    if isinstance(records.X, pd.DataFrame):
        name = records.X.columns[column]
    return RecordsError(
        f"Column {shown(name)} of the {records.name} is missing in row {row} (counting from 0) and "
        f"{model.name} refuses missing values; fill it, or put an imputer into the model's pipeline"
    )


def _answers(model: Model, records: Records, row: int) -> bool:
    try:
        model.predict(records.take(np.array([row])).X)
    except ModelError:
        return False
    return True
