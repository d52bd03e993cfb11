from __future__ import annotations

import gzip
import lzma
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
import pytest

from leakscope.cli import tables
from leakscope.cli.tables import read_table
from leakscope.errors import InputError
from leakscope.records import unpacking

TABLE = b"a,b,label\n1,x,NA\n2.5,y,007\n,z,\n"


@pytest.mark.parametrize(
    ("name", "pack"), [("t.csv", bytes), ("t.csv.gz", gzip.compress), ("t.csv.xz", lzma.compress)]
)
def test_plain_and_packed_files_are_read_alike(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / name
    path.write_bytes(pack(TABLE))
    table = read_table(path)
    assert table["a"].tolist()[:2] == [1.0, 2.5]
    assert np.isnan(table["a"][2])
    assert table["b"].tolist() == ["x", "y", "z"]
    assert list(table.index) == [0, 1, 2]


def test_other_separators_may_stand_in_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a;b,c|d\n1,2\n")
    assert list(read_table(tmp_path / "t.csv").columns) == ["a;b", "c|d"]


def test_a_column_can_be_kept_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(TABLE)
    column = read_table(tmp_path / "t.csv", text="label")["label"]
    assert column.tolist()[:2] == ["NA", "007"]
    assert pd.isna(column[2])
    guessed = read_table(tmp_path / "t.csv")["label"]
    assert pd.isna(guessed[0])


def test_a_mark_of_unicode_and_other_line_ends_are_no_part_of_the_data(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b'\xef\xbb\xbfa,"b\r\n2"\r\n1,2\r\n')
    table = read_table(tmp_path / "t.csv")
    assert list(table.columns) == ["a", "b\r\n2"]
    assert table.to_numpy().tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not a table of comma-separated values (No columns to parse from file)"),
        (b"\n\n", "is not a table of comma-separated values (No columns to parse from file)"),
        (b"a,a\n1,2\n", "has 2 columns named 'a'; rename or drop one"),
        (b",a\n1,2\n", "Column 0 (counting from 0) of "),
        (b"a,\n1,2\n", "Column 1 (counting from 0) of "),
        (b"a;b\n1,5;2\n", "are separated by semicolons; save it with commas"),
        (b"\xef\xbb\xbfa;b\n1;2\n", "(pandas.read_csv(…, sep=';', decimal=',')"),
        (b"a\tb\n1\t2\n", "are separated by tabs; save it with commas"),
        (b"a|b\n1|2\n", "(pandas.read_csv(…, sep='|').to_csv(…, index=False))"),
        (b"a,b\n1,2,3\n", "(a row has more cells than the header)"),
        (b"a,b\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
        (b'a,b\n1,"2\n', "EOF inside string starting at row 1"),
        (b"a,b\n1,\xff\n", "is not a text in UTF-8 (byte 6 cannot be read)"),
        ("a,é\n1,2\n".encode("latin-1"), "is not a text in UTF-8 (byte 2 cannot be read)"),
        (b"a," + b"x" * 200_000 + b"\n1,2\n", "field larger than field limit"),
    ],
)
def test_what_is_no_table_is_refused_by_name(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_table(tmp_path / "t.csv")
    sentence = str(caught.value)
    assert said in sentence
    assert str(tmp_path / "t.csv") in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv.xz"])
@pytest.mark.parametrize("damage", ["not packed", "cut off"])
def test_a_damaged_file_is_refused(tmp_path: Path, name: str, damage: str) -> None:
    pack = gzip.compress if name.endswith("gz") else lzma.compress
    (tmp_path / name).write_bytes(TABLE if damage == "not packed" else pack(TABLE)[:-12])
    with pytest.raises(InputError, match=name):
        read_table(tmp_path / name)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Is a directory"):
        read_table(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        read_table(tmp_path / "none.csv")


COLUMNS = {
    "whole": "1 2 3 4 5 6 7",
    "then a fraction": "1 2 3 4 5 6 7.5",
    "then a gap": "1 2 3 4 5  7",
    "gaps": "      ",
    "gaps and a text": "      z",
    "then a text": "007 2 3 4 5 6 x",
    "text, then numbers": "x 2 3 4 5 6 08",
    "truth": "True False True False True True True",
    "truth and gaps": "True False   True True ",
    "truth, then numbers": "True False True True 1 2 3",
    "truth, then a text": "True False True True 1 2 x",
    "large": "1 2 3 4 18446744073709551615 6 7",
    "large and negative": "-1 2 3 4 18446744073709551615 6 7",
    "huge": "1 2 3 4 99999999999999999999999 6 7",
    "spelled missing": "NA nan 3 4 None 6 7",
}


@pytest.mark.parametrize("other", [None, "then a text", "truth, then numbers"])
@pytest.mark.parametrize("case", COLUMNS)
def test_parts_of_a_file_make_the_table_that_pandas_makes_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, other: str | None
) -> None:
    columns = [COLUMNS[case].split(" "), COLUMNS[other or case].split(" "), list("abcdefg")]
    rows = [",".join(row) for row in zip(*columns, strict=True)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,y,label", *rows]) + "\n")
    for cells in (3, 6, 9, 1000):
        monkeypatch.setattr(tables, "CELLS", cells)
        whole = pd.read_csv(path, low_memory=False)
        pd.testing.assert_frame_equal(read_table(path), whole)
        options = {"dtype": {"x": str}, "keep_default_na": False, "na_values": [""]}
        kept = pd.read_csv(path, low_memory=False, **options)  # type: ignore[call-overload]
        pd.testing.assert_frame_equal(read_table(path, text="x"), kept)


@pytest.mark.parametrize("row", range(7))
def test_a_row_with_too_many_cells_is_found_in_every_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: int
) -> None:
    rows = ["1,2"] * 7
    rows[row] += ",3"
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *rows]) + "\n")
    monkeypatch.setattr(tables, "CELLS", 4)
    with pytest.raises(InputError, match="is not a table of comma-separated values"):
        read_table(tmp_path / "t.csv")


