from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import skops.io
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import leakscope
from leakscope.errors import InputError, ModelError
from leakscope.models import as_model, boosters, load_model
from leakscope.models.boosters import BoosterModel, kind_of_booster
from leakscope.recipes import recipe_of
from leakscope.records import Records

N = 300
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "age": RNG.normal(size=N),
        "blood pressure": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "town": pd.Categorical(RNG.choice(["Aix", "Bonn", "Cork"], N)),
    }
)
BINARY = (X["age"] + RNG.normal(size=N) + (X["town"] == "Bonn") > 0).astype(int).to_numpy()
THREE = np.digitize(X["age"] + RNG.normal(size=N), [-0.7, 0.7])
NUMBERS = X["age"].to_numpy() * 3 + RNG.normal(size=N)
# As a file has it: the columns in another order, more of them, and texts that are only texts.
TABLE = X.assign(town=X["town"].astype(object), extra=1)[["town", "extra", "blood pressure", "age"]]

XGB = {"n_estimators": 4, "max_depth": 3, "n_jobs": 1, "enable_categorical": True}
LGB = {"n_estimators": 4, "max_depth": 3, "n_jobs": 1, "verbose": -1}


def saved(model: Any, path: Path) -> Any:
    booster = model.booster_ if hasattr(model, "booster_") else model
    # XGBoost warns of a name without an ending.
    booster.save_model(str(path.with_suffix(path.suffix or ".ubj")))
    return load_model(path.with_suffix(path.suffix or ".ubj").rename(path))


FITTED: dict[str, tuple[Callable[[], Any], str]] = {
    "xgboost, two classes": (lambda: xgboost.XGBClassifier(**XGB).fit(X, BINARY), "m.json"),
    "xgboost, binary file": (lambda: xgboost.XGBClassifier(**XGB).fit(X, BINARY), "m.ubj"),
    "xgboost, any name": (lambda: xgboost.XGBClassifier(**XGB).fit(X, BINARY), "model"),
    "xgboost, three classes": (lambda: xgboost.XGBClassifier(**XGB).fit(X, THREE), "m.json"),
    "xgboost, dart": (
        lambda: xgboost.XGBClassifier(booster="dart", **XGB).fit(X, BINARY),
        "m.json",
    ),
    "lightgbm, two classes": (lambda: lightgbm.LGBMClassifier(**LGB).fit(X, BINARY), "m.txt"),
    "lightgbm, three classes": (lambda: lightgbm.LGBMClassifier(**LGB).fit(X, THREE), "m.txt"),
}


@pytest.mark.parametrize("kind", FITTED)
def test_a_classifier_from_its_file_answers_as_it_did(kind: str, tmp_path: Path) -> None:
    make, name = FITTED[kind]
    fitted = make()
    model = as_model(saved(fitted, tmp_path / name))
    assert model.task == "classification"
    assert model.feature_names == [*getattr(fitted, "feature_name_", X.columns)]
    expected = fitted.predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(TABLE), expected, atol=1e-6)
    np.testing.assert_array_equal(model.predict(TABLE), fitted.predict(X))
    y = THREE if "three" in kind else BINARY
    np.testing.assert_allclose(
        model.loss(TABLE, y), -np.log(expected[np.arange(N), y]), rtol=1e-4, atol=1e-6
    )
    # Few records have few of the categories, and others than in training.
    np.testing.assert_allclose(model.predict_proba(TABLE[7:9]), expected[7:9], atol=1e-6)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: xgboost.XGBRegressor(**XGB).fit(X, NUMBERS), "m.json"),
        (lambda: xgboost.XGBRegressor(objective="count:poisson", **XGB).fit(X, THREE), "m.ubj"),
        (lambda: lightgbm.LGBMRegressor(**LGB).fit(X, NUMBERS), "m.txt"),
    ],
)
def test_a_regression_from_its_file(make: Callable[[], Any], name: str, tmp_path: Path) -> None:
    fitted = make()
    model = as_model(saved(fitted, tmp_path / name))
    assert (model.task, model.classes) == ("regression", None)
    assert "probabilities" not in model.abilities
    expected = fitted.predict(X)
    np.testing.assert_allclose(model.predict(TABLE), expected, rtol=1e-5)
    np.testing.assert_allclose(
        model.loss(TABLE, NUMBERS), (expected - NUMBERS) ** 2, rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize("objective", ["binary:logitraw", "multi:softmax"])
def test_objectives_that_answer_with_something_else(objective: str) -> None:
    numbers, y = X.drop(columns="town"), BINARY if "binary" in objective else THREE
    options = {"objective": objective, "nthread": 1, "max_depth": 3}
    if y is THREE:
        options["num_class"] = 3
    booster = xgboost.train(options, xgboost.DMatrix(numbers, y), 4)
    model = as_model(booster)
    margins = booster.predict(xgboost.DMatrix(numbers), output_margin=True)
    if y is BINARY:
        margins = np.column_stack([np.zeros(N), margins])
    expected = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(numbers), expected, atol=1e-6)


