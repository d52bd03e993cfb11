from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope.errors import RecordsError
from leakscope.records import Records, content

FRAME = pd.DataFrame(
    {
        "age": [30, 40, 50],
        "job": ["clerk", "nurse", "clerk"],
        "who": ["ann", "bob", "ann"],
        "pay": ["low", "high", "low"],
    }
)


def random_records(n: int = 300, *, units: bool = False, seed: int = 0) -> Records:
    """Few distinct values, so that many records are equal."""
    rng = np.random.default_rng(seed)
    return Records(
        rng.integers(6, size=(n, 2)).astype(float),
        rng.integers(2, size=n),
        groups={"sex": rng.choice(["f", "m"], n)},
        unit=rng.integers(10_000, size=n) if units else None,
    )


def rows(records: Records) -> list[tuple[Any, ...]]:
    """What the records hold, sorted."""
    unit = np.zeros(len(records)) if records.unit is None else records.unit
    parts = [records.numbers(), records.y, unit]
    return sorted(map(tuple, np.column_stack(parts).tolist()))


def test_records_from_a_table() -> None:
    records = Records.from_frame(FRAME, "pay", groups=["job"], unit="who", name="staff")
    assert records.feature_names == ["age", "job"]
    assert records.y.tolist() == ["low", "high", "low"]
    assert records.groups["job"].tolist() == ["clerk", "nurse", "clerk"]
    assert records.unit is not None
    assert records.unit.tolist() == ["ann", "bob", "ann"]
    assert (len(records), records.name) == (3, "staff")


def test_records_from_a_table_with_labels_apart() -> None:
    for labels in ([1, 2, 3], np.array([1, 2, 3]), pd.Series([1, 2, 3], index=[5, 6, 7])):
        records = Records.from_frame(FRAME, labels, features=["age"])
        assert records.y.tolist() == [1, 2, 3]
        assert records.feature_names == ["age"]
    assert Records.from_frame(FRAME, [1, 2, 3]).feature_names == ["age", "job", "who", "pay"]


def test_records_from_a_table_whose_columns_are_numbers() -> None:
    frame = pd.DataFrame(np.arange(6).reshape(2, 3))
    records = Records.from_frame(frame, 2)  # type: ignore[arg-type]
    assert records.feature_names == ["0", "1"]
    assert records.y.tolist() == [2, 5]


@pytest.mark.parametrize(
    "options",
    [{"label": "cost"}, {"groups": ["cost"]}, {"unit": "cost"}, {"features": ["age", "cost"]}],
)
def test_a_column_that_is_not_there_is_named(options: dict[str, Any]) -> None:
    sentence = "The staff have no column 'cost'; they have: age, job, who, pay"
    with pytest.raises(RecordsError, match=sentence):
        Records.from_frame(FRAME, **({"label": "pay", "name": "staff"} | options))


def test_a_repeated_column_is_refused_before_it_is_used() -> None:
    twice = pd.concat([FRAME, FRAME[["pay"]]], axis=1)
    with pytest.raises(RecordsError, match="two columns named 'pay'"):
        Records.from_frame(twice, "pay")


def test_features_have_names_or_positions() -> None:
    assert Records(np.zeros((1, 2, 3)), [0]).feature_names == list("012345")
    assert Records(pd.DataFrame([[1, 2]], columns=[5, "b"]), [0]).feature_names == ["5", "b"]


def test_records_are_frozen_and_short_to_look_at() -> None:
    records = random_records(units=True)
    with pytest.raises(FrozenInstanceError):
        records.y = records.y  # type: ignore[misc]
    assert repr(records) == "<Records 'records': 300 × 2, by sex, by unit>"
    assert repr(Records(np.zeros((2, 3, 4)), [0, 1])) == "<Records 'records': 2 × 3 × 4>"


def test_records_survive_the_way_to_a_worker() -> None:
    records = random_records(units=True)
    again = pickle.loads(pickle.dumps(records))
    assert rows(again) == rows(records)
    np.testing.assert_array_equal(again.keys(), records.keys())


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("index", [[2, 0], [True, False, True]])
def test_taking_some_takes_all_that_belongs_to_them(index: list[Any], hashed: bool) -> None:
    records = Records.from_frame(FRAME, "pay", groups=["job"], unit="who")
    if hashed:
        records.keys()
    taken = records.take(np.array(index))
    places = np.arange(3)[np.array(index)]
    assert isinstance(taken.X, pd.DataFrame)
    assert taken.X["age"].tolist() == FRAME["age"].iloc[places].tolist()
    assert taken.X.index.tolist() == [0, 1]
    assert taken.y.tolist() == FRAME["pay"].iloc[places].tolist()
    assert taken.groups["job"].tolist() == FRAME["job"].iloc[places].tolist()
    assert taken.unit is not None
    assert taken.unit.tolist() == FRAME["who"].iloc[places].tolist()
    np.testing.assert_array_equal(taken.keys(), records.keys()[places])


