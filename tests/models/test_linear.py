from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from leakscope.errors import NotApplicableError
from leakscope.models import Remembering, as_model
from leakscope.models.attributions import innermost
from leakscope.models.linear import LinearMap

RNG = np.random.default_rng(0)
X = RNG.normal(5.0, 3.0, size=(60, 4))
LABELS = np.digitize(X[:, 0] - X[:, 1] + RNG.normal(size=60), [-2.0, 2.0])

STEPS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    RobustScaler(),
    RobustScaler(with_centering=False),
    MinMaxScaler((-1, 2)),
    MaxAbsScaler(),
    PCA(3),
    PCA(2, whiten=True),
    "passthrough",
    None,
]


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("classes", [3, 4])
def test_a_vote_over_pairs_of_classes_is_not_linear(shape, classes):
    labels = np.argsort(np.argsort(X[:, 0])) * classes // len(X)
    machine = SVC(kernel="linear", decision_function_shape=shape).fit(X, labels)
    with pytest.raises(NotApplicableError, match="SVC does not answer with its coefficients"):
        LinearMap.of(machine)
    pair = SVC(kernel="linear").fit(X, labels > 0)
    found = LinearMap.of(pair).logits(X)
    np.testing.assert_allclose(found[:, 0], pair.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_scaling_is_multiplied_in(step):
    pipeline = make_pipeline(step, StandardScaler(), LogisticRegression()).fit(X, LABELS)
    found = LinearMap.of(pipeline)
    np.testing.assert_allclose(found.logits(X), pipeline.decision_function(X), atol=1e-10)
    assert found.softmax
    assert found.weights.shape == (3, 4)


@pytest.mark.parametrize(
    ("estimator", "labels", "follows"),
    [
        (LogisticRegression(), LABELS > 1, True),
        (LinearDiscriminantAnalysis(), LABELS, True),
        (LinearDiscriminantAnalysis(), LABELS > 1, True),
        (SGDClassifier(loss="log_loss", random_state=0), LABELS, False),
        (SGDClassifier(random_state=0), LABELS > 1, False),
        (LogisticRegression(fit_intercept=False), LABELS, True),
    ],
    ids=str,
)
def test_logits_and_whether_probabilities_follow_from_them(estimator, labels, follows):
    estimator.fit(X, labels)
    found = LinearMap.of(estimator)
    np.testing.assert_allclose(
        np.squeeze(found.logits(X)), estimator.decision_function(X), atol=1e-8
    )
    assert found.softmax is follows


def test_numbers_tables_and_searches():
    table = pd.DataFrame(X, columns=list("abcd"))
    search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1.0, 2.0]})
    search.fit(table, X[:, 0])
    found = LinearMap.of(search)
    np.testing.assert_allclose(found.logits(X)[:, 0], search.predict(table))


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (DecisionTreeClassifier(), "DecisionTreeClassifier is not linear"),
        (PoissonRegressor(), "does not answer with its coefficients"),
        (make_pipeline(PolynomialFeatures(2), Ridge()), "step PolynomialFeatures"),
        (make_pipeline(MinMaxScaler(clip=True), Ridge()), "step MinMaxScaler"),
    ],
    ids=str,
)
def test_what_is_not_linear_is_refused(estimator, match):
    estimator.fit(X, LABELS)
    with pytest.raises(NotApplicableError, match=match):
        LinearMap.of(estimator)


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (make_pipeline(StandardScaler(), LogisticRegression()), True),
        (GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2), True),
        (DecisionTreeClassifier(), False),
    ],
)
def test_gradients_are_an_ability_of_what_ends_in_coefficients(
    estimator: Any, expected: bool
) -> None:
    model = Remembering(as_model(estimator.fit(X, LABELS)))
    assert ("gradients" in model.abilities) is expected
    inside: Any = innermost(Remembering(model))
    assert inside.estimator is estimator
