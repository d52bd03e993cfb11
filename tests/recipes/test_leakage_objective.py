from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime, check_grad
from sklearn.linear_model import LogisticRegression

from leakscope.exact import ridge_leakage
from leakscope.recipes.leakage_objective import (
    LeakageObjective,
    logistic_loss,
    penalized_minimum,
    plain_minimum,
    squared_loss,
    whitener,
)

LOSSES = [squared_loss, logistic_loss]


def make(loss: Any, n: int = 40, q: int = 3, seed: int = 0, **options: Any) -> LeakageObjective:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, q)) * [1.0, 0.3, 5.0][:q]
    y = (rng.random(n) < 0.4).astype(float)
    settings = {"l2": np.array([0.1, 0.1, 0.0][:q]), "weight": 3.0, "variance": 0.04}
    return LeakageObjective(X, y, loss, **(settings | options))


@pytest.mark.parametrize("loss", LOSSES)
def test_derivatives_of_a_loss_are_those_of_the_one_before(loss: Any) -> None:
    scores = np.linspace(-4, 4, 33)
    for target in (0.0, 1.0):
        targets = np.full_like(scores, target)
        above, at, below = (loss(scores + step, targets) for step in (1e-5, 0.0, -1e-5))
        for order in (0, 1, 2):
            slope = (above[order] - below[order]) / 2e-5
            np.testing.assert_allclose(slope, at[order + 1], atol=1e-8)


def test_losses_are_what_they_say() -> None:
    assert squared_loss(np.array([3.0]), np.array([1.0]))[0] == 4.0
    chance = 1 / (1 + np.exp(-0.7))
    found = logistic_loss(np.array([0.7, 0.7]), np.array([1.0, 0.0]))[0]
    np.testing.assert_allclose(found, [-np.log(chance), -np.log(1 - chance)])
    # Far out nothing overflows, and small losses keep their digits.
    far = logistic_loss(np.array([800.0, -800.0, 40.0]), np.array([0.0, 1.0, 1.0]))
    np.testing.assert_allclose(far[0], [800.0, 800.0, np.exp(-40)])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("power", [1.0, 2.5, 20.0])
