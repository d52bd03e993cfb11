from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binom, norm, t

from leakscope.errors import InputError
from leakscope.metrics.intervals import (
    Interval,
    advantage_p_value,
    auc_interval,
    binomial,
    fisher_p_value,
    holm,
    newcombe,
    quantile_of,
    ratio_ends,
    tango_ends,
    wilson,
    wilson_ends,
)

rates = st.floats(0.001, 0.999)
sizes = st.floats(2, 1e5)


def test_json_holds_no_number_that_is_not_finite():
    assert Interval(0.5, math.nan, math.inf).to_dict() == {"value": 0.5, "low": None, "high": None}


@pytest.mark.parametrize("confidence", [0, 1, 1.5, math.nan])
def test_confidence_outside_0_and_1_is_refused(confidence):
    with pytest.raises(InputError, match="confidence"):
        quantile_of(confidence)


# Newcombe 1998a, table I, method 3; 1998b, table II, method 10.
@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)],
)
def test_wilson_gives_the_published_ends(successes, n, low, high):
    interval = wilson(successes, n)
    assert interval.value == successes / n
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("h1", "n1", "h0", "n0", "low", "high"),
    [
        (56, 70, 48, 80, 0.0524, 0.3339),
        (9, 10, 3, 10, 0.1705, 0.8090),
        (10, 10, 0, 10, 0.6075, 1.0),
        (5, 56, 0, 29, -0.0381, 0.1926),
    ],
)
def test_newcombe_gives_the_published_ends(h1, n1, h0, n0, low, high):
    interval = newcombe(h1 / n1, n1, h0 / n0, n0)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)


@given(rates, sizes, st.floats(0.5, 0.999))
def test_wilson_ends_are_the_rates_the_estimate_is_z_deviations_from(rate, n, confidence):
    interval = wilson(rate * n, n, confidence)
    z = norm.ppf((1 + confidence) / 2)
    for end in (interval.low, interval.high):
        assert abs(rate - end) == pytest.approx(z * math.sqrt(end * (1 - end) / n), abs=1e-9)


def test_wilson_touches_0_and_1_exactly_and_takes_fractional_sizes():
    assert wilson(0, 7.5).low == 0.0
    assert wilson(7.5, 7.5).high == 1.0
    assert wilson(1, 3).high < wilson(0.5, 1.5).high


def test_rounding_pushes_no_end_of_wilsons_beyond_0_or_1():
    for n in range(1, 200):
        for tiny in (1e-17, 1e-16):
            least, most = wilson(tiny * n, n), wilson((1 - tiny) * n, n)
            assert 0 <= least.low <= least.value
            assert most.value <= most.high <= 1


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (-1, 5), (6, 5), (math.nan, 5)])
def test_wilson_refuses_impossible_counts(successes, n):
    with pytest.raises(InputError, match="successes"):
        wilson(successes, n)


@pytest.mark.parametrize("numbers", [(1.2, 5, 0.1, 5), (0.2, 0, 0.1, 5), (0.2, 5, math.nan, 5)])
def test_newcombe_refuses_what_is_no_rate(numbers):
    with pytest.raises(InputError, match="two rates"):
        newcombe(*numbers)


@given(rates, sizes, rates, sizes)
def test_newcombe_mirrors_when_the_sides_are_swapped(p1, n1, p0, n0):
    one, other = newcombe(p1, n1, p0, n0), newcombe(p0, n0, p1, n1)
    assert one.low == pytest.approx(-other.high, abs=1e-12)
    assert -1 <= one.low <= one.value <= one.high <= 1


@given(rates, sizes, rates, sizes)
def test_the_interval_at_the_p_value_ends_at_0(p1, n1, p0, n0):
    p = advantage_p_value(p1, n1, p0, n0)
    if 1e-9 < p < 0.4999:
        assert newcombe(p1, n1, p0, n0, 1 - 2 * p).low == pytest.approx(0, abs=1e-6)
    assert (p < 0.5) == (p1 > p0) or abs(p1 - p0) < 1e-6
    assert p + advantage_p_value(p0, n0, p1, n1) == pytest.approx(1, abs=1e-9)


@given(rates, sizes, rates, sizes, st.floats(0.01, 0.99))
def test_the_p_value_decides_as_the_interval_does(p1, n1, p0, n0, confidence):
    p, low = advantage_p_value(p1, n1, p0, n0), newcombe(p1, n1, p0, n0, confidence).low
    if abs(low) > 1e-9:
        assert (p < (1 - confidence) / 2) == (low > 0)


def test_the_p_value_of_no_difference_is_a_half_and_of_separated_sides_tiny():
    assert advantage_p_value(0.3, 50, 0.3, 20) == 0.5
    assert 0 <= advantage_p_value(1.0, 1e5, 0.0, 1e5) < 1e-300
    assert advantage_p_value(0.0, 100, 1.0, 100) == pytest.approx(1)


@given(rates, sizes, rates, sizes)
def test_ratio_ends_are_where_the_interval_of_the_difference_touches_0(p1, n1, p0, n0):
    z = 1.96
    low, high = ratio_ends(p1, n1, p0, n0, z)
    assert low <= p1 / p0 <= high
    low1, high1 = wilson_ends(p1, n1, z)
    low0, high0 = wilson_ends(p0, n0, z)
    reach = math.hypot(p1 - low1, low * (high0 - p0))
    assert p1 - low * p0 == pytest.approx(reach, rel=1e-5, abs=1e-9)
    reach = math.hypot(high1 - p1, high * (p0 - low0))
    assert high * p0 - p1 == pytest.approx(reach, rel=1e-5, abs=1e-9)


