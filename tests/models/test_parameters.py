from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import all_estimators

from leakscope.errors import ModelError
from leakscope.models import Remembering, as_model
from leakscope.models.aligned import aligned
from leakscope.models.parameters import (
    NEEDED,
    has_parameters,
    parameters,
    parameters_of,
    with_parameters,
)
from leakscope.protocols import AdjustableModel, ParametricModel

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=60), [-0.5, 0.5])
NUMBERS = X @ [1.0, -2.0, 0.5, 0.0] + 3 + 0.1 * rng.normal(size=60)


def fitted(kind: type, **options: Any) -> Any:
    estimator = kind(**options)
    target = Y if is_classifier(estimator) else NUMBERS
    if kind.__name__ in {"PoissonRegressor", "GammaRegressor", "TweedieRegressor"}:
        target = np.abs(NUMBERS) + 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few steps, old names: it is no matter here
        return estimator.fit(X, target)


def vectorized() -> list[Any]:
    """Every estimator of scikit-learn that has a vector, fitted with its defaults."""
    found = []
    for name, kind in all_estimators(type_filter=["classifier", "regressor"]):
        defined = kind.__module__.startswith(("sklearn.linear_model", "sklearn.svm", "sklearn.neu"))
        # Several outputs are not for one model, and deprecated ones go away.
        left_out = name.startswith(("MultiTask", "PassiveAggressive"))
        if (defined or name == "LinearDiscriminantAnalysis") and not left_out:
            try:
                estimator = fitted(kind)
            except TypeError:  # an ensemble, which needs to be told of what
                continue
            if has_parameters(estimator):
                found.append(estimator)
    return found


VECTORIZED = vectorized()


def test_linear_models_and_networks_are_among_them() -> None:
    names = {type(one).__name__ for one in VECTORIZED}
    assert names >= {
        "ElasticNet", "Lasso", "LinearDiscriminantAnalysis", "LinearRegression", "LinearSVC",
        "LogisticRegression", "MLPClassifier", "MLPRegressor", "Perceptron", "PoissonRegressor",
        "Ridge", "RidgeCV", "RidgeClassifier", "SGDClassifier", "SGDRegressor",
    }  # fmt: skip
    assert len(names) >= 30


@pytest.mark.parametrize("estimator", VECTORIZED, ids=lambda one: type(one).__name__)
def test_a_copy_predicts_the_same_and_keeps_nothing_else_of_its_training(estimator: Any) -> None:
    vector = parameters(estimator)
    assert vector.ndim == 1
    assert vector.dtype == np.float64
    copied = with_parameters(estimator, vector)
    assert copied is not estimator
    np.testing.assert_array_equal(copied.predict(X), estimator.predict(X))
    if hasattr(estimator, "predict_proba"):
        np.testing.assert_array_equal(copied.predict_proba(X), estimator.predict_proba(X))
    held = {"coef_", "intercept_", "coefs_", "intercepts_", *NEEDED}
    assert set(vars(copied)) <= held | set(vars(clone(estimator)))


@pytest.mark.parametrize("estimator", VECTORIZED, ids=lambda one: type(one).__name__)
def test_what_is_put_in_is_what_comes_out(estimator: Any) -> None:
    before = parameters(estimator)
    other = np.random.default_rng(1).normal(size=before.shape)
    copied = with_parameters(estimator, other)
    np.testing.assert_array_equal(parameters(copied), other)
    np.testing.assert_array_equal(parameters(estimator), before)
    copied.predict(X)


def test_a_linear_model_by_hand() -> None:
    ridge = Ridge().fit(X, NUMBERS)
    np.testing.assert_array_equal(parameters(ridge), [*ridge.coef_, ridge.intercept_])
    doubled = with_parameters(ridge, 2 * parameters(ridge))
    np.testing.assert_allclose(doubled.predict(X), 2 * ridge.predict(X), rtol=1e-12)
    assert np.ndim(doubled.intercept_) == 0


def test_several_classes_have_a_row_each() -> None:
    logistic = LogisticRegression().fit(X, Y)
    expected = np.concatenate([logistic.coef_.ravel(), logistic.intercept_])
    np.testing.assert_array_equal(parameters(logistic), expected)
    assert len(expected) == 3 * 5


def test_a_network_has_all_its_layers_in_order() -> None:
    network = fitted(MLPRegressor, hidden_layer_sizes=(3, 2), max_iter=5, random_state=0)
    vector = parameters(network)
    assert len(vector) == 4 * 3 + 3 * 2 + 2 * 1 + 3 + 2 + 1
    np.testing.assert_array_equal(vector[:12], network.coefs_[0].ravel())
    np.testing.assert_array_equal(vector[-1:], network.intercepts_[2])
    silent = with_parameters(network, np.r_[np.zeros(len(vector) - 1), 7.0])
    np.testing.assert_array_equal(silent.predict(X), 7.0)


