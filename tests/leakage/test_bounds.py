from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import entr, expit

from leakscope.errors import InputError
from leakscope.leakage import (
    advantage_bound,
    advantage_bound_of_information,
    empirical_sensitivity,
    gradient_sensitivity,
    jeffreys,
    large_sample_leakage,
    logistic_sensitivity,
    mutual_information,
    mutual_information_bound,
    ridge_sensitivity,
    success_bound,
    total_variation,
)

# Where mσ(−m) is largest: a single record moves logistic regression most at this margin.
BEST_MARGIN = 1.278464542761074


def ridge(X, y, l2):
    n, p = X.shape
    return np.linalg.solve(X.T @ X + n * l2 * np.eye(p), X.T @ y)


def logistic(X, y, l2):
    """The minimum, by Newton's method from 0 on a smooth, strongly convex objective."""

    def value(theta):
        return np.logaddexp(0, -y * (X @ theta)).mean() + l2 * theta @ theta

    theta = np.zeros(X.shape[1])
    for _ in range(100):
        rate = expit(-y * (X @ theta))
        gradient = 2 * l2 * theta - X.T @ (y * rate) / len(y)
        curve = (X.T * (rate * (1 - rate))) @ X / len(y) + 2 * l2 * np.eye(len(theta))
        step, length = np.linalg.solve(curve, gradient), 1.0
        while value(theta - length * step) > value(theta) and length > 1e-10:
            length /= 2
        theta = theta - length * step
        if np.linalg.norm(step) < 1e-13:
            break
    return theta


def ball(vector, radius):
    """The vector, drawn into the ball."""
    return vector * min(1, radius / max(np.linalg.norm(vector), 1e-300))


def worst_pair(fit, n, length, radius, label, seed):
    """The largest distance of two fits on sets that differ in one record, searched for.

    From random sets, and from around the pair where all others are zero and one is mirrored.
    """
    rng = np.random.default_rng(seed)

    def distance(flat):
        rows = flat.reshape(n + 1, 3)
        X, y = np.array([ball(row, radius) for row in rows[:, :2]]), label(rows[:, 2])
        one, other = np.arange(n), np.r_[0 : n - 1, n]
        return float(np.linalg.norm(fit(X[one], y[one]) - fit(X[other], y[other])))

    mirrored = np.zeros((n + 1, 3))
    mirrored[:, 2] = 9.0
    mirrored[n - 1, 0], mirrored[n, 0] = length, -length
    starts = [rng.normal(size=3 * (n + 1)) * radius, mirrored.ravel()]
    options = {"maxiter": 3, "maxfev": 600}
    return max(
        -float(minimize(lambda flat: -distance(flat), start, method="Powell", options=options).fun)
        for start in starts
    )


def test_the_golden_pair_has_its_bounds():
    # N(1, 1) against N(0, 1): ρ_KL = 1, advantage .383 and success .691, which the theorem as
    # printed would bound by .5.
    rho = jeffreys(1, 1, 0, 1)
    assert rho == 1
    assert advantage_bound(rho) == 0.5
    assert success_bound(advantage_bound(rho)) == 0.75
    assert success_bound(total_variation(1, 1, 0, 1)) == pytest.approx(0.691462461274013)
    assert mutual_information(1, 1, 0, 1) <= mutual_information_bound(rho) == 0.25
    assert mutual_information_bound(rho, 0.1) == pytest.approx(0.09)


def test_bounds_are_never_more_than_everything():
    assert advantage_bound(9.0) == 1
    assert success_bound(advantage_bound(9.0)) == 1
    assert mutual_information_bound(100.0, 0.3) == pytest.approx(entr(0.3) + entr(0.7))
    np.testing.assert_allclose(advantage_bound([0.0, 0.04, math.inf]), [0, 0.1, 1])


@given(st.floats(0.01, 0.99), st.integers(0, 2**32))
def test_no_rule_beats_the_success_bound_at_any_prior(prior, seed):
    rng = np.random.default_rng(seed)
    one, zero = rng.dirichlet(np.full(4, 0.5), size=2)
    variation = np.abs(one - zero).sum() / 2
    best = np.maximum(prior * one, (1 - prior) * zero).sum()
    assert best <= success_bound(min(variation, 1.0), prior) + 1e-12


def test_the_success_bound_is_reached_by_erasure():
    # Seen or not seen: the total variation is the share seen, and nothing else helps.
    prior, share = 0.2, 0.6
    assert success_bound(share, prior) == pytest.approx((1 - prior) + prior * share)
    assert success_bound(share, 1 - prior) == pytest.approx((1 - prior) + prior * share)


@given(st.floats(0, 0.5))
def test_fano_is_reached_by_a_noisy_bit(error):
    information = math.log(2) - float(entr(error) + entr(1 - error))
    found = advantage_bound_of_information(max(information, 0.0))
    # Near an error of ½ the information is flat: it determines the error to its root only.
    assert found == pytest.approx(1 - 2 * error, abs=3e-8)


