from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, LogisticRegressionCV, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakscope.errors import InputError, ModelError
from leakscope.exact import leave_one_out, leave_one_out_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
BINARY = np.array(["no", "yes"])[(X[:, 0] + RNG.normal(size=80) > 0).astype(int)]
THREE = np.digitize(X[:, 0] + RNG.normal(size=80), [-0.5, 0.5])
NUMBERS = X[:, 0] + RNG.normal(size=80)
WEIGHTS = RNG.uniform(0.5, 2.0, size=80)


def exact(**options: Any) -> LogisticRegression:
    return LogisticRegression(solver="newton-cholesky", tol=1e-10, **options)


@pytest.mark.parametrize("y", [BINARY, THREE], ids=["binary", "three"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_a_logistic_regression_tells_its_penalty(y: np.ndarray, weights: Any) -> None:
    model = exact(C=0.25).fit(X, y, weights)
    found = leave_one_out_of(model, X, y, weights)
    assert found.l2 == 4.0
    theta = np.column_stack([model.coef_, model.intercept_])
    np.testing.assert_allclose(np.atleast_2d(found.theta), theta, atol=1e-8)
    np.testing.assert_allclose(found.predict_proba(X), model.predict_proba(X), atol=1e-8)
    direct = leave_one_out(X, y, 4.0, sample_weight=weights)
    assert (found.theta_without == direct.theta_without).all()


def test_no_penalty_is_zero() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # either way is deprecated in some release
        for options in ({"C": np.inf}, {"penalty": None}):
            assert leave_one_out_of(exact(**options).fit(X, BINARY), X, BINARY).l2 == 0.0


def test_weights_of_classes_are_weights_of_records() -> None:
    model = exact(class_weight={"no": 3.0}).fit(X, BINARY)
    weights = np.where(BINARY == "no", 3.0, 1.0)
    found = leave_one_out_of(model, X, BINARY)
    np.testing.assert_allclose(found.predict_proba(X), model.predict_proba(X), atol=1e-8)
    direct = leave_one_out(X, BINARY, sample_weight=weights)
    assert (found.theta_without == direct.theta_without).all()
    model = exact(class_weight={"no": 3.0}).fit(X, BINARY, WEIGHTS)
    found = leave_one_out_of(model, X, BINARY, WEIGHTS)
    direct = leave_one_out(X, BINARY, sample_weight=weights * WEIGHTS)
    assert (found.theta_without == direct.theta_without).all()


def test_a_ridge_regression_tells_its_penalty() -> None:
    model = Ridge(alpha=2.5).fit(X, NUMBERS, WEIGHTS)
    found = leave_one_out_of(model, X, NUMBERS, WEIGHTS)
    assert (found.family, found.l2) == ("gaussian", 2.5)
    np.testing.assert_allclose(found.predict(X), model.predict(X), atol=1e-12)
    whole = leave_one_out_of(Ridge().fit(X, THREE), X, THREE)  # whole numbers are numbers here
    assert whole.family == "gaussian"
    constant = np.full(80, 2.0)  # no record has any influence, and that is no reason to warn
    still = leave_one_out_of(Ridge(solver="svd").fit(X, constant), X, constant)
    np.testing.assert_allclose(still.theta_without[:, :-1], 0, atol=1e-12)


def test_a_model_that_stopped_early_is_reported_with_how_far_it_is() -> None:
    early = LogisticRegression(tol=0.5, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        early.fit(X, BINARY)
    with pytest.warns(UserWarning, match=r"LogisticRegression stopped \S+ short .* \d+\.\d% of"):
        found = leave_one_out_of(early, X, BINARY)
    np.testing.assert_allclose(found.theta, leave_one_out(X, BINARY).theta, atol=1e-12)
    moved = Ridge().fit(X, NUMBERS)
    moved.intercept_ += 0.5
    with pytest.warns(UserWarning, match="The Ridge stopped 0.5 short of its optimum in the pred"):
        leave_one_out_of(moved, X, NUMBERS)


@pytest.mark.parametrize("C", [1.0, 1e-4, 1e-7])
def test_a_model_of_other_records_is_told_however_strong_its_penalty(C: float) -> None:
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], 60)
    mine, theirs = (rng.normal(size=(120, 4)) + 0.5 * y[:, None] for _ in range(2))
    model = exact(C=C).fit(mine, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leave_one_out_of(model, mine, y)
    with pytest.warns(UserWarning, match="short of its optimum"):
        leave_one_out_of(model, theirs, y)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_a_ridge_regression_of_other_records_is_told_in_any_unit(unit: float) -> None:
    rng = np.random.default_rng(6)
    y = unit * rng.normal(size=80)
    mine, theirs = rng.normal(size=(2, 80, 3))
    model = Ridge().fit(mine, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leave_one_out_of(model, mine, y)
    with pytest.warns(UserWarning, match="The Ridge stopped"):
        leave_one_out_of(model, theirs, y)


def test_three_classes_of_other_records_are_told() -> None:
    model = exact().fit(X, THREE)
    with pytest.warns(UserWarning, match="short of its optimum"):
        leave_one_out_of(model, X[::-1], THREE)


def fitted(y: np.ndarray = BINARY, **options: Any) -> LogisticRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LogisticRegression(**options).fit(X, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LinearRegression().fit(X, NUMBERS), "or a Ridge, not from a LinearRegression; take one"),
        (
            make_pipeline(StandardScaler(), exact()).fit(X, BINARY),
            "not from a Pipeline; hand over its last step",
        ),
        (LogisticRegression(), "LogisticRegression is not fitted; fit it on these records first"),
        (fitted(fit_intercept=False), "with fit_intercept=False has no leave-one-out models"),
        (fitted(solver="liblinear"), "solver='liblinear' .* as it penalizes the intercept"),
        (fitted(solver="saga", l1_ratio=0.5), "an l1 penalty .* not smooth"),
        (fitted(solver="saga", penalty="l1"), "an l1 penalty .* not smooth"),
        (fitted(class_weight="balanced"), "class_weight='balanced' .* change with each record"),
        (fitted(THREE), "fitted on 3 classes, and the labels have 2 that are not the same"),
    ],
)
def test_models_that_cannot_be_read_are_refused(model: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        leave_one_out_of(model, X, BINARY)


def test_one_of_many_models_is_not_read() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        searched = LogisticRegressionCV(Cs=2, cv=2).fit(X, BINARY)
    with pytest.raises(ModelError, match="not from a LogisticRegressionCV; fit one with"):
        leave_one_out_of(searched, X, BINARY)
    one_by_one = fitted(THREE)
    one_by_one.get_params = lambda: {"solver": "lbfgs", "multi_class": "ovr"}
    with pytest.raises(ModelError, match=r"multi_class='ovr' .* as it is several models"):
        leave_one_out_of(one_by_one, X, THREE)


def test_ridge_regressions_that_cannot_be_read_are_refused() -> None:
    for model, message in [
        (Ridge(positive=True).fit(X, NUMBERS), "positive=True .* not smooth"),
        (Ridge().fit(X, np.column_stack([NUMBERS] * 2)), "several targets"),
        (Ridge(fit_intercept=False).fit(X, NUMBERS), "fit_intercept=False"),
    ]:
        with pytest.raises(ModelError, match=message):
            leave_one_out_of(model, X, NUMBERS)


def test_other_records_are_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(n, 3\), got \(80, 2\)"):
        leave_one_out_of(exact().fit(X, BINARY), X[:, :2], BINARY)


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    leave_one_out_of(
        Ridge().fit(X, NUMBERS), X, NUMBERS, workers=1, progress=lambda *step: told.append(step)
    )
    assert told == [("records left out", 80, 80)]
