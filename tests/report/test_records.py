from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.report import RecordTable


def read(table: RecordTable) -> list[list[str]]:
    return list(csv.reader(io.StringIO(table.to_csv())))


def test_columns_stand_in_the_documented_order(table: RecordTable) -> None:
    assert read(table) == [
        ["row", "side", "label", "sex", "person", "score_loss", "vulnerable"],
        ["0", "member", "<=50K", "F", "7", "-0.25", "yes"],
        ["1", "member", ">50K", "M", "8", "", "no"],
        ["0", "nonmember", "<=50K", "F", "9", "1e-09", "no"],
    ]
    assert len(table) == 3


def test_leakage_stands_before_the_flag_and_keeps_its_name() -> None:
    table = RecordTable.from_parts(
        row=[0],
        side=["member"],
        label=["a"],
        groups={"leakage_nats": [5]},
        scores={"loss": [0.5]},
        further={"leakage_nats": [-0.03]},
        vulnerable=[False],
    )
    assert read(table) == [
        ["row", "side", "label", "leakage_nats_", "score_loss", "leakage_nats", "vulnerable"],
        ["0", "member", "a", "5", "0.5", "-0.03", "no"],
    ]


def test_scores_come_back_to_the_last_bit() -> None:
    values = np.random.default_rng(0).standard_normal(200)
    back = [float(row[0]) for row in read(RecordTable({"score": values}))[1:]]
    assert back == values.tolist()


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=cmd()", "'=cmd()"),
        ("+1+1", "'+1+1"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\tplain", "'\tplain"),
        ("\rplain", "'\nplain"),
        ("two\rlines", "two\nlines"),
        ("\nplain", "'\nplain"),
        (" plain", " plain"),
        (" \r\n=1", "' \r\n=1"),
        ("＝cmd()", "'＝cmd()"),
        ("-1", "-1"),
        ("+.5e-3", "+.5e-3"),
        ("-", "'-"),
        ("a=b", "a=b"),
        ("", ""),
        ('say "hi", you\nthere', 'say "hi", you\nthere'),
        ("nul\0", "nul�"),
        ("\ud800", "?"),
        (None, ""),
        (-1, "-1"),
        (-1.5, "-1.5"),
        (float("inf"), ""),
        (True, "True"),
    ],
)
def test_text_cannot_become_a_formula_and_numbers_stay_numbers(cell: object, written: str) -> None:
    column = np.array([cell, None], dtype=object)
    assert read(RecordTable({"x": column, "y": column}))[1] == [written, written]


def test_the_header_is_guarded_too() -> None:
    assert read(RecordTable({"=x": [1]})) == [["'=x"], ["1"]]


def test_names_that_clash_give_way() -> None:
    table = RecordTable.from_parts(
        row=[0],
        side=["member"],
        label=["a"],
        groups={"row": [5], "vulnerable": [6], "score_loss": [7]},
        unit=("label", [8]),
        scores={"loss": [0.5]},
        vulnerable=[True],
    )
    header, row = read(table)
    assert len(set(header)) == len(header) == 9
    found = dict(zip(header, row, strict=True))
    assert (found["row"], found["label"], found["vulnerable"]) == ("0", "a", "yes")
    assert (found["row_"], found["vulnerable_"], found["label_"]) == ("5", "6", "8")
    assert (found["score_loss"], found["score_loss_"]) == ("0.5", "7")


@pytest.mark.parametrize("columns", [{"a": [1, 2], "b": [1]}, {"a": [[1], [2]]}, {"a": 1}])
def test_columns_of_different_shapes_are_refused(columns: dict[str, object]) -> None:
    with pytest.raises(InputError, match="differ in shape"):
        RecordTable(columns)  # type: ignore[arg-type]


def test_parts_of_a_large_table_are_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    table = RecordTable({"a": np.arange(10), "b": np.arange(10) / 4})
    monkeypatch.setattr("leakscope.report.records.CHUNK", 3)
    parts = list(table.lines())
    assert [part.count("\n") for part in parts] == [4, 3, 3, 1, 0]
    expected = "".join(f"{at},{at / 4}\n" for at in range(10))
    assert "".join(parts) == table.to_csv() == f"a,b\n{expected}"


def test_an_empty_table_is_only_a_header() -> None:
    assert RecordTable({"row": []}).to_csv() == "row\n"
    assert len(RecordTable({})) == 0
