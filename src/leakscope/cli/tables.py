"""Tables from CSV files, refused where pandas would guess, and read without a second copy."""

from __future__ import annotations

import csv
import os
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, TypeAlias

import pandas as pd

from leakscope.datasets.files import opened
from leakscope.errors import InputError

# Cells that are read at once: the text of a large file is never in memory as a whole.
CELLS = 2_000_000
# Characters in a line of names; more is no table.
LONGEST_HEADER = 2**24
# Columns of a table: each takes its time to be looked at, and a small file can name millions.
MOST_COLUMNS = 100_000
PIECE = 2**16

# Opens a file from its beginning, as often as needed.
Opens: TypeAlias = Callable[[], AbstractContextManager[IO[bytes]]]

LONG_ROW = "a row has more cells than the header"

# What stands between cells where it is not a comma.
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}

# Types in which one column may come from the parts of a file, and still be what pandas would make
# of the whole: whole numbers, and beside them numbers with fractions or gaps.
NUMBERS = {"int64", "float64"}


def read_table(path: Path, *, text: str | None = None) -> pd.DataFrame:
    """The table in a .csv, .csv.gz or .csv.xz file, with a header and without an index.

    A row with fewer or more cells than the header is refused. A pipe is read once.

    Columns are read as pandas does by default. text: a column that is read as it is written,
    ``007`` and ``NA`` included; then only empty cells are missing values, in every column.
    """
    options: dict[str, Any] = {"index_col": False, "low_memory": False}
    if text is not None:
        options |= {"dtype": {text: str}, "keep_default_na": False, "na_values": [""]}
    try:
        with _source(path) as source, warnings.catch_warnings():
            width = _check_header(source, path)
            # Where the first row has more cells than the header pandas would drop them.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = _read_in_parts(source, max(1, CELLS // max(width, 1)), options)
            # pandas fills what a row lacks with missing values, which then stand in the last cell.
            if len(table) and table.iloc[:, -1].isna().any():
                _refuse_short_rows(source, path, width)
            return table
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(
            f"The file {str(path)!r} is not a text in UTF-8 (byte {error.start} cannot be read); "
            "save it as a CSV file in UTF-8"
        ) from error
    except (csv.Error, ValueError, pd.errors.ParserWarning) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        if isinstance(error, pd.errors.ParserWarning):
            reason = LONG_ROW
        raise InputError(
            f"The file {str(path)!r} is not a table of comma-separated values ({reason}); "
            "give a CSV file with a header"
        ) from error


@contextmanager
def _source(path: Path) -> Iterator[Opens]:
    """How to open the file; a pipe is first copied to a temporary file that has no name."""
    if not path.is_fifo():
        yield lambda: opened(path)
        return
    with tempfile.TemporaryFile() as copy:
        with opened(path) as stream:
            try:
                shutil.copyfileobj(stream, copy)
            except OSError as error:
                raise InputError(
                    f"The pipe {str(path)!r} cannot be copied to {tempfile.gettempdir()!r} "
                    f"({error.strerror}); make room there, or give a file"
                ) from error

        def again() -> IO[bytes]:
            copy.seek(0)
            return os.fdopen(os.dup(copy.fileno()), "rb")

        yield again


def _read_in_parts(source: Opens, rows: int, options: dict[str, Any]) -> pd.DataFrame:
    """The table, read so many rows at a time; the same as pandas makes of the whole file."""
    parts = _parts(source, rows, options)
    types = {name: {str(part.dtype) for part in column} for name, column in parts.items()}
    unlike = {name: kinds for name, kinds in types.items() if len(kinds) > 1 and kinds - NUMBERS}
    if all("str" in kinds for kinds in unlike.values()):
        # A text in one part makes a column of texts, as they were written: 007 is not 7.
        texts = dict.fromkeys(unlike, str)
        if texts:
            again = options | {"dtype": {**options.get("dtype", {}), **texts}}
            parts = _parts(source, rows, again)
        # Column by column, so that no more than one is there twice.
        return pd.DataFrame({name: _joined(parts.pop(name)) for name in list(parts)}, copy=False)
    with source() as stream:
        table: pd.DataFrame = pd.read_csv(stream, **options)
    return table


