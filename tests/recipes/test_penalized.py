from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from leakscope.errors import InputError
from leakscope.recipes import named_recipe, task_of
from leakscope.recipes.leakage_objective import LeakageObjective, logistic_loss, squared_loss
from leakscope.recipes.penalized import LeakagePenalizedLogistic, LeakagePenalizedRidge
from leakscope.records import Records

rng = np.random.default_rng(0)
N = 80
X = rng.normal(size=(N, 3)) * [1.0, 2.0, 0.5]
NUMBERS = 2 * X[:, 0] - X[:, 2] + 1 + rng.normal(size=N)
LABELS = np.where(NUMBERS + rng.normal(size=N) > 0.5, "yes", "no")
MODELS = [(LeakagePenalizedRidge, NUMBERS), (LeakagePenalizedLogistic, LABELS)]


@parametrize_with_checks([LeakagePenalizedRidge(), LeakagePenalizedLogistic(power=2.0)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_the_penalty_they_are_scikit_learns(fit_intercept: bool) -> None:
    ridge = LeakagePenalizedRidge(0.05, 0.0, fit_intercept=fit_intercept).fit(X, NUMBERS)
    reference = Ridge(alpha=N * 0.05, fit_intercept=fit_intercept).fit(X, NUMBERS)
    np.testing.assert_allclose(ridge.coef_, reference.coef_, rtol=1e-8)
    assert ridge.intercept_ == pytest.approx(reference.intercept_, rel=1e-8)
    logistic = LeakagePenalizedLogistic(0.05, 0.0, fit_intercept=fit_intercept).fit(X, LABELS)
    exact = LogisticRegression(
        C=1 / (2 * N * 0.05), fit_intercept=fit_intercept, solver="newton-cholesky", tol=1e-10
    ).fit(X, LABELS)
    np.testing.assert_allclose(logistic.coef_, exact.coef_, rtol=1e-7)
    np.testing.assert_allclose(logistic.intercept_, exact.intercept_, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(logistic.predict_proba(X), exact.predict_proba(X), rtol=1e-6)
    np.testing.assert_array_equal(logistic.predict(X), exact.predict(X))


@pytest.mark.parametrize(("maker", "y"), MODELS)
def test_more_weight_on_leakage_leaks_less_by_its_own_account(maker: Any, y: Any) -> None:
    leaks = [maker(0.01, weight, 0.2).fit(X, y).leakage_.mean() for weight in (0.0, 3.0, 30.0)]
    assert leaks[0] > 1.0005 * leaks[1] > 1.0005**2 * leaks[2]


@pytest.mark.parametrize(("maker", "y"), MODELS)
def test_a_power_is_about_those_who_leak_most(maker: Any, y: Any) -> None:
    average, worst = (maker(0.01, 1.0, 0.2, power=power).fit(X, y).leakage_ for power in (1, 16))
    assert worst.max() < average.max()


@pytest.mark.parametrize(
    ("maker", "y", "loss"),
    [(*MODELS[0], squared_loss), (*MODELS[1], logistic_loss)],
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_fit_is_a_minimum_of_what_is_documented(
    maker: Any, y: Any, loss: Any, fit_intercept: bool
) -> None:
    model = maker(0.02, 2.0, 0.1, 0.3, 1.5, fit_intercept=fit_intercept).fit(X, y)
    targets = y if loss is squared_loss else (y == "yes").astype(float)
    design, l2 = X, np.full(3, 0.02)
    theta = np.ravel(model.coef_)
    if fit_intercept:
        design, l2 = np.column_stack([X, np.ones(N)]), np.append(l2, 0.0)
        theta = np.append(theta, model.intercept_)
    variance = 0.1**2 + 0.3**2 / 12
    objective = LeakageObjective(design, targets, loss, l2, 2.0, variance, 1.5)
    np.testing.assert_allclose(objective.penalized(theta)[1], 0, atol=1e-6)
    np.testing.assert_allclose(model.leakage_, objective.leakage(theta))
    assert np.ravel(model.intercept_)[0] == 0 or fit_intercept


@pytest.mark.parametrize(("maker", "y"), MODELS)
def test_a_release_is_rounded_and_noisy_and_repeatable(maker: Any, y: Any) -> None:
    exact = maker(noise=0.0, grid=0.25).fit(X, y)
    rounded = maker(noise=0.0, grid=0.25, release=True).fit(X, y)
    np.testing.assert_array_equal(rounded.coef_, np.rint(exact.coef_ / 0.25) * 0.25)
    np.testing.assert_array_equal(rounded.intercept_, np.rint(exact.intercept_ / 0.25) * 0.25)
    # Of a release nothing is known of its members but what it shows.
    assert exact.leakage_.shape == (len(X),)
    assert not hasattr(rounded, "leakage_")
    noisy = [maker(release=True, random_state=seed).fit(X, y).coef_ for seed in (1, 1, 2)]
    np.testing.assert_array_equal(noisy[0], noisy[1])
    assert (noisy[0] != noisy[2]).all()
    plain = maker().fit(X, y).coef_
    moved = [maker(release=True, random_state=s).fit(X, y).coef_ - plain for s in range(20)]
    # 60 numbers of deviation 0.1: the estimate of it has one of 9 %.
    assert np.std(moved) == pytest.approx(0.1, rel=0.5)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"l2": -1.0}, "l2 must be a finite number of at least 0, got -1.0"),
        ({"leakage_weight": float("nan")}, "leakage_weight must be .* got nan"),
        ({"noise": float("inf")}, "noise must be"),
        ({"power": 0.5}, "power must be a finite number of at least 1"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"grid": 0.0}, "grid must be a finite number above 0, got 0.0"),
        ({"noise": 0.0}, "nothing to penalize; give noise or grid"),
    ],
)
def test_options_without_sense_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        LeakagePenalizedRidge(**options).fit(X, NUMBERS)


def test_two_classes_are_needed() -> None:
    for labels, kind in ((np.zeros(N), "one class"), (np.arange(N) % 3, "multiclass")):
        with pytest.raises(InputError, match=f"Only binary classification .* is {kind}"):
            LeakagePenalizedLogistic().fit(X, labels)


def test_a_search_that_does_not_arrive_says_so() -> None:
    model = LeakagePenalizedLogistic(0.001, 300.0, 0.3, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="took 1 steps and did not arrive"):
        model.fit(X, LABELS)


@pytest.mark.parametrize(
    ("name", "y", "task"),
    [
        ("penalized-ridge", NUMBERS, "regression"),
        ("penalized-logistic", LABELS, "classification"),
    ],
)
def test_they_are_recipes_whose_models_are_released_with_noise(
    name: str, y: Any, task: str
) -> None:
    recipe, records = named_recipe(name), Records(X, y)
    assert task_of(recipe) == task
    assert recipe.name == name
    one, same, other = (recipe.fit(records, seed).estimator[-1].coef_ for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()


def test_classes_that_can_be_told_apart_are_warned_of_without_l2() -> None:
    apart = X[:, 0] > 0
    with pytest.warns(ConvergenceWarning, match="no finite solution, and leakage_ means nothing"):
        LeakagePenalizedLogistic(l2=0.0, leakage_weight=0.0).fit(X, apart)
    LeakagePenalizedLogistic(l2=0.01, leakage_weight=0.0).fit(X, apart)