def test_fano_takes_many_and_more_than_there_is():
    np.testing.assert_allclose(advantage_bound_of_information([0.0, math.log(2), 5.0]), [0, 1, 1])


def test_the_large_sample_law_is_a_leverage():
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(200, 3)) * [1e-6, 1.0, 1e6]
    found = large_sample_leakage(gradients, 50)
    middle = gradients.T @ gradients / 200
    expected = np.einsum("ip,pq,iq->i", gradients, np.linalg.inv(middle), gradients)
    np.testing.assert_allclose(found, expected / (50 * 0.75), rtol=1e-4)
    assert found.mean() == pytest.approx(3 / (50 * 0.75), rel=1e-12)


def test_the_large_sample_law_is_what_the_mean_of_many_values_leaks():
    # The mean of n of N numbers, with and without record i, by the moments of sampling.
    rng = np.random.default_rng(1)
    total, n = 4000, 2000
    values = rng.exponential(size=total)
    law = large_sample_leakage((values - values.mean())[:, None], n)
    for record in (0, 17, 4):
        rest = np.delete(values, record)
        spread = rest.var() * (total - 1) / (total - 2)  # per value drawn without replacement

        def variance(k, spread=spread):
            return k * (1 - k / (total - 1)) * spread / n**2

        mean1 = ((n - 1) * rest.mean() + values[record]) / n
        rho = jeffreys(mean1, variance(n - 1), rest.mean(), variance(n))
        assert law[record] == pytest.approx(rho, rel=0.02, abs=1e-6)


@pytest.mark.parametrize(
    ("gradients", "n", "message"),
    [
        (np.ones(3), 1, r"got shape \(3,\)"),
        (np.full((3, 1), np.nan), 1, "finite"),
        (np.ones((5, 1)), 5, "from 1 to 4"),
        (np.ones((5, 1)), 0, "from 1 to 4"),
        (np.ones((5, 2)), 2, "do not span all 2 parameters"),
        (np.c_[np.arange(5), np.zeros(5)], 2, "do not span all 2 parameters"),
        (np.eye(3)[:2], 1, "of 2 records do not span all 3 parameters"),
    ],
)
def test_gradients_that_give_no_law_are_refused(gradients, n, message):
    with pytest.raises(InputError, match=message):
        large_sample_leakage(gradients, n)


@pytest.mark.parametrize("weights", [0.1, 3.0])
@pytest.mark.parametrize("family", ["ridge", "logistic"])
def test_the_gradient_sensitivity_is_exact(family, weights):
    radius, labels, rng = 1.7, 0.8, np.random.default_rng(0)
    x, theta = rng.normal(size=(2, 20_000, 2))
    x = np.array([ball(3 * one, radius) for one in x])
    theta = np.array([ball(9 * one, weights) for one in theta])
    margin = (x * theta).sum(axis=1)
    y = np.where(rng.random(len(x)) < 0.5, -1, 1) * (labels if family == "ridge" else 1)
    slope = 2 * (margin - y) if family == "ridge" else expit(-y * margin)
    found = np.abs(slope) * np.linalg.norm(x, axis=1)
    exact = gradient_sensitivity(family, radius, weights=weights, labels=labels)
    assert 0.99 * exact < found.max() <= exact * (1 + 1e-12)


def test_the_gradient_sensitivity_over_all_parameters():
    assert gradient_sensitivity("logistic", 2.5) == 2.5
    assert gradient_sensitivity("ridge", 2.5) == math.inf
    with pytest.raises(InputError, match="'ridge' or 'logistic', got 'forest'"):
        gradient_sensitivity("forest", 1.0)


@pytest.mark.parametrize("l2", [0.02, 0.3, 5.0])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_no_two_ridge_fits_are_further_apart(n, l2):
    radius, labels = 1.3, 0.7
    bound = ridge_sensitivity(n, l2, radius, labels)
    length = min(radius, math.sqrt(n * l2))
    found = worst_pair(
        lambda X, y: ridge(X, y, l2),
        n, length, radius, lambda raw: np.clip(raw, -labels, labels), seed=n,
    )  # fmt: skip
    assert bound.attained * (1 - 1e-9) <= found <= bound.value * (1 + 1e-9)
    assert bound.exact is (n == 1)


