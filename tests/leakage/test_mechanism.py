from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

from leakscope.errors import InputError
from leakscope.leakage.mechanism import (
    classical_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)

epsilons = st.floats(-6, 3).map(lambda power: 10**power)
deltas = st.floats(-300, -0.1).map(lambda power: 10**power)
sensitivities = st.floats(-3, 3).map(lambda power: 10**power)


def test_golden_values():
    assert gaussian_sigma(1, 1e-5, 1) == pytest.approx(3.73063163481594, abs=1e-12)
    assert gaussian_sigma(1 - 1e-15, 1e-5, 1, method="classical") == pytest.approx(
        4.84480526260539, abs=1e-12
    )


@pytest.mark.parametrize(("sigma", "epsilon"), [(1.0, 1.0), (0.3, 5.0), (4.0, 0.2), (2.0, 0.0)])
def test_delta_is_what_exceeds_e_to_the_epsilon(sigma, epsilon):
    # The definition: the mass of N(1, σ²) above e^ε times that of N(0, σ²).
    expected = quad(
        lambda x: max(norm.pdf(x, 1, sigma) - math.exp(epsilon) * norm.pdf(x, 0, sigma), 0),
        -10 * sigma,
        1 + 12 * sigma,
        points=[0.5 + epsilon * sigma**2, 1],
        epsabs=1e-13,
        limit=200,
    )[0]
    assert gaussian_delta(sigma, epsilon) == pytest.approx(expected, rel=1e-8)


