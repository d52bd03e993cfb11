from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope.errors import InputError
from leakscope.metrics.intervals import newcombe
from leakscope.metrics.rates import Rates, effective_size, excess

rates = st.floats(0.01, 0.99)
sizes = st.floats(5, 1e4)


def test_rates_are_counted_on_each_side():
    called = np.array([True, True, False, True, False, False, False])
    membership = np.array([True, True, True, False, False, False, False])
    assert Rates.count(called, membership) == Rates(2 / 3, 1 / 4, 3, 4)
    assert Rates.count(called, membership, inflation=2) == Rates(2 / 3, 1 / 4, 1.5, 2)


@pytest.mark.parametrize("membership", [[True, True], [False, False]])
def test_rates_need_both_sides(membership):
    with pytest.raises(InputError, match="one side is empty"):
        Rates.count(np.array([True, False]), np.array(membership))


def test_accuracy_and_ppv_follow_from_the_rates():
    of = Rates(0.6, 0.2, 100, 200)
    advantage, accuracy = of.advantage(), of.accuracy()
    assert advantage == newcombe(0.6, 100, 0.2, 200)
    assert accuracy.value == pytest.approx(0.7)
    assert accuracy.low == pytest.approx((1 + advantage.low) / 2)
    assert accuracy.high == pytest.approx((1 + advantage.high) / 2)
    assert of.ppv(0.5).value == pytest.approx(0.75)
    assert of.ppv(0.01).value == pytest.approx(0.006 / (0.006 + 0.198))


@given(rates, sizes, rates, sizes, st.floats(0.01, 0.99))
def test_ppv_lies_in_its_interval(p1, n1, p0, n0, prior):
    ppv = Rates(p1, p0, n1, n0).ppv(prior)
    assert 0 <= ppv.low <= ppv.value <= ppv.high <= 1


def test_ppv_where_nobody_is_called_a_member():
    nobody = Rates(0, 0, 50, 50).ppv()
    assert math.isnan(nobody.value)
    assert (nobody.low, nobody.high) == (0.0, 1.0)
    assert Rates(0.5, 0, 50, 50).ppv().high == 1.0


def test_rows_of_their_own_unit_count_in_full():
    hits = np.arange(30) % 3 == 0
    assert effective_size(hits, np.arange(30)) == pytest.approx(30)
    assert effective_size(hits) == 30
    assert effective_size(hits, inflation=1.5) == 20


def test_rows_that_say_the_same_count_as_one():
    unit = np.repeat(np.arange(20), 5)
    hits = unit % 4 == 0
    # Unbiased variances of 20 and of 100 values: 20 · (19 / 20) / (99 / 100).
    assert effective_size(hits, unit) == pytest.approx(19 * 100 / 99)
    assert effective_size(hits, unit, inflation=2) == pytest.approx(19 * 50 / 99)


def test_rows_that_balance_within_units_never_count_for_more():
    assert effective_size(np.tile([True, False], 20), np.repeat(np.arange(20), 2)) == 40


@pytest.mark.parametrize("value", [True, False])
def test_without_variation_the_rows_of_a_unit_count_as_one(value):
    unit = np.array([0, 0, 0, 3, 4, 4])
    assert effective_size(np.full(6, value), unit) == pytest.approx(36 / 14)


def test_one_unit_alone_counts_as_one():
    assert effective_size(np.array([True, False, False]), np.full(3, 4)) == 1.0


def test_the_effective_size_gives_the_variance_of_a_clustered_rate():
    rng = np.random.default_rng(0)
    means, expected = [], []
    for _ in range(2000):
        unit = np.repeat(np.arange(80), rng.integers(1, 6, 80))
        person = rng.random(80) < 0.3
        hits = np.where(rng.random(len(unit)) < 0.8, person[unit], rng.random(len(unit)) < 0.3)
        means.append(hits.mean())
        expected.append(hits.mean() * (1 - hits.mean()) / effective_size(hits, unit))
    # The variance of 2000 draws is known to 3 %; ignoring the units would be off by half.
    assert np.var(means) == pytest.approx(np.mean(expected), rel=0.17)


@given(rates, rates, rates, rates, sizes, sizes)
def test_the_excess_and_its_p_value_agree(a, b, c, d, n1, n0):
    group, rest = Rates(a, b, n1, n0), Rates(c, d, n0, n1)
    interval, p = excess(group, rest)
    assert interval.value == pytest.approx((a - b) - (c - d))
    assert interval.low <= interval.value <= interval.high
    if min(abs(interval.low), abs(interval.high)) > 1e-9:
        assert (p < 0.05) == (not interval.low <= 0 <= interval.high)
    mirrored, same = excess(rest, group)
    assert (mirrored.low, mirrored.high) == pytest.approx((-interval.high, -interval.low))
    assert same == pytest.approx(p, abs=1e-9)


def test_no_excess_has_a_p_value_of_1():
    assert excess(Rates(0.4, 0.3, 50, 50), Rates(0.4, 0.3, 500, 500))[1] == 1.0


def test_the_largest_excess_has_a_p_value():
    interval, p = excess(Rates(1, 0, 1e4, 1e4), Rates(0, 1, 1e4, 1e4))
    assert interval.value == 2
    assert p < 1e-300


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n1", "n0", "rate"), [(5000, 20, 0.995), (5000, 100, 0.999), (2000, 100, 0.995), (60, 60, 0.5)]
)
def test_the_p_value_keeps_its_level_on_unequal_sides_with_rare_errors(n1, n0, rate):
    """By enumeration of the smaller side and of the likely counts of the larger one."""
    from scipy.stats import binom

    for level in (0.025, 0.025 / 8):
        wrong = 0.0
        low, high = binom.ppf([1e-6, 1 - 1e-6], n1, rate).astype(int)
        for hits1 in np.unique(np.linspace(low, high, 40).astype(int)):
            step = (high - low) / 39 if high - low > 39 else 1
            for hits0 in range(n0 + 1):
                chance = binom.pmf(hits0, n0, rate) * binom.pmf(hits1, n1, rate) * step
                if chance > 1e-9 and Rates(hits1 / n1, hits0 / n0, n1, n0).p_value <= level:
                    wrong += chance
        assert wrong <= 1.35 * level  # Newcombe's own level where no cell is small


def test_the_reversed_p_value_is_that_of_swapped_sides():
    assert Rates(0.4, 0.5, 1000, 900).reversed_p_value == Rates(0.5, 0.4, 900, 1000).p_value < 1e-3
    for rate in (0.0, 1.0):
        nobody = Rates(rate, rate, 1000, 1000)
        assert nobody.p_value == nobody.reversed_p_value == 1
