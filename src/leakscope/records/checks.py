"""What records must be like: each check passes, or says in one sentence which value is wrong."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.errors import RecordsError

Features: TypeAlias = "np.ndarray[Any, Any] | pd.DataFrame"

# What pandas.api.types.infer_dtype calls columns of numbers, some of which may be missing.
_NUMBERS = {"boolean", "decimal", "empty", "floating", "integer", "mixed-integer-float"}

# Whole numbers from here on fit no type of numpy: they are names, and not quantities.
TOO_LARGE = 2**64

MOST_LISTED = 10  # names in a sentence
MOST_SHOWN = 80  # characters of a value or a name in it, which may be a whole file


def checked_features(X: Any, name: str) -> Features:
    """Features (n, …) that are numbers, or a table whose numbers are finite or missing."""
    if hasattr(X, "toarray"):
        raise RecordsError(
            f"The features of the {name} are a sparse matrix; pass X.toarray(), or a DataFrame and "
            "a model whose own pipeline encodes it"
        )
    if isinstance(X, pd.DataFrame):
        return _checked_frame(X, name)
    array = _as_array(X, f"features of the {name}")
    if array.ndim < 2:
        raise RecordsError(
            f"The features of the {name} have shape {array.shape}, where (records, features) is "
            "needed; reshape them with X.reshape(-1, 1) if there is one feature"
        )
    if array.size == 0:
        raise RecordsError(f"The {name} are empty: features of shape {array.shape}; give some")
    if array.dtype.kind not in "biuf":
        array = _as_numbers(array, name)
    _refuse_infinite(array, range(array[0].size), name)
    return array


def _checked_frame(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    if frame.size == 0:
        raise RecordsError(f"The {name} are empty: features of shape {frame.shape}; give some")
    refuse_repeated_columns(frame, name)
    for column in frame.columns:
        values = frame[column]
        if values.dtype.kind == "c":
            raise _not_numeric(column, 0, values.iloc[0], name)
        if holds_numbers(values):
            _refuse_infinite(as_floats(values), [column], name)
    return frame.reset_index(drop=True)


def refuse_repeated_columns(frame: pd.DataFrame, name: str) -> None:
    """Two columns of one name cannot be told apart."""
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise RecordsError(
            f"The {name} have two columns named {shown(repeated[0])}; rename or drop one"
        )


def holds_numbers(column: pd.Series[Any]) -> bool:
    """Whether these are numbers or truth values, whatever the type; some may be missing.

    A column with a whole number of more than 64 bits holds names: as floats, they would be equal.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.categories.to_series()
    if column.dtype == object:
        kind = pd.api.types.infer_dtype(column, skipna=True)
        return kind in _NUMBERS and not ("integer" in kind and _any_too_large(column))
    return pd.api.types.is_numeric_dtype(column)


def _any_too_large(column: pd.Series[Any]) -> bool:
    return any(isinstance(value, int) and abs(value) >= TOO_LARGE for value in column)


def as_floats(column: pd.Series[Any]) -> NDArray[np.float64]:
    """A column that holds numbers as floats, (n,); what is missing is NaN."""
    return pd.Series(np.asarray(column)).to_numpy(dtype=np.float64, na_value=np.nan)


def checked_column(values: Any, n: int, what: str, name: str) -> NDArray[Any]:
    """Labels or units, (n,): numbers, truth values or text, none of them missing."""
    array = _single_column(values, f"{what} of the {name}")
    if len(array) != n:
        raise RecordsError(
            f"The {name} have {n} rows of features and {len(array)} of {what}; give as many of both"
        )
    missing = np.flatnonzero(pd.isna(array))
    if len(missing):
        raise RecordsError(
            f"The {what} of the {name} is missing in row {missing[0]} (counting from 0); "
            "fill it or drop the row"
        )
    array = one_kind(array, what, name)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        row = np.flatnonzero(np.isinf(array))[0]
        raise RecordsError(
            f"The {what} of the {name} is infinite in row {row} (counting from 0); "
            "replace it or drop the row"
        )
    return array