@pytest.mark.parametrize("l2", [0.02, 0.3, 5.0])
@pytest.mark.parametrize("n", [2, 3, 50])
def test_the_bound_of_ridge_fits_is_made_of_the_largest_of_each(n, l2):
    # The others' solution is longest where all n − 1 of them are the same record, and a record
    # moves it the most where the others have no part in its direction.
    radius, labels = 1.3, 0.7
    x = np.linspace(1e-6, radius, 200_001)
    others, everyone = ((k * x * labels / (k * x**2 + n * l2)).max() for k in (n - 1, n))
    moved = (x / (x**2 + n * l2)).max() * (labels + radius * others)
    expected = 2 * min(moved, everyone)
    assert ridge_sensitivity(n, l2, radius, labels).value == pytest.approx(expected, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("l2", [0.05, 5.0])
@pytest.mark.parametrize("n", [1, 3])
def test_no_two_logistic_fits_are_further_apart(n, l2):
    bound = logistic_sensitivity(n, l2, 1.3)
    length = min(1.3, BEST_MARGIN / (bound.attained / 2))
    found = worst_pair(
        lambda X, y: logistic(X, y, l2),
        n, length, 1.3, lambda raw: np.where(raw > 0, 1.0, -1.0), seed=n,
    )  # fmt: skip
    assert bound.attained * (1 - 1e-9) <= found <= bound.value * (1 + 1e-9)


@pytest.mark.parametrize("l2", [0.003, 0.1, 1.0, 50.0])
@pytest.mark.parametrize("n", [1, 5, 40])
def test_the_attained_distances_are_attained(n, l2):
    radius, labels = 2.0, 0.5
    bound = ridge_sensitivity(n, l2, radius, labels)
    X = np.zeros((n, 2))
    X[0, 0] = min(radius, math.sqrt(n * l2))
    y = np.full(n, labels)
    moved = np.linalg.norm(ridge(X, y, l2) - ridge(-X, y, l2))
    assert bound.attained == pytest.approx(moved, rel=1e-10)
    assert bound.attained <= bound.value

    bound = logistic_sensitivity(n, l2, radius)
    X[0, 0] = min(radius, BEST_MARGIN / (bound.attained / 2))
    moved = np.linalg.norm(logistic(X, np.ones(n), l2) - logistic(-X, np.ones(n), l2))
    assert bound.attained == pytest.approx(moved, rel=1e-9)
    assert bound.attained <= bound.value
    assert bound.exact is (n == 1)


def test_bounds_tighten_as_they_should():
    assert ridge_sensitivity(100, 0.1, 1, 1).value > ridge_sensitivity(200, 0.1, 1, 1).value
    assert logistic_sensitivity(10, 0.1, 1).value == pytest.approx(
        10 * logistic_sensitivity(100, 0.1, 1).value
    )
    # Where the penalty rules, both are known to a few percent.
    strong = logistic_sensitivity(10, 100.0, 1.0)
    assert strong.value == pytest.approx(strong.attained, rel=0.01)
    assert strong.to_dict() == {
        "value": strong.value, "attained": strong.attained, "exact": False,
    }  # fmt: skip


def test_the_largest_logistic_solution_is_that_of_equal_records():
    for l2, radius in ((0.01, 5.0), (0.5, 1.0)):
        largest = logistic_sensitivity(1, l2, radius).value / 2
        lengths = np.linspace(0.01, radius, 80)
        norms = [abs(logistic(np.array([[u]]), np.ones(1), l2)[0]) for u in lengths]
        assert max(norms) == pytest.approx(largest, rel=1e-3)
        assert max(norms) <= largest * (1 + 1e-9)


def test_the_empirical_sensitivity_is_the_largest_distance():
    one, other = np.zeros((3, 2)), np.array([[0, 0], [3, 4], [1, 1]])
    assert empirical_sensitivity(one, other) == 5
    for bad in (np.zeros((2, 2)), np.zeros(3)):
        with pytest.raises(InputError, match="of one shape"):
            empirical_sensitivity(one, bad)
    with pytest.raises(InputError, match="of one shape"):
        empirical_sensitivity(np.zeros((0, 2)), np.zeros((0, 2)))


@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_leakage_is_0_or_more(bad):
    for bound in (advantage_bound, mutual_information_bound, advantage_bound_of_information):
        with pytest.raises(InputError, match="0 or more nats"):
            bound([0.1, bad])


def test_other_arguments_are_checked():
    for prior in (0, 1, math.nan):
        with pytest.raises(InputError, match="prior"):
            mutual_information_bound(1.0, prior)
        with pytest.raises(InputError, match="prior"):
            success_bound(0.5, prior)
    for advantage in (-0.1, 1.1, math.nan):
        with pytest.raises(InputError, match="from 0 to 1"):
            success_bound(advantage)
    with pytest.raises(InputError, match="whole number of at least 1"):
        ridge_sensitivity(0, 1, 1, 1)
    for bad in (0.0, math.inf, math.nan):
        with pytest.raises(InputError, match="l2 must be a finite number above 0"):
            logistic_sensitivity(1, bad, 1)
        with pytest.raises(InputError, match="radius must be a finite number above 0"):
            ridge_sensitivity(1, 1, bad, 1)


@pytest.mark.parametrize(
    ("bound", "most"), [(advantage_bound, 6.0), (advantage_bound_of_information, math.log(2))]
)
def test_what_the_average_allows_is_at_least_the_average_of_what_each_record_allows(bound, most):
    # Both are concave, so that Jensen's inequality makes the bound of the mean a bound on the mean.
    grid = np.linspace(0, most, 201)
    allowed = bound(grid)
    assert (np.diff(allowed) >= 0).all()
    assert (np.diff(allowed, 2) <= 1e-12).all()
    for seed in range(20):
        leakage = np.random.default_rng(seed).beta(0.3, 1.0, size=50) * most
        assert bound(leakage.mean()) >= bound(leakage).mean()