def _parts(source: Opens, rows: int, options: dict[str, Any]) -> dict[str, list[pd.Series[Any]]]:
    """Each column in parts of so many rows."""
    parts: dict[str, list[pd.Series[Any]]] = {}
    with source() as stream, pd.read_csv(stream, chunksize=rows, **options) as chunks:
        for chunk in chunks:
            for name in chunk.columns:
                # A copy: a column of a chunk keeps all others of its type in memory.
                parts.setdefault(name, []).append(chunk[name].copy())
    return parts


def _joined(parts: list[pd.Series[Any]]) -> pd.Series[Any]:
    return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


def _refuse_short_rows(source: Opens, path: Path, width: int) -> None:
    """Refuse a row with fewer cells than the header; a line without any is no row."""
    longest = csv.field_size_limit(sys.maxsize)
    try:
        with source() as stream, TextIOWrapper(stream, encoding="utf-8-sig", newline="") as lines:
            rows, before = csv.reader(lines), 0
            for row in rows:
                if len(row) < width and (len(row) > 1 or "".join(row).strip()):
                    raise InputError(
                        f"Line {before + 1} of {str(path)!r} has {len(row)} of the header's "
                        f"{width} cells; complete it, with an empty cell for each missing value"
                    )
                before = rows.line_num
    finally:
        csv.field_size_limit(longest)


def _check_header(source: Opens, path: Path) -> int:
    """Refuse what pandas would rename: a column without a name, or two of one name; how many."""
    with (
        source() as stream,
        TextIOWrapper(stream, encoding="utf-8-sig", newline="") as lines,
    ):
        pieces = iter(lambda: _short_line(lines, path), "")
        header = next((row for row in csv.reader(pieces) if row), [])
        _check_separator(header, path)
        # pandas takes what is beyond the header for an index, a column at a time.
        if _cells(lines, len(header)) > len(header) > 0:
            raise csv.Error(LONG_ROW)
    if len(header) > MOST_COLUMNS:
        raise InputError(
            f"The file {str(path)!r} has {len(header):,} columns, and {MOST_COLUMNS:,} are the "
            "most that are read; choose some of them"
        )
    if "" in header:
        raise InputError(
            f"Column {header.index('')} (counting from 0) of {str(path)!r} has no name; name it, "
            "or save the table without its index (index=False in pandas)"
        )
    for name, times in Counter(header).items():
        if times > 1:
            raise InputError(
                f"The file {str(path)!r} has {times} columns named {name!r}; rename or drop one"
            )
    return len(header)


def _check_separator(header: list[str], path: Path) -> None:
    """Refuse a header in one piece that another separator would divide, as in German tables."""
    for sign, name in SEPARATORS.items():
        if len(header) == 1 and sign in header[0]:
            decimals = ", decimal=','" if sign == ";" else ""
            raise InputError(
                f"The columns of {str(path)!r} are separated by {name}; save it with commas "
                f"between them and points in numbers (pandas.read_csv(…, sep={sign!r}{decimals})"
                ".to_csv(…, index=False))"
            )


def _short_line(lines: TextIOWrapper, path: Path) -> str:
    line = lines.readline(LONGEST_HEADER)
    if len(line) == LONGEST_HEADER:
        raise InputError(
            f"The first line of {str(path)!r} has more than {LONGEST_HEADER:,} characters; give a "
            "CSV file with a header"
        )
    return line


def _cells(lines: TextIOWrapper, most: int) -> int:
    """How many cells the next row has; beyond most, they are not counted to the end."""
    cells, quoted = 1, False
    for piece in iter(lambda: lines.readline(PIECE), ""):
        for place, part in enumerate(piece.split('"')):
            quoted ^= place > 0
            cells += 0 if quoted else part.count(",")
        ended = piece.endswith(("\n", "\r")) and not quoted
        if cells > most or (ended and piece.strip()):
            break
    return cells
