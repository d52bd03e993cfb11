from __future__ import annotations

import math
from time import perf_counter

import numpy as np
import pytest
from scipy.stats import beta

from leakscope.errors import InputError
from leakscope.metrics.epsilon import (
    SHARES,
    Epsilon,
    _right_guesses,
    audit_p_value,
    epsilon_lower_bound,
)


def slow_p_value(right, guesses, n, epsilon, delta):
    """The theorem word for word, in plain arithmetic."""
    chance = math.exp(epsilon) / (1 + math.exp(epsilon))
    mass = [
        math.comb(guesses, k) * chance**k * (1 - chance) ** (guesses - k)
        for k in range(guesses + 1)
    ]
    largest = max((sum(mass[right - i : right]) / i for i in range(1, right + 1)), default=0.0)
    return min(1.0, sum(mass[right:]) + 2 * n * delta * largest)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-2])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
@pytest.mark.parametrize(
    ("right", "guesses"), [(0, 10), (1, 1), (7, 10), (10, 10), (60, 100), (99, 100)]
)
def test_the_p_value_is_that_of_a_slow_reference(right, guesses, epsilon, delta):
    expected = slow_p_value(right, guesses, 200, epsilon, delta)
    assert audit_p_value(right, guesses, 200, epsilon, delta) == pytest.approx(expected, rel=1e-9)


def test_the_bound_is_where_the_slow_p_value_reaches_the_level():
    rng = np.random.default_rng(0)
    membership = np.arange(100) < 50
    scores = rng.normal(size=100) + 2 * membership
    found = epsilon_lower_bound(scores, membership, delta=1e-4).value
    falling = membership[np.argsort(-scores)]
    best = 0.0
    for share in SHARES:
        k = max(1, int(share * 50))
        right = int(falling[:k].sum() + (~falling[-k:]).sum())
        grid = np.linspace(0, 6, 1201)
        below = [e for e in grid if slow_p_value(right, 2 * k, 100, e, 1e-4) < 0.05 / len(SHARES)]
        best = max([best, *below])
    assert found == pytest.approx(best, abs=0.006)
    assert found > 0.5


def test_without_delta_the_bound_is_clopper_and_pearsons():
    membership = np.arange(400) < 200
    found = epsilon_lower_bound(membership.astype(float), membership, delta=0.0).value
    lowest = beta.ppf(0.05 / len(SHARES), 400, 1)
    assert found == pytest.approx(math.log(lowest / (1 - lowest)), rel=1e-6)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2, 0.5, 1.0])
def test_an_attack_that_is_sure_of_a_share_of_the_records_is_judged_by_them(share):
    # All right about the highest and the lowest, and in turn right and wrong about all others.
    sure = int(share * 1000)
    rest = np.arange(2000 - 2 * sure) % 2 == 0
    membership = np.concatenate([np.ones(sure), rest, np.zeros(sure)]).astype(bool)
    found = epsilon_lower_bound(-np.arange(2000.0), membership, delta=0.0).value
    lowest = beta.ppf(0.05 / 5, 2 * sure, 1)
    assert found == pytest.approx(math.log(lowest / (1 - lowest)), rel=1e-6)


def test_ties_count_with_the_average_of_random_orders():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 3, 60).astype(float)
    membership = rng.random(60) < 0.5
    for k in (1, 7, 20, 30):
        counts = []
        for _ in range(4000):
            order = rng.permutation(60)
            falling = membership[order[np.argsort(-scores[order], kind="stable")]]
            counts.append(falling[:k].sum() + (~falling[-k:]).sum())
        (found,) = _right_guesses(scores, membership, np.array([k]))
        assert found <= np.mean(counts) + 0.3
        assert found > np.mean(counts) - 1.3


def test_the_order_of_the_records_changes_nothing():
    rng = np.random.default_rng(0)
    membership = rng.random(500) < 0.5
    scores = np.round(rng.normal(size=500) + membership, 1)
    order = rng.permutation(500)
    found = epsilon_lower_bound(scores, membership)
    assert found.value > 0
    assert epsilon_lower_bound(scores[order], membership[order]) == found


@pytest.mark.parametrize("members", [100, 400, 500, 700])
def test_constant_scores_bound_nothing_whatever_the_sides(members):
    assert epsilon_lower_bound(np.zeros(800), np.arange(800) < members).value == 0.0


@pytest.mark.parametrize("members", [0.5, 0.3])
@pytest.mark.parametrize("decimals", [9, 0])
def test_scores_of_no_meaning_bound_nothing_nearly_always(members, decimals):
    rng = np.random.default_rng(0)
    above = 0
    for _ in range(300):
        scores = np.round(rng.normal(size=300), decimals)
        above += epsilon_lower_bound(scores, rng.random(300) < members).value > 0
    # At most 5 % is promised: five standard deviations above are 11 %.
    assert above / 300 < 0.11


@pytest.mark.parametrize("truth", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_randomized_response_is_bounded_below_its_epsilon(truth, noise):
    # Each record tells its membership rightly with odds exp(ε): exactly (ε, 0)-private. With
    # noise the scores are all different, without it there are only two.
    rng = np.random.default_rng(0)
    bounds = []
    for _ in range(150):
        membership = rng.random(600) < 0.5
        told = membership ^ (rng.random(600) < 1 / (1 + math.exp(truth)))
        bounds.append(epsilon_lower_bound(told + noise * rng.random(600), membership).value)
    # At most 5 % is promised: five standard deviations above are 14 %.
    assert np.mean(np.array(bounds) > truth) < 0.14
    assert np.mean(bounds) > 0.4 * truth


def test_fifty_thousand_separated_records_are_fast_and_finite():
    membership = np.arange(50_000) < 25_000
    start = perf_counter()
    found = epsilon_lower_bound(np.where(membership, 5.0, -5.0), membership)
    assert perf_counter() - start < 1  # 0.03 s on a quiet machine
    assert 5 < found.value < 12


def test_a_larger_delta_weakens_the_bound():
    membership = np.arange(1000) < 500
    scores = np.random.default_rng(0).normal(size=1000) + 2 * membership
    values = [
        epsilon_lower_bound(scores, membership, delta).value for delta in (0, 1e-5, 1e-3, 0.5)
    ]
    assert values == sorted(values, reverse=True)
    assert values[-1] == 0.0


def test_two_records_are_enough_to_say_nothing():
    assert epsilon_lower_bound([1.0, 0.0], [True, False]) == Epsilon(0.0, 1e-5)


def test_json_names_the_method():
    assert Epsilon(0.8, 1e-5).to_dict() == {
        "value": 0.8,
        "delta": 1e-5,
        "confidence": 0.95,
        "method": "one-run",
    }


@pytest.mark.parametrize(
    ("options", "message"), [({"delta": -1}, "δ"), ({"delta": 1}, "δ"), ({"confidence": 1}, "conf")]
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        epsilon_lower_bound([1.0, 0.0], [True, False], **options)
