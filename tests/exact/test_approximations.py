from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import expit

from leakscope.errors import InputError
from leakscope.exact import LeaveOneOut, koh_liang, leave_one_out, one_step_newton

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + RNG.normal(size=60) > 0).astype(int)
WEIGHTS = RNG.uniform(0.5, 2.0, size=60)


def by_hand(theta: np.ndarray, l2: float, record: int, step: str) -> np.ndarray:
    """θ + H⁻¹g or θ + H_j⁻¹g of a logistic regression, from sums over records."""
    rows = np.column_stack([X, np.ones(60)])
    p = expit(rows @ theta)
    weights = WEIGHTS.copy()
    gradient = weights[record] * (p[record] - Y[record]) * rows[record]
    if step == "one-step-newton":
        weights[record] = 0.0
    curvature = rows.T @ (rows * (weights * p * (1 - p))[:, None])
    return theta + np.linalg.solve(curvature + l2 * np.diag([1.0, 1, 1, 0]), gradient)


@pytest.mark.parametrize(
    ("approximate", "method"), [(koh_liang, "koh-liang"), (one_step_newton, "one-step-newton")]
)
def test_they_are_the_steps_they_are_named_after(
    approximate: Callable[..., LeaveOneOut], method: str
) -> None:
    found = approximate(X, Y, 0.7, "auto", WEIGHTS)
    assert found.method == method
    for record in (0, 17, 59):
        expected = by_hand(found.theta, 0.7, record, found.method)
        np.testing.assert_allclose(found.theta_without[record], expected, atol=1e-11)


@pytest.mark.parametrize("classes", [2, 4])
def test_one_step_is_nearer_to_the_exact_models_than_first_order(classes: int) -> None:
    y = np.digitize(X[:, 0] + RNG.normal(size=60), np.linspace(-1, 1, classes - 1))
    exact = leave_one_out(X, y).theta_without
    first = np.linalg.norm(koh_liang(X, y).theta_without - exact)
    step = np.linalg.norm(one_step_newton(X, y).theta_without - exact)
    start = np.linalg.norm(leave_one_out(X, y).theta - exact)
    assert 0 < 1.5 * step < first < start / 2


def test_for_squared_errors_one_step_is_exact_and_first_order_is_short_by_the_leverage() -> None:
    y = X[:, 0] + RNG.normal(size=60)
    exact, step = leave_one_out(X, y), one_step_newton(X, y)
    np.testing.assert_allclose(step.theta_without, exact.theta_without, atol=1e-12)
    rows = np.column_stack([X, np.ones(60)])
    hat = rows @ np.linalg.solve(rows.T @ rows + np.diag([1.0, 1, 1, 0]), rows.T)
    moved = koh_liang(X, y).theta_without - exact.theta
    expected = (1 - np.diag(hat))[:, None] * (exact.theta_without - exact.theta)
    np.testing.assert_allclose(moved, expected, atol=1e-12)


def test_a_record_that_alone_has_a_direction_has_no_newton_step() -> None:
    features = np.column_stack([X, np.arange(60) == 5])
    with pytest.raises(InputError, match="No Newton step leads away from record 5; use a larger"):
        one_step_newton(features, X[:, 0] + RNG.normal(size=60), 0.0)