@pytest.mark.parametrize("kind", [Ridge, LogisticRegression, SGDClassifier, LinearRegression])
def test_an_intercept_that_is_not_fitted_is_no_parameter(kind: type) -> None:
    estimator = fitted(kind, fit_intercept=False)
    vector = parameters(estimator)
    assert len(vector) == estimator.coef_.size
    copied = with_parameters(estimator, vector)
    np.testing.assert_array_equal(copied.predict(X), estimator.predict(X))


def test_single_precision_stays_single() -> None:
    ridge = Ridge().fit(X.astype(np.float32), NUMBERS.astype(np.float32))
    assert ridge.coef_.dtype == np.float32
    copied = with_parameters(ridge, parameters(ridge))
    assert copied.coef_.dtype == np.float32
    np.testing.assert_array_equal(copied.predict(X), ridge.predict(X))


def test_a_pipeline_keeps_what_comes_before() -> None:
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    np.testing.assert_array_equal(parameters(pipeline), parameters(pipeline[-1]))
    before = pipeline.predict_proba(X)
    flat = with_parameters(pipeline, np.zeros(15))
    np.testing.assert_allclose(flat.predict_proba(X), 1 / 3)
    assert flat[0] is pipeline[0]
    np.testing.assert_array_equal(pipeline.predict_proba(X), before)


def test_of_a_search_the_best_is_left() -> None:
    pipeline = make_pipeline(StandardScaler(), Ridge())
    search = GridSearchCV(pipeline, {"ridge__alpha": [0.1, 10.0]}, cv=2).fit(X, NUMBERS)
    copied = with_parameters(search, parameters(search))
    assert not hasattr(copied, "cv_results_")
    np.testing.assert_array_equal(copied.predict(X), search.predict(X))


class Foreign(LinearRegression):  # type: ignore[misc]
    """An estimator of another library, which predicts with more than its vector."""

    def fit(self, X: Any, y: Any) -> Any:
        self.scale_ = 3.0
        return super().fit(X, y)

    def predict(self, X: Any) -> Any:
        return self.scale_ * super().predict(X)


def test_another_librarys_estimator_keeps_all_it_has() -> None:
    foreign = Foreign().fit(X, NUMBERS)
    copied = with_parameters(foreign, parameters(foreign))
    np.testing.assert_array_equal(copied.predict(X), foreign.predict(X))
    assert copied.singular_ is not foreign.singular_


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(3).fit(X, Y),
        SVC(kernel="linear").fit(X, Y),  # its coefficients are computed from records it keeps
        PLSRegression().fit(X, NUMBERS),
        SGDClassifier().fit(X, Y).sparsify(),
        make_pipeline(StandardScaler(), "passthrough").fit(X),
        Ridge(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_has_no_vector_says_so(estimator: Any) -> None:
    assert not has_parameters(estimator)
    with pytest.raises(ModelError, match="has no parameter vector; use a linear model"):
        parameters(estimator)


@pytest.mark.parametrize("vector", [np.zeros(4), np.zeros((1, 5)), 0.0])
def test_a_vector_of_another_size_is_refused(vector: Any) -> None:
    with pytest.raises(ModelError, match=r"do not fit Ridge, which has 5; give one number"):
        with_parameters(Ridge().fit(X, NUMBERS), vector)


def test_models_pass_them_on() -> None:
    logistic = LogisticRegression().fit(X, Y)
    model = as_model(logistic)
    assert "parameters" in model.abilities
    assert isinstance(model, AdjustableModel)
    wrapped = Remembering(aligned(model, np.array([2, 1, 0])))
    assert "parameters" in wrapped.abilities
    assert isinstance(wrapped, ParametricModel)
    np.testing.assert_array_equal(parameters_of(wrapped), parameters(logistic))
    flat = model.with_parameters(np.zeros(15))
    np.testing.assert_allclose(flat.predict_proba(X), 1 / 3)
    assert flat.name == model.name


def test_a_model_that_lacks_a_class_has_other_parameters() -> None:
    wide = aligned(as_model(LogisticRegression().fit(X, Y)), np.arange(4))
    assert "parameters" not in wide.abilities
    with pytest.raises(ModelError, match="was trained without 1 of the 4 classes"):
        parameters_of(wide)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (as_model(lambda X: X[:, 0]), "the function shows no parameters"),
        (as_model(RandomForestClassifier(3).fit(X, Y)), "RandomForestClassifier has no parameter"),
        (Remembering(as_model(lambda X: X[:, 0])), "the function shows no parameters"),
    ],
    ids=["function", "forest", "remembering"],
)
def test_models_without_parameters_say_so(model: Any, said: str) -> None:
    assert "parameters" not in model.abilities
    with pytest.raises(ModelError, match=said):
        parameters_of(model)


def test_early_stopping_leaves_no_earlier_parameters_behind() -> None:
    network = fitted(MLPClassifier, max_iter=5, early_stopping=True, random_state=0)
    assert network._best_coefs is not None
    assert not hasattr(with_parameters(network, parameters(network)), "_best_coefs")
