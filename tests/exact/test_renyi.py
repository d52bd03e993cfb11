from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from leakscope.errors import InputError
from leakscope.exact.renyi import (
    both_ways,
    epsilon_leakage,
    largest_orders,
    renyi_leakage,
)
from leakscope.leakage import gaussian_epsilon
from leakscope.metrics.gaussian import largest_order, renyi_divergence

GOLDEN = (
    np.array([0.3, -0.2, 0.5]),
    np.array([[1, 0.2, 0.1], [0.2, 0.8, -0.1], [0.1, -0.1, 0.5]]),
    np.array([0, 0.1, 0.2]),
    np.array([[1.5, 0.3, 0], [0.3, 1, 0.2], [0, 0.2, 0.7]]),
)


def make(pairs: int = 6, p: int = 3, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(2):
        root = rng.normal(size=(pairs, p, 4 * p)) / math.sqrt(4 * p)
        parts += [0.5 * rng.normal(size=(pairs, p)), root @ root.swapaxes(1, 2)]
    return tuple(parts)


def swapped(gaussians: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    return (*gaussians[2:], *gaussians[:2])


def test_the_golden_pair():
    assert renyi_leakage(GOLDEN, 2.0, "with") == pytest.approx(0.763616667727827, rel=1e-12)
    assert renyi_leakage(GOLDEN, 2.0, "without") == math.inf
    assert renyi_leakage(GOLDEN, 2.0) == math.inf


@pytest.mark.parametrize("order", [1.001, 1.2, 1.5, 3.0])
def test_it_is_the_divergence_in_either_direction(order):
    gaussians = make()
    one, other = renyi_divergence(*gaussians, order), renyi_divergence(*swapped(gaussians), order)
    np.testing.assert_allclose(renyi_leakage(gaussians, order, "with"), one, rtol=1e-9)
    np.testing.assert_allclose(renyi_leakage(gaussians, order, "without"), other, rtol=1e-9)
    np.testing.assert_allclose(renyi_leakage(gaussians, order), np.maximum(one, other), rtol=1e-9)


def test_the_pair_turned_round_is_that_of_the_gaussians_turned_round():
    gaussians = make()
    _, back = both_ways(gaussians)
    there, _ = both_ways(swapped(gaussians))
    np.testing.assert_allclose(np.sort(back.spread), np.sort(there.spread), rtol=1e-10)
    np.testing.assert_allclose(
        np.sort(back.shift**2), np.sort(there.shift**2), rtol=1e-8, atol=1e-14
    )


def test_the_largest_order_is_the_smaller_of_both_directions():
    gaussians = make()
    both = np.minimum(largest_order(*gaussians), largest_order(*swapped(gaussians)))
    found = largest_orders(gaussians)
    np.testing.assert_allclose(found, both, rtol=1e-10)
    for row, order in enumerate(found):
        one = tuple(part[row] for part in gaussians)
        assert math.isfinite(renyi_leakage(one, 1 + 0.999 * (order - 1)))
        assert renyi_leakage(one, 1 + 1.001 * (order - 1)) == math.inf


def test_two_equal_gaussians_tell_nothing():
    same = (np.zeros(2), np.eye(2), np.zeros(2), np.eye(2))
    assert largest_orders(same) == math.inf
    assert renyi_leakage(same, 50.0) == 0
    assert epsilon_leakage(same, 1e-6) < 1e-10
    assert epsilon_leakage(same, 1e-6, "privacy") < 1e-10


@pytest.mark.parametrize("distance", [1e-4, 0.3, 2.0, 50.0])
@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-12])
def test_epsilon_of_a_shift_has_a_closed_form(distance, delta):
    shifted = (np.array([distance, 0.0]), np.eye(2), np.zeros(2), np.eye(2))
    # D_α = α·m/2 with m the squared distance: the least of m/2 + m·t/2 + ln(1/δ)/t over t.
    m = distance**2
    expected = m / 2 + math.sqrt(2 * m * math.log(1 / delta))
    assert epsilon_leakage(shifted, delta) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("statement", ["ratio", "privacy"])
