from __future__ import annotations

import datetime
from decimal import Decimal
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope.records import Records, content
from leakscope.records.content import column_numbers, joined_blocks, numbered, row_keys

WHOLE = [0, 1, 1, 0, 1]
AS_COLUMNS: dict[str, Any] = {
    "int64": np.array(WHOLE),
    "int8": np.array(WHOLE, dtype=np.int8),
    "uint8": np.array(WHOLE, dtype=np.uint8),
    "float64": np.array(WHOLE, dtype=np.float64),
    "float32": np.array(WHOLE, dtype=np.float32),
    "bool": np.array(WHOLE, dtype=bool),
    "minus zero": np.array([-0.0, 1, 1, -0.0, 1]),
    "objects": np.array(WHOLE, dtype=object),
    "truth values": np.array([False, True, True, False, True], dtype=object),
    "decimals": np.array([Decimal(value) for value in WHOLE], dtype=object),
    "Int64": pd.array(WHOLE, dtype="Int64"),
    "Float32": pd.array(WHOLE, dtype="Float32"),
    "boolean": pd.array(WHOLE, dtype="boolean"),
    "category": pd.Categorical(WHOLE),
    "category of floats": pd.Categorical([float(value) for value in WHOLE]),
    "sparse": pd.arrays.SparseArray(WHOLE),
}


@pytest.mark.parametrize("kind", AS_COLUMNS)
def test_keys_are_the_same_in_every_type_of_number(kind: str) -> None:
    expected = Records(np.array(WHOLE)[:, None], np.arange(5)).keys()
    table = Records(pd.DataFrame({"a": AS_COLUMNS[kind]}), np.arange(5))
    np.testing.assert_array_equal(table.keys(), expected)
    if isinstance(AS_COLUMNS[kind], np.ndarray):
        array = Records(AS_COLUMNS[kind][:, None], np.arange(5))
        np.testing.assert_array_equal(array.keys(), expected)


@pytest.mark.parametrize("kind", AS_COLUMNS)
def test_keys_are_the_same_for_labels_of_every_type(kind: str) -> None:
    X = np.arange(5.0)[:, None]
    labels = AS_COLUMNS[kind]
    np.testing.assert_array_equal(Records(X, labels).keys(), Records(X, np.array(WHOLE)).keys())


def test_keys_are_the_same_for_a_float32_of_exactly_equal_value_and_for_no_other() -> None:
    X = np.array([[0.1], [0.5]])
    single = X.astype(np.float32)
    y = [0, 1]
    same = Records(X, y).keys() == Records(single, y).keys()
    np.testing.assert_array_equal(same, [False, True])
    again = Records(single.astype(np.float64), y).keys()
    np.testing.assert_array_equal(again, Records(single, y).keys())


def test_all_kinds_of_missing_are_one_value() -> None:
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000001], dtype=np.uint64).view(np.float64)
    a, b = Records(nans[:, None], [0, 0]).keys()
    assert a == b
    for gap in (None, np.nan, pd.NA):
        column = np.array([gap, 1.0], dtype=object)
        assert Records(pd.DataFrame({"a": column}), [0, 0]).keys()[0] == a
        assert Records(column[:, None], [0, 0]).keys()[0] == a
    nothing = Records(pd.DataFrame({"a": np.array([None, None], dtype=object)}), [0, 0])
    assert set(nothing.keys()) == {a}


TEXTS = ["x", "y", None, "x"]
AS_TEXTS: dict[str, Any] = {
    "objects": np.array(TEXTS, dtype=object),
    "string": pd.array(TEXTS, dtype="string"),
    "str": pd.array(TEXTS, dtype="str"),
    "category": pd.Categorical(TEXTS),
    "more categories": pd.Categorical(TEXTS, categories=["z", "y", "x"]),
}


@pytest.mark.parametrize(("one", "other"), [*combinations(AS_TEXTS, 2)])
def test_keys_are_the_same_in_every_type_of_text(one: str, other: str) -> None:
    frames = (pd.DataFrame({"a": AS_TEXTS[kind]}) for kind in (one, other))
    keys, others = (Records(frame, [0, 0, 0, 0]).keys() for frame in frames)
    np.testing.assert_array_equal(keys, others)
    assert keys[0] == keys[3]
    assert len(set(keys)) == 3


