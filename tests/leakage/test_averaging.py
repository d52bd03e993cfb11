from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t as student

from leakscope.leakage.averaging import Folded
from leakscope.leakage.plans import GROUPS, Plan


def mean_of(seen, _folds):
    """The difference of two means, whose variance everybody knows."""

    def measure(membership):
        one = np.where(membership, seen[..., 0], 0).sum(axis=0) / membership.sum(axis=0)
        other = np.where(~membership, seen[..., 0], 0).sum(axis=0) / (~membership).sum(axis=0)
        return one - other

    return measure


def fold(rng, models, n, common, gain):
    """Differences of means over records that share a part of what each model shows."""
    membership = np.array([rng.permutation(models) < models // 2 for _ in range(n)]).T
    own = rng.normal(size=(models, n))
    # A part that all records share and that goes with the membership of the first.
    seen = own + common * rng.normal(size=(models, 1)) + gain * membership
    plan = Plan.draw(membership, 1, seed=0)
    return Folded.of(lambda a, b: seen[:, a:b, None], mean_of, membership, plan, 7)


@pytest.mark.slow
@pytest.mark.parametrize(("common", "uneven"), [(0.0, 0.0), (1.0, 0.0), (0.0, 0.5), (1.0, 0.5)])
def test_intervals_cover(common, uneven):
    # 300 repetitions at 95 %: fewer than 262 has a chance below 1e-6.
    covered, everyone = 0, np.ones(12, dtype=bool)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        gain = 0.5 + uneven * rng.normal(size=12)
        found = fold(rng, 40, 12, common, gain).mean(everyone, np.arange(12), 0.95)
        covered += found.low <= 0.5 <= found.high
    assert covered >= 262


def test_each_records_interval_is_the_jackknife():
    found = fold(np.random.default_rng(0), 40, 12, 0.0, 1.0)
    low, high = found.ends(0.95)
    g = len(found.without)
    assert g == GROUPS
    deviations = found.without - found.without.mean(axis=0)
    error = np.sqrt((g - 1) / g * np.square(deviations).sum(axis=0))
    np.testing.assert_allclose(high - low, 2 * 2.093024 * error, rtol=1e-6)
    np.testing.assert_allclose((low + high) / 2, found.records)
    # The error of a difference of two means of 20 each.
    assert error.mean() == pytest.approx(math.sqrt(2 / 20), rel=0.4)


def test_where_records_alone_vary_the_interval_is_students():
    values = np.random.default_rng(0).normal(size=9)
    found = Folded(values, np.tile(values, (GROUPS, 1)), np.zeros((1, 9)))
    everyone = np.ones(9, dtype=bool)
    interval = found.mean(everyone, np.arange(9), 0.95)
    low, high = student.interval(0.95, 8, values.mean(), values.std(ddof=1) / 3)
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-9)
    # Rows of one person count together: three persons of three rows are three means.
    persons = values.reshape(3, 3).mean(axis=1)
    low, high = student.interval(0.95, 2, persons.mean(), persons.std(ddof=1) / math.sqrt(3))
    interval = found.mean(everyone, np.repeat([5, 3, 8], 3), 0.95)
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-9)


def test_where_models_alone_vary_the_interval_is_the_jackknife():
    without = np.random.default_rng(0).normal(size=(GROUPS, 1)) * np.ones(9)
    found = Folded(np.full(9, 0.3), without, np.zeros((1, 9)))
    interval = found.mean(np.ones(9, dtype=bool), np.arange(9), 0.95)
    error = math.sqrt((GROUPS - 1) * without[:, 0].var())
    low, high = student.interval(0.95, GROUPS - 1, 0.3, error)
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-9)


def test_what_never_varies_has_an_interval_of_no_width():
    membership = np.array([np.arange(4) % 2 == i % 2 for i in range(8)])
    plan = Plan.draw(membership, 2, seed=0)
    folded = Folded.of(
        lambda a, b: np.zeros((8, b - a, 1)),
        lambda seen, folds: lambda members: np.zeros(members.shape[1]),
        membership, plan, 4,
    )  # fmt: skip
    found = folded.mean(np.ones(4, dtype=bool), np.arange(4), 0.95)
    assert (found.value, found.low, found.high) == (0, 0, 0)
    null = folded.null(np.ones(4, dtype=bool))
    assert (null.mean, null.high, null.p_value) == (0, 0, 1)
