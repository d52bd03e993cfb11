from __future__ import annotations

import math

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.metrics.groups import by_group
from leakscope.metrics.intervals import holm
from leakscope.metrics.rates import Rates, excess


def example(n=600, seed=0):
    rng = np.random.default_rng(seed)
    membership = rng.random(n) < 0.5
    sex = np.array(["Male", "Female"])[rng.integers(0, 2, n)]
    age = rng.integers(0, 3, n) * 10
    called = rng.random(n) < 0.2 + 0.6 * membership * (age == 20)
    return called, membership, {"sex": sex, "age": age}


def test_each_value_is_compared_with_everyone_else():
    called, membership, groups = example()
    judged = np.arange(600) % 5 > 0
    found = by_group(called, membership, groups, judged)
    names = [(one.group, one.value) for one in found]
    assert names == [("sex", "Female"), ("sex", "Male"), ("age", "0"), ("age", "10"), ("age", "20")]

    raw, differences = [], []
    for one in found:
        inside = groups[one.group].astype(str) == one.value
        mine, rest = inside & judged, ~inside & judged
        rates = Rates.count(called[mine], membership[mine])
        others = Rates.count(called[rest], membership[rest])
        interval, p_value = excess(rates, others)
        assert one.advantage == rates.advantage()
        assert one.excess == interval
        assert one.members == np.sum(mine & membership)
        assert one.n == one.members + one.nonmembers == mine.sum()
        raw.append(rates.p_value)
        differences.append(p_value)
    assert [one.adjusted_p for one in found] == holm(raw)
    assert [one.excess_adjusted_p for one in found] == holm(differences)
    assert found[-1].excess_adjusted_p < 0.01


def test_clusters_and_inflation_reach_the_groups():
    called, membership, groups = example()
    unit = np.arange(600) // 2 * 2 + membership
    plain = by_group(called, membership, groups)[0]
    doubled = by_group(called, membership, groups, inflation=2.0)[0]
    assert doubled.advantage.high > plain.advantage.high
    clustered = by_group(
        np.repeat(called, 3),
        np.repeat(membership, 3),
        {"sex": np.repeat(groups["sex"], 3)},
        unit=np.repeat(np.arange(600), 3),
    )[0]
    assert clustered.advantage.low == pytest.approx(plain.advantage.low, abs=2e-3)
    assert by_group(called, membership, groups, unit=unit)[0].value == "Female"


def test_a_value_without_both_sides_is_listed_and_not_tested():
    membership = np.array([True, True, False, False, True])
    called = np.array([True, False, False, True, True])
    group = np.array(["a", "a", "a", "a", "b"])
    a, b = by_group(called, membership, {"g": group})
    assert (b.n, b.members, b.nonmembers) == (1, 1, 0)
    assert b.to_dict()["advantage"] == {"value": None, "low": None, "high": None}
    assert b.to_dict()["adjusted_p"] is None
    # One test is left, so nothing is corrected; and nobody is left to compare it with.
    assert a.adjusted_p == pytest.approx(Rates.count(called[:4], membership[:4]).p_value)
    assert math.isnan(a.excess.value)
    assert a.to_dict()["excess_adjusted_p"] is None


def test_a_value_that_was_only_calibrated_on_is_listed_empty():
    called, membership, groups = example()
    found = by_group(called, membership, {"age": groups["age"]}, groups["age"] != 10)
    assert [(one.value, one.n == 0) for one in found] == [("0", False), ("10", True), ("20", False)]


def test_the_order_of_the_records_changes_nothing():
    called, membership, groups = example()
    order = np.random.default_rng(1).permutation(600)
    shuffled = {name: column[order] for name, column in groups.items()}
    assert by_group(called[order], membership[order], shuffled) == by_group(
        called, membership, groups
    )


def test_values_of_any_kind_become_text():
    membership = np.tile([True, False], 6)
    column = np.array([None, 3.5, "x"] * 4, dtype=object)
    found = by_group(membership, membership, {"g": column})
    assert [one.value for one in found] == ["3.5", "None", "x"]
    assert by_group(membership, membership, {}) == ()


def test_a_column_of_another_length_is_named():
    with pytest.raises(InputError, match=r"Group 'sex' has shape \(2,\)"):
        by_group([True, False, True], [True, False, True], {"sex": ["f", "m"]})


def test_equal_groups_are_rarely_told_apart():
    rng = np.random.default_rng(0)
    membership = np.arange(400) < 200
    found = 0
    for _ in range(400):
        called = rng.random(400) < 0.3 + 0.2 * membership
        groups = {"g": rng.integers(0, 4, 400)}
        found += any(one.excess_adjusted_p < 0.05 for one in by_group(called, membership, groups))
    # At most 5 % is promised; five standard deviations above are 10.5 %.
    assert found / 400 < 0.105
