from __future__ import annotations

import math

import numpy as np
import pytest

from leakscope.metrics.jackknife import ends, interval_of_largest, root_ends

T19 = 2.093024054408263  # Student's quantile of 97.5 % with 19 degrees of freedom


def test_ends_are_students_of_the_replicates():
    replicates = np.random.default_rng(0).normal(5.0, 0.1, size=(3, 20))
    value = np.array([5.0, 5.1, 0.2])
    low, high = ends(value, replicates, 0.025)
    for row in range(3):
        error = math.sqrt(19 / 20 * np.square(replicates[row] - replicates[row].mean()).sum())
        assert high[row] == pytest.approx(value[row] + T19 * error)
        assert low[row] == pytest.approx(max(value[row] - T19 * error, 0.0))
    assert low[2] == 0


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = np.random.default_rng(1).normal(50.0, size=20)
    without = (values.sum() - values) / 19
    low, high = ends(values.mean(), without, 0.025)
    half = T19 * values.std(ddof=1) / math.sqrt(20)
    assert high - values.mean() == pytest.approx(half)
    assert values.mean() - low == pytest.approx(half)


def test_a_variance_is_added_by_its_slope_on_the_scale_of_roots():
    flat = np.full(20, 4.0)
    low, high = root_ends(np.asarray(4.0), flat, 0.025, spread=0.16)
    assert math.sqrt(high) == pytest.approx(2 + T19 * 0.1)
    assert math.sqrt(low) == pytest.approx(2 - T19 * 0.1)
    assert root_ends(np.asarray(0.0), 0 * flat, 0.025, spread=0.16) == (0, 0)


def test_an_infinite_replicate_decides_nothing():
    replicates = np.full((3, 20), 4.0)
    replicates[1, 7] = math.inf
    replicates[2] = math.inf
    low, high = root_ends(np.array([4.0, 4.0, math.inf]), replicates, 0.025)
    np.testing.assert_array_equal(low, [4, 0, 0])
    np.testing.assert_array_equal(high, [4, math.inf, math.inf])


def test_what_is_infinite_decides_nothing_on_any_scale():
    replicates = np.array([[1.0, 1.1, 0.9], [1.0, np.inf, 1.0], [1.0, 1.0, 1.0]])
    low, high = ends(np.array([1.0, 1.0, np.inf]), replicates, 0.025)
    assert 0 < low[0] < 1 < high[0] < np.inf
    np.testing.assert_array_equal(low[1:], 0)
    np.testing.assert_array_equal(high[1:], np.inf)


def test_the_interval_of_the_largest_holds_its_truth():
    rng = np.random.default_rng(2)
    r, groups, draws, tail = 30, 20, 10, 0.025
    for truths in (np.full(r, 20.0), np.linspace(19.5, 20, r)):
        above, below = 0, 0
        for _ in range(400):
            samples = truths[:, None, None] + rng.normal(size=(r, groups, draws))
            sums = samples.sum(axis=2)
            without = (sums.sum(axis=1, keepdims=True) - sums) / ((groups - 1) * draws)
            value = samples.mean(axis=(1, 2))
            lows, highs = ends(value, without, tail / r)[0], ends(value, without, tail)[1]
            found = interval_of_largest(value, lows, highs)
            assert found.value == value.max()
            above += found.low > 20
            below += found.high < 20
        # At most 2.5 % each: 10 of 400 with a deviation of 3.1; five of them above.
        assert above <= 26
        assert below <= 26