def test_ratio_ends_where_a_side_has_no_hits():
    low, high = ratio_ends(0.4, 50, 0.0, 50, 1.96)
    assert 1 < low < 10
    assert high == math.inf
    low, high = ratio_ends(0.0, 50, 0.4, 50, 1.96)
    assert low == 0
    assert 0.1 < high < 1
    assert ratio_ends(0.0, 50, 0.0, 50, 1.96) == (0.0, math.inf)


def test_ratio_ends_cover_the_ratio():
    rng = np.random.default_rng(0)
    p1, p0, n1, n0, repetitions = 0.3, 0.1, 120, 200, 4000
    held = 0
    for h1, h0 in zip(
        rng.binomial(n1, p1, repetitions), rng.binomial(n0, p0, repetitions), strict=True
    ):
        low, high = ratio_ends(h1 / n1, n1, h0 / n0, n0, 1.96)
        held += low <= p1 / p0 <= high
    assert 0.93 <= held / repetitions <= 0.97


def test_auc_interval_is_symmetric_on_the_logit_scale():
    interval = auc_interval(0.8, 0.03**2, 100, 100)
    width = 1.959964 * 0.03 / (0.8 * 0.2)
    ends = [math.log(end / (1 - end)) - math.log(4) for end in (interval.low, interval.high)]
    assert ends == pytest.approx([-width, width], abs=1e-6)


def test_few_degrees_of_freedom_widen_the_auc_interval_as_student_says():
    few, many = (auc_interval(0.5, 0.01, 9, 9, freedom) for freedom in (4, math.inf))
    widths = [math.log(one.high / (1 - one.high)) for one in (few, many)]
    assert widths[0] / widths[1] == pytest.approx(t.ppf(0.975, 4) / norm.ppf(0.975))


@pytest.mark.parametrize("auc", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("members", "nonmembers"), [(1, 1), (0.4, 0.7), (20, 30), (5e4, 5e4)])
def test_without_variance_the_sizes_give_the_auc_interval(auc, members, nonmembers):
    interval = auc_interval(auc, 0.0, members, nonmembers)
    mirrored = auc_interval(1 - auc, 0.0, members, nonmembers)
    assert interval.low == pytest.approx(1 - mirrored.high, abs=1e-9)
    assert 0 <= interval.low <= auc <= interval.high <= 1
    assert interval.low < interval.high
    more = auc_interval(auc, 0.0, 10 * members, 10 * nonmembers)
    assert more.high - more.low < interval.high - interval.low


def test_the_interval_from_sizes_solves_newcombes_equation():
    interval = auc_interval(1.0, 0.0, 20, 30)
    area = interval.low
    spread = 1 + 24 * ((1 - area) / (2 - area) + area / (1 + area))
    assert (1 - area) ** 2 == pytest.approx(1.959964**2 * area * (1 - area) * spread / 600)
    assert interval.high == 1.0


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values):
    adjusted = holm(p_values)
    for level in (0.001, 0.025, 0.05, 0.3):
        rejected = set()
        for step, index in enumerate(np.argsort(p_values, kind="stable")):
            if p_values[index] * (len(p_values) - step) > level:
                break
            rejected.add(int(index))
        assert {index for index, p in enumerate(adjusted) if p <= level} == rejected


def test_holm_by_hand_and_without_what_was_no_test():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    adjusted = holm([math.nan, 0.6, 0.02])
    assert math.isnan(adjusted[0])
    assert adjusted[1:] == pytest.approx([0.6, 0.04])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@pytest.mark.parametrize(("n", "chance"), [(1, 0.5), (171, 0.001), (50_000, 0.73)])
def test_binomial_probabilities_are_those_of_scipy(n, chance):
    counts = np.unique(np.clip(np.arange(-300, 300) + int(n * chance), 0, n))
    assert binomial(counts, n, chance) == pytest.approx(binom.pmf(counts, n, chance), rel=1e-8)


@pytest.mark.parametrize(
    "table", [(3, 10, 1, 12), (10, 10, 0, 10), (0, 5, 5, 5), (40, 50, 900, 1000), (0, 4, 0, 9)]
)
def test_fisher_agrees_with_scipy(table):
    from scipy.stats import fisher_exact

    hits1, n1, hits0, n0 = table
    expected = fisher_exact([[hits1, n1 - hits1], [hits0, n0 - hits0]], alternative="greater")
    assert fisher_p_value(*table) == pytest.approx(expected.pvalue, rel=1e-9)


@pytest.mark.parametrize(
    ("b", "c", "n", "low", "high"),
    [
        (12, 2, 50, 0.0611, 0.3447),
        (1, 0, 43, -0.0607, 0.1206),
        (0, 0, 43, -0.0820, 0.0820),
        (53, 0, 54, 0.8499, 0.9967),
        (54, 0, 54, 0.8672, 1.0),
    ],
)
def test_tangos_interval_of_paired_rates(b, c, n, low, high):
    """Against the score test itself: an end is where its statistic equals the quantile."""
    z = norm.ppf(0.975)
    assert tango_ends(b, c, n, z) == pytest.approx((low, high), abs=5e-5)
    assert tango_ends(c, b, n, z) == pytest.approx((-high, -low), abs=5e-5)

    def likelihood(q, delta):
        cells = ((b, q + delta), (c, q), (n - b - c, 1 - 2 * q - delta))
        return -sum(count * math.log(share) for count, share in cells if count)

    for end in tango_ends(b, c, n, z):
        if abs(end) < 1:
            span = (max(0.0, -end), (1 - end) / 2)
            q = minimize_scalar(
                likelihood, bounds=span, args=(end,), method="bounded", options={"xatol": 1e-10}
            ).x
            spread = math.sqrt(n * (2 * q + end * (1 - end)))
            assert abs(b - c - n * end) / spread == pytest.approx(z, abs=2e-3)