def test_epsilon_is_the_least_over_orders(statement):
    gaussians, delta = make(pairs=3), 1e-3
    for direction, turned in (("with", gaussians), ("without", swapped(gaussians))):
        top = largest_order(*turned)[:, None] - 1
        steps = top * (1 - np.geomspace(1, 1e-3, 100))[1:]
        extra = steps * np.log(steps) - (1 + steps) * np.log1p(steps)
        bounds = []
        for row in range(3):
            one = [part[row] for part in turned]
            values = np.array([renyi_divergence(*one, 1 + t) for t in steps[row]])
            tighter = extra[row] if statement == "privacy" else 0.0
            bounds.append((values + (math.log(1 / delta) + tighter) / steps[row]).min())
        found = epsilon_leakage(gaussians, delta, statement, direction)
        np.testing.assert_allclose(found, bounds, rtol=5e-3)
        assert (found <= np.array(bounds) * (1 + 1e-12)).all()


def test_epsilon_is_the_larger_of_both_directions():
    gaussians = make()
    one, other = (epsilon_leakage(gaussians, 1e-3, "ratio", way) for way in ("with", "without"))
    assert (one != other).all()
    np.testing.assert_array_equal(epsilon_leakage(gaussians, 1e-3), np.maximum(one, other))


def test_the_ratio_exceeds_epsilon_no_more_often_than_delta():
    rng = np.random.default_rng(0)
    for row in range(3):
        mean1, cov1, mean0, cov0 = one = tuple(part[row] for part in make())
        for delta in (0.1, 0.01):
            for way, mean, cov, sign in (
                ("with", mean1, cov1, 1),
                ("without", mean0, cov0, -1),
            ):
                drawn = rng.multivariate_normal(mean, cov, size=50_000)
                ratio = sign * (log_density(drawn, mean1, cov1) - log_density(drawn, mean0, cov0))
                bound = epsilon_leakage(one, delta, "ratio", way)
                # A bound, so that the share is below δ by far more than chance.
                assert (ratio > bound).mean() <= delta
                # And no idle one: a third of it is exceeded too often for it to hold.
                assert (ratio > bound / 3).mean() > delta


def log_density(x, mean, cov):
    centred = x - mean
    mahalanobis = (centred * np.linalg.solve(cov, centred.T).T).sum(axis=1)
    return -(mahalanobis + np.linalg.slogdet(2 * np.pi * cov)[1]) / 2


def test_privacy_is_never_the_larger_and_holds():
    gaussians = make()
    ratio, privacy = (epsilon_leakage(gaussians, 1e-3, kind) for kind in ("ratio", "privacy"))
    assert (privacy < ratio).all()
    # Against the integral of what of one density is above e^ε times the other, in one dimension.
    for mean1, deviation in ((1.0, 1.0), (0.5, 0.8), (0.3, 1.3)):
        one = (np.array([mean1]), np.array([[deviation**2]]), np.zeros(1), np.eye(1))
        epsilon = epsilon_leakage(one, 1e-3, "privacy")
        grid = np.linspace(-15, 15, 300_001)
        first, second = norm.pdf(grid, mean1, deviation), norm.pdf(grid)
        for p, q in ((first, second), (second, first)):
            above = np.maximum(p - math.exp(epsilon) * q, 0).sum() * (grid[1] - grid[0])
            assert above <= 1e-3


def test_privacy_is_close_to_the_exact_one_of_a_shift():
    shifted = (np.array([1.0]), np.eye(1), np.zeros(1), np.eye(1))
    exact = gaussian_epsilon(1.0, 1e-5)
    assert exact < epsilon_leakage(shifted, 1e-5, "privacy") < 1.1 * exact


@pytest.mark.parametrize("order", [1.0, 0.5, math.inf, math.nan, "x"])
def test_an_order_is_above_one_and_finite(order):
    with pytest.raises(InputError, match="order must be a finite number above 1"):
        renyi_leakage(GOLDEN, order)


def test_what_makes_no_sense_is_refused():
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(InputError, match="delta must be between 0 and 1"):
            epsilon_leakage(GOLDEN, delta)
    with pytest.raises(InputError, match="statement cannot be 'odds'; choose from: ratio, privacy"):
        epsilon_leakage(GOLDEN, 0.1, "odds")
    with pytest.raises(InputError, match="direction cannot be 'up'"):
        renyi_leakage(GOLDEN, 2.0, "up")
