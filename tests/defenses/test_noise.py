from __future__ import annotations

import math
import re
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, norm
from sklearn.linear_model import LinearRegression, LogisticRegression, RANSACRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from leakscope.defenses import OutputPerturbation
from leakscope.defenses.noise import NoisyRecipe
from leakscope.errors import InputError, ModelError
from leakscope.leakage import gaussian_epsilon, gaussian_sigma, ridge_sensitivity
from leakscope.models.parameters import parameters_of
from leakscope.protocols import Recipe
from leakscope.recipes import as_recipe, train
from leakscope.recipes.sklearn import SklearnRecipe
from leakscope.records import Records

rng = np.random.default_rng(0)
X = rng.normal(size=(50, 6))
RECORDS = Records(X, X[:, 0] + 0.1 * rng.normal(size=50))
PROMISE = {"epsilon": 1.0, "delta": 1e-5, "sensitivity": 2.0}


def noised(recipe: Recipe, seeds: Any) -> np.ndarray:
    roles = np.ones((len(seeds), len(RECORDS)), dtype=np.int8)
    return np.stack([parameters_of(model) for model in recipe.fit_many(RECORDS, roles, seeds)])


def plain(**options: Any) -> Recipe:
    return as_recipe(Ridge(**options), prepare=False)


def test_noise_is_gaussian_with_the_deviation_that_was_asked_for() -> None:
    clean = noised(plain(), [0])[0]
    drawn = noised(OutputPerturbation(0.3).wrap_recipe(plain()), range(300)) - clean
    count = drawn.size
    low, high = chi2.ppf([5e-7, 1 - 5e-7], count)
    assert low < np.square(drawn / 0.3).sum() < high
    assert abs(drawn.mean()) < norm.isf(5e-7) * 0.3 / math.sqrt(count)
    # Parameters and models have noise of their own.
    correlation = np.corrcoef(drawn.T)[np.triu_indices(7, 1)]
    assert np.abs(correlation).max() < norm.isf(1e-7) / math.sqrt(300)


def test_another_sigma_scales_the_same_noise() -> None:
    clean = noised(plain(), [5])
    one, ten = (
        noised(OutputPerturbation(sigma).wrap_recipe(plain()), [5]) - clean for sigma in (0.1, 1.0)
    )
    np.testing.assert_allclose(10 * one, ten, rtol=1e-10)


@pytest.mark.slow
def test_noise_around_noise_is_drawn_anew() -> None:
    """Twice the same would have variance 4; also with another wrapper between the two."""

    @dataclass(frozen=True)
    class Between(Recipe):
        name: str
        recipe: Recipe

        def fit_many(self, records: Any, roles: Any, seeds: Any) -> Any:
            return self.recipe.fit_many(records, roles, seeds)

    clean, defense = noised(plain(), [0])[0], OutputPerturbation(1.0)
    inner = defense.wrap_recipe(plain())
    first = noised(inner, range(300)) - clean
    for recipe in (inner, Between("between", inner)):
        both = noised(defense.wrap_recipe(recipe), range(300)) - clean
        second = both - first
        low, high = chi2.ppf([5e-7, 1 - 5e-7], second.size)
        assert low < np.square(second).sum() < high
        overlap = np.corrcoef(first.ravel(), second.ravel())[0, 1]
        assert abs(overlap) < norm.isf(5e-7) / math.sqrt(first.size)


def test_epsilon_gives_the_analytic_sigma_and_back() -> None:
    defense = OutputPerturbation(**PROMISE)
    assert defense.scale == gaussian_sigma(1.0, 1e-5, 2.0)
    assert defense.scale == pytest.approx(2 * 3.73063163481594, rel=1e-12)
    assert defense.budget(plain(), 50) == (1.0, 1e-5)
    by_sigma = OutputPerturbation(sigma=5.0, delta=1e-5, sensitivity=2.0)
    assert by_sigma.budget(plain(), 50) == (gaussian_epsilon(5.0, 1e-5, 2.0), 1e-5)
    assert OutputPerturbation(5.0).budget(plain(), 50) is None
    recipe = defense.wrap_recipe(plain())
    assert isinstance(recipe, NoisyRecipe)
    assert (recipe.name, recipe.sigma) == (f"Ridge+noise:{defense.scale:g}", defense.scale)


def test_the_promise_holds_on_the_worst_pair_of_training_sets() -> None:
    """The exact δ of neighbouring ridge regressions is at most the one promised."""
    n, l2, epsilon, delta = 8, 0.5, 0.7, 1e-3
    bound = ridge_sensitivity(n, l2, radius=1.0, labels=1.0)
    defense = OutputPerturbation(epsilon=epsilon, delta=delta, sensitivity=bound.value)
    draws = np.random.default_rng(3)
    worst = 0.0
    for _ in range(200):
        features = draws.normal(size=(n + 1, 2))
        features /= np.maximum(np.linalg.norm(features, axis=1), 1)[:, None]
        labels = draws.choice([-1.0, 1.0], n + 1)
        fits = [
            Ridge(alpha=n * l2, fit_intercept=False).fit(features[rows], labels[rows]).coef_
            for rows in (slice(n), [*range(n - 1), n])
        ]
        worst = max(worst, float(np.linalg.norm(fits[0] - fits[1])))
    assert 0 < worst <= bound.value
    ratio = worst / defense.scale
    exact = norm.cdf(ratio / 2 - epsilon / ratio) - np.exp(epsilon) * norm.cdf(
        -ratio / 2 - epsilon / ratio
    )
    assert exact <= delta


