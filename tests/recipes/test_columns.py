from __future__ import annotations

from io import StringIO
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakscope.recipes import columns
from leakscope.recipes.columns import CONSTANT, EMPTY, IDENTIFIER, read_columns

N = 200
RNG = np.random.default_rng(0)
SENTENCES = [" ".join(RNG.choice(["came", "late", "and", "left", "soon"], 6)) for _ in range(N)]
SHUFFLED = RNG.permutation(N)


def halves(values: Any) -> list[pd.DataFrame]:
    frame = pd.DataFrame({"it": values})
    return [frame.iloc[: N // 2].reset_index(drop=True), frame.iloc[N // 2 :]]


def reason(values: Any, name: str = "it") -> str:
    tables = [table.rename(columns={"it": name}) for table in halves(values)]
    return read_columns(tables, [name]).left_out.get(name, "")


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (1000 + np.arange(N), "it"),
        (SHUFFLED, "it"),  # dense
        (np.sort(RNG.choice(10**9, N, replace=False)), "it"),  # in ascending order
        (RNG.choice(10**9, N, replace=False), "patient_id"),
        (RNG.choice(10**9, N, replace=False), "patientId"),
        (RNG.choice(10**9, N, replace=False), "ID"),
        ([f"{number:x}" for number in RNG.choice(2**60, N)], "it"),
        ([*(f"name {number}" for number in range(N - 5)), *["twin"] * 5], "it"),
    ],
)
def test_what_names_its_row_is_left_out(values: Any, name: str) -> None:
    assert reason(values, name) == IDENTIFIER


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (RNG.normal(size=N), "it"),
        (RNG.normal(size=N), "id"),  # fractions are measurements
        (RNG.choice(10**9, N, replace=False), "salary"),
        (RNG.choice(10**9, N, replace=False), "paid"),  # which only ends like one
        (np.arange(N) // 2, "id"),
        (np.where(np.arange(N) == 3, np.nan, np.arange(N)), "it"),
        (RNG.choice(["a", "b"], N), "id"),
        ([f"town {number % 150}" for number in range(N)], "it"),
        (SENTENCES, "it"),
        ([True, False] * (N // 2), "it"),
        ([3.0, *[np.nan] * (N - 1)], "it"),  # whether it is there tells something
    ],
)
def test_what_describes_its_row_is_kept(values: Any, name: str) -> None:
    assert reason(values, name) == ""


def test_the_same_everywhere_and_nothing_anywhere() -> None:
    assert reason(["CH"] * N) == CONSTANT
    assert reason([7] * N) == CONSTANT
    assert reason([np.nan] * N) == EMPTY
    assert reason([None] * N) == EMPTY


def test_few_records_have_no_identifiers() -> None:
    tables = [pd.DataFrame({"id": range(columns.FEWEST - 1), "code": list("ab") * 24 + ["c"]})]
    assert read_columns(tables, ["id", "code"]).left_out == {}


def test_what_is_asked_for_is_kept_and_still_read() -> None:
    tables = halves([f"1,{number:03}" for number in range(N)])
    assert read_columns(tables, ["it"]).left_out == {"it": IDENTIFIER}
    kept = read_columns(tables, ["it"], keep=True)
    assert (kept.features, kept.left_out) == (("it",), {})
    assert kept.read(tables[0])["it"].tolist() == [1000 + n for n in range(N // 2)]


def test_both_files_are_read_alike() -> None:
    tables = [pd.DataFrame({"age": [30, 40]}), pd.DataFrame({"age": ["?", "50"]})]
    reading = read_columns(tables, ["age"])
    np.testing.assert_array_equal(reading.read(tables[0])["age"], [30.0, 40.0])
    np.testing.assert_array_equal(reading.read(tables[1])["age"], [np.nan, 50.0])


def test_numbers_of_one_file_are_texts_where_the_other_has_texts() -> None:
    tables = [pd.DataFrame({"code": [7.0, np.nan]}), pd.DataFrame({"code": ["A1", "7"]})]
    reading = read_columns(tables, ["code"])
    assert reading.texts == {"code"}
    assert reading.read(tables[0])["code"].tolist() == ["7", None]
    assert reading.read(tables[1])["code"].tolist() == ["A1", "7"]
    # A side without a value has no text either; a reader of CSV files makes it a column of floats.
    empty = [pd.DataFrame({"code": [np.nan, np.nan]}), tables[1]]
    reading = read_columns(empty, ["code"])
    assert reading.texts == {"code"}
    assert reading.read(empty[0])["code"].tolist() == [None, None]


def test_whole_numbers_of_more_than_64_bits_are_texts() -> None:
    """As floats they would all be equal; a part of them that is small enough is text as well."""
    for huge in (["9" * 20, "9" * 26], ["9" * 26, "2.5"], ["9" * 5000, "1"], ["9" * 26, "1,000"]):
        tables = [
            pd.DataFrame({"it": [1, 2]}),
            pd.read_csv(StringIO("\n".join(["it", *huge])), sep=";"),
        ]
        reading = read_columns(tables, ["it"])
        assert (reading.texts, reading.written) == ({"it"}, {})
        assert reading.read(tables[0])["it"].tolist() == ["1", "2"]
        assert reading.read(tables[1])["it"].tolist() == huge


def test_decisions_do_not_depend_on_which_side_is_which() -> None:
    both = halves(RNG.permutation([*(f"x{number}" for number in range(N - 30)), *["y"] * 30]))
    assert read_columns(both, ["it"]) == read_columns(both[::-1], ["it"])


def test_other_columns_stay_in_the_table_untouched() -> None:
    table = pd.DataFrame({"when": ["1970-01-02", "1970-01-03"], "answer": ["1,000", "2,000"]})
    read = read_columns([table], ["when"]).read(table)
    assert list(read.columns) == ["when", "answer"]
    assert read["when"].tolist() == [1.0, 2.0]
    assert read["answer"].tolist() == ["1,000", "2,000"]
    assert table["when"].tolist() == ["1970-01-02", "1970-01-03"]


def test_a_column_that_one_side_lacks_is_left_to_be_refused() -> None:
    tables = [pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"b": [1, 2]})]
    assert read_columns(tables, ["a", "b"]).features == ("a", "b")


def test_sentences_say_all_of_it() -> None:
    table = pd.DataFrame(
        {
            "pay": ["1,234", "999"], "cost": ["1.234,5", "9"], "rent": ["2,000", "1"],
            "born": ["31.12.2020", "1.1.2020"], "none": [None, None], "same": [1, 1], "x": [1, 2],
        }
    )  # fmt: skip
    assert read_columns([table], list(table.columns)).sentences() == [
        "Read as numbers written like 1,234.5: pay, rent.",
        "Read as numbers written like 1.234,5: cost.",
        "Read as dates written like 31.12.2020, as days since 1970: born.",
        "Left out, the same in every row: same.",
        "Left out, without a value in any row: none.",
    ]
