from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from leakscope.errors import InputError
from leakscope.metrics.tails import Rate, tpr_at_fpr


def sides(members, others):
    scores = np.concatenate([members, others]).astype(float)
    return scores, np.arange(len(scores)) < len(members)


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=30),
    st.lists(st.integers(0, 6), min_size=1, max_size=60),
    st.sampled_from([0.01, 0.05, 0.1, 0.25, 0.5, 0.9]),
)
def test_the_value_is_the_largest_tpr_at_no_more_than_the_fpr(members, others, fpr):
    members, others = np.array(members), np.array(others)
    allowed = [cut for cut in range(8) if (others >= cut).mean() <= fpr + 1e-12]
    rate = tpr_at_fpr(*sides(members, others), fpr)
    assert rate.value == max((members >= cut).mean() for cut in allowed)
    assert 0 <= rate.low <= rate.value <= rate.high <= 1


def test_a_rate_with_an_exact_number_of_non_members_uses_all_of_them():
    for n in (100, 140, 300, 1000):  # 0.05 · n is not exact in floating point for all of these
        scores, membership = sides(np.arange(n) + 0.5, np.arange(n))
        assert tpr_at_fpr(scores, membership, 0.05).value == pytest.approx(0.05 + 1 / n)


def test_the_interval_is_that_of_drawing_the_threshold_and_then_the_rate():
    rng = np.random.default_rng(0)
    members, others = rng.normal(1.5, 1, 120), rng.normal(0, 1, 200)
    rate = tpr_at_fpr(*sides(members, others), 0.05)
    falling = np.sort(others)[::-1]
    found = np.array([np.sum(members > cut) for cut in falling])
    count = rng.binomial(200, 0.05, 400_000)
    hits = (found[count] + np.where(count > 0, found[count - 1], 0)) / 2
    drawn = rng.beta(hits + 0.5, 120 - hits + 0.5)
    assert [rate.low, rate.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=2e-3)


def test_the_peers_trap_0_1_percent_of_171_is_unresolved():
    rng = np.random.default_rng(0)
    rate = tpr_at_fpr(*sides(rng.normal(2, 1, 400), rng.normal(0, 1, 171)), 0.001)
    assert not rate.resolved
    assert rate.low == 0.0
    assert rate.high > rate.value > 0


@pytest.mark.parametrize(
    ("n", "fpr", "resolved"), [(100, 0.05, True), (99, 0.05, False), (5000, 0.001, True)]
)
def test_five_expected_non_members_resolve_a_rate(n, fpr, resolved):
    rng = np.random.default_rng(0)
    scores, membership = sides(rng.normal(size=50), rng.normal(size=n))
    assert tpr_at_fpr(scores, membership, fpr).resolved is resolved
    assert tpr_at_fpr(scores, membership, fpr, inflation=1.01 if n == 100 else 1.0).resolved is (
        resolved and n != 100
    )


def test_what_is_never_seen_has_an_end_at_0_or_1():
    scores, membership = sides(np.full(50, -9.0), np.arange(200))
    rate = tpr_at_fpr(scores, membership, 0.05)
    assert (rate.value, rate.low) == (0.0, 0.0)
    assert 0.01 < rate.high < 0.2
    rate = tpr_at_fpr(-scores, membership, 0.05)
    assert (rate.value, rate.high) == (1.0, 1.0)
    assert 0.8 < rate.low < 0.99


def test_rows_of_one_person_resolve_less():
    rng = np.random.default_rng(0)
    person = rng.normal(size=120)
    unit = np.repeat(np.arange(120), 4)
    scores, membership = person[unit] + 0.01 * rng.normal(size=480), unit < 60
    assert tpr_at_fpr(scores, membership, 0.05).resolved
    clustered = tpr_at_fpr(scores, membership, 0.05, unit=unit)
    assert not clustered.resolved
    assert clustered.high > tpr_at_fpr(scores, membership, 0.05).high


@pytest.mark.parametrize("fpr", [0, 1, -0.1, np.nan])
def test_a_rate_outside_0_and_1_is_refused(fpr):
    with pytest.raises(InputError, match="fpr must be between 0 and 1"):
        tpr_at_fpr([0.0, 1.0], [True, False], fpr)


def test_a_confidence_in_percent_is_refused():
    with pytest.raises(InputError, match="confidence"):
        tpr_at_fpr([0.0, 1.0], [True, False], 0.05, confidence=95)


@pytest.mark.parametrize(("fpr", "n", "lowest"), [(0.05, 100, 0.93), (0.01, 200, 0.95)])
def test_intervals_hold_the_truth(fpr, n, lowest):
    # 0.05 of 100 is just resolved; 0.01 of 200 is not, and its upper end must hold all the same.
    rng = np.random.default_rng(0)
    truth = norm.sf(norm.isf(fpr) - 1.2)
    held = 0
    for _ in range(600):
        rate = tpr_at_fpr(*sides(rng.normal(1.2, 1, 150), rng.normal(0, 1, n)), fpr)
        held += rate.low <= truth <= rate.high
    assert held / 600 >= lowest


def test_a_rate_as_json():
    shown = Rate(0.01, 0.2, 0.1, 0.3, True).to_dict()
    assert shown == {
        "fpr": 0.01, "value": 0.2, "low": 0.1, "high": 0.3, "resolved": True,
        "effective_nonmembers": None,
    }  # fmt: skip
