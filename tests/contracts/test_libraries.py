"""Columns of a table reach every library's model as in its training, or the audit is refused.

Tables with columns in another order, with more columns, without one, and with another name: the
numbers of the whole audit are the same, or there is one error that names the column.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge

import leakscope as ls
from leakscope.cli import main
from leakscope.errors import LeakscopeError
from leakscope.models import as_model
from leakscope.records import Records
from libraries import (
    BOOSTERS,
    MEMBERS,
    NAMES,
    NONMEMBERS,
    NUMBERS,
    OWN_MESSAGE,
    TEXTS,
    Engineered,
    catboost,
    expected,
    fitted,
    keras,
    lightgbm,
    numbers_of,
    prepared,
    skorch,
)

# Keras and skorch do not know pandas 3 and numpy 2 in all of their parts.
pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning"),
]


def shuffled(table: pd.DataFrame) -> pd.DataFrame:
    return table[list(reversed(table.columns))]


def widened(table: pd.DataFrame) -> pd.DataFrame:
    """The same with a column of numbers before all others, and one of texts after them."""
    wide = pd.DataFrame({"serial": np.arange(len(table)) * 1.0}).join(table)
    return wide.assign(remark="none")


CASES = [("numbers", name) for name in NUMBERS] + [("texts", name) for name in TEXTS]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_other_orders_and_more_columns_give_the_same_numbers(kind: str, name: str) -> None:
    model = fitted(kind, name)
    sides = [prepared(kind, name, side) for side in (MEMBERS, NONMEMBERS)]
    same = expected(kind, name)
    if name in OWN_MESSAGE:  # what it reads is not known: it is given the whole table
        order = [as_model(model).predict_proba(change(sides[0])) for change in (shuffled, widened)]
        np.testing.assert_array_equal(*order)
        return
    for change in (shuffled, widened, lambda table: shuffled(widened(table))):
        assert numbers_of(model, *map(change, sides)) == same
    # One side alone, pairs of features and labels, and Records.
    assert numbers_of(model, shuffled(sides[0]), sides[1]) == same
    pairs = [(shuffled(side).drop(columns="y"), side["y"]) for side in sides]
    assert numbers_of(model, *pairs, label=None) == same
    records = [Records(X, y) for X, y in pairs]
    assert numbers_of(model, *records, label=None) == same


@pytest.mark.parametrize("column", ["age", "pay", "debt"])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_column_that_is_missing_or_renamed_is_an_error(kind: str, name: str, column: str) -> None:
    model = fitted(kind, name)
    sides = [prepared(kind, name, side) for side in (MEMBERS, NONMEMBERS)]
    for change in (
        lambda table: table.drop(columns=column),
        lambda table: table.rename(columns={column: "other"}),
        lambda table: table.rename(columns={column: column.title()}),
    ):
        changed = [change(side) for side in sides]
        with pytest.raises(LeakscopeError, match=column) as caught:
            numbers_of(model, *changed)
        assert "\n" not in str(caught.value)
        records = [Records.from_frame(side, "y") for side in changed]
        with pytest.raises(LeakscopeError, match=column):
            numbers_of(model, *records, label=None)


@pytest.mark.parametrize("name", ["logistic", "catboost", "lightgbm", "xgboost"])
def test_a_method_reads_the_columns_of_its_model(name: str) -> None:
    function = fitted("numbers", name).predict_proba
    sides = [prepared("numbers", name, side) for side in (MEMBERS, NONMEMBERS)]
    same = numbers_of(function, *sides)
    assert numbers_of(function, *map(widened, map(shuffled, sides))) == same
    with pytest.raises(LeakscopeError, match="age"):
        numbers_of(function, *(side.drop(columns="age") for side in sides))


@pytest.mark.parametrize("name", BOOSTERS)
def test_boosters_read_columns_by_name(name: str) -> None:
    sides = [prepared("numbers", name, side) for side in (MEMBERS, NONMEMBERS)]
    booster = BOOSTERS[name](sides[0].drop(columns="y"), sides[0]["y"])
    for model in (booster, booster.predict):
        same = numbers_of(model, *sides)
        for change in (shuffled, widened):
            assert numbers_of(model, *map(change, sides)) == same
        for column in NAMES:
            changed = [side.rename(columns={column: "other"}) for side in sides]
            with pytest.raises(LeakscopeError, match=column):
                numbers_of(model, *changed)
            records = [Records.from_frame(side, "y") for side in changed]
            with pytest.raises(LeakscopeError, match=column):
                numbers_of(model, *records, label=None)


def test_a_regression_reads_columns_by_name() -> None:
    library = pytest.importorskip("catboost", reason="CatBoost is not installed")
    settings = {"iterations": 15, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    X, y = MEMBERS[NAMES], MEMBERS["age"] * 2 + MEMBERS["pay"]
    others = NONMEMBERS[NAMES], NONMEMBERS["age"] * 2 + NONMEMBERS["pay"]
    for model in (
        library.CatBoostRegressor(**settings),
        TransformedTargetRegressor(library.CatBoostRegressor(**settings)),
        TransformedTargetRegressor(Ridge()),
    ):
        model.fit(X, y)
        found = [
            ls.audit(model, (change(X), y), (change(others[0]), others[1]), attacks=["loss"])
            for change in (lambda table: table, shuffled)
        ]
        assert found[0].data["outcomes"] == found[1].data["outcomes"]


def test_a_frozen_model_in_a_wrapper() -> None:
    table = prepared("numbers", "catboost", MEMBERS)
    frozen = FrozenEstimator(fitted("numbers", "catboost"))
    model = CalibratedClassifierCV(frozen, cv=2).fit(table.drop(columns="y"), table["y"])
    sides = [prepared("numbers", "catboost", side) for side in (MEMBERS, NONMEMBERS)]
    assert numbers_of(model, *sides) == numbers_of(model, *map(shuffled, sides))


# Fitted on arrays: the names of a table are not those of the model, and positions count.
UNNAMED = ["logistic", "forest", "pipeline", "search", "catboost", "lightgbm", "xgboost"]
UNNAMED += ["catboost in a search", "catboost, calibrated", "lightgbm booster", "xgboost booster"]
UNNAMED += ["skorch", "keras", "torch"]


@cache
def unnamed(name: str) -> Any:
    X, y = MEMBERS[NAMES].to_numpy(), MEMBERS["y"].to_numpy()
    if name.endswith(" booster"):
        return BOOSTERS[name.removesuffix(" booster")](X, y)
    if name == "skorch":
        return skorch().fit(X.astype(np.float32), y)
    if name == "keras":
        library = keras()
        layers = [library.layers.Input((4,)), library.layers.Dense(2, activation="softmax")]
        library.utils.set_random_seed(0)
        return library.Sequential(layers)
    if name == "torch":
        torch = pytest.importorskip("torch", reason="torch is not installed")
        torch.manual_seed(0)
        return torch.nn.Linear(4, 2)
    return NUMBERS[name]().fit(X, y)


@pytest.mark.parametrize("name", UNNAMED)
def test_without_names_positions_count_and_the_report_says_so(name: str) -> None:
    model = unnamed(name)
    arrays = [(side[NAMES].to_numpy(), side["y"].to_numpy()) for side in (MEMBERS, NONMEMBERS)]
    tables = [side[[*NAMES, "y"]] for side in (MEMBERS, NONMEMBERS)]
    assert numbers_of(model, *tables) == numbers_of(model, *arrays, label=None)
    report = ls.audit(model, *tables, label="y", attacks=["loss"])
    assert report.data["target"]["preparation"] == [
        "The model has no column names, so its columns are those of the table in this order: "
        "age, pay, size, debt. Check that this is the order of its training."
    ]
    report = ls.audit(model, *arrays, attacks=["loss"])
    assert "preparation" not in report.data["target"]


@pytest.mark.parametrize("name", UNNAMED)
def test_without_names_the_number_of_columns_must_be_that_of_training(name: str) -> None:
    for change in (widened, lambda table: table.drop(columns="debt")):
        tables = [change(side[[*NAMES, "y"]]) for side in (MEMBERS, NONMEMBERS)]
        tables = [side.drop(columns="remark", errors="ignore") for side in tables]
        with pytest.raises(LeakscopeError):
            numbers_of(unnamed(name), *tables)
        arrays = [(side.drop(columns="y").to_numpy(), side["y"]) for side in tables]
        with pytest.raises(LeakscopeError):
            numbers_of(unnamed(name), *arrays, label=None)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("catboost", "{}"),
        ("catboost, calibrated", "{}"),
        ("lightgbm", "Column_{}"),
        ("lightgbm booster", "Column_{}"),
    ],
)
def test_a_table_with_the_default_names_of_a_library_is_read_by_name(name: str, form: str) -> None:
    names = [form.format(place) for place in range(4)]
    sides = [side[NAMES].set_axis(names, axis=1) for side in (MEMBERS, NONMEMBERS)]
    tables = [
        side.assign(y=own["y"]) for side, own in zip(sides, (MEMBERS, NONMEMBERS), strict=True)
    ]
    model = unnamed(name)
    same = numbers_of(model, *tables)
    for change in (shuffled, widened):
        assert numbers_of(model, *map(change, tables)) == same
    assert same == numbers_of(
        model, *((side[NAMES].to_numpy(), side["y"]) for side in (MEMBERS, NONMEMBERS)), label=None
    )


def test_a_vote_knows_the_names_that_one_of_its_estimators_knows() -> None:
    estimators = [("own", Engineered()), ("cat", catboost())]
    table = prepared("numbers", "catboost", MEMBERS).drop(columns="y")
    model = VotingClassifier(estimators, voting="soft").fit(table, MEMBERS["y"])
    assert as_model(model).feature_names == NAMES  # type: ignore[attr-defined]


def test_keras_with_an_input_for_each_column_is_an_error_and_a_function_will_do() -> None:
    library = keras()
    inputs = {name: library.layers.Input((1,), name=name) for name in NAMES}
    joined = library.layers.Concatenate()(list(inputs.values()))
    library.utils.set_random_seed(0)
    model = library.Model(inputs, library.layers.Dense(1, activation="sigmoid")(joined))
    sides = [prepared("numbers", "keras", side) for side in (MEMBERS, NONMEMBERS)]
    with pytest.raises(LeakscopeError, match=r"expects 4 named input.*'age'"):
        numbers_of(model, *sides)

    def function(X: pd.DataFrame) -> Any:
        return model.predict({name: X[[name]].to_numpy() for name in NAMES}, verbose=0)

    one = as_model(function).predict_proba(sides[0])
    np.testing.assert_array_equal(as_model(function).predict_proba(shuffled(sides[0])), one)


def test_a_name_that_two_columns_may_have_is_an_error() -> None:
    table = MEMBERS[NAMES].set_axis(["the age", "pay", "size", "debt"], axis=1)
    model = as_model(lightgbm().fit(table, MEMBERS["y"]))
    assert model.feature_names == ["the_age", "pay", "size", "debt"]  # type: ignore[attr-defined]
    with pytest.raises(LeakscopeError, match="'the age' and 'the_age' may both be the model's"):
        model.predict(table.assign(the_age=1.0))


SAVED = ["logistic.skops", "pipeline.skops", "search.skops", "lightgbm.skops", "xgboost.skops"]
SAVED += ["lightgbm.txt", "xgboost.json", "xgboost.ubj", "catboost.pickle", "lightgbm.pickle"]
SAVED += ["catboost, calibrated.pickle", "catboost in a search.pickle", "xgboost.pickle"]


def saved(file: Path) -> Path:
    """The model of this name in a file of this kind."""
    name, ending = file.stem, file.suffix
    model = fitted("numbers", name)
    if ending == ".skops":
        skops.io.dump(model, file)
    elif ending == ".pickle":
        file.write_bytes(pickle.dumps(model))
    else:
        (model.booster_ if name == "lightgbm" else model).save_model(file)
    return file


@pytest.mark.slow
@pytest.mark.parametrize("file", SAVED)
def test_the_command_line_reads_columns_by_name(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    model = saved(tmp_path / file)

    def audited(change: Callable[[pd.DataFrame], pd.DataFrame], out: str) -> tuple[int, Any]:
        for side, table in (("in", MEMBERS), ("out", NONMEMBERS)):
            numbers = prepared("numbers", "", table)
            change(numbers).to_csv(tmp_path / f"{side}.csv", index=False)
        words = (
            "audit --members in.csv --nonmembers out.csv --label y --attacks loss --trust-pickle"
        )
        code = main([*words.split(), "--model", str(model), "--out", out])
        report = tmp_path / out / "report.json"
        return code, json.loads(report.read_text())["outcomes"] if report.is_file() else None

    same = audited(lambda table: table, "same")
    assert same[0] in (0, 1)
    assert same[1] is not None
    for place, change in enumerate((shuffled, widened)):
        assert audited(change, f"other{place}") == same
    for place, change in enumerate(
        (lambda table: table.drop(columns="pay"), lambda table: table.rename(columns={"pay": "p"}))
    ):
        capfd.readouterr()
        code, nothing = audited(change, f"wrong{place}")
        assert (code, nothing) == (2, None)
        assert "'pay'" in capfd.readouterr().err