@pytest.mark.parametrize(
    ("recipe", "promised"),
    [
        (plain(), True),
        (as_recipe(make_pipeline(Normalizer(), Ridge())), True),
        (as_recipe(make_pipeline("passthrough", Ridge())), True),
        (OutputPerturbation(1.0).wrap_recipe(plain()), True),
        # Given a table, it would be encoded and scaled by what is fitted on the members.
        (as_recipe(Ridge()), False),
        (as_recipe(Ridge(), prepare=True), False),
        (as_recipe(make_pipeline(Normalizer(), Ridge()), prepare=True), False),
        (as_recipe(make_pipeline(StandardScaler(), Ridge())), False),
        (as_recipe("ridge"), False),
        (as_recipe(GridSearchCV(Ridge(), {"alpha": [1.0]}), prepare=False), False),
        (as_recipe(DecisionTreeRegressor(), prepare=False), False),
        (as_recipe(RANSACRegressor(Ridge()), prepare=False), False),
        (as_recipe(make_pipeline(GridSearchCV(Ridge(), {"alpha": [1.0]}))), False),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_the_promise_is_made_only_where_the_parameters_are_all(
    recipe: Recipe, promised: bool
) -> None:
    defense = OutputPerturbation(**PROMISE)
    assert (defense.budget(recipe, 50) is not None) == promised
    if promised:
        assert defense.wrap_recipe(recipe).together == recipe.together
    else:
        with pytest.warns(UserWarning, match="epsilon is no promise for them"):
            defense.wrap_recipe(recipe)
        OutputPerturbation(1.0).wrap_recipe(recipe)  # which promises nothing


class Foreign(LinearRegression):  # type: ignore[misc]
    """Of another library: what it keeps of its training is not known."""


@dataclass(frozen=True)
class Own(Recipe):
    """A recipe that is no estimator."""

    name: str = "own"
    together: int = 4

    def fit_many(self, records: Any, roles: Any, seeds: Any) -> Any:
        return [SklearnRecipe("inner", Ridge()).fit(records, seed) for seed in seeds]


@pytest.mark.parametrize("recipe", [as_recipe(Foreign(), prepare=False), Own()])
def test_what_is_not_known_is_not_promised(recipe: Recipe) -> None:
    assert OutputPerturbation(**PROMISE).budget(recipe, 50) is None
    wrapped = OutputPerturbation(1.0).wrap_recipe(recipe)
    assert wrapped.together == recipe.together
    assert noised(wrapped, [0]).shape == (1, 7)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        MLPRegressor(hidden_layer_sizes=(3,), max_iter=3),
        make_pipeline(StandardScaler(), Ridge()),
    ],
    ids=lambda one: type(one).__name__,
)
def test_it_wraps_whatever_has_parameters(estimator: Any) -> None:
    records = Records(X, (X[:, 0] > 0).astype(int if hasattr(estimator, "C") else float))
    recipe = as_recipe(estimator, prepare=False)
    clean, noisy = (
        parameters_of(train(one, records, 3))
        for one in (recipe, OutputPerturbation(0.5).wrap_recipe(recipe))
    )
    moved = np.square((noisy - clean) / 0.5).sum()
    low, high = chi2.ppf([5e-7, 1 - 5e-7], len(clean))
    assert low < moved < high


def test_a_model_without_parameters_is_named() -> None:
    recipe = OutputPerturbation(1.0).wrap_recipe(as_recipe(DecisionTreeRegressor(), "my tree"))
    said = "The recipe 'my tree' makes a DecisionTreeRegressor, which has no parameters to add"
    with pytest.raises(ModelError, match=re.escape(said)):
        train(recipe, RECORDS, 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "either sigma or epsilon, got None and None"),
        ({"sigma": 1.0, **PROMISE}, "either sigma or epsilon, got 1.0 and 1.0"),
        ({"epsilon": 1.0}, "needs delta and sensitivity, got None and None"),
        ({"epsilon": 1.0, "delta": 0.1}, "needs delta and sensitivity, got 0.1 and None"),
        ({"sigma": 1.0, "sensitivity": 2.0}, "needs delta and sensitivity, got None and 2.0"),
        ({"sigma": 0.0}, "sigma must be a finite number above 0, got 0.0"),
        ({"sigma": math.inf}, "sigma must be a finite number above 0, got inf"),
        ({"sigma": math.nan}, "sigma must be a finite number above 0, got nan"),
        ({**PROMISE, "epsilon": -1.0}, "epsilon must be a finite number above 0, got -1.0"),
        ({**PROMISE, "delta": 1.0}, "delta must be between 0 and 1, got 1.0"),
        ({"sigma": 1.0, "delta": 2.0, "sensitivity": 1.0}, "delta must be between 0 and 1"),
        ({**PROMISE, "sensitivity": 0.0}, "sensitivity must be a finite number above 0, got 0.0"),
    ],
)
def test_options_are_checked_at_once(options: dict[str, float], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        OutputPerturbation(**options)


def test_options_stay_as_they_are() -> None:
    with pytest.raises(FrozenInstanceError):
        OutputPerturbation(1.0).sigma = 2.0  # type: ignore[misc]
