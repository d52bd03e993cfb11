from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.report import RecordTable
from leakscope.report.reading import read_records


def written(folder: Path, text: str) -> Path:
    (folder / "records.csv").write_text(text, "utf-8")
    return folder


def test_a_table_comes_back_as_it_was(tmp_path: Path, table: RecordTable) -> None:
    back = read_records(written(tmp_path, table.to_csv()), ["loss"])
    assert list(back.columns) == list(table.columns)
    assert np.asarray(back.columns["row"]).tolist() == [0, 1, 0]
    np.testing.assert_array_equal(back.columns["score_loss"], table.columns["score_loss"])
    for name in ("side", "label", "sex", "vulnerable"):
        assert np.asarray(back.columns[name]).tolist() == np.asarray(table.columns[name]).tolist()
    assert np.asarray(back.columns["person"]).tolist() == ["7", "8", "9"]
    assert back.to_csv() == table.to_csv()


@pytest.mark.parametrize(
    "value", ["=cmd()", "-2+3", "'quoted", "''", "plain", "", "-1", 'a "b", c\nd', "'=x", "\tx"]
)
def test_what_was_disarmed_is_as_it_was(tmp_path: Path, value: str) -> None:
    table = RecordTable.from_parts(
        row=[0],
        side=["member"],
        label=[value],
        groups={"=group": [value]},
        scores={"=a": [0.5]},
        vulnerable=[False],
    )
    back = read_records(written(tmp_path, table.to_csv()), ["=a"])
    assert list(back.columns) == ["row", "side", "label", "=group", "score_=a", "vulnerable"]
    found = np.asarray(back.columns["=group"]).tolist()
    # One apostrophe before a formula cannot be told from ours; that is the price of ours.
    assert found == ([value] if value != "'=x" else ["=x"])


def test_a_column_of_the_users_may_be_named_like_a_score(tmp_path: Path) -> None:
    text = "row,side,label,score_card,score_loss,leakage_nats,vulnerable\n0,member,a,good,1,,no\n"
    columns = read_records(written(tmp_path, text), ["loss"]).columns
    assert np.asarray(columns["score_card"]).tolist() == ["good"]
    assert np.asarray(columns["score_loss"]).tolist() == [1.0]
    assert np.isnan(columns["leakage_nats"]).tolist() == [True]


def test_two_columns_of_one_name_are_told_apart(tmp_path: Path) -> None:
    text = "row,side,label,score_loss,score_loss,vulnerable\n0,member,a,1,2,no\n"
    columns = read_records(written(tmp_path, text), ["loss"]).columns
    assert np.asarray(columns["score_loss"]).tolist() == [1.0]
    assert np.asarray(columns["score_loss (2)"]).tolist() == [2.0]


def test_a_run_without_the_file_is_told_to_be_redacted(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no records.csv, .* redacted, or"):
        read_records(tmp_path, [])


def test_a_folder_in_its_place_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "records.csv").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        read_records(tmp_path, [])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no column 'row'"),
        ("row,side,label\n", "has no column 'vulnerable' and is not the records.csv of a run"),
        ("row,side,label,vulnerable\n0,member\n", "Line 2 .* has 2 cells where the header has 4"),
        ("row,side,label,vulnerable\nx,member,a,no\n", "Line 2 .* holds 'x' where a number"),
        (f"row,side,label,vulnerable\n{10**30},member,a,no\n", "where a number is needed"),
        ('row,side,label,vulnerable\n0,"member"x,a,no\n', "not a table of comma-separated"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read_records(written(tmp_path, text), [])


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "records.csv").write_bytes(b"row,side\xff\xfe\n")
    with pytest.raises(InputError, match="not a table of comma-separated"):
        read_records(tmp_path, [])