def test_taking_checks_and_hashes_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records()
    keys = records.keys()
    monkeypatch.setattr(Records, "__post_init__", None)
    monkeypatch.setattr(content.hashlib, "blake2b", None)
    taken = records.take(np.arange(10))
    np.testing.assert_array_equal(taken.keys(), keys[:10])


def test_taking_none_is_refused() -> None:
    with pytest.raises(RecordsError, match="None of the 300 records is left; give more of them"):
        random_records().take(np.array([], dtype=int))


def test_keys_cannot_be_written_to() -> None:
    keys = random_records().keys()
    with pytest.raises(ValueError, match="read-only"):
        keys[0] = 0


def test_numbers_are_the_features_and_values_have_the_label_too() -> None:
    records = Records.from_frame(FRAME, [7, 8, 9], features=["age", "job"])
    assert records.numbers().shape == (3, 2)
    np.testing.assert_array_equal(records.numbers()[:, 0], [30, 40, 50])
    assert records.numbers()[0, 1] == records.numbers()[2, 1] != records.numbers()[1, 1]
    np.testing.assert_array_equal(records.values()[:, :2], records.numbers())
    np.testing.assert_array_equal(records.values()[:, 2], [7, 8, 9])
    images = Records(np.arange(12).reshape(2, 3, 2), [0, 1])
    np.testing.assert_array_equal(images.numbers(), np.arange(12.0).reshape(2, 6))


@pytest.mark.parametrize("units", [False, True])
def test_the_canonical_order_forgets_the_order_of_input(units: bool) -> None:
    records = random_records(units=units)
    order = np.random.default_rng(1).permutation(len(records))
    shuffled = records.take(order)
    one = records.take(records.canonical_order())
    other = shuffled.take(shuffled.canonical_order())
    for array, same in (
        (one.numbers(), other.numbers()),
        (one.y, other.y),
        (one.groups["sex"], other.groups["sex"]),
        (one.blocks(), other.blocks()),
    ):
        np.testing.assert_array_equal(array, same)
    if units:
        np.testing.assert_array_equal(one.unit, other.unit)


def test_blocks_are_distinct_records() -> None:
    records = random_records()
    blocks = records.blocks()
    equal = (records.values()[:, None] == records.values()).all(axis=2)
    np.testing.assert_array_equal(blocks[:, None] == blocks, equal)
    assert set(blocks) == set(range(blocks.max() + 1))


def test_blocks_join_a_person_and_equal_records() -> None:
    X = np.array([[1], [2], [1], [3], [4], [5]])
    unit = ["ann", "ann", "bob", "bob", "cat", "dan"]
    blocks = Records(X, np.zeros(6), unit=np.array(unit)).blocks()
    assert blocks[0] == blocks[1] == blocks[2] == blocks[3]
    assert len({blocks[0], blocks[4], blocks[5]}) == 3


def test_units_of_many_digits_are_told_apart() -> None:
    # As floats, these two would be one person.
    X = np.arange(2.0)[:, None]
    for unit in (np.array([2**60, 2**60 + 1]), np.array([10**20, 10**20 + 1], dtype=object)):
        assert set(Records(X, [0, 1], unit=unit).blocks()) == {0, 1}


@given(st.integers(0, 2**16), st.booleans())
def test_a_coin_split_keeps_blocks_whole_and_forgets_the_order(seed: int, units: bool) -> None:
    records = random_records(80, units=units, seed=seed)
    heads, tails = records.coin_split(seed)
    assert rows(heads) != rows(tails)
    assert sorted(rows(heads) + rows(tails)) == rows(records)
    assert not np.isin(heads.keys(), tails.keys()).any()
    if heads.unit is not None and tails.unit is not None:
        assert not np.isin(heads.unit, tails.unit).any()
    shuffled = records.take(np.random.default_rng(seed).permutation(80))
    again, _ = shuffled.coin_split(seed)
    assert rows(again) == rows(heads)
    assert heads.name == records.name


def test_a_coin_split_is_fair() -> None:
    records = Records(np.arange(40.0)[:, None], np.arange(40) % 2)
    counts = sum(np.isin(np.arange(40), records.coin_split(s)[0].numbers()) for s in range(400))
    # 400 tosses for each of 40 records: 6 standard deviations are 60.
    assert np.abs(counts - 200).max() < 60


def test_a_coin_split_of_one_distinct_record_is_refused() -> None:
    same = Records(np.ones((5, 2)), np.zeros(5), name="staff")
    with pytest.raises(RecordsError, match="All 5 staff fell on one side, being 1 different"):
        same.coin_split(0)


