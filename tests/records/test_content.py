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


ARRAYS: dict[str, Any] = {
    "array": np.array([[0.0, 1.0], [2.0, np.nan], [0.0, 5.0]]),
    "singles": np.array([[0, 1], [2, np.nan], [0, 5]], dtype=np.float32),
    "bytes": np.array([[0, 1], [2, 3], [4, 5]], dtype=np.uint8),
    "images": np.array([[0, 1], [2, 3], [4, 5]], dtype=np.uint8).reshape(3, 2, 1, 1),
    "wide images": np.array([[0, 1], [2, 3], [4, 5]], dtype=np.uint8).reshape(3, 1, 2, 1),
}
COLUMNS: dict[str, list[Any]] = {
    "numbers": [
        [1.0, 2.0, np.nan],
        [1.0, 2.0, 3.0],
        np.array([1, 2, 3]),
        np.array([1, 2, 3], dtype=np.int8),
        pd.array([1, 2, 3], dtype="Int64"),
        pd.array([1, 2, None], dtype="Int64"),
        np.array([True, False, True]),
        pd.arrays.SparseArray([1, 2, 3]),
        [Decimal(1), Decimal(2), Decimal(3)],
        pd.Series([1, 2, 3], dtype=object),
    ],
    "texts": [
        pd.Series(["a", "b", "c"], dtype=object),
        pd.Series(["a", "b", None], dtype=object),
        pd.Series(["a", "b", np.nan], dtype=object),
        pd.Series(["a", "b", "nan"], dtype=object),
        pd.Series(["a", "b\n'c", ""], dtype=object),
        pd.Series(["a\n'b", "c", ""], dtype=object),
        pd.Series(["a", "b", "\ud800"], dtype=object),
        pd.array(["a", "b", "c"], dtype="str"),
        pd.array(["a", "b", None], dtype="str"),
        pd.array(["a", "b", "c"], dtype="string"),
    ],
    "categories": [
        pd.Categorical(["a", "b", "c"]),
        pd.Categorical(["a", "b", None]),
        pd.Categorical(["a", "b", "a"]),
        pd.Categorical(["a", "b", "c"], ordered=True),
        pd.Categorical(["a", "b", "c"], categories=["c", "b", "a"]),
        pd.Categorical(["a", "b", "c"], categories=["a", "b", "c", "d"]),
        pd.Categorical([1, 2, 3]),
    ],
    "dates": [
        pd.to_datetime(["2020-01-01", "2020-01-02", None]),
        pd.to_datetime(["2020-01-01", "2020-01-03", None]),
        pd.to_datetime(["2020-01-01", "2020-01-02", None], utc=True),
        pd.to_datetime(["2020-01-01", "2020-01-03", None], utc=True),
        pd.to_datetime(["2020-01-01", "2020-01-02", None]).tz_localize("Asia/Tokyo"),
        pd.to_datetime(["2020-01-01", "2020-01-02", None]).as_unit("s"),
        [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), None],
        pd.to_timedelta([1, 2, None], unit="D"),
    ],
}


def test_the_fingerprint_tells_arrays_of_other_types_and_shapes_apart() -> None:
    assert len({Records(X, [0, 1, 0]).fingerprint() for X in ARRAYS.values()}) == len(ARRAYS)


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_fingerprint_tells_columns_of_other_values_and_types_apart(kind: str) -> None:
    frames = [pd.DataFrame({"a": column}) for column in COLUMNS[kind]]
    first, second = ([Records(frame, [0, 1, 0]).fingerprint() for frame in frames] for _ in "12")
    assert first == second
    assert len(set(first)) == len(frames)


def test_the_fingerprint_changes_with_every_value_name_and_place() -> None:
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]})
    y = np.array([0, 1, 0])
    other = [
        Records(table, y),
        Records(table, np.array([0, 1, 1])),
        Records(table, y.astype(np.float64)),
        Records(table, np.array(["0", "1", "0"])),
        Records(table, np.array(["0", "1", "0"], dtype=object)),
        Records(table.assign(a=[1.0, 2.0, 4.0]), y),
        Records(table.assign(b=["x", "y", "w"]), y),
        Records(table[["b", "a"]], y),
        Records(table.rename(columns={"a": "c"}), y),
        Records(table.rename(columns={"a": 0}), y),
        Records(table.rename(columns={"a": "0"}), y),
        Records(table[["a"]], y),
        Records(table[["a"]].to_numpy(), y),
        Records(table, y).take(np.array([1, 0, 2])),
        Records(table, y).take(np.array([0, 1])),
    ]
    assert len({records.fingerprint() for records in other}) == len(other)


def test_the_fingerprint_does_not_change_with_what_models_do_not_see() -> None:
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]})
    y = np.array([0, 1, 0])
    plain = Records(table, y)
    dressed = Records(table, y, {"b": table["b"].to_numpy()}, np.array([1, 1, 2]), "staff")
    renumbered = Records(table.set_axis([7, 8, 9], axis=0), y)
    assert plain.fingerprint() == dressed.fingerprint() == renumbered.fingerprint()
    assert plain.take(np.arange(3)).fingerprint() == plain.fingerprint()


def test_the_fingerprint_does_not_depend_on_how_arrays_lie_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = np.random.default_rng(0).normal(size=(10, 4, 3))
    y = np.arange(10)
    mark = Records(X, y).fingerprint()
    wide = np.zeros((10, 8, 3))
    wide[:, ::2] = X
    for laid in (np.asfortranarray(X), wide[:, ::2], X[::-1].copy()[::-1]):
        assert Records(laid, y).fingerprint() == mark
    table = pd.DataFrame(X[:, :, 0])
    same = pd.DataFrame({column: table[column].copy() for column in table.columns})
    assert Records(table, y).fingerprint() == Records(same, y).fingerprint()
    monkeypatch.setattr(content, "CHUNK", 3)
    assert Records(X, y).fingerprint() == mark


def test_the_fingerprint_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records(np.zeros((2, 1)), [0, 1])
    mark = records.fingerprint()
    monkeypatch.setattr("leakscope.records.content_hash", None)
    assert records.fingerprint() == mark
