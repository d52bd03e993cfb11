from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import entr, ndtr
from scipy.stats import multivariate_normal, norm

from leakscope.errors import InputError
from leakscope.metrics import likelihood_ratio
from leakscope.metrics.gaussian import gaussian_kl, jeffreys
from leakscope.metrics.likelihood_ratio import (
    mutual_information,
    total_variation,
    total_variation_integral,
)


def random_pair(seed):
    """Two Gaussians of 1 to 5 dimensions, from nearly equal to far apart."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 6))
    size = 10 ** rng.uniform(-3, 0.7)
    root = rng.normal(size=(p, 2 * p))
    cov0 = root @ root.T / (2 * p)
    lower = np.linalg.cholesky(cov0)
    tilt = np.eye(p) + size * rng.normal(size=(p, p)) / p
    mean0 = rng.normal(size=p)
    return mean0 + size * lower @ rng.normal(size=p), lower @ tilt @ tilt.T @ lower.T, mean0, cov0


pairs = st.integers(0, 2**32).map(random_pair)

# Shift and variance of the first against N(0, 1): wider, narrower, equal, far, nearly equal.
ONE_DIMENSION = [
    (1.0, 1.0), (0.1, 1.1), (0.5, 0.3), (0.0, 4.0), (3.0, 2.0), (-2.0, 0.01), (5.0, 1.0),
    (0.3, 1 + 1e-7), (1e-3, 1.0), (1e-6, 1 + 1e-9), (0.0, 1 - 1e-5), (0.0, 100.0),
]  # fmt: skip


def entropy(prior):
    return float(entr(prior) + entr(1 - prior))


def information_by_quadrature(shift, variance, prior):
    one, zero = norm(shift, math.sqrt(variance)), norm()

    def integrand(x):
        logs = math.log(prior) + one.logpdf(x), math.log1p(-prior) + zero.logpdf(x)
        both = np.logaddexp(*logs)
        return np.exp(both) * sum(entr(np.exp(log - both)) for log in logs)

    left = quad(integrand, -40, 40, points=[0, shift], limit=400, epsabs=1e-13, epsrel=1e-12)[0]
    return entropy(prior) - left


def test_golden_values():
    assert mutual_information(1, 1, 0, 1) == pytest.approx(0.111421482184736, abs=1e-12)
    assert total_variation(1, 1, 0, 1) == pytest.approx(0.382924922548026, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "variance"), ONE_DIMENSION)
def test_the_closed_form_in_one_dimension_is_half_the_integral_of_the_difference(shift, variance):
    one, zero = norm(shift, math.sqrt(variance)), norm()
    reach = 12 * max(1, math.sqrt(variance)) + abs(shift)
    knots = np.concatenate([np.linspace(-reach, reach, 60), shift + np.linspace(-1, 1, 21)])
    knots = np.unique(knots)
    expected = sum(
        quad(lambda x: abs(one.pdf(x) - zero.pdf(x)) / 2, a, b, epsabs=1e-13, limit=200)[0]
        for a, b in pairwise(knots)
    )
    assert total_variation(shift, variance, 0, 1) == pytest.approx(expected, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(("shift", "variance"), ONE_DIMENSION)
@pytest.mark.parametrize("extra", [1, 3])
def test_dimensions_that_tell_nothing_change_nothing(shift, variance, extra):
    # The integral over the likelihood ratio against the closed form: two unrelated ways.
    mean = np.r_[shift, np.zeros(extra)]
    cov = np.diag(np.r_[variance, np.ones(extra)])
    found = total_variation_integral(mean, cov, np.zeros(extra + 1), np.eye(extra + 1))
    expected = total_variation(shift, variance, 0, 1)
    assert found.value == pytest.approx(expected, rel=1e-9, abs=1e-15)
    assert abs(found.value - expected) <= found.error <= 1e-11
    # The same, turned and stretched.
    rng = np.random.default_rng(extra)
    turn = np.linalg.qr(rng.normal(size=cov.shape))[0] * 10 ** rng.uniform(-2, 2, extra + 1)
    turned = total_variation(turn @ mean, turn @ cov @ turn.T, 0 * mean, turn @ turn.T)
    assert turned == pytest.approx(expected, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("distance", [1e-6, 0.01, 0.5, 2.0, 12.0])
def test_equal_covariances_have_a_closed_form_in_any_dimension(distance):
    shift = distance * np.array([0.6, 0.0, 0.8])
    expected = 2 * ndtr(distance / 2) - 1
    found = total_variation(shift, np.eye(3), np.zeros(3), np.eye(3))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    same = mutual_information(distance, 1, 0, 1)
    assert mutual_information(shift, np.eye(3), np.zeros(3), np.eye(3)) == pytest.approx(
        same, rel=1e-9, abs=1e-15
    )


@pytest.mark.parametrize("seed", range(4))
def test_both_are_what_draws_show(seed):
    rng = np.random.default_rng(seed)
    p = seed + 2
    pair = (
        0.5 * rng.normal(size=p),
        np.diag(np.exp(0.6 * rng.normal(size=p))),
        np.zeros(p),
        np.eye(p),
    )
    one, zero = multivariate_normal(*pair[:2]), multivariate_normal(*pair[2:])
    draws = 200_000
    ratios = [
        one.logpdf(x) - zero.logpdf(x)
        for x in (
            rng.multivariate_normal(*pair[:2], draws),
            rng.multivariate_normal(*pair[2:], draws),
        )
    ]
    advantage = (ratios[0] > 0).mean() - (ratios[1] > 0).mean()
    # Six standard errors: one false alarm in five hundred million.
    assert total_variation(*pair) == pytest.approx(advantage, abs=6 * math.sqrt(0.5 / draws))
    for prior in (0.5, 0.1):
        odds = math.log(prior / (1 - prior))
        losses = np.logaddexp(0, -ratios[0] - odds), np.logaddexp(0, ratios[1] + odds)
        left = prior * losses[0].mean() + (1 - prior) * losses[1].mean()
        error = math.hypot(prior * losses[0].std(), (1 - prior) * losses[1].std())
        assert mutual_information(*pair, prior) == pytest.approx(
            entropy(prior) - left, abs=6 * error / math.sqrt(draws)
        )


@pytest.mark.parametrize(("shift", "variance"), [(0.1, 1.1), (3.0, 2.0), (0.5, 0.3), (0.0, 4.0)])
@pytest.mark.parametrize("prior", [0.5, 0.9, 0.1, 1e-3])
def test_information_is_the_integral_it_is_defined_by(shift, variance, prior):
    expected = information_by_quadrature(shift, variance, prior)
    assert mutual_information(shift, variance, 0, 1, prior) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("prior", [1e-12, 1e-6, 0.5, 1 - 1e-6])
def test_tiny_leakage_keeps_its_digits_at_any_prior(prior):
    # To first order ρ_MI is half the prior's variance times ρ_KL, and ρ_KL is shift² here.
    expected = prior * (1 - prior) * 1e-8 / 2
    assert mutual_information(1e-4, 1, 0, 1, prior) == pytest.approx(expected, rel=1e-5)


@given(pairs, st.floats(0.01, 0.99))
def test_every_bound_of_the_paper_holds(pair, prior):
    rho, variation = jeffreys(*pair), total_variation(*pair)
    information = mutual_information(*pair, prior)
    tiny = 1e-12
    assert 0 <= variation <= 1
    assert 0 <= information <= prior * (1 - prior) * rho + tiny
    assert information <= min(rho / 4, entropy(prior)) + tiny
    assert variation <= math.sqrt(rho) / 2 + tiny
    # Pinsker either way, and Bretagnolle & Huber, which holds beyond it.
    for one, other in ((pair[:2], pair[2:]), (pair[2:], pair[:2])):
        divergence = gaussian_kl(*one, *other)
        assert variation <= math.sqrt(divergence / 2) + tiny
        assert variation <= math.sqrt(-math.expm1(-divergence)) + tiny
    # Fano, and its converse (the entropy is at least twice the error), at equal priors.
    error = (1 - variation) / 2
    half = mutual_information(*pair)
    assert math.log(2) - entropy(error) - tiny <= half <= math.log(2) * variation + tiny


@given(pairs)
def test_neither_knows_which_gaussian_is_the_first(pair):
    back = (*pair[2:], *pair[:2])
    assert total_variation(*pair) == pytest.approx(total_variation(*back), rel=1e-7, abs=1e-10)
    assert mutual_information(*pair, 0.2) == pytest.approx(
        mutual_information(*back, 0.8), rel=1e-7, abs=1e-12
    )


@given(pairs)
def test_projections_never_tell_more(pair):
    for keep in range(1, len(pair[0])):
        part = [one[:keep] if one.ndim == 1 else one[:keep, :keep] for one in pair]
        assert total_variation(*part) <= total_variation(*pair) + 1e-10
        assert mutual_information(*part, 0.3) <= mutual_information(*pair, 0.3) + 1e-12


@pytest.mark.parametrize("seed", range(30))
def test_extreme_pairs_are_integrated_to_the_last_digits(seed):
    rng = np.random.default_rng(seed)
    size = 10 ** rng.uniform(-6, 1)
    p = int(rng.integers(2, 9))
    spread = np.exp(np.clip(size * rng.normal(size=p), -20, 20))
    shift = size * 10 ** rng.uniform(-1, 1) * rng.normal(size=p)
    found = total_variation_integral(shift, np.diag(spread), np.zeros(p), np.eye(p))
    assert found.error < 1e-11
    back = total_variation_integral(np.zeros(p), np.eye(p), shift, np.diag(spread))
    assert found.value == pytest.approx(back.value, abs=1e-10)


def test_nearly_singular_covariances_are_no_obstacle():
    scale = np.array([1e-6, 1.0, 1e6])
    cov = scale[:, None] * (0.5 * np.eye(3) + 0.5) * scale
    mean = 0.5 * scale
    plain = 0.5 * np.eye(3) + 0.5
    expected = total_variation(np.full(3, 0.5), 2 * plain, np.zeros(3), plain)
    assert total_variation(mean, 2 * cov, np.zeros(3), cov) == pytest.approx(expected, abs=1e-11)


def test_many_pairs_at_once_are_each_their_own(monkeypatch):
    monkeypatch.setattr(likelihood_ratio, "AT_ONCE", 2000)  # a pair at a time
    shifts = np.linspace(0, 2, 6).reshape(2, 3, 1) * np.ones(2)
    covs = np.eye(2) * np.linspace(0.5, 2, 6).reshape(2, 3, 1, 1)
    for measure in (total_variation, lambda *pair: mutual_information(*pair, 0.3)):
        found = measure(shifts, covs, np.zeros(2), np.eye(2))
        assert found.shape == (2, 3)
        for place in np.ndindex(2, 3):
            alone = measure(shifts[place], covs[place], np.zeros(2), np.eye(2))
            assert isinstance(alone, float)
            assert found[place] == pytest.approx(alone, abs=1e-14)
    assert total_variation(shifts[..., :1], covs[..., :1, :1], 0, 1).shape == (2, 3)


def test_equal_gaussians_tell_nothing():
    for p in (1, 3):
        pair = (np.ones(p), np.eye(p), np.ones(p), np.eye(p))
        assert total_variation(*pair) == pytest.approx(0, abs=1e-15)
        assert mutual_information(*pair) == pytest.approx(0, abs=1e-15)


def test_far_gaussians_tell_everything():
    for p in (1, 3):
        pair = (np.full(p, 100.0), np.eye(p), np.zeros(p), np.eye(p))
        assert total_variation(*pair) == pytest.approx(1, abs=1e-14)
        assert mutual_information(*pair, 0.3) == pytest.approx(entropy(0.3), abs=1e-13)


def test_an_integral_that_does_not_converge_is_refused_with_its_error(monkeypatch):
    monkeypatch.setattr(likelihood_ratio, "STEP", 4.0)
    monkeypatch.setattr(likelihood_ratio, "HALVINGS", 0)
    pair = ([1.0, 0.5], np.diag([2.0, 0.7]), [0.0, 0.0], np.eye(2))
    assert total_variation_integral(*pair).error > 1e-9
    with pytest.raises(InputError, match="known only to within"):
        total_variation(*pair)


@pytest.mark.parametrize("prior", [0, 1, -0.1, math.nan])
def test_priors_are_between_0_and_1(prior):
    with pytest.raises(InputError, match="prior"):
        mutual_information(1, 1, 0, 1, prior)