@given(st.integers(1, 79), st.integers(0, 2**16), st.booleans())
def test_a_sample_has_n_records_or_a_few_more(n: int, seed: int, units: bool) -> None:
    records = random_records(80, units=units, seed=seed)
    sample = records.sample(n, seed)
    largest = np.bincount(records.blocks()).max()
    assert n <= len(sample) < n + largest
    kept = np.isin(records.keys(), sample.keys())
    assert len(sample) == kept.sum()  # equal records are all in it, or none
    if records.unit is not None and sample.unit is not None:
        assert not np.isin(records.unit[~kept], sample.unit).any()
    shuffled = records.take(np.random.default_rng(seed).permutation(80))
    assert rows(shuffled.sample(n, seed)) == rows(sample)


def test_a_sample_depends_on_the_seed() -> None:
    records = random_records()
    assert rows(records.sample(50, 0)) != rows(records.sample(50, 1))


def test_a_sample_of_all_is_the_records_themselves() -> None:
    records = random_records()
    assert records.sample(300, 0) is records
    assert records.sample(301, 0) is records


def test_an_empty_sample_is_refused() -> None:
    with pytest.raises(RecordsError, match="A sample of 0 records is empty; ask for 1 or more"):
        random_records().sample(0, 0)


def test_hashing_50_000_records_is_done_once_and_quickly() -> None:
    X = np.random.default_rng(0).normal(size=(50_000, 104))
    records = Records(X, np.zeros(50_000))
    assert records.keys() is records.keys()
    assert len(set(records.keys().tolist())) == 50_000


def test_equal_rows_can_be_different_records() -> None:
    X, y = np.zeros((4, 1)), [0, 0, 1, 1]
    assert Records(X, y).blocks().max() == 1
    assert Records(X, y).blocks(join_equal=False).tolist() == [0, 1, 2, 3]
    of_persons = Records(X, y, unit=["b", "b", "a", "c"])
    assert of_persons.blocks(join_equal=False).tolist() == [1, 1, 0, 2]


def test_columns_are_put_in_the_order_of_the_other_side() -> None:
    one = Records(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}), [0, 1])
    two = Records(pd.DataFrame({"b": [3.0, 4.0], "a": [1.0, 2.0]}), [0, 1])
    assert two.in_the_columns_of(one).feature_names == ["a", "b"]
    assert (two.in_the_columns_of(one).keys() == one.keys()).all()
    other = Records(pd.DataFrame({"a": [1.0, 2.0]}), [0, 1])
    assert other.in_the_columns_of(one) is other
    array = Records(np.zeros((2, 2)), [0, 1])
    assert array.in_the_columns_of(one) is array


def test_a_fingerprint_of_both_sides_depends_on_what_they_hold_and_not_on_their_order() -> None:
    frame = pd.DataFrame({"age": [1, 2, 3, 4], "town": ["a", "b", "a", "c"]})
    members = np.array([True, True, False, False])
    labels = [0, 1, 0, 1]
    first = Records(frame, labels).side_fingerprint(members)
    assert set(first) == {"columns", "members", "nonmembers"}
    order = [1, 0, 3, 2]
    turned = Records(frame.iloc[order], np.array(labels)[order])
    assert turned.side_fingerprint(members[order]) == first
    floats = Records(frame.astype({"age": float}), labels)
    assert floats.side_fingerprint(members) == first
    swapped = Records(frame, labels).side_fingerprint(~members)
    assert (swapped["members"], swapped["nonmembers"]) == (first["nonmembers"], first["members"])
    for changed, keys in (
        (Records(frame.assign(age=[9, 2, 3, 4]), labels), {"members"}),
        (Records(frame.assign(town=["a", "b", "a", "d"]), labels), {"nonmembers"}),
        (Records(frame, [1, 1, 0, 1]), {"members"}),
        (Records(frame.rename(columns={"age": "Age"}), labels), {"columns"}),
    ):
        found = changed.side_fingerprint(members)
        assert {key for key in found if found[key] != first[key]} == keys
    texts = Records(frame.assign(age=list("wxyz")), labels).side_fingerprint(members)
    assert texts["columns"] != first["columns"]
    # A record that is there twice counts twice.
    doubled = Records(frame.iloc[[0, 0, 2, 3]], [0, 0, 0, 1]).side_fingerprint(members)
    assert (
        doubled["members"]
        != Records(frame.iloc[[0, 2, 3]], [0, 0, 1]).side_fingerprint(
            np.array([True, False, False])
        )["members"]
    )
    images = Records(np.zeros((4, 2, 3)), labels).side_fingerprint(members)
    assert (
        images["columns"]
        != Records(np.zeros((4, 3, 2)), labels).side_fingerprint(members)["columns"]
    )