def test_dates_are_told_apart_whatever_their_unit() -> None:
    dates = pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02", None]))
    first = column_numbers(dates)
    assert len(set(first)) == 3
    np.testing.assert_array_equal(column_numbers(dates.astype("datetime64[s]")), first)
    days = pd.Series([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)], dtype=object)
    assert len(set(column_numbers(days))) == 2


def test_text_that_looks_like_a_number_is_not_one() -> None:
    assert column_numbers(pd.Series(["1"]))[0] != column_numbers(pd.Series([1]))[0]


def test_texts_become_numbers_that_a_float_holds_exactly() -> None:
    values = column_numbers(pd.Series([str(i) for i in range(10_000)]))
    assert len(set(values)) == 10_000
    assert (values == np.floor(values)).all()
    assert values.max() < 2**53


def test_every_feature_and_the_label_change_the_key() -> None:
    X = np.zeros((1, 6))
    base = Records(X, [0]).keys()[0]
    seen = {base, Records(X, [1]).keys()[0]}
    for position in range(6):
        other = X.copy()
        other[0, position] = 1e-300
        seen.add(Records(other, [0]).keys()[0])
    assert len(seen) == 8


def test_images_have_the_keys_of_their_flattened_selves() -> None:
    images = np.random.default_rng(0).integers(256, size=(7, 3, 4, 2)).astype(np.uint8)
    y = np.arange(7)
    flat = images.reshape(7, -1).astype(np.float64)
    np.testing.assert_array_equal(Records(images, y).keys(), Records(flat, y).keys())


def test_keys_do_not_depend_on_how_the_features_lie_in_memory() -> None:
    X = np.random.default_rng(0).integers(2, size=(9, 4)).astype(np.uint8)
    y = np.arange(9.0)
    keys = Records(X, y).keys()
    wide = np.zeros((9, 8), dtype=np.uint8)
    wide[:, ::2] = X
    for laid in (
        np.asfortranarray(X),
        wide[:, ::2],
        X[::-1].copy()[::-1],
        np.asfortranarray(X * 1.0),
    ):
        np.testing.assert_array_equal(Records(laid, y).keys(), keys)


def test_keys_do_not_depend_on_how_many_rows_are_hashed_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = np.random.default_rng(0).normal(size=(10, 3))
    label = np.arange(10.0)
    whole = row_keys(X, label)
    for chunk in (1, 3, 10):
        monkeypatch.setattr(content, "CHUNK", chunk)
        np.testing.assert_array_equal(row_keys(X, label), whole)
    assert len(set(whole)) == 10


def test_hashing_leaves_the_records_alone() -> None:
    X = np.array([[-0.0, np.nan]])
    before = X.copy()
    Records(X, [0]).keys()
    assert X.tobytes() == before.tobytes()


def test_values_are_numbered_in_sorted_order() -> None:
    np.testing.assert_array_equal(
        numbered(np.array(["b", "a", "c", "a"], dtype=object)), [1, 0, 2, 0]
    )


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12))
def test_joined_blocks_are_the_closure_of_being_equal_in_either(
    pairs: list[tuple[int, int]],
) -> None:
    first = numbered(np.array([a for a, _ in pairs]))
    second = numbered(np.array([b for _, b in pairs]))
    joined = joined_blocks(first, second)
    together = (first[:, None] == first) | (second[:, None] == second)
    for _ in pairs:  # the slow way: paths of any length
        together = (together.astype(int) @ together.astype(int)) > 0
    np.testing.assert_array_equal(joined[:, None] == joined, together)
    assert set(joined) == set(range(joined.max() + 1))
    order = np.random.default_rng(0).permutation(len(pairs))
    np.testing.assert_array_equal(joined_blocks(first[order], second[order]), joined[order])


def test_half_a_surrogate_pair_is_a_text_like_others() -> None:
    column = pd.Series(["a", "\ud800", "b", "\ud800"])
    numbers = column_numbers(column)
    assert numbers[1] == numbers[3]
    assert len(set(numbers)) == 3