def test_the_gradient_is_exact(loss: Any, power: float) -> None:
    objective = make(loss, power=power)
    for seed in range(5):
        theta = np.random.default_rng(seed).normal(size=3) * 0.5
        size = np.linalg.norm(objective.penalized(theta)[1])
        error = check_grad(
            lambda t: float(objective.penalized(t)[0]), lambda t: objective.penalized(t)[1], theta
        )
        assert error < 1e-6 * max(size, 1.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_penalty_is_what_its_gradient_and_value_differ_by(loss: Any) -> None:
    theta = np.array([0.3, -0.2, 0.1])
    with_it, without = make(loss, weight=5.0), make(loss, weight=0.0)
    value, gradient, hessian = with_it.plain(theta)
    np.testing.assert_allclose(without.penalized(theta)[0], value)
    np.testing.assert_allclose(without.penalized(theta)[1], gradient)
    np.testing.assert_allclose(
        with_it.penalized(theta)[0], value + 5 * with_it.leakage(theta).mean()
    )
    slope = approx_fprime(theta, lambda t: with_it.plain(t)[1], 1e-6)
    np.testing.assert_allclose(slope, hessian, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_leakage_is_how_far_a_record_moves_a_model_that_varies(loss: Any) -> None:
    objective, theta = make(loss), np.array([0.3, -0.2, 0.1])
    X, y, n = objective.X, objective.y, len(objective.y)
    _, slope, _, _ = loss(X @ theta, y)
    gradients = slope[:, None] * X
    inverse = np.linalg.inv(objective.plain(theta)[2])
    varies = inverse @ np.cov(gradients.T, ddof=0) @ inverse / n + 0.04 * np.eye(3)
    for record, found in enumerate(objective.leakage(theta)):
        moved = inverse @ (gradients[record] - gradients.mean(axis=0)) / n
        assert found == pytest.approx(moved @ np.linalg.solve(varies, moved), rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_without_noise_the_mean_is_parameters_over_records_for_every_model(loss: Any) -> None:
    objective = make(loss, variance=0.0)
    for scale in (0.0, 0.5, 2.0):
        assert objective.leakage(np.full(3, scale)).mean() == pytest.approx(3 / 40, rel=1e-8)


def test_leakage_falls_with_noise_and_with_l2() -> None:
    theta = np.array([0.3, -0.2, 0.1])
    by_noise = [make(squared_loss, variance=v).leakage(theta).mean() for v in (0.01, 0.1, 1.0)]
    assert by_noise == sorted(by_noise, reverse=True)
    by_l2 = [make(squared_loss, l2=np.full(3, l2)).leakage(theta).mean() for l2 in (0.0, 1.0, 10.0)]
    assert by_l2 == sorted(by_l2, reverse=True)


def test_a_high_power_is_the_largest_leakage() -> None:
    theta = np.array([0.3, -0.2, 0.1])
    sharp, flat = make(squared_loss, power=5000.0), make(squared_loss, weight=0.0)
    extra = sharp.penalized(theta)[0] - flat.penalized(theta)[0]
    assert extra == pytest.approx(3 * sharp.leakage(theta).max(), rel=2e-3)


def test_nothing_leaks_where_all_records_are_fitted() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    objective = LeakageObjective(X, X[:, 0], squared_loss, np.zeros(2), 1.0, 0.1, 3.0)
    value, gradient = objective.penalized(np.array([1.0, 0.0]))
    assert value == 0
    assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(objective.leakage(np.array([1.0, 0.0])), 0.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_many_models_at_once_are_each_alone(loss: Any) -> None:
    alone = [make(loss, seed=seed, power=3.0) for seed in range(4)]
    stack = LeakageObjective(
        np.stack([one.X for one in alone]), np.stack([one.y for one in alone]), loss,
        alone[0].l2, 3.0, 0.04, 3.0,
    )  # fmt: skip
    theta = np.random.default_rng(9).normal(size=(4, 3))
    minima = plain_minimum(stack)
    for row, one in enumerate(alone):
        for together, single in zip(stack.penalized(theta), one.penalized(theta[row]), strict=True):
            np.testing.assert_allclose(together[row], single, rtol=1e-10)
        np.testing.assert_allclose(stack.leakage(theta)[row], one.leakage(theta[row]), rtol=1e-10)
        np.testing.assert_allclose(minima[row], plain_minimum(one), rtol=1e-8)


def test_the_plain_minimum_is_ridge_and_logistic_regression() -> None:
    ridge, logistic = (make(loss, l2=np.full(3, 0.05)) for loss in LOSSES)
    X, y = ridge.X, ridge.y
    solved = np.linalg.solve(X.T @ X + 40 * 0.05 * np.eye(3), X.T @ y)
    np.testing.assert_allclose(plain_minimum(ridge), solved, rtol=1e-10)
    reference = LogisticRegression(
        C=1 / (2 * 40 * 0.05), fit_intercept=False, solver="newton-cholesky", tol=1e-10
    ).fit(X, y)
    np.testing.assert_allclose(plain_minimum(logistic), reference.coef_[0], rtol=1e-8)


def test_newtons_steps_are_halved_where_they_overshoot() -> None:
    # √(1 + z²) is flat far out: from 0, four off the minimum, a full step goes 68 too far.
    def flat(scores: Any, targets: Any) -> Any:
        miss = scores - targets
        root = np.sqrt(1 + miss**2)
        return root, miss / root, root**-3.0, -3 * miss * root**-5.0

    objective = LeakageObjective(np.ones((1, 1)), np.array([4.0]), flat, np.zeros(1))
    assert plain_minimum(objective)[0] == pytest.approx(4.0, abs=1e-6)


def test_steps_are_taken_up_to_their_number() -> None:
    # Two classes that a line separates have no minimum without l2: it is further out every step.
    X = np.array([[-1.0], [1.0]])
    objective = LeakageObjective(X, np.array([0.0, 1.0]), logistic_loss, np.zeros(1))
    three, six = (plain_minimum(objective, steps)[0] for steps in (3, 6))
    assert 2 < three < six < np.inf


def test_directions_that_records_leave_open_stay_at_nothing() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=30), np.zeros(30)])
    objective = LeakageObjective(X, rng.normal(size=30), squared_loss, np.zeros(2), 1.0, 0.1)
    theta, _, reached = penalized_minimum(objective)
    assert reached
    assert theta[1] == 0
    assert np.isfinite(objective.leakage(theta)).all()
    root = whitener(np.diag([4.0, 0.0]))
    np.testing.assert_allclose(root @ root.T, np.diag([0.25, 0.0]))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_penalized_minimum_is_one(loss: Any) -> None:
    objective = make(loss, weight=2.0)
    theta, steps, reached = penalized_minimum(objective)
    assert reached
    assert steps > 1
    start = plain_minimum(objective)
    assert objective.penalized(theta)[0] < objective.penalized(start)[0]
    assert objective.leakage(theta).mean() < objective.leakage(start).mean()
    np.testing.assert_allclose(objective.penalized(theta)[1], 0, atol=1e-6)
    around = np.random.default_rng(0).normal(size=(200, 3)) * 0.01
    assert all(
        objective.penalized(theta + step)[0] > objective.penalized(theta)[0] for step in around
    )


def test_without_a_penalty_it_is_the_plain_minimum() -> None:
    objective = make(squared_loss, weight=0.0)
    theta, steps, reached = penalized_minimum(objective)
    np.testing.assert_array_equal(theta, plain_minimum(objective))
    assert (steps, reached) == (1, True)


def test_the_unit_of_the_targets_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    X, noise = rng.normal(size=(50, 3)), rng.normal(size=50)
    y = X[:, 0] + noise
    one = LeakageObjective(X, y, squared_loss, np.full(3, 0.1), 4.0, 0.04)
    for unit in (1e-6, 1e6):
        scaled = LeakageObjective(X, unit * y, squared_loss, one.l2, 4.0 * unit**2, 0.04 * unit**2)
        np.testing.assert_allclose(
            penalized_minimum(scaled)[0] / unit, penalized_minimum(one)[0], rtol=1e-5
        )


def test_it_is_the_leakage_of_plain_ridge_regression_when_there_are_many_records() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30_000, 3))
    y = X[:, 0] + rng.normal(size=30_000)
    n, l2, noise = 1500, 0.3, 0.03
    members = np.arange(n)
    objective = LeakageObjective(
        X[members], y[members], squared_loss, np.full(3, l2), 1.0, noise**2
    )
    predicted = objective.leakage(plain_minimum(objective))[:200]
    measured = ridge_leakage(
        X, y, n, l2=l2, noise=noise, draws=400, records=members[:200], workers=1
    )
    assert predicted.mean() == pytest.approx(measured.mean.value * (1 - n / 30_000), rel=0.1)
    # Record by record too, and the noise matters here.
    assert np.corrcoef(predicted, measured.rho_kl)[0, 1] > 0.99
    assert measured.mean.value < 0.8 * 3 / n