@given(st.floats(-1, 1), st.floats(-2, 1))
def test_delta_is_the_difference_of_two_normal_tails(log_sigma, log_epsilon):
    sigma, epsilon = 10**log_sigma, 10**log_epsilon
    shift, slope = 1 / (2 * sigma), epsilon * sigma
    expected = ndtr(shift - slope) - math.exp(epsilon) * ndtr(-shift - slope)
    assert gaussian_delta(sigma, epsilon) == pytest.approx(expected, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("sigma", [1e-3, 0.09, 0.12, 0.3, 1.0, 1e3, 1e9])
def test_delta_at_epsilon_0_is_the_total_variation(sigma):
    expected = math.erf(1 / (2 * sigma) / math.sqrt(2))
    assert gaussian_delta(sigma, 0.0) == pytest.approx(expected, rel=1e-12, abs=0)


@given(epsilons, deltas, sensitivities)
def test_there_and_back(epsilon, delta, sensitivity):
    sigma = gaussian_sigma(epsilon, delta, sensitivity)
    assert math.log(gaussian_delta(sigma, epsilon, sensitivity)) == pytest.approx(
        math.log(delta), rel=1e-9, abs=1e-9
    )
    # Where δ hardly depends on ε, as at δ near the total variation, ε has fewer digits.
    again = gaussian_epsilon(sigma, delta, sensitivity)
    assert again == pytest.approx(epsilon, rel=1e-6, abs=1e-11)


@given(epsilons, deltas)
def test_noise_scales_with_the_sensitivity_and_falls_with_the_budget(epsilon, delta):
    sigma = gaussian_sigma(epsilon, delta)
    assert gaussian_sigma(epsilon, delta, 7.0) == pytest.approx(7 * sigma, rel=1e-12)
    assert gaussian_sigma(2 * epsilon, delta) <= sigma * (1 + 1e-9)
    assert gaussian_sigma(epsilon, math.sqrt(delta)) < sigma


@given(st.floats(-1, 3), st.floats(-300, -20))
def test_extreme_budgets_agree_with_logarithms_of_the_tails(log_epsilon, power):
    epsilon = 10**log_epsilon
    sigma = gaussian_sigma(epsilon, 10**power)
    high, low = (float(log_ndtr(side / (2 * sigma) - epsilon * sigma)) for side in (1, -1))
    expected = high + math.log(-math.expm1(epsilon + low - high))
    assert expected == pytest.approx(power * math.log(10), rel=1e-9)


def test_much_noise_needs_no_epsilon():
    assert gaussian_epsilon(1e6, 0.1) == 0
    assert gaussian_epsilon(1.0, 2 * ndtr(0.5) - 1 - 1e-9) > 0


@given(st.floats(1e-3, 0.999), st.floats(-10, -1))
def test_the_classical_noise_is_enough_where_it_is_proven(epsilon, power):
    sigma = gaussian_sigma(epsilon, 10**power, method="classical")
    assert gaussian_delta(sigma, epsilon) <= 10**power
    assert gaussian_sigma(epsilon, 10**power) <= sigma


@pytest.mark.parametrize("epsilon", [1, 1.5, 10])
def test_the_classical_noise_is_refused_where_it_is_not_proven(epsilon):
    with pytest.raises(InputError, match=r"below 1 only, got .*analytic"):
        gaussian_sigma(epsilon, 1e-5, method="classical")


def test_the_classical_formula_really_fails_above_8_42():
    def excess(epsilon):
        return math.log(gaussian_delta(classical_sigma(epsilon, 1e-5), epsilon) / 1e-5)

    assert brentq(excess, 1, 20) == pytest.approx(8.42, abs=0.005)
    assert all(excess(epsilon) < 0 for epsilon in np.linspace(0.1, 8.4, 50))
    assert excess(9) > 0


def test_the_largest_and_smallest_numbers_there_are():
    # μ²/2 + O(μ) is the ε of a large μ = sensitivity/σ, so that 1/√(2ε) is the σ of a large ε.
    assert gaussian_sigma(1e300, 1e-5) == pytest.approx(1 / math.sqrt(2e300), rel=1e-12)
    assert gaussian_epsilon(1e-100, 1e-5) == pytest.approx(5e199, rel=1e-12)
    assert gaussian_epsilon(1e-300, 1e-5) == math.inf
    assert gaussian_delta(1.0, 1e200) == 0
    assert gaussian_delta(1e300, 1.0, 1e-300) == 0
    assert gaussian_delta(1e-300, 1.0, 1e300) == 1
    assert gaussian_epsilon(1e300, 1e-5, 1e-300) == 0
    # As ε vanishes δ is the total variation, μ/√(2π) of a small μ.
    assert gaussian_delta(1e300, 0.0) == pytest.approx(1e-300 / math.sqrt(2 * math.pi))
    assert gaussian_sigma(5e-324, 1e-300) == pytest.approx(1e300 / math.sqrt(2 * math.pi))
    assert gaussian_sigma(5e-324, 5e-324) == math.inf
    assert classical_sigma(0.5, 5e-324) == pytest.approx(2 * math.sqrt(2 * 744.663))


@pytest.mark.parametrize("bad", [0, -0.5, -1, math.nan, math.inf, "x", None])
def test_what_must_be_positive_is(bad):
    for call in (
        lambda: gaussian_sigma(bad, 1e-5),
        lambda: gaussian_sigma(1, 1e-5, bad),
        lambda: classical_sigma(bad, 1e-5),
        lambda: classical_sigma(1, 1e-5, bad),
        lambda: gaussian_delta(bad, 1),
        lambda: gaussian_delta(1, 1, bad),
        lambda: gaussian_epsilon(bad, 1e-5),
        lambda: gaussian_epsilon(1, 1e-5, bad),
    ):
        with pytest.raises(InputError, match="a finite number above 0"):
            call()


@pytest.mark.parametrize("delta", [0, 1, -0.1, math.nan])
def test_delta_is_between_0_and_1(delta):
    for call in (gaussian_sigma, classical_sigma, gaussian_epsilon):
        with pytest.raises(InputError, match="delta must be between 0 and 1"):
            call(1, delta)


def test_other_arguments_are_checked():
    with pytest.raises(InputError, match="epsilon must be a finite number of at least 0"):
        gaussian_delta(1, -1)
    with pytest.raises(InputError, match="cannot be 'magic'; choose from: analytic, classical"):
        gaussian_sigma(1, 1e-5, method="magic")