def test_after_early_stopping_the_best_rounds_answer(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 2, N)
    fitted = xgboost.XGBClassifier(
        **XGB | {"n_estimators": 50, "early_stopping_rounds": 3}, learning_rate=1.0
    ).fit(X, BINARY, eval_set=[(X, noise)], verbose=False)
    assert fitted.best_iteration + 1 < fitted.get_booster().num_boosted_rounds()
    model = as_model(saved(fitted, tmp_path / "m.json"))
    np.testing.assert_allclose(model.predict_proba(TABLE), fitted.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_without_names_columns_are_taken_in_order(library: str, tmp_path: Path) -> None:
    array = X[["age", "blood pressure"]].to_numpy()
    made = {
        "xgboost": lambda: xgboost.XGBClassifier(**XGB).fit(array, BINARY),
        "lightgbm": lambda: lightgbm.LGBMClassifier(**LGB).fit(array, BINARY),
    }
    fitted = made[library]()
    model = as_model(saved(fitted, tmp_path / "model"))
    assert model.feature_names is None
    for asked in (array, pd.DataFrame(array, columns=["a", "b"])):
        np.testing.assert_allclose(
            model.predict_proba(asked), fitted.predict_proba(array), atol=1e-6
        )


def test_an_array_is_given_the_names_of_training() -> None:
    numbers = X[["age", "blood pressure"]]
    fitted = xgboost.XGBClassifier(**XGB).fit(numbers, BINARY)
    model = as_model(fitted.get_booster())
    np.testing.assert_allclose(
        model.predict_proba(numbers.to_numpy()), fitted.predict_proba(numbers), atol=1e-6
    )


@pytest.mark.slow
def test_an_audit_takes_the_classes_from_the_labels(tmp_path: Path) -> None:
    fitted = xgboost.XGBClassifier(**XGB).fit(X, BINARY)
    booster = saved(fitted, tmp_path / "m.json")
    table = TABLE.assign(answer=np.array(["no", "yes"])[BINARY])
    sides = table[: N // 2], table[N // 2 :]
    report = leakscope.audit(booster, *sides, label="answer", attacks=["loss"])
    target = report.to_dict()["target"]
    assert (target["model"], target["classes"], target["features"]) == ("XGBoost", ["no", "yes"], 3)
    accuracy = np.mean(fitted.predict(X[: N // 2]) == BINARY[: N // 2])
    assert target["member_accuracy"]["value"] == pytest.approx(accuracy)


def test_how_it_was_trained_is_not_known(tmp_path: Path) -> None:
    fitted = xgboost.XGBClassifier(**XGB).fit(X, BINARY)
    booster = saved(fitted, tmp_path / "m.json")
    assert recipe_of(as_model(booster)) is None
    sides = Records(TABLE[:150], BINARY[:150]), Records(TABLE[150:], BINARY[150:])
    with pytest.raises(InputError, match=r"How XGBoost was trained is not known.*give recipe="):
        leakscope.audit(booster, *sides, shadows=4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"classes": ["a", "b", "c"]}, "has 2 classes and the labels are 3 different ones"),
        ({"task": "regression"}, "is for classification; leave out task='regression'"),
    ],
)
def test_what_contradicts_it_is_refused(options: dict[str, Any], said: str) -> None:
    booster = xgboost.XGBClassifier(**XGB).fit(X, BINARY).get_booster()
    with pytest.raises(ModelError, match=said):
        as_model(booster, **options)


def test_objectives_that_are_no_audit_are_refused() -> None:
    numbers = X.drop(columns="town")
    ranked = xgboost.train(
        {"objective": "rank:pairwise"}, xgboost.DMatrix(numbers, BINARY, qid=np.zeros(N)), 2
    )
    with pytest.raises(ModelError, match="the objective 'rank:pairwise'"):
        as_model(ranked)
    data = lightgbm.Dataset(numbers, BINARY, group=[N])
    other = lightgbm.train({"objective": "lambdarank", "verbose": -1}, data, 2)
    with pytest.raises(ModelError, match="the objective 'lambdarank'"):
        as_model(other)


def test_categories_that_are_not_in_the_file_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    booster = xgboost.XGBClassifier(**XGB).fit(X, BINARY).get_booster()
    # So are files of XGBoost 3.0 and older, whose codes could stand for any category.
    monkeypatch.setattr(boosters, "categories_of", lambda booster: {})
    with pytest.raises(ModelError, match=r"train and save it with XGBoost 3\.1"):
        as_model(booster)
    as_model(xgboost.XGBClassifier(**XGB).fit(X.drop(columns="town"), BINARY).get_booster())


def test_a_text_that_it_has_no_categories_for_is_named() -> None:
    booster = xgboost.XGBClassifier(**XGB).fit(X.drop(columns="town"), BINARY).get_booster()
    sides = [
        Records(TABLE.assign(age="old")[part], BINARY[part])
        for part in (slice(0, 150), slice(150, N))
    ]
    with pytest.raises(InputError, match=r"Column 'age' of the members is not numeric"):
        leakscope.audit(booster, *sides)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_category_that_was_not_in_training_is_a_missing_value(library: str) -> None:
    made = {
        "xgboost": lambda: xgboost.XGBClassifier(**XGB).fit(X, BINARY).get_booster(),
        "lightgbm": lambda: lightgbm.LGBMClassifier(**LGB).fit(X, BINARY).booster_,
    }
    model = as_model(made[library]())
    elsewhere = TABLE.assign(town=TABLE["town"].where(np.arange(N) % 9 > 0, "Dijon"))
    missing = TABLE.assign(town=TABLE["town"].where(np.arange(N) % 9 > 0, None))
    expected = model.predict_proba(missing)
    for part in (slice(None), slice(0, 1)):
        if library == "xgboost":
            with pytest.warns(UserWarning, match=r"'town' holds categories .* such as 'Dijon'"):
                told = model.predict_proba(elsewhere[part])
        else:
            told = model.predict_proba(elsewhere[part])
        np.testing.assert_allclose(told, expected[part], atol=1e-6)


def test_an_unused_column_of_categories(tmp_path: Path) -> None:
    frame = X.assign(same=pd.Categorical(["one"] * N), flat=1.0)
    model = as_model(saved(lightgbm.LGBMClassifier(**LGB).fit(frame, BINARY), tmp_path / "m.txt"))
    table = TABLE.assign(same="one", flat=1.0)
    np.testing.assert_allclose(
        model.predict_proba(table),
        lightgbm.LGBMClassifier(**LGB).fit(frame, BINARY).predict_proba(frame),
    )


def test_other_trouble_of_the_library_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    model = as_model(xgboost.XGBClassifier(**XGB).fit(X, BINARY).get_booster())

    def fail(*_: Any, **__: Any) -> Any:
        raise xgboost.core.XGBoostError("[18:25:04] /src/predictor.cc:29: No luck.\nStack trace:")

    monkeypatch.setattr(xgboost.Booster, "predict", fail)
    with pytest.raises(ModelError, match=r"XGBoost could not answer for these records: No luck$"):
        model.predict_proba(TABLE)


def test_objects_that_are_numbers_are_numbers() -> None:
    fitted = xgboost.XGBClassifier(**XGB).fit(X.drop(columns="town"), BINARY)
    objects = X.drop(columns="town").astype(object)
    np.testing.assert_allclose(
        as_model(fitted.get_booster()).predict_proba(objects),
        fitted.predict_proba(X.drop(columns="town")),
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b'{"learner": {"attributes": {}}, "version": [3, 0, 0]}', "XGBoost"),
        (b'{"learner": ', "XGBoost"),
        (b"{L\0\0\0\0\0\0\0\x07learner{", "XGBoost"),
        (b"tree\nversion=v4\nnum_class=1\n", "LightGBM"),
    ],
)
def test_a_damaged_file_is_one_sentence(
    content: bytes, name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"cannot be read by {name}.*save it again") as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_library_that_is_not_there_is_asked_for(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    path.write_bytes({"xgboost": b'{"learner":{', "lightgbm": b"tree\nversion=v4\n"}[library])
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(InputError, match=rf"not installed; pip install {library}$"):
        load_model(path)


@pytest.mark.parametrize("start", [b"", b"{}", b"\x80\x04", b"tree\n", b'["learner"]', b"PK"])
def test_other_files_are_not_taken_for_boosters(start: bytes) -> None:
    assert kind_of_booster(start) is None


def test_other_things_are_no_boosters() -> None:
    class Booster:
        pass

    assert not BoosterModel.accepts(Booster())
    assert not BoosterModel.accepts(xgboost.XGBClassifier())
    assert not BoosterModel.accepts(xgboost.Booster)


@pytest.mark.parametrize(
    "model",
    [
        xgboost.XGBClassifier(n_estimators=3, n_jobs=1),
        xgboost.XGBRFClassifier(n_estimators=3, n_jobs=1),
        lightgbm.LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1),
    ],
)
def test_pipelines_with_them_load_from_skops_files(model: Any, tmp_path: Path) -> None:
    encode = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    pipeline = make_pipeline(encode, model).fit(X, BINARY)
    skops.io.dump(pipeline, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_proba(X), pipeline.predict_proba(X))
