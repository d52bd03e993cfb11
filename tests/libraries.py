"""Models of many libraries, fitted on tables and on arrays, for tests of the columns they read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import leakscope as ls
from leakscope.models import as_model

NAMES = ["age", "pay", "size", "debt"]
TRAINED = [*NAMES, "town"]  # the last is a text, for models that take one


def people(n: int, seed: int) -> pd.DataFrame:
    """A table on which each column has a part of its own in the label."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 4)), columns=NAMES)
    table["town"] = rng.choice(["Bern", "Oslo", "Rome"], n)
    signal = table["age"] - 2 * table["pay"] + 0.5 * table["size"] + (table["town"] == "Oslo")
    return table.assign(y=(signal + rng.normal(size=n) > 0).astype(int))


MEMBERS, NONMEMBERS = people(90, 0), people(90, 1)


def catboost(**options: Any) -> Any:
    library = pytest.importorskip("catboost", reason="CatBoost is not installed")
    settings = {"iterations": 15, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    return library.CatBoostClassifier(**settings | options)


def lightgbm(**options: Any) -> Any:
    library = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    settings = {"n_estimators": 10, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
    return library.LGBMClassifier(**settings | options)


def xgboost(**options: Any) -> Any:
    library = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    return library.XGBClassifier(**{"n_estimators": 10, "n_jobs": 1} | options)


def lightgbm_booster(X: pd.DataFrame, y: Any) -> Any:
    return lightgbm().fit(X, y).booster_


def xgboost_booster(X: pd.DataFrame, y: Any) -> Any:
    return xgboost().fit(X, y).get_booster()


def skorch(module: str = "Whole") -> Any:
    library = pytest.importorskip("skorch", reason="skorch is not installed")
    import torch
    from torch import nn

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, X: Any) -> Any:
            return self.layer(X)

    class ByName(Whole):
        """skorch passes the columns of a table by their names, each (n, 1)."""

        def forward(self, age: Any, pay: Any, size: Any, debt: Any) -> Any:
            return self.layer(torch.cat([age, pay, size, debt], dim=1))

    torch.manual_seed(0)
    return library.NeuralNetClassifier(
        {"Whole": Whole, "ByName": ByName}[module],
        criterion=nn.CrossEntropyLoss,
        max_epochs=5,
        lr=0.5,
        train_split=None,
        verbose=0,
    )


def keras() -> Any:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    library = pytest.importorskip("keras", reason="Keras is not installed")
    if library.backend.backend() != "torch":
        pytest.skip("Keras runs on another backend than torch")
    return library


def keras_wrapped() -> Any:
    library = keras()

    def build(X: Any, y: Any) -> Any:
        layers = [library.layers.Input((4,)), library.layers.Dense(2, activation="softmax")]
        model = library.Sequential(layers)
        model.compile(loss="categorical_crossentropy")
        return model

    return library.wrappers.SKLearnClassifier(build, fit_kwargs={"verbose": 0})


class Engineered(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A wrapper of one's own around columns that it makes itself."""

    def fit(self, X: pd.DataFrame, y: Any) -> Engineered:
        self.estimator_ = LogisticRegression().fit(self._made(X), y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict_proba(self, X: pd.DataFrame) -> Any:
        return self.estimator_.predict_proba(self._made(X))

    def predict(self, X: pd.DataFrame) -> Any:
        return self.estimator_.predict(self._made(X))

    def _made(self, X: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"owed": X["debt"] - X["pay"], "old": X["age"]})


def encoding() -> Any:
    return make_column_transformer(
        (OneHotEncoder(), ["town"]), (StandardScaler(), ["age", "pay"]), remainder="passthrough"
    )


# Models of numbers alone, fitted on a table of named columns.
NUMBERS: dict[str, Callable[[], Any]] = {
    "logistic": LogisticRegression,
    "forest": lambda: RandomForestClassifier(10, random_state=0),
    "gradient boosting": lambda: GradientBoostingClassifier(n_estimators=5),
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "function first": lambda: make_pipeline(FunctionTransformer(), LogisticRegression()),
    "union first": lambda: make_pipeline(make_union(StandardScaler()), LogisticRegression()),
    "selection": lambda: RFE(LogisticRegression(), n_features_to_select=2),
    "search": lambda: GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2),
    "bagging": lambda: BaggingClassifier(LogisticRegression(), 3, random_state=0),
    "catboost": catboost,
    "lightgbm": lightgbm,
    "xgboost": xgboost,
    "catboost in a pipeline": lambda: make_pipeline(catboost()),
    "catboost after passthrough": lambda: make_pipeline("passthrough", catboost()),
    "catboost in a search": lambda: GridSearchCV(catboost(), {"depth": [3]}, cv=2),
    "catboost, calibrated": lambda: CalibratedClassifierCV(catboost(), cv=2),
    "catboost in a vote": lambda: VotingClassifier([("a", catboost())], voting="soft"),
    "catboost in a stack": lambda: StackingClassifier([("a", catboost())], cv=2),
    "catboost against the rest": lambda: OneVsRestClassifier(catboost()),
    "catboost, other threshold": lambda: FixedThresholdClassifier(catboost(), threshold=0.4),
    "catboost in bags": lambda: BaggingClassifier(catboost(), 2, random_state=0),
    "lightgbm in a search": lambda: GridSearchCV(lightgbm(), {"max_depth": [3]}, cv=2),
    "lightgbm, calibrated": lambda: CalibratedClassifierCV(lightgbm(), cv=2),
    "xgboost in a vote": lambda: VotingClassifier([("a", xgboost())], voting="soft"),
    "skorch by name": lambda: skorch("ByName"),
    "skorch in a pipeline": lambda: make_pipeline(StandardScaler(), skorch()),
    "keras, wrapped": keras_wrapped,
    "columns of its own": Engineered,
}
# Models of a table with a text.
TEXTS: dict[str, Callable[[], Any]] = {
    "encoder": lambda: make_pipeline(encoding(), LogisticRegression()),
    "encoder and catboost": lambda: make_pipeline(encoding(), catboost()),
    "encoder in a search": lambda: GridSearchCV(
        make_pipeline(encoding(), LogisticRegression()), {"logisticregression__C": [1.0]}, cv=2
    ),
    "catboost": lambda: catboost(cat_features=["town"]),
    "catboost by position": lambda: catboost(cat_features=[4]),
    "lightgbm": lightgbm,
    "xgboost": lambda: xgboost(enable_categorical=True),
}
CATEGORIES = {"lightgbm", "xgboost"}  # these take a text as a category only
OWN_MESSAGE = {"columns of its own"}  # what they lack, they say themselves


def prepared(kind: str, name: str, table: pd.DataFrame) -> pd.DataFrame:
    """The table as this model takes it."""
    if kind == "numbers":
        return table.drop(columns="town")
    return table.astype({"town": "category"}) if name in CATEGORIES else table


def in_single(name: str, X: pd.DataFrame) -> Any:
    return X.astype(np.float32) if name.startswith("skorch") else X


@cache
def fitted(kind: str, name: str) -> Any:
    table = prepared(kind, name, MEMBERS)
    X = in_single(name, table.drop(columns="y"))
    return (NUMBERS if kind == "numbers" else TEXTS)[name]().fit(X, MEMBERS["y"])


def numbers_of(model: Any, members: Any, nonmembers: Any, **options: Any) -> str:
    """All outcomes of an audit of this model, as one text."""
    if "label" not in options:
        options["label"] = "y"
    attacks = ["loss", "label-gap"]
    if hasattr(model, "fit") and "probabilities" not in as_model(model).abilities:
        attacks = ["label-gap"]
    report = ls.audit(model, members, nonmembers, attacks=attacks, **options)
    return json.dumps([report.data["outcomes"], report.data["verdict"], report.data["controls"]])


@cache
def expected(kind: str, name: str) -> str:
    sides = (prepared(kind, name, side) for side in (MEMBERS, NONMEMBERS))
    return numbers_of(fitted(kind, name), *sides)


BOOSTERS = {"lightgbm": lightgbm_booster, "xgboost": xgboost_booster}
