from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from leakscope.errors import InputError
from leakscope.metrics.gaussian import (
    diagonalize,
    gaussian_kl,
    jeffreys,
    largest_order,
    max_divergence,
    renyi_divergence,
)

MEAN1 = np.array([0.3, -0.2, 0.5])
COV1 = np.array([[1, 0.2, 0.1], [0.2, 0.8, -0.1], [0.1, -0.1, 0.5]])
MEAN0 = np.array([0, 0.1, 0.2])
COV0 = np.array([[1.5, 0.3, 0], [0.3, 1, 0.2], [0, 0.2, 0.7]])
GOLDEN = (MEAN1, COV1, MEAN0, COV0)
REVERSED = (MEAN0, COV0, MEAN1, COV1)

ALL = [gaussian_kl, jeffreys, largest_order, max_divergence]


def covariance(rng, p, spread=1.0):
    root = rng.normal(size=(p, 2 * p))
    scale = np.exp(spread * rng.normal(size=p))
    return scale[:, None] * (root @ root.T / (2 * p)) * scale


def random_pair(seed, p=None):
    """Two Gaussians, from nearly equal to far apart."""
    rng = np.random.default_rng(seed)
    p = p or int(rng.integers(1, 6))
    size = 10 ** rng.uniform(-2, 0.5)
    cov0 = covariance(rng, p)
    lower = np.linalg.cholesky(cov0)
    tilt = np.eye(p) + size * rng.normal(size=(p, p)) / p
    mean0 = rng.normal(size=p)
    return mean0 + size * lower @ rng.normal(size=p), lower @ tilt @ tilt.T @ lower.T, mean0, cov0


pairs = st.integers(0, 2**32).map(random_pair)


def by_inverse(mean1, cov1, mean0, cov0):
    """The formula as it is written, for well-behaved matrices."""
    inverse = np.linalg.inv(cov0)
    shift = mean0 - mean1
    ratio = np.linalg.det(cov0) / np.linalg.det(cov1)
    return (np.trace(inverse @ cov1) - len(shift) + shift @ inverse @ shift + np.log(ratio)) / 2


def test_golden_divergences():
    assert gaussian_kl(*GOLDEN) == pytest.approx(0.365354302527561, abs=1e-12)
    assert gaussian_kl(*REVERSED) == pytest.approx(0.422055073545914, abs=1e-12)
    assert jeffreys(*GOLDEN) == pytest.approx(0.365354302527561 + 0.422055073545914, abs=1e-12)
    assert renyi_divergence(*GOLDEN, 0.5) == pytest.approx(0.189934840743524, abs=1e-12)
    assert renyi_divergence(*GOLDEN, 2) == pytest.approx(0.763616667727827, abs=1e-12)
    assert renyi_divergence(*REVERSED, 2) == math.inf


def test_the_mean_of_ten_values_has_its_golden_leakage():
    # The mean of n = 10 from N(0, 1), one of which is fixed at 2: variance 9/100, mean 2/10.
    with_record, without = (0.2, 0.09), (0.0, 0.1)
    assert jeffreys(*with_record, *without) == pytest.approx(0.427777777777778, abs=1e-12)
    noisy = jeffreys(0.2, 0.09 + 0.25, 0.0, 0.1 + 0.25)
    assert noisy == pytest.approx(0.116386554621849, abs=1e-12)


def test_the_mean_of_three_of_six_numbers_has_its_golden_leakage():
    universe = [1, 2, 4, 8, 16, 32]
    rho = []
    for record in universe:
        means = {
            side: np.array([np.mean(s) for s in combinations(universe, 3) if (record in s) is side])
            for side in (True, False)
        }
        moments = [(means[side].mean(), means[side].var()) for side in (True, False)]
        rho.append(jeffreys(*moments[0], *moments[1]))
    assert np.mean(rho) == pytest.approx(2.79546013747111, abs=1e-12)