def test_a_header_alone_is_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n")
    assert read_table(tmp_path / "t.csv").shape == (0, 2)


def test_a_first_line_without_an_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "LONGEST_HEADER", 50)
    (tmp_path / "t.csv").write_text("a,b" * 30)
    with pytest.raises(InputError, match=r"The first line of .* has more than 50 characters"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize(("name", "pack"), [("t.csv.gz", gzip.compress), ("t.xz", lzma.compress)])
def test_a_packed_table_that_swells_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(unpacking, "LARGE", 2**20)
    (tmp_path / name).write_bytes(pack(b"a,b\n" + b"1,2\n" * 2**20))
    with pytest.raises(InputError, match="which no honest file of"):
        read_table(tmp_path / name)


def test_too_many_columns_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n1,2,3\n")
    assert read_table(path).shape == (1, 3)
    monkeypatch.setattr(tables, "MOST_COLUMNS", 2)
    with pytest.raises(InputError, match="has 3 columns, and 2 are the most that are read"):
        read_table(path)


@pytest.mark.parametrize(
    ("row", "fits"),
    [
        ('"1,1",2', True),
        ('"1\n,1\n",2', True),
        ('"1"",1",2', True),
        ("\n\n1,2", True),
        ("1,2,3", False),
        ('"1",2,', False),
        ("," * 300_000, False),
    ],
    ids=lambda row: str(row)[:12],
)
def test_the_first_row_is_counted_before_it_is_read(row: str, fits: bool, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"a,b\n{row}\n3,4\n")
    if fits:
        assert read_table(path)["a"].iloc[-1] == (3 if row[:1] in "1\n" else "3")
        return
    with pytest.raises(InputError, match=r"\(a row has more cells than the header\)"):
        read_table(path)


@pytest.mark.parametrize(
    ("content", "line", "cells"),
    [
        ("a,b,c\n1,2,3\n4,5\n6,7,8\n", 3, 2),
        ("a,b,c\n1\n2,3,4\n", 2, 1),
        ("a,b,c\n1,2,3\n,\n", 3, 2),  # no value at all
        ('a,b,c\n"x\n\ny",2,3\n\n4,"5,6"\n', 6, 2),
        ("a,b,c\r\n1,2,\r\n4,5\r\n", 3, 2),
        ("a,b,c\r1,2,3\r4,5", 3, 2),
        ("\ufeffa,b,c\n1,2\n", 2, 2),
        (f"a,b,c\n{'x' * 200_000},2,\n1,2\n", 3, 2),
    ],
)
@pytest.mark.parametrize("cells_at_once", [3, 1000])
def test_a_row_with_too_few_cells_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: str,
    line: int,
    cells: int,
    cells_at_once: int,
) -> None:
    monkeypatch.setattr(tables, "CELLS", cells_at_once)
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode())
    for text in (None, "a"):
        with pytest.raises(
            InputError, match=f"Line {line} of .* has {cells} of the header's 3 cells"
        ):
            read_table(path, text=text)


def test_missing_values_and_blank_lines_are_no_short_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n\n1,2,\n \n,,\n,,NA\n\n")
    table = read_table(path)
    assert table["a"].dropna().tolist() == [1]
    assert table.isna().to_numpy().tolist() == [[False, False, True], [True] * 3, [True] * 3]


@pytest.mark.parametrize(("name", "pack"), [("pipe", bytes), ("pipe.csv.gz", gzip.compress)])
def test_a_pipe_is_read_once_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, pack: Callable[[bytes], bytes]
) -> None:
    """As a shell hands in ``--members <(zcat table.csv.gz)``."""
    monkeypatch.setattr(tables, "CELLS", 6)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    content = "x,y,label\n" + "".join(f"{row},{row},\n" for row in range(999)) + "x,1.5,b\n"
    plain = tmp_path / "t.csv"
    plain.write_text(content)
    pipe = tmp_path / name
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(pack(content.encode()),))
    writer.start()
    table = read_table(pipe)
    writer.join()
    pd.testing.assert_frame_equal(table, read_table(plain))
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", name}


def test_a_pipe_that_cannot_be_copied_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(stream: IO[bytes], copy: IO[bytes]) -> None:
        stream.read()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tables.shutil, "copyfileobj", full)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(TABLE,))
    writer.start()
    with pytest.raises(InputError, match=r"cannot be copied to .* \(No space left on device\)"):
        read_table(pipe)
    writer.join()
