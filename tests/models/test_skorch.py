"""skorch's nets are estimators like scikit-learn's, with a torch module inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import softmax
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier, NeuralNetRegressor
from torch import nn

from leakscope.errors import ModelError
from leakscope.models import as_model
from leakscope.models.sklearn import SklearnModel
from leakscope.networks import MLP

X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)
# The same features as an audit may hand them over.
FORMS: dict[str, Any] = {
    "single": X,
    "double": X.astype(np.float64),
    "table": pd.DataFrame(X.astype(np.float64), columns=["age", "pay", "size"]),
}


def net(**options: Any) -> NeuralNetClassifier:
    torch.manual_seed(0)
    return NeuralNetClassifier(
        MLP,
        module__widths=(3, 5, 2),
        criterion=nn.CrossEntropyLoss,
        max_epochs=2,
        train_split=None,
        verbose=0,
        **options,
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_classifier(form: str) -> None:
    fitted = net().fit(X, Y)
    model = as_model(fitted)
    assert isinstance(model, SklearnModel)
    assert (model.name, model.task) == ("NeuralNetClassifier", "classification")
    with torch.no_grad():
        logits = fitted.module_.eval()(torch.tensor(X)).numpy()
    expected = softmax(logits.astype(float), axis=1)
    np.testing.assert_allclose(model.predict_proba(FORMS[form]), expected, rtol=1e-5)
    assert model.predict(FORMS[form]).tolist() == expected.argmax(axis=1).tolist()
    np.testing.assert_allclose(
        model.loss(FORMS[form], Y), -np.log(expected[np.arange(60), Y]), rtol=1e-4
    )


@pytest.mark.parametrize("form", FORMS)
def test_one_logit_and_numbers(form: str) -> None:
    options: dict[str, Any] = {"module__widths": (3, 1), "max_epochs": 2, "verbose": 0}

    class Flat(MLP):
        def forward(self, x: Any) -> Any:
            return super().forward(x).squeeze(1)

    binary = NeuralNetBinaryClassifier(Flat, train_split=None, **options)
    model = as_model(binary.fit(X, Y.astype(np.float32)))
    with torch.no_grad():
        second = torch.sigmoid(binary.module_(torch.tensor(X))).numpy()
    np.testing.assert_allclose(model.predict_proba(FORMS[form])[:, 1], second, rtol=1e-5)
    regressor = NeuralNetRegressor(MLP, train_split=None, **options).fit(X, X[:, :1])
    numbers = as_model(regressor)
    assert numbers.task == "regression"
    expected = regressor.predict(X)[:, 0]
    np.testing.assert_allclose(numbers.predict(FORMS[form]), expected, rtol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_at_the_end_of_a_pipeline_and_in_a_search(form: str) -> None:
    pipeline = make_pipeline(StandardScaler(), net()).fit(X, Y)
    model = as_model(pipeline)
    assert model.name == "NeuralNetClassifier"
    np.testing.assert_allclose(
        model.predict_proba(FORMS[form]), pipeline.predict_proba(X), rtol=1e-4
    )
    search = GridSearchCV(net(), {"lr": [0.01, 0.1]}, cv=2).fit(X, Y)
    np.testing.assert_allclose(
        as_model(search).predict_proba(FORMS[form]), search.predict_proba(X), rtol=1e-4
    )


def test_a_pipeline_that_was_fitted_on_a_table() -> None:
    frame = FORMS["table"].astype(np.float32)
    pipeline = make_pipeline(StandardScaler(), net()).fit(frame, Y)
    expected = pipeline.predict_proba(frame)
    np.testing.assert_allclose(
        as_model(pipeline).predict_proba(FORMS["table"]), expected, rtol=1e-4
    )


def test_a_net_of_double_precision() -> None:
    fitted = NeuralNetRegressor(
        MLP([3, 1]).double(), max_epochs=1, train_split=None, verbose=0
    ).fit(X.astype(float), X[:, :1].astype(float))
    expected = fitted.predict(X.astype(float))[:, 0]
    for form in FORMS.values():
        np.testing.assert_allclose(as_model(fitted).predict(form), expected, rtol=1e-12)


def test_whole_numbers_stay_whole() -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, 2)

        def forward(self, x: Any) -> Any:
            return self.table(x).mean(1)

    words = np.random.default_rng(0).integers(0, 10, (60, 3))
    fitted = NeuralNetClassifier(
        Words, criterion=nn.CrossEntropyLoss, max_epochs=1, train_split=None, verbose=0
    ).fit(words, Y)
    expected = fitted.predict_proba(words)
    np.testing.assert_allclose(as_model(fitted).predict_proba(words), expected, rtol=1e-6)


def test_one_that_is_not_fitted() -> None:
    with pytest.raises(
        ModelError, match="This NeuralNetClassifier is not fitted; fit it on the me"
    ):
        as_model(net())
