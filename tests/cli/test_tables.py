from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leakscope.cli.tables import read_table
from leakscope.errors import InputError

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
