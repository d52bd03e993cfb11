"""Numbers and dates that a table holds as text: how a column is written, and how that is read.

A comma between thousands, a question mark for a gap or a currency is enough for a reader of CSV
files to leave a column as text. A way of writing is accepted where every value of the column is
written in it; a single other value, and the column stays what it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.records.checks import TOO_LARGE
from leakscope.records.content import days_since_1970

# How people write that a value is missing, beside what readers of CSV files know anyway.
GAPS = frozenset(
    {"", "?", "-", "--", "–", "—", ".", "na", "n.a.", "nan", "none", "null", "unknown", "missing"}
)

ISO = "ISO8601"  # pandas' name of the format of international dates
# Around a number, and nothing that changes which of two is the larger.
_AROUND = " \t\u00a0$€£¥%"
# A column is judged by so many values before all are read: most are neither numbers nor dates.
_FIRST = 100

Texts: TypeAlias = Sequence[str]


@dataclass(frozen=True)
class WrittenNumber:
    """Numbers with these signs between thousands and before the fraction.

    example: a number written this way, for messages; it is nobody's.
    """

    thousands: str
    point: str
    example: str
    kind = "numbers"

    def read(self, texts: Texts) -> NDArray[np.float64]:
        """The numbers, (n,); NaN for a gap, and also for what is not written this way."""
        digits = rf"\d{{1,3}}(?:[{re.escape(self.thousands)}]\d{{3}})+|(?!0\d)\d+|(?={self._dot}\d)"
        written = re.compile(rf"[+-]?(?:{digits})(?:{self._dot}\d*)?(?:[eE][+-]?\d+)?")
        between = re.compile(rf"[{re.escape(self.thousands)}]")
        found = np.full(len(texts), np.nan)
        for place, text in enumerate(texts):
            bare = text.strip(_AROUND)
            if written.fullmatch(bare):
                value = between.sub("", bare).replace(self.point, ".")
                # Digits that fit no whole number are a name; so they are for holds_numbers.
                if abs(float(value)) < TOO_LARGE or not value.lstrip("+-").isdigit():
                    found[place] = float(value)
        return found

    @property
    def _dot(self) -> str:
        return re.escape(self.point)


@dataclass(frozen=True)
class WrittenDate:
    """Dates in one of these formats of strptime, or in ISO 8601; read as days since 1970."""

    format: str
    example: str
    kind = "dates"

    def read(self, texts: Texts) -> NDArray[np.float64]:
        """The days, (n,); NaN for a gap, and also for what is not written this way."""
        bare = pd.Series([text.strip() for text in texts], dtype=object)
        if self.format == ISO:  # pandas takes 2020, 20.5 and -1.5 for dates, too
            bare = bare.where(bare.str.match(r"\d{4}(?:[-/]|\D\d{1,2}\D)\d"), None)
        dates = pd.to_datetime(bare, format=self.format, errors="coerce", utc=True)
        return days_since_1970(dates)


Written: TypeAlias = WrittenNumber | WrittenDate

# In the order in which they are tried: of 3/4/2020, the month is first unless some day forbids it.
_TIMES = ("", " %H:%M", " %H:%M:%S")
WAYS: tuple[Written, ...] = (
    WrittenNumber(",'’ \u00a0", ".", "1,234.5"),
    WrittenNumber(".'’ \u00a0", ",", "1.234,5"),
    WrittenDate(ISO, "2020-12-31"),
    *(
        WrittenDate(day + time, example)
        for day, example in (
            ("%d.%m.%Y", "31.12.2020"),
            ("%m/%d/%Y", "12/31/2020"),
            ("%d/%m/%Y", "31/12/2020"),
            ("%d-%m-%Y", "31-12-2020"),
            ("%d %b %Y", "31 Dec 2020"),
            ("%d-%b-%Y", "31-Dec-2020"),
            ("%b %d, %Y", "Dec 31, 2020"),
        )
        for time in _TIMES
    ),
)


def way_of(texts: Texts) -> Written | None:
    """The way in which all of these different texts are written; None if there is none.

    Gaps are written in any way, but not all of them can be.
    """
    values = [text for text in texts if not is_gap(text)]
    if not values:
        return None
    for way in WAYS:
        if not np.isnan(way.read(values[:_FIRST])).any() and not np.isnan(way.read(values)).any():
            return way
    return None


def is_gap(text: str) -> bool:
    """Whether this is a way to write that there is no value."""
    return text.strip().casefold() in GAPS


def as_texts(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column as text, in which 2.0 is the 2 of another file; what is missing stays so."""
    codes, distinct = pd.factorize(column)
    texts = np.array([*map(_as_text, distinct.tolist()), None], dtype=object)
    return pd.Series(texts[codes], dtype=object, index=column.index)


def _as_text(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)


def read_column(column: pd.Series[Any], way: Written) -> pd.Series[Any]:
    """A column written in this way as numbers, (n,); what is missing, or a gap, is NaN."""
    codes, distinct = pd.factorize(as_texts(column))
    values = np.append(way.read(list(distinct)), np.nan)
    return pd.Series(values[codes], index=column.index)
