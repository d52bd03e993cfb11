from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakscope.errors import RecordsError
from leakscope.records import Records, pool


def side(X: Any, y: Any = (0, 1), **options: Any) -> Records:
    return Records(X, np.asarray(y), **options)


ARRAY = np.arange(4.0).reshape(2, 2)
FRAME = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})


def test_members_come_first() -> None:
    members = side(ARRAY, [1, 0], groups={"sex": ["f", "m"]}, unit=[3, 4])
    nonmembers = side(ARRAY[:1] + 9, [1], groups={"sex": ["f"]}, unit=[5])
    together, membership = pool(members, nonmembers)
    assert membership.tolist() == [True, True, False]
    np.testing.assert_array_equal(together.X, [[0, 1], [2, 3], [9, 10]])
    assert together.y.tolist() == [1, 0, 1]
    assert together.groups["sex"].tolist() == ["f", "m", "f"]
    assert together.unit is not None
    assert together.unit.tolist() == [3, 4, 5]


def test_columns_are_matched_by_name() -> None:
    together, _ = pool(side(FRAME), side(FRAME[["b", "a"]]))
    assert isinstance(together.X, pd.DataFrame)
    assert together.X.columns.tolist() == ["a", "b"]
    assert together.X.index.tolist() == [0, 1, 2, 3]
    assert together.X["b"].tolist() == ["x", "y", "x", "y"]
    assert together.keys()[0] == together.keys()[2]


LABELS: list[tuple[Any, Any, str, list[Any]]] = [
    ([0, 1], [0.0, 1.0], "f", [0.0, 1.0, 0.0, 1.0]),
    ([0, 1], [True, False], "i", [0, 1, 1, 0]),
    (np.array([0, 1], dtype=object), [0.5, 1.0], "f", [0, 1, 0.5, 1.0]),
    (["a", "b"], np.array(["ccc", "d"], dtype=object), "O", ["a", "b", "ccc", "d"]),
    (["a", "b"], pd.Categorical(["ccc", "d"]), "O", ["a", "b", "ccc", "d"]),
]


@pytest.mark.parametrize(("first", "second", "kind", "expected"), LABELS)
def test_labels_of_one_kind_are_joined(
    first: Any, second: Any, kind: str, expected: list[Any]
) -> None:
    together, _ = pool(side(ARRAY, first), side(ARRAY, second))
    assert together.y.dtype.kind == kind
    assert together.y.tolist() == expected


def test_equal_records_of_int_and_float_sides_are_equal_in_the_pool() -> None:
    together, _ = pool(side(ARRAY.astype(int), [0, 1]), side(ARRAY, [0.0, 1.0]))
    np.testing.assert_array_equal(together.keys()[:2], together.keys()[2:])


def test_a_pool_has_the_keys_of_its_sides() -> None:
    members, nonmembers = side(FRAME), side(FRAME.assign(a=[1.5, None]))
    together, _ = pool(members, nonmembers)
    np.testing.assert_array_equal(
        together.keys(), np.concatenate([members.keys(), nonmembers.keys()])
    )


@pytest.mark.parametrize(
    ("first", "second", "categories"),
    [(["x", "y"], ["x", "y"], ["x", "y"]), (["x", "y"], ["z", "x"], ["x", "y", "z"])],
)
def test_categories_stay_categories(
    first: list[str], second: list[str], categories: list[str]
) -> None:
    frames = [pd.DataFrame({"a": pd.Categorical(values)}) for values in (first, second)]
    together, _ = pool(side(frames[0]), side(frames[1]))
    assert isinstance(together.X, pd.DataFrame)
    assert together.X["a"].dtype == pd.CategoricalDtype(categories)
    assert together.X["a"].tolist() == [*first, *second]


def test_a_column_that_is_all_missing_on_one_side_goes_with_any_other() -> None:
    for column in (["x", "y"], [1.5, 2.5], pd.array([1, 2], dtype="Int64")):
        for gap in (np.array([None, None], dtype=object), np.array([np.nan, np.nan])):
            with_gap = pd.DataFrame({"a": gap})
            together, _ = pool(side(pd.DataFrame({"a": column})), side(with_gap))
            assert isinstance(together.X, pd.DataFrame)
            assert together.X["a"].isna().tolist() == [False, False, True, True]
            together, _ = pool(side(with_gap), side(pd.DataFrame({"a": column})))
            assert isinstance(together.X, pd.DataFrame)
            assert together.X["a"].isna().tolist() == [True, True, False, False]


REFUSALS: dict[str, tuple[Records, Records, str]] = {
    "one table": (side(FRAME), side(ARRAY), "One side is a DataFrame and the other an array"),
    "other table": (side(ARRAY), side(FRAME), "One side is a DataFrame and the other an array"),
    "widths": (side(ARRAY), side(ARRAY[:, :1]), "shape (2,) and non-members of (1,)"),
    "columns": (side(FRAME), side(FRAME.assign(c=1)), "Only the non-members have the column 'c'"),
    "fewer columns": (side(FRAME), side(FRAME[["a"]]), "Only the members have the column 'b'"),
    "kinds of a column": (
        side(FRAME),
        side(FRAME.assign(b=[1, 2])),
        "Column 'b' is like 'x' for members and like 1 for non-members",
    ),
    "groups": (
        side(ARRAY, groups={"sex": ["f", "m"]}),
        side(ARRAY),
        "Only the members have the group 'sex'",
    ),
    "more groups": (
        side(ARRAY),
        side(ARRAY, groups={"sex": ["f", "m"]}),
        "Only the non-members have the group 'sex'",
    ),
    "units": (side(ARRAY, unit=[1, 2]), side(ARRAY), "Only one side has units"),
    "labels": (
        side(ARRAY),
        side(ARRAY, ["0", "1"]),
        "The labels of members are like 0 and those of non-members like '0'",
    ),
    "kinds of unit": (
        side(ARRAY, unit=["a", "b"]),
        side(ARRAY, unit=[1, 2]),
        "The units of members are like 'a' and those of non-members like 1",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_sides_that_do_not_go_together_are_refused(case: str) -> None:
    members, nonmembers, sentence = REFUSALS[case]
    with pytest.raises(RecordsError, match=re.escape(sentence)):
        pool(members, nonmembers)
