"""records.csv: one line per audited record, with every attack's score."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope.errors import InputError

CHUNK = 4096  # lines written at a time
# Beside the scores; a column of the user's with such a name gives way.
OWN_COLUMNS = (
    "row", "side", "label", "leakage_nats", "vulnerable", "calibration", "content_key",
)  # fmt: skip

# A spreadsheet runs a cell that starts like this; the last four are their full-width forms.
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
# Some drop these at the beginning of a cell, and run what follows.
_BLANK = ("\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class RecordTable:
    """One row per audited record: where it stands in the input, its side, its scores.

    columns {name: (n,)}, written in the order given. ``from_parts`` names and orders them.
    """

    columns: Mapping[str, ArrayLike]

    def __post_init__(self) -> None:
        arrays = {str(name): np.asarray(values) for name, values in self.columns.items()}
        lengths = {name: array.shape for name, array in arrays.items()}
        if len(set(lengths.values())) > 1 or any(len(shape) != 1 for shape in lengths.values()):
            told = ", ".join(f"{name} {shape}" for name, shape in lengths.items())
            raise InputError(
                f"The columns of the table of records differ in shape ({told}); "
                "give one value per record in each"
            )
        object.__setattr__(self, "columns", arrays)

    @classmethod
    def from_parts(
        cls,
        *,
        row: ArrayLike,
        side: ArrayLike,
        label: ArrayLike,
        scores: Mapping[str, ArrayLike],
        vulnerable: ArrayLike,
        groups: Mapping[str, ArrayLike] | None = None,
        unit: tuple[str, ArrayLike] | None = None,
        further: Mapping[str, ArrayLike] | None = None,
    ) -> RecordTable:
        """The table from its parts, each (n,), with names that cannot clash.

        row: position in the user's own input, on its side; side: 'member' or 'nonmember';
        unit: (name of the column, its values); vulnerable: true or false; further: other columns
        of OWN_COLUMNS. leakage_nats: what models made the same way tell of the record;
        calibration: whether thresholds were chosen on it; content_key: a hash of its features and
        label, which pairs it with itself in another audit.
        """
        ours = {"row": row, "side": side, "label": label}
        last = {f"score_{attack}": values for attack, values in scores.items()}
        last |= {**(further or {}), "vulnerable": np.where(vulnerable, "yes", "no")}
        # A column of the user's may bear the name of one of ours: it gives way.
        theirs: dict[str, ArrayLike] = {}
        for name, values in [*(groups or {}).items(), *([unit] if unit else [])]:
            free = str(name)
            while free in ours or free in last or free in theirs:
                free += "_"
            theirs[free] = values
        return cls({**ours, **theirs, **last})

    def __len__(self) -> int:
        return min((len(np.asarray(values)) for values in self.columns.values()), default=0)

    def to_csv(self) -> str:
        """The table as CSV text; a text that a spreadsheet would run as a formula is disarmed."""
        return "".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The same in parts of some thousand lines: a table of a million is never one text."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow([cell(name) for name in self.columns])
        for start in range(0, len(self), CHUNK):
            part = slice(start, start + CHUNK)
            lists = [np.asarray(values)[part].tolist() for values in self.columns.values()]
            writer.writerows([cell(value) for value in row] for row in zip(*lists, strict=True))
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
        yield buffer.getvalue()  # the header of an empty table


def cell(value: Any) -> Any:
    """A number as it is, nothing for what is not one, a formula with an apostrophe before it.

    A spreadsheet takes the apostrophe for the sign of a text and does not show it; other readers
    see it, and take it off where they need the value as it was.
    """
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return ""
    if isinstance(value, (int, float)):
        return value
    # NUL ends a line for some readers, and half a surrogate pair cannot be written at all.
    text = str(value).replace("\0", "�").encode("utf-8", "replace").decode()
    if "\r" in text and "\n" not in text:
        # A carriage return ends a line for readers, and alone the csv module does not quote it.
        text = text.replace("\r", "\n")
    start = text.lstrip()
    if text.startswith(_BLANK) or (start.startswith(_FORMULA) and not _NUMBER.fullmatch(start)):
        return "'" + text
    return text
