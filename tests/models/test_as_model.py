from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from leakscope.errors import ModelError
from leakscope.models import Remembering, as_model
from leakscope.models.callable import CallableModel
from leakscope.models.predictions import SavedPredictions
from leakscope.models.sklearn import SklearnModel
from leakscope.protocols import Model
from leakscope.registry import entries

X = np.arange(8.0).reshape(4, 2)
Y = np.array([0, 0, 1, 1])
FITTED = LogisticRegression().fit(X, Y)


class Estimator:
    """Has scikit-learn's methods and none of its tags."""

    classes_ = Y[:2]

    def get_params(self) -> dict[str, Any]:
        return {}

    def predict_proba(self, X: Any) -> Any:
        return X


Module: Any = type("Module", (), {"__module__": "torch.nn", "__call__": lambda self, X: X})
Net: Any = type("Net", (Module,), {"__module__": "mine"})


def test_each_kind_is_wrapped_by_its_own_file() -> None:
    assert isinstance(as_model(FITTED), SklearnModel)
    assert isinstance(as_model(FITTED.predict_proba), CallableModel)


@pytest.mark.parametrize("thing", [FITTED, FITTED.predict_proba, KMeans(), Net(), X, "a"])
def test_at_most_one_kind_accepts_a_thing(thing: Any) -> None:
    assert sum(entry.thing.accepts(thing) for entry in entries("model")) <= 1


def test_a_model_is_taken_as_it_is() -> None:
    wrapped = as_model(FITTED)
    for model in (wrapped, Remembering(wrapped), SavedPredictions(Y[:2])):
        assert isinstance(model, Model)
        assert as_model(model) is model


REFUSALS: dict[str, tuple[Any, str]] = {
    "a class": (
        LogisticRegression,
        "LogisticRegression is a class; pass an instance of it, fitted",
    ),
    "a part of torch": (
        Net(),
        r"A mine\.Net is a part of torch and no module; pass the nn\.Module that answers, or a "
        "function from features to probabilities",
    ),
    "a torch class": (Net, "Net is a class; pass an instance"),
    "a path": (
        "m.skops",
        r"'m\.skops' is a path; pass leakscope\.models\.load_model\('m\.skops'\)",
    ),
    "a Path": (Path("m.skops"), r"'m\.skops' is a path; pass leakscope\.models\.load_model"),
    "an imitation": (
        Estimator(),
        "Estimator does not follow scikit-learn's interface; pass its method predict_proba",
    ),
    "a clustering": (KMeans(), r"KMeans is not a model Leakscope knows; it takes: A Booster of"),
    "a transformer": (StandardScaler(), "StandardScaler is not a model Leakscope knows"),
    "an array": (X, r"A numpy\.ndarray is not a model Leakscope knows"),
    "nothing": (None, r"A builtins\.NoneType is not a model Leakscope knows"),
    "not fitted": (
        LogisticRegression(),
        "This LogisticRegression is not fitted; fit it on the mem",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_is_no_model_is_one_sentence(case: str) -> None:
    thing, sentence = REFUSALS[case]
    with pytest.raises(ModelError, match=sentence) as caught:
        as_model(thing)
    assert "\n" not in str(caught.value)


def test_an_imitation_may_pass_its_method() -> None:
    model = as_model(Estimator().predict_proba, classes=np.array(["a", "b"]))
    assert model.predict(np.array([[0.2, 0.8]])).tolist() == ["b"]