def one_kind(array: NDArray[Any], what: str, name: str) -> NDArray[Any]:
    """Values (n,) as numbers, truth values or text; arrays of objects are seen through."""
    if array.dtype.kind in "biufU":
        return array
    kind = pd.api.types.infer_dtype(array, skipna=False)
    if kind == "integer":
        try:
            return array.astype(np.int64)
        except OverflowError:  # twenty digits are a name, not a quantity
            return array.astype(str)
    if kind == "boolean":
        return array.astype(np.bool_)
    if kind in _NUMBERS:
        return array.astype(np.float64)
    if kind.startswith("mixed"):
        row = next((i for i, value in enumerate(array) if type(value) is not type(array[0])), 0)
        raise RecordsError(
            f"The {what} of the {name} is {array[0]!r} in row 0 and {array[row]!r} in row {row}; "
            "give numbers only, or text only"
        )
    return array if kind == "string" else array.astype(str)


def checked_groups(groups: Any, n: int, name: str) -> dict[str, NDArray[Any]]:
    """Group columns as text, {name: (n,)}; a value that is missing is the group "missing"."""
    if not isinstance(groups, Mapping):
        raise RecordsError(
            f"The groups of the {name} are a {type(groups).__name__}; give a dictionary "
            "of columns, each with one value per record"
        )
    return {
        str(group): _group_texts(values, n, str(group), name) for group, values in groups.items()
    }


def _group_texts(values: Any, n: int, group: str, name: str) -> NDArray[Any]:
    array = _single_column(values, f"group {group!r} of the {name}")
    if len(array) != n:
        raise RecordsError(
            f"The group {group!r} of the {name} has {len(array)} values for {n} records; "
            "give one per record"
        )
    texts = np.full(n, "missing", dtype=object)
    present = ~np.asarray(pd.isna(array))
    if array.dtype.kind == "M":
        array = array.astype(str)  # as Python objects, dates of nanoseconds would be integers
    if array.dtype.kind in "biufU" or pd.api.types.infer_dtype(array) == "string":
        # Each value once: a million records share the texts of a few groups.
        codes, distinct = pd.factorize(array[present])
        texts[present] = np.array([_group_text(one) for one in distinct.tolist()], object)[codes]
    else:
        texts[present] = [_group_text(value) for value in array[present].tolist()]
    return texts


def _group_text(value: Any) -> str:
    # A gap turns a column of whole numbers into floats: 2.0 on one side is the 2 of the other.
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)


def _as_array(values: Any, what: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise RecordsError(
            f"There are rows of different lengths in the {what}; give as many values in each"
        ) from None


def _single_column(values: Any, what: str) -> NDArray[Any]:
    array = _as_array(values, what)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise RecordsError(
            f"The {what} has shape {array.shape}, where one value per record is needed; "
            "pass a single column"
        )
    return array


def _as_numbers(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    """An array of objects as floats; text is refused also where it looks like a number."""
    flat = array.reshape(len(array), -1)
    for position in range(flat.shape[1]):
        column = flat[:, position]
        if array.dtype == object and pd.api.types.infer_dtype(column) in _NUMBERS:
            continue
        row = next((row for row, value in enumerate(column) if not _is_number(value)), None)
        if row is not None:
            raise _not_numeric(position, row, column[row], name)
    return np.where(pd.isna(array), np.nan, array).astype(np.float64)


def _is_number(value: Any) -> bool:
    if isinstance(value, numbers.Real | Decimal | np.bool_):
        return True
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _not_numeric(column: Hashable, row: int, value: Any, name: str) -> RecordsError:
    return RecordsError(
        f"Column {shown(column)} of the {name} is not numeric: row {row} (counting from 0) holds "
        f"{shown(value)}; encode it, or pass a DataFrame and a model with an encoder"
    )


def _refuse_infinite(values: NDArray[Any], columns: Iterable[Hashable], name: str) -> None:
    if values.dtype.kind != "f":
        return
    # The sum is finite unless something is infinite, missing or overflows: a cheap first look.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    bad = np.argwhere(np.isinf(values.reshape(len(values), -1)))
    if len(bad):
        row, position = bad[0]
        raise RecordsError(
            f"Column {shown(list(columns)[position])} of the {name} is infinite in row {row} "
            "(counting from 0); replace it or drop the row"
        )


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def shown(value: Any) -> str:
    """A value as it is read in a sentence: text in quotes, numbers without their type."""
    return _short(repr(value.item() if isinstance(value, np.generic) else value))


def listed(names: Iterable[Any]) -> str:
    """Names with commas between them, the first ten only."""
    texts = [_short(str(name)) for name in names]
    more = len(texts) - MOST_LISTED
    return ", ".join(texts[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
