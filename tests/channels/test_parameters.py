from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

from leakscope.channels.parameters import Parameters
from leakscope.errors import InputError, ModelError
from leakscope.leakage import expected_by_chance, parameter_leakage
from leakscope.models import as_model
from leakscope.records import Records
from leakscope.trials import fixed_size, random_halves, run_trials

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
NUMBERS = X @ [1.0, -1.0] + rng.normal(size=40)
RECORDS = Records(X, NUMBERS)


def test_one_row_of_coefficients_and_intercept() -> None:
    ridge = Ridge().fit(X, NUMBERS)
    seen = Parameters().observe(as_model(ridge), RECORDS)
    np.testing.assert_array_equal(seen, [[*ridge.coef_, ridge.intercept_]])
    assert Parameters().width(as_model(ridge)) == 3


def test_trials_keep_one_row_for_each_model() -> None:
    roles = random_halves(40, 6, seed=0)
    trials = run_trials(
        Ridge(fit_intercept=False), RECORDS, roles, ["parameters", "loss"], workers=1
    )
    stack = trials.observations["parameters"]
    assert stack.shape == (6, 1, 2)
    assert trials.observations["loss"].shape == (6, 40, 1)
    expected = [
        np.linalg.solve(X[row].T @ X[row] + np.eye(2), X[row].T @ NUMBERS[row])
        for row in trials.membership
    ]
    np.testing.assert_allclose(stack[:, 0], expected, rtol=1e-10)


@pytest.mark.slow
def test_the_leakage_of_parameters_is_folded_from_trials() -> None:
    roles = random_halves(40, 400, seed=1)[::2]  # independent: one of each complementary pair
    trials = run_trials(
        Ridge(alpha=1e-9, fit_intercept=False),
        RECORDS,
        roles,
        ["parameters"],
        workers=1,
        keep_models=False,
    )
    found = parameter_leakage(trials.observations["parameters"][:, 0], trials.membership)
    # p / (n(1 − n/N)) is 0.2 for many records; here it is rough, and far from nothing.
    assert 0.1 < found.mean.value < 0.5
    assert found.mean.low > found.null.high
    assert expected_by_chance(2, 100, 100) < 0.2


def test_models_of_different_sizes_are_refused() -> None:
    """Models that lack one of three classes have fewer rows of coefficients."""
    y = np.repeat([0, 1, 2], [18, 18, 4])
    roles = fixed_size(40, 24, 8, seed=0)
    roles[:4, 36:] = 0
    with pytest.raises(ModelError, match="trained without 1 of the 3 classes"):
        run_trials(LogisticRegression(), Records(X, y), roles, ["parameters"], workers=1)


def test_a_recipe_without_parameters_is_refused() -> None:
    roles = random_halves(40, 2, seed=0)
    with pytest.raises(ModelError, match="DecisionTreeRegressor has no parameter vector"):
        run_trials(DecisionTreeRegressor(), RECORDS, roles, ["parameters"], workers=1)


def test_no_attack_goes_through_it_yet() -> None:
    from leakscope import audit

    sides = (X[:20], NUMBERS[:20]), (X[20:], NUMBERS[20:])
    model = Ridge().fit(*sides[0])
    with pytest.raises(InputError, match=r"None of the attacks .* goes through the channels"):
        audit(model, *sides, channels=["parameters"])
