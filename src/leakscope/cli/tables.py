"""Tables from CSV files, refused where pandas would guess."""

from __future__ import annotations

import csv
import warnings
from collections import Counter
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pandas as pd

from leakscope.datasets.files import read_bytes
from leakscope.errors import InputError


def read_table(path: Path, *, text: str | None = None) -> pd.DataFrame:
    """The table in a .csv, .csv.gz or .csv.xz file, with a header and without an index.

    Columns are read as pandas does by default. text: a column that is read as it is written,
    ``007`` and ``NA`` included; then only empty cells are missing values, in every column.
    """
    content = read_bytes(path)
    options: dict[str, Any] = {"index_col": False, "low_memory": False}
    if text is not None:
        options |= {"dtype": {text: str}, "keep_default_na": False, "na_values": [""]}
    try:
        _check_header(content, path)
        with warnings.catch_warnings():
            # Where the first row has more cells than the header pandas would drop them.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table: pd.DataFrame = pd.read_csv(BytesIO(content), **options)
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
            reason = "a row has more cells than the header"
        raise InputError(
            f"The file {str(path)!r} is not a table of comma-separated values ({reason}); "
            "give a CSV file with a header"
        ) from error
    return table


def _check_header(content: bytes, path: Path) -> None:
    """Refuse what pandas would rename: a column without a name, or two of one name."""
    with TextIOWrapper(BytesIO(content), encoding="utf-8-sig", newline="") as lines:
        header = next((row for row in csv.reader(lines) if row), [])
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
