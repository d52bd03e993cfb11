"""What a record holds, as numbers and as one key: equal records have equal keys in any type."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.records.checks import Features, as_floats, holds_numbers

Keys = NDArray[np.uint64]

# Rows hashed at a time: images as floats would take eight times their memory all at once.
CHUNK = 4096


def column_numbers(column: pd.Series[Any]) -> NDArray[np.float64]:
    """A column as floats, (n,); text as a hash of it, so that equal texts are equal numbers."""
    if holds_numbers(column):
        return as_floats(column)
    texts = column.astype(object).where(column.notna(), "\0missing").astype(str)
    try:
        hashed = pd.util.hash_array(texts.to_numpy(dtype=object))
    except UnicodeEncodeError:  # half a surrogate pair, which some files hold
        spelled = [text.encode("utf-8", "backslashreplace").decode() for text in texts]
        hashed = pd.util.hash_array(np.array(spelled, dtype=object))
    # 52 bits fit a float exactly; a collision among a million texts has odds of one in 10,000.
    return (hashed >> np.uint64(12)).astype(np.float64)


def is_quantity(column: pd.Series[Any]) -> bool:
    """Whether these are numbers, truth values or dates, and not categories or text.

    Truth values with gaps, which pandas holds as objects, are three categories.
    """
    if pd.api.types.is_datetime64_any_dtype(column):
        return True
    if isinstance(column.dtype, pd.CategoricalDtype) or not holds_numbers(column):
        return False
    return column.dtype != object or pd.api.types.infer_dtype(column, skipna=True) != "boolean"


def plain_column(column: pd.Series[Any], quantity: bool | None = None) -> NDArray[Any]:
    """A column in one of two types, (n,): floats with NaN for gaps, or text without gaps.

    Truth values are 0 and 1; dates are days since 1970. quantity: which type, where that is known
    from other records; a text is a gap among numbers.
    """
    if quantity or (quantity is None and is_quantity(column)):
        if pd.api.types.is_datetime64_any_dtype(column):
            return days_since_1970(column)
        if not holds_numbers(column):
            column = pd.to_numeric(column.astype(object), errors="coerce")
        return as_floats(column)
    return column.astype(object).where(column.notna(), "missing").astype(str).to_numpy(dtype=object)


def days_since_1970(dates: pd.Series[Any]) -> NDArray[np.float64]:
    """Dates of any year as days since 1970, (n,); NaN for a gap.

    They are counted in the unit that they have: nanoseconds would end in 2262.
    """
    times = pd.to_datetime(dates, utc=True).dt.tz_convert(None).to_numpy()
    days = times.astype(np.int64) / np.array("1970-01-02", times.dtype).astype(np.int64)
    return np.where(np.isnat(times), np.nan, days)


def row_keys(features: NDArray[Any], label: NDArray[np.float64]) -> Keys:
    """A hash of each row of features (n, …) and its label (n,) as floats, (n,)."""
    digests = bytearray()
    for start in range(0, len(label), CHUNK):
        part = slice(start, start + CHUNK)
        flat = features[part].reshape(len(label[part]), -1)
        rows = np.ascontiguousarray(np.column_stack([flat, label[part]]), dtype=np.float64)
        rows += 0.0  # makes -0.0 equal to 0.0
        rows[np.isnan(rows)] = np.nan  # of all its bit patterns, one
        digests += b"".join(hashlib.blake2b(row, digest_size=8).digest() for row in rows)
    return np.frombuffer(digests, dtype=np.uint64)


def numbered(values: NDArray[Any]) -> NDArray[np.intp]:
    """The place of each value among the distinct ones in sorted order, (n,)."""
    return np.unique(values, return_inverse=True)[1]


def joined_blocks(first: NDArray[np.intp], second: NDArray[np.intp]) -> NDArray[np.intp]:
    """The finest numbering in which rows equal in either numbering are equal, (n,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # A graph of the numbers of both kinds, in which each row ties two.
    size = int(first.max() + second.max()) + 2
    ties = (np.ones(len(first)), (first, second + first.max() + 1))
    component = connected_components(coo_array(ties, shape=(size, size)), directed=False)[1][first]
    # Components come numbered as they are met; their smallest first number is theirs in any order.
    smallest = np.full(size, size)
    np.minimum.at(smallest, component, first)
    return numbered(smallest[component])


def side_digest(keys: Keys) -> str:
    """A hash of the keys of all records (n,) together, in any order.

    It tells nothing of one record to anyone who does not know all the others.
    """
    return hashlib.sha256(np.sort(keys).astype("<u8").tobytes()).hexdigest()[:32]


def columns_digest(X: Features) -> str:
    """A hash of the names and kinds of a table's columns, in any order, or of an array's shape."""
    if isinstance(X, pd.DataFrame):
        kinds = ("numbers" if holds_numbers(X.iloc[:, i]) else "texts" for i in range(X.shape[1]))
        columns = sorted(zip(map(str, X.columns), kinds, strict=True))
    else:
        columns = [("array", str(X.shape[1:]))]
    text = repr(columns).encode("utf-8", "backslashreplace")
    return hashlib.sha256(text).hexdigest()[:32]


def content_hash(X: Features, y: NDArray[Any]) -> str:
    """Hexadecimal digits that change with any value, type, column name, or the order of records.

    They do not depend on how arrays lie in memory, nor on a table's index, which models never see.
    """
    digest = hashlib.sha256()
    if isinstance(X, pd.DataFrame):
        for position, name in enumerate(X.columns):
            digest.update(f"column {name!r}: ".encode("utf-8", "backslashreplace"))
            _add_column(digest, X.iloc[:, position])
    else:
        _add_array(digest, X)
    digest.update(b"labels: ")
    _add_array(digest, y)
    return digest.hexdigest()


def _add_column(digest: hashlib._Hash, column: pd.Series[Any]) -> None:
    if isinstance(column.dtype, pd.CategoricalDtype):
        # A model may see the codes, and so the order of the categories and those nobody has.
        digest.update(f"categories, ordered {column.dtype.ordered}: ".encode())
        _add_array(digest, column.dtype.categories.to_numpy())
        _add_array(digest, column.cat.codes.to_numpy())
    elif isinstance(column.dtype, np.dtype):
        _add_array(digest, column.to_numpy())
    elif isinstance(column.dtype, pd.DatetimeTZDtype):
        digest.update(f"{column.dtype!r} ".encode())
        _add_array(digest, column.dt.tz_convert(None).to_numpy())
    else:
        digest.update(f"{column.dtype!r} ".encode())
        _add_array(digest, column.to_numpy(dtype=object))


def _add_array(digest: hashlib._Hash, array: NDArray[Any]) -> None:
    """Type, shape and values of an array (n, …); of objects, what they look like in code."""
    digest.update(f"{array.dtype.str} {array.shape} ".encode())
    for start in range(0, len(array), CHUNK):
        part = array[start : start + CHUNK]
        if array.dtype.hasobject:
            values = "\n".join(map(repr, part.ravel().tolist()))
            digest.update(f"{len(values)} {values}".encode("utf-8", "backslashreplace"))
        else:
            digest.update(np.ascontiguousarray(part).view(np.uint8).data)
