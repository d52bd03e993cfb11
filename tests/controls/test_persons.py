from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakscope as ls
from leakscope.controls.blind import blind_control
from leakscope.controls.persons import person_columns, table_of
from leakscope.evidence import Folds
from leakscope.records import Records

RNG = np.random.default_rng(0)
PERSON = np.repeat(np.arange(300), RNG.integers(1, 6, 300))
N = len(PERSON)
BY_PERSON = RNG.random(300) < 0.5
SIDES = BY_PERSON[PERSON]
ROWS = RNG.random(N) < 0.5
DAYS = RNG.integers(0, 365, N)


def named(values: Any, membership: Any = SIDES, name: str = "it") -> bool:
    return person_columns(pd.DataFrame({name: values}), membership) == [name]


@pytest.mark.parametrize(
    "values",
    [
        PERSON,
        PERSON.astype(float),
        10**25 + PERSON.astype(object),
        [f"P{number}" for number in PERSON],
        pd.Categorical([f"P{number}" for number in PERSON]),
        np.where(np.arange(N) % 17, PERSON, np.nan),
    ],
    ids=["numbers", "floats", "26 digits", "texts", "categories", "gaps"],
)
def test_persons_are_recognized(values: Any) -> None:
    assert named(values)
    assert not named(values, ROWS)  # torn apart, as by a split of rows


def test_a_few_persons_on_both_sides_are_still_persons() -> None:
    sides = SIDES.copy()
    sides[np.isin(PERSON, [3, 33, 133])] = np.arange(np.isin(PERSON, [3, 33, 133]).sum()) % 2 > 0
    assert named(PERSON, sides)


@pytest.mark.parametrize(
    ("values", "membership"),
    [
        (DAYS, ROWS),
        (DAYS, DAYS < 180),  # a drift: before and after
        (np.where(DAYS == 180, 175, DAYS), DAYS <= 180),
        (pd.to_datetime(DAYS, unit="D"), DAYS % 2 == 0),
        ([f"2020-{day // 31 + 1:02}-{day % 31 + 1:02}" for day in DAYS], DAYS < 180),
        (DAYS % 7, DAYS % 7 < 3),  # a few values
        (RNG.normal(size=N).round(1), SIDES),
        (RNG.normal(size=N), SIDES),
        (np.arange(N), SIDES),  # none of them twice
        (SIDES.astype(int), SIDES),
        (np.full(N, np.nan), SIDES),
        (np.full(N, "x"), SIDES),
    ],
)
def test_other_columns_are_not(values: Any, membership: Any) -> None:
    assert not named(values, membership)


@pytest.mark.parametrize("name", ["patient_id", "Patient", "user id", "account", "ID"])
def test_persons_in_order_are_recognized_by_their_name(name: str) -> None:
    assert named(PERSON, PERSON < 150, name)
    assert not named(PERSON, PERSON < 150, "paid")


@pytest.mark.parametrize("data", ["adult", "digits", "iris", "wine"])
@pytest.mark.parametrize("by", ["rows", "drift"])
def test_no_column_of_ordinary_data_is(data: str, by: str) -> None:
    """Neither in an honest split nor in one by a column, which the blind control refuses."""
    options: Any = {"encoding": "table"} if data == "adult" else {}
    records = ls.load_dataset(data, **options).sample(3000, seed=0)
    table = table_of(records)
    membership = np.random.default_rng(1).random(len(records)) < 0.5
    if by == "drift":
        for name in table.columns:
            column = pd.to_numeric(table[name], errors="coerce").fillna(0)
            membership = (column > column.median()).to_numpy()
            assert person_columns(table, membership) == []
    assert person_columns(table, membership) == []


def rows_of_persons(**unit: Any) -> tuple[Records, Any]:
    """Rows that resemble the others of their person, each person on one side by a fair coin."""
    rng = np.random.default_rng(1)
    traits = rng.normal(size=(300, 4))
    X = pd.DataFrame(traits[PERSON] + 0.1 * rng.normal(size=(N, 4)), columns=list("abcd"))
    records = Records(X if unit else X.assign(patient=PERSON), rng.integers(0, 2, N), **unit)
    order = records.canonical_order()
    records, membership = records.take(order), SIDES[order]
    folds = Folds.draw(records.blocks(), membership, 0)
    return records, blind_control(records, membership, folds, 0)


def test_the_blind_control_suggests_the_unit() -> None:
    _, control = rows_of_persons()
    assert control.passed is False
    assert control.detail.endswith(
        "The values of 'patient' repeat and hardly ever stand on both sides. If they name the "
        "person a row belongs to, give that column as --unit (unit=)."
    )
    _, control = rows_of_persons(unit=PERSON)
    assert control.passed
    assert "--unit" not in control.detail


def test_other_drifts_are_not_blamed_on_persons() -> None:
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"x": rng.normal(size=N) + SIDES, "age": rng.integers(20, 60, N)})
    records = Records(X, rng.integers(0, 2, N))
    folds = Folds.draw(records.blocks(), SIDES, 0)
    control = blind_control(records, SIDES, folds, 0)
    assert control.passed is False
    assert control.detail.endswith("from one population.")


def test_images_have_no_columns() -> None:
    assert table_of(Records(np.zeros((5, 3, 3)), np.arange(5))).shape == (5, 0)