@given(pairs)
def test_kl_is_the_formula_as_written(pair):
    assert gaussian_kl(*pair) == pytest.approx(by_inverse(*pair), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("order", [0.3, 0.5, 0.999, 1.0, 1.0 + 1e-10, 1.7])
def test_renyi_is_the_integral_it_is_defined_by(order):
    one, zero = norm(0.4, 0.9), norm(-0.1, 1.3)
    if abs(order - 1) < 1e-6:
        expected = quad(lambda x: one.pdf(x) * (one.logpdf(x) - zero.logpdf(x)), -12, 12)[0]
    else:
        integral = quad(
            lambda x: np.exp(order * one.logpdf(x) + (1 - order) * zero.logpdf(x)), -20, 20
        )[0]
        expected = math.log(integral) / (order - 1)
    assert renyi_divergence(0.4, 0.81, -0.1, 1.69, order) == pytest.approx(expected, rel=1e-8)


def test_max_divergence_is_the_largest_log_ratio():
    rng = np.random.default_rng(0)
    cov1 = COV0 / 2
    found = max_divergence(MEAN1, cov1, MEAN0, COV0)
    where = rng.multivariate_normal(MEAN1, COV0 * 2, size=100_000)
    ratio = multivariate_normal(MEAN1, cov1).logpdf(where) - multivariate_normal(
        MEAN0, COV0
    ).logpdf(where)
    assert ratio.max() <= found
    shift = MEAN1 - MEAN0
    peak = MEAN1 + cov1 @ np.linalg.solve(COV0 - cov1, shift)
    at_peak = multivariate_normal(MEAN1, cov1).logpdf(peak) - multivariate_normal(
        MEAN0, COV0
    ).logpdf(peak)
    assert found == pytest.approx(at_peak, abs=1e-10)


def test_max_divergence_is_infinite_where_the_first_is_wider_or_only_moved():
    assert max_divergence(*REVERSED) == math.inf
    assert max_divergence(1, 1, 0, 1) == math.inf
    assert max_divergence(0, 1, 0, 0.5) == math.inf
    # The same in one direction, narrower in the other: nothing is infinite.
    assert max_divergence([0, 0], np.diag([0.5, 1]), [0, 0], np.eye(2)) == pytest.approx(
        math.log(2) / 2
    )
    assert max_divergence(*GOLDEN[:2], *GOLDEN[:2]) == 0


def test_the_rounding_of_a_long_shift_makes_no_max_divergence_infinite():
    # Moved by 10⁶ where the first is narrower, and by the rounding of that where they are the same:
    # ½ ln 2 + ½ · 10¹² / (1 − ½).
    turned, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    cov1 = turned @ np.diag([0.5, 1.0, 1.0]) @ turned.T
    found = max_divergence(1e6 * turned[:, 0], cov1, np.zeros(3), np.eye(3))
    assert found == pytest.approx(math.log(2) / 2 + 1e12, rel=1e-9)
    assert max_divergence(1e-3 * turned[:, 1], cov1, np.zeros(3), np.eye(3)) == math.inf


def test_infinite_order_is_the_max_divergence_and_large_orders_approach_it():
    pair = (MEAN1, COV0 / 2, MEAN0, COV0)
    limit = max_divergence(*pair)
    assert renyi_divergence(*pair, math.inf) == limit
    assert renyi_divergence(*pair, 1e7) == pytest.approx(limit, rel=1e-4)


@given(pairs)
def test_divergences_are_finite_below_the_largest_order_and_infinite_from_it(pair):
    order = largest_order(*pair)
    if order > 1e6:
        return
    eigenvalues = np.linalg.eigvals(np.linalg.solve(pair[3], pair[1])).real
    assert order == pytest.approx(eigenvalues.max() / (eigenvalues.max() - 1), rel=1e-6)
    assert math.isfinite(renyi_divergence(*pair, 1 + (order - 1) * (1 - 1e-9)))
    assert renyi_divergence(*pair, 1 + (order - 1) * (1 + 1e-9)) == math.inf


def test_the_largest_order_is_infinite_where_the_first_is_nowhere_wider():
    assert largest_order(MEAN1, COV0 / 2, MEAN0, COV0) == math.inf
    assert largest_order(MEAN1, COV0, MEAN0, COV0) == math.inf


@given(pairs)
def test_divergences_are_0_or_more_and_0_for_equal_gaussians(pair):
    for order in (0.5, 1, 2):
        assert renyi_divergence(*pair, order) >= 0
        assert renyi_divergence(*pair[:2], *pair[:2], order) == pytest.approx(0, abs=1e-12)
    assert gaussian_kl(*pair) >= 0
    assert gaussian_kl(*pair[:2], *pair[:2]) == pytest.approx(0, abs=1e-14)


@given(pairs)
def test_order_one_half_is_symmetric_and_every_order_has_its_mirror(pair):
    back = (*pair[2:], *pair[:2])
    assert renyi_divergence(*pair, 0.5) == pytest.approx(renyi_divergence(*back, 0.5), rel=1e-8)
    # D_{1−α}(0‖1) = (1 − α)/α · D_α(1‖0): van Erven & Harremoës 2014, proposition 2.
    mirrored = renyi_divergence(*back, 0.75) * 0.25 / 0.75
    assert renyi_divergence(*pair, 0.25) == pytest.approx(mirrored, rel=1e-7)


@given(pairs)
def test_renyi_grows_with_its_order_and_passes_kl_at_1(pair):
    orders = [0.1, 0.5, 0.9, 1.0, 1.05, 1.5, 2.0, 4.0]
    values = [float(renyi_divergence(*pair, order)) for order in orders]
    assert all(b >= a * (1 - 1e-10) for a, b in pairwise(values))
    assert values[3] == pytest.approx(gaussian_kl(*pair), rel=1e-8)
    near = renyi_divergence(*pair, 1 - 1e-9)
    assert near == pytest.approx(values[3], rel=1e-6)


@given(pairs, st.integers(0, 2**32))
def test_affine_maps_change_nothing(pair, seed):
    rng = np.random.default_rng(seed)
    p = len(pair[0])
    turn = np.eye(p) + 0.3 * rng.normal(size=(p, p)) / p
    scale = 10 ** rng.uniform(-3, 3, size=p)
    matrix, offset = scale[:, None] * turn, rng.normal(size=p)
    moved = [
        matrix @ one + offset if one.ndim == 1 else matrix @ one @ matrix.T
        for one in map(np.asarray, pair)
    ]
    moved = [one if one.ndim == 1 else (one + one.T) / 2 for one in moved]
    assert jeffreys(*moved) == pytest.approx(jeffreys(*pair), rel=1e-5)
    assert renyi_divergence(*moved, 0.5) == pytest.approx(renyi_divergence(*pair, 0.5), rel=1e-5)


@given(pairs)
def test_projections_never_tell_more(pair):
    p = len(pair[0])
    for keep in range(1, p):
        part = [one[:keep] if one.ndim == 1 else one[:keep, :keep] for one in pair]
        for order in (0.5, 1, 1.5):
            less, more = renyi_divergence(*part, order), renyi_divergence(*pair, order)
            assert less <= more * (1 + 1e-9) + 1e-12


def test_the_scale_of_a_parameter_does_not_matter():
    # Condition numbers of about 1e24 that are scale alone, 1e12 for the standard deviations.
    scale = np.array([1e-6, 1.0, 1e6])
    scaled = [one * scale if one.ndim == 1 else scale[:, None] * one * scale for one in GOLDEN]
    for divergence in (gaussian_kl, jeffreys, largest_order):
        assert divergence(*scaled) == pytest.approx(divergence(*GOLDEN), rel=1e-12)
    assert renyi_divergence(*scaled, 2) == pytest.approx(0.763616667727827, abs=1e-9)


def test_nearly_singular_covariances_keep_what_their_digits_allow():
    # Correlations of 1 − 1e-12/2: the smaller eigenvalue is 1e-12 of the larger.
    rho = 1 - 5e-13
    gap = 1 - rho  # as it is stored
    near = np.array([[1.0, rho], [rho, 1.0]])
    # Along (1, −1)/√2 the variance is exactly the gap: a shift by its root is worth ½ nat.
    shift = math.sqrt(gap) * np.array([1, -1]) / math.sqrt(2)
    assert gaussian_kl(shift, near, [0, 0], near) == pytest.approx(0.5, rel=1e-3)
    assert gaussian_kl([0, 0], 4 * near, [0, 0], near) == pytest.approx(3 - math.log(4), rel=1e-9)


def test_tiny_divergences_keep_their_digits():
    assert gaussian_kl(0, 1 + 1e-6, 0, 1) == pytest.approx(1e-12 / 4, rel=1e-5)
    assert renyi_divergence(1e-9, 1, 0, 1, 3) == pytest.approx(1.5e-18, rel=1e-12)


def test_many_pairs_at_once_are_each_their_own():
    rng = np.random.default_rng(1)
    many = [random_pair(seed, 4) for seed in range(6)]
    stacked = [
        np.stack(parts).reshape(2, 3, *np.shape(parts[0])) for parts in zip(*many, strict=True)
    ]
    for divergence in (*ALL, lambda *pair: renyi_divergence(*pair, 1.3)):
        alone = np.reshape([divergence(*pair) for pair in many], (2, 3))
        np.testing.assert_allclose(divergence(*stacked), alone, rtol=1e-9)
    # One against many.
    means = rng.normal(size=(5, 3))
    found = gaussian_kl(means, COV1, MEAN0, COV0)
    assert found.shape == (5,)
    assert found[2] == pytest.approx(gaussian_kl(means[2], COV1, MEAN0, COV0))


def test_one_pair_is_a_number_and_numbers_are_one_dimension():
    assert isinstance(gaussian_kl(*GOLDEN), float)
    assert gaussian_kl(1, 1, 0, 1) == gaussian_kl([1], [[1]], [0], [[1]]) == 0.5


def test_diagonal_coordinates_have_the_same_log_ratio():
    pair = diagonalize(*GOLDEN)
    assert np.prod(pair.spread) == pytest.approx(np.linalg.det(COV1) / np.linalg.det(COV0))
    quadratic = (MEAN1 - MEAN0) @ np.linalg.solve(COV0, MEAN1 - MEAN0)
    assert np.square(pair.shift).sum() == pytest.approx(quadratic)


@pytest.mark.parametrize("divergence", ALL)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({1: np.ones((3, 3))}, "first covariance is singular"),
        ({1: np.eye(3) * 1e-16 + 1}, "first covariance is singular"),
        ({1: np.eye(3) * 1e-15 + 1}, "first covariance is singular"),
        ({3: np.diag([1.0, 0.0, 1.0])}, "second covariance is singular"),
        ({3: np.diag([1.0, -1.0, 1.0])}, "second covariance is singular"),
        ({3: np.array([[1, 2, 0], [2, 1, 0], [0, 0, 1.0]])}, "second covariance is singular"),
        ({1: COV1 + np.triu(COV1, 1)}, "first covariance is not symmetric in row 0 and column 1"),
        ({1: np.eye(2)}, r"of one p, got .*\(3,\), \(3,\), \(2, 2\), \(3, 3\)"),
        ({0: np.zeros((2, 3)), 2: np.zeros((4, 3))}, "of one p"),
        ({1: np.ones(3)}, r"first covariance must be a square matrix.*\(3,\)"),
        ({1: np.ones((3, 2))}, r"first covariance must be a square matrix.*\(3, 2\)"),
        ({2: np.array([0, np.nan, 0])}, "second mean must be finite, got nan"),
        ({3: np.full((3, 3), np.inf)}, "second covariance must be finite, got inf"),
    ],
)
def test_what_is_no_pair_of_gaussians_is_refused(divergence, change, message):
    pair = [change.get(place, one) for place, one in enumerate(GOLDEN)]
    with pytest.raises(InputError, match=message):
        divergence(*pair)


def test_the_singular_one_of_many_is_named():
    covariances = np.stack([np.eye(2), np.ones((2, 2)), np.eye(2)])
    with pytest.raises(InputError, match="of pair 1 is singular"):
        gaussian_kl(np.zeros(2), covariances, np.zeros(2), np.eye(2))
    # Of two that have a factor, and lose all of its digits, the first.
    covariances[1:, 1, 1], covariances[1:, 0, 1], covariances[1:, 1, 0] = 1 + 4e-16, 1.0, 1.0
    np.linalg.cholesky(covariances)
    with pytest.raises(InputError, match="of pair 1 is singular"):
        gaussian_kl(np.zeros(2), covariances, np.zeros(2), np.eye(2))
    indefinite = np.stack([np.eye(2), np.eye(2), [[1, 2], [2, 1]]])
    with pytest.raises(InputError, match="of pair 2 is singular"):
        gaussian_kl(np.zeros(2), indefinite, np.zeros(2), np.eye(2))


@pytest.mark.parametrize("order", [0, -1, math.nan])
def test_orders_that_are_no_order_are_refused(order):
    with pytest.raises(InputError, match="order must be a finite number above 0"):
        renyi_divergence(*GOLDEN, order)
