"""records.csv read back: the table of records as the audit had it."""

from __future__ import annotations

import csv
import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from leakscope.errors import InputError, LeakscopeError
from leakscope.report.records import RecordTable, cell

FILE = "records.csv"
NEEDED = ("row", "side", "label", "vulnerable")
NUMBERS = ("leakage_nats",)
LONGEST_LINE = 2**24  # characters
LONGEST = 200  # characters of what Python says, which may quote the file


@contextmanager
def by_its_schema(name: str) -> Iterator[None]:
    """Say in one sentence that a report is not as its schema has it, whatever stumbled over it."""
    try:
        yield
    except LeakscopeError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        told = f"{type(error).__name__}: {error}"[:LONGEST]
        raise InputError(
            f"The report {name!r} does not follow its schema ({told}); audit again"
        ) from error


def check_records(folder: Path, digest: str | None) -> None:
    """Refuse a records.csv that was not written together with the report beside it."""
    path = folder / FILE
    _refuse_endless(path)
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return  # read_records says why
    if found != digest:
        why = f"{str(found)[:12]}… where the report has {str(digest)[:12]}…"
        if digest is None:
            why = "the report was saved without one, or by an earlier version"
        raise InputError(
            f"The file {str(path)!r} is not of the same run as the report beside it ({why}); "
            "audit again into a folder of its own"
        )


def read_records(folder: Path, attacks: Iterable[str]) -> RecordTable:
    """The table in the records.csv of a run, whose attacks have these names.

    Scores and leakage are numbers, NaN where there is none; everything but the row is text.
    """
    path = folder / FILE
    try:
        _refuse_endless(path)
        with path.open(encoding="utf-8", newline="") as file:
            return _table(csv.reader(_lines(file), strict=True), {*attacks}, path)
    except FileNotFoundError:
        raise InputError(
            f"The folder {str(folder)!r} has no {FILE}, which tells of single records: the run was "
            "redacted, or the file was taken away; audit again without --redact"
        ) from None
    except OSError as error:
        raise InputError(f"The file {str(path)!r} cannot be read ({error.strerror})") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(
            f"The file {str(path)!r} is not a table of comma-separated values ({error}); audit "
            "again"
        ) from error


def _refuse_endless(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise InputError(
            f"The file {str(path)!r} cannot be read (it is a folder, a pipe or a device); "
            "audit again"
        )


def _lines(file: TextIO) -> Iterator[str]:
    """The lines of a file; one without an end is refused before it fills the memory."""
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise csv.Error(f"a line has more than {LONGEST_LINE:,} characters")
        yield line


def _table(lines: Iterator[list[str]], attacks: set[str], path: Path) -> RecordTable:
    header = [_as_it_was(name) for name in next(lines, [])]
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise InputError(
            f"The file {str(path)!r} has no column {missing[0]!r} and is not the {FILE} of a run; "
            "give the folder of an audit"
        )
    scores = {f"score_{attack}" for attack in attacks}
    kinds = [
        "q" if name == "row" else "d" if name in {*scores, *NUMBERS} else "" for name in header
    ]
    columns: list[Any] = [array(kind) if kind else [] for kind in kinds]
    # The same few texts come again and again: each is kept once.
    texts: dict[str, str] = {}
    for number, line in enumerate(lines, start=2):
        if len(line) != len(header):
            raise InputError(
                f"Line {number} of {str(path)!r} has {len(line)} cells where the header has "
                f"{len(header)}; audit again"
            )
        for column, kind, text in zip(columns, kinds, line, strict=True):
            try:
                column.append(_number(text, kind) if kind else texts.setdefault(text, text))
            except (ValueError, OverflowError):
                raise InputError(
                    f"Line {number} of {str(path)!r} holds {text!r} where a number is needed; "
                    "audit again"
                ) from None
    values = [
        np.array(column) if kind else _texts(column)
        for column, kind in zip(columns, kinds, strict=True)
    ]
    return RecordTable(dict(zip(_told_apart(header), values, strict=True)))


def _number(text: str, kind: str) -> float:
    if kind == "q":
        return int(text)
    return float(text) if text else math.nan


def _texts(column: list[str]) -> np.ndarray[Any, Any]:
    found = np.empty(len(column), dtype=object)
    known = {text: _as_it_was(text) for text in {*column}}
    found[:] = [known[text] for text in column]
    return found


def _as_it_was(text: str) -> str:
    """The text without the apostrophe that kept a spreadsheet from running it."""
    inside = text.removeprefix("'")
    return inside if inside != text and cell(inside) == text else text


def _told_apart(header: list[str]) -> list[str]:
    """The names of the columns, where one comes again with its number: loss, loss (2)."""
    seen = Counter[str]()
    names = []
    for name in header:
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names
