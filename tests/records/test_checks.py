from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from leakscope.errors import RecordsError
from leakscope.records import Records
from leakscope.records.checks import checked_column, checked_groups, listed, one_kind, shown

X = np.arange(8.0).reshape(4, 2)
Y = np.array([0, 1, 0, 1])


def changed(row: int, column: int, value: Any) -> np.ndarray[Any, Any]:
    array = X.astype(object)
    array[row, column] = value
    return array


def table(row: int, column: int, value: Any) -> pd.DataFrame:
    return pd.DataFrame(changed(row, column, value), columns=["age", "pay"]).infer_objects()


# What is handed in as X, y and options, and the sentence it must come to.
REFUSALS: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "infinite array": (
        changed(2, 1, np.inf).astype(float),
        Y,
        {},
        "Column 1 of the members is infinite in row 2 (counting from 0)",
    ),
    "minus infinity": (
        changed(0, 0, -np.inf).astype(float),
        Y,
        {},
        "Column 0 of the members is infinite in row 0 (counting from 0)",
    ),
    "infinite among the missing": (
        np.where(X == 5, np.inf, np.where(X == 2, np.nan, X)),
        Y,
        {},
        "Column 1 of the members is infinite in row 2 (counting from 0)",
    ),
    "infinite single precision": (
        changed(2, 1, np.inf).astype(np.float32),
        Y,
        {},
        "Column 1 of the members is infinite in row 2 (counting from 0)",
    ),
    "infinite objects": (
        changed(2, 1, np.inf),
        Y,
        {},
        "Column 1 of the members is infinite in row 2 (counting from 0)",
    ),
    "infinite pixel": (
        changed(2, 1, np.inf).astype(float).reshape(4, 2, 1),
        Y,
        {},
        "Column 1 of the members is infinite in row 2 (counting from 0)",
    ),
    "infinite column": (
        table(2, 1, np.inf),
        Y,
        {},
        "Column 'pay' of the members is infinite in row 2 (counting from 0)",
    ),
    "infinite column of objects": (
        table(2, 1, np.inf).astype(object),
        Y,
        {},
        "Column 'pay' of the members is infinite in row 2 (counting from 0)",
    ),
    "infinite nullable column": (
        table(2, 1, np.inf).astype("Float64"),
        Y,
        {},
        "Column 'pay' of the members is infinite in row 2 (counting from 0)",
    ),
    "infinite column with a number for a name": (
        pd.DataFrame(table(2, 1, np.inf).to_numpy(), columns=[7, 9]),
        Y,
        {},
        "Column 9 of the members is infinite in row 2 (counting from 0)",
    ),
    "infinite column under another index": (
        table(2, 1, np.inf).set_axis([9, 8, 7, 6], axis=0),
        Y,
        {},
        "Column 'pay' of the members is infinite in row 2 (counting from 0)",
    ),
    "text in an array": (
        changed(3, 1, "many"),
        Y,
        {},
        "Column 1 of the members is not numeric: row 3 (counting from 0) holds 'many'",
    ),
    "text that looks like numbers": (
        X.astype(str),
        Y,
        {},
        "Column 0 of the members is not numeric: row 0 (counting from 0) holds '0.0'",
    ),
    "numbers as text among objects": (
        changed(1, 1, "3"),
        Y,
        {},
        "Column 1 of the members is not numeric: row 1 (counting from 0) holds '3'",
    ),
    "a list in an array": (
        changed(1, 0, [1, 2]),
        Y,
        {},
        "Column 0 of the members is not numeric: row 1 (counting from 0) holds [1, 2]",
    ),
    "dates in an array": (
        X.astype("datetime64[D]"),
        Y,
        {},
        "Column 0 of the members is not numeric: row 0 (counting from 0) holds "
        "datetime.date(1970, 1, 1)",
    ),
    "complex numbers": (
        X.astype(complex),
        Y,
        {},
        "Column 0 of the members is not numeric: row 0 (counting from 0) holds 0j",
    ),
    "a complex column": (
        pd.DataFrame({"age": X[:, 0], "wave": X[:, 1] * 1j}),
        Y,
        {},
        "Column 'wave' of the members is not numeric: row 0 (counting from 0) holds 1j",
    ),
    "no records": (X[:0], Y[:0], {}, "The members are empty: features of shape (0, 2)"),
    "no features": (X[:, :0], Y, {}, "The members are empty: features of shape (4, 0)"),
    "no rows": (table(0, 0, 1)[:0], Y[:0], {}, "The members are empty: features of shape (0, 2)"),
    "no columns": (
        pd.DataFrame(index=range(4)),
        Y,
        {},
        "The members are empty: features of shape (4, 0)",
    ),
    "one dimension": (X[:, 0], Y, {}, "have shape (4,), where (records, features) is needed"),
    "a scalar": (3.0, Y, {}, "have shape (), where (records, features) is needed"),
    "ragged rows": (
        [[1, 2], [3]],
        [0, 1],
        {},
        "rows of different lengths in the features of the members",
    ),
    "a sparse matrix": (csr_array(X), Y, {}, "are a sparse matrix; pass X.toarray()"),
    "two columns of one name": (
        pd.DataFrame(X, columns=["a", "a"]),
        Y,
        {},
        "have two columns named 'a'; rename or drop one",
    ),
    "fewer labels": (X, Y[:3], {}, "The members have 4 rows of features and 3 of label"),
    "more labels": (
        table(0, 0, 1),
        [*Y, 1],
        {},
        "The members have 4 rows of features and 5 of label",
    ),
    "labels in two columns": (X, X, {}, "The label of the members has shape (4, 2)"),
    "ragged labels": (
        X,
        [[1], [2, 3], 4, 5],
        {},
        "rows of different lengths in the label of the members",
    ),
    "missing number": (X, [0, 1, np.nan, 1], {}, "The label of the members is missing in row 2"),
    "missing text": (X, ["a", "b", "a", None], {}, "The label of the members is missing in row 3"),
    "missing nullable": (
        X,
        pd.array([0, None, 1, 1], dtype="Int64"),
        {},
        "The label of the members is missing in row 1",
    ),
    "missing category": (
        X,
        pd.Categorical(["a", "b", None, "a"]),
        {},
        "The label of the members is missing in row 2",
    ),
    "infinite label": (X, [0.5, np.inf, 1, 2], {}, "The label of the members is infinite in row 1"),
    "numbers and texts": (
        X,
        np.array([0, 1, "a", 1], dtype=object),
        {},
        "The label of the members is 0 in row 0 and 'a' in row 2",
    ),
    "missing unit": (
        X,
        Y,
        {"unit": ["ann", "bob", None, "cat"]},
        "The unit of the members is missing in row 2",
    ),
    "fewer units": (X, Y, {"unit": [1, 2, 3]}, "The members have 4 rows of features and 3 of unit"),
    "a unit's name": (X, Y, {"unit": "patient"}, "The unit of the members has shape ()"),
    "fewer values of a group": (
        X,
        Y,
        {"groups": {"sex": ["f", "m"]}},
        "The group 'sex' of the members has 2 values for 4 records",
    ),
    "names of groups": (
        X,
        Y,
        {"groups": ["sex"]},
        "The groups of the members are a list; give a dictionary",
    ),
    "a group in two columns": (
        X,
        Y,
        {"groups": {"sex": X}},
        "The group 'sex' of the members has shape (4, 2)",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_is_wrong_is_one_sentence_that_names_the_place(case: str) -> None:
    features, labels, options, sentence = REFUSALS[case]
    with pytest.raises(RecordsError, match=re.escape(sentence)) as caught:
        Records(features, labels, name="members", **options)
    assert "\n" not in str(caught.value)
    assert ";" in str(caught.value)  # and then what to do


def test_large_finite_values_are_not_infinite() -> None:
    large = np.array([[1e308, 1e308], [1e308, -1e308]])
    assert len(Records(large, [0, 1])) == 2
    half = np.full((4, 2), 6e4, dtype=np.float16)
    assert len(Records(half, Y)) == 4


def test_missing_features_pass_in_every_type() -> None:
    for features in (
        np.where(X == 3, np.nan, X),
        changed(0, 1, None),
        changed(0, 1, pd.NA),
        pd.DataFrame({"a": ["x", None, "y", "x"], "b": pd.array([1, None, 2, 3], dtype="Int64")}),
        pd.DataFrame({"a": pd.to_datetime(["2020-01-01", None, "2021-01-01", None])}),
        pd.DataFrame({"a": pd.array([True, None, False, True], dtype="boolean")}),
    ):
        assert np.isnan(Records(features, Y).numbers()).any() or isinstance(features, pd.DataFrame)


def test_objects_that_are_numbers_become_floats() -> None:
    mixed = np.array([[True, Decimal("0.5")], [np.float32(2), None], [3, np.int8(4)]], dtype=object)
    records = Records(mixed, [0, 1, 1])
    assert isinstance(records.X, np.ndarray)
    assert records.X.dtype == np.float64
    np.testing.assert_array_equal(records.X, [[1, 0.5], [2, np.nan], [3, 4]])
    truth = np.array([[True, 2], [False, 3]], dtype=object)
    np.testing.assert_array_equal(Records(truth, [0, 1]).numbers(), [[1, 2], [0, 3]])


def test_lists_are_taken() -> None:
    records = Records([[1, 2], [3, 4]], ["a", "b"])  # type: ignore[arg-type]
    np.testing.assert_array_equal(records.X, [[1, 2], [3, 4]])


LABELS: dict[str, tuple[Any, Any]] = {
    "ints": ([0, 1], [0, 1]),
    "a column": ([[0], [1]], [0, 1]),
    "objects of ints": (np.array([0, 1], dtype=object), [0, 1]),
    "objects of truth values": (np.array([True, False], dtype=object), [True, False]),
    "objects of floats": (np.array([0.5, 1], dtype=object), [0.5, 1.0]),
    "decimals": (np.array([Decimal(1), Decimal(2)], dtype=object), [1.0, 2.0]),
    "nullable": (pd.array([3, 4], dtype="Int64"), [3, 4]),
    "nullable truth": (pd.array([True, False], dtype="boolean"), [True, False]),
    "texts": (["a", "b"], ["a", "b"]),
    "objects of texts": (np.array(["a", "b"], dtype=object), ["a", "b"]),
    "strings": (pd.array(["a", "b"], dtype="string"), ["a", "b"]),
    "categories": (pd.Categorical(["a", "b"]), ["a", "b"]),
    "numbered categories": (pd.Categorical([5, 7]), [5, 7]),
    "dates": (
        np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
        ["2020-01-01", "2020-01-02"],
    ),
    "names of twenty digits": (
        np.array([10**20, 10**20 + 1], dtype=object),
        [str(10**20), str(10**20 + 1)],
    ),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_of_any_type_are_numbers_truth_values_or_text(case: str) -> None:
    given, expected = LABELS[case]
    array = checked_column(given, 2, "label", "members")
    assert array.dtype.kind == np.asarray(expected).dtype.kind or array.dtype == object
    assert array.tolist() == expected
    assert one_kind(array, "label", "members") is array or array.dtype == object


def test_the_series_of_a_table_is_taken_by_position_and_not_by_index() -> None:
    y = pd.Series([5, 6, 7, 8], index=[3, 2, 1, 0])
    frame = pd.DataFrame(X, index=[9, 9, 9, 9])
    records = Records(frame, y)  # type: ignore[arg-type]
    assert records.y.tolist() == [5, 6, 7, 8]
    assert isinstance(records.X, pd.DataFrame)
    assert records.X.index.tolist() == [0, 1, 2, 3]


GROUPS: dict[str, tuple[Any, list[str]]] = {
    "texts": (["f", "m"], ["f", "m"]),
    "missing text": (np.array(["f", None], dtype=object), ["f", "missing"]),
    "ints": ([1, 2], ["1", "2"]),
    "ints with a gap": ([1.0, np.nan], ["1", "missing"]),
    "fractions": ([0.5, 2.0], ["0.5", "2"]),
    "infinite": ([np.inf, 1.0], ["inf", "1"]),
    "nullable": (pd.array([1, None], dtype="Int64"), ["1", "missing"]),
    "truth": ([True, False], ["True", "False"]),
    "categories": (pd.Categorical(["f", None]), ["f", "missing"]),
    "dates": (
        np.array(["2020-01-01", "NaT"], dtype="datetime64[ns]"),
        ["2020-01-01T00:00:00.000000000", "missing"],
    ),
    "a column": ([["f"], ["m"]], ["f", "m"]),
}


@pytest.mark.parametrize("case", GROUPS)
def test_groups_become_text_and_gaps_a_group_of_their_own(case: str) -> None:
    given, expected = GROUPS[case]
    groups = checked_groups({7: given}, 2, "members")
    assert list(groups) == ["7"]
    assert groups["7"].tolist() == expected
    again = checked_groups(groups, 2, "members")
    assert again["7"].tolist() == expected


def test_long_lists_of_names_are_cut() -> None:
    assert listed(["a", 2]) == "a, 2"
    assert listed(range(10)).endswith("8, 9")
    assert listed(range(13)).endswith("8, 9 and 3 more")


def test_values_are_shown_without_their_numpy_type() -> None:
    assert shown(np.int64(3)) == "3"
    assert shown(np.str_("a")) == "'a'"
    assert shown("a") == "'a'"


def test_values_that_python_takes_for_equal_are_other_groups() -> None:
    given = np.array([True, 1, 1.5, None, "1"], dtype=object)
    found = checked_groups({"kind": given}, 5, "members")["kind"]
    assert found.tolist() == ["True", "1", "1.5", "missing", "1"]


def test_records_of_a_group_share_its_text() -> None:
    for given in (np.array([20, 21, 20]), np.array(["".join("ab"), "c", "".join("ab")], object)):
        found = checked_groups({"kind": given}, 3, "members")["kind"]
        assert found[0] is found[2]
    assert checked_groups({"kind": [None, None]}, 2, "members")["kind"].tolist() == ["missing"] * 2
