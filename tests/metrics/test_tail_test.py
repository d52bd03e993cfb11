from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.stats import nhypergeom

from leakscope.errors import InputError
from leakscope.metrics.tail_test import TAIL_FPRS, above_tail, adjust_together, tail_tests


def sides(members, nonmembers):
    scores = np.r_[members, nonmembers].astype(float)
    return scores, np.arange(len(scores)) < len(members)


def test_the_p_value_is_exact_by_enumeration():
    """Every way to choose 4 members among 10 records, at an FPR that allows none above."""
    scores = np.arange(10.0)
    p_values = {}
    for chosen in combinations(range(10), 4):
        membership = np.isin(np.arange(10), chosen)
        test = tail_tests(scores, membership)[0]
        assert test.accused == 0
        assert test.found == sum(at > max(set(range(10)) - {*chosen}) for at in chosen)
        p_values.setdefault(test.p_value, []).append(chosen)
    reached = 0
    for p in sorted(p_values):
        reached += len(p_values[p])
        assert p == pytest.approx(reached / comb(10, 4))


def test_the_p_value_is_the_negative_hypergeometric_tail():
    """Of 1,000 non-members 10 may lie above; the members above the 11th are counted."""
    rng = np.random.default_rng(3)
    scores, membership = sides(rng.normal(0.4, 1, 700), rng.normal(size=1000))
    test = tail_tests(scores, membership)[0]
    assert (test.fpr, test.accused, test.members, test.nonmembers) == (0.01, 10, 700, 1000)
    cut = np.sort(scores[~membership])[-11]
    assert test.found == (scores[membership] > cut).sum()
    # Members drawn before the 11th non-member, drawing without replacement from the top.
    chance = nhypergeom(1700, 700, 11).sf(test.found - 1)
    assert test.p_value == pytest.approx(chance, rel=1e-9)


@pytest.mark.parametrize(("n1", "n0"), [(300, 300), (200, 1500), (1500, 200)])
@pytest.mark.parametrize("ties", [False, True])
def test_chance_gives_small_p_values_no_more_often_than_they_say(n1, n0, ties):
    rng = np.random.default_rng(n1 + ties)
    p = []
    for _ in range(2000):
        scores = rng.exponential(size=n1 + n0)
        if ties:
            scores = np.floor(2 * scores)
        membership = np.arange(n1 + n0) < n1
        p.append([test.p_value for test in tail_tests(scores, membership)])
    for level in (0.2, 0.05, 0.01):
        share = (np.array(p) <= level).mean(axis=0)
        assert (share <= level + 4 * np.sqrt(level / 2000)).all()


def test_forty_of_four_thousand_are_found():
    rng = np.random.default_rng(0)
    scores, membership = sides(rng.normal(size=4000), rng.normal(size=4000))
    assert min(test.p_value for test in tail_tests(scores, membership)) > 0.01
    scores[:40] = 10.0  # a tie of forty members above everyone
    per_cent, per_mille = tail_tests(scores, membership)
    assert per_mille.found >= 40
    assert per_mille.p_value < 1e-8
    assert per_cent.p_value < 1e-4


def test_members_who_tie_with_the_threshold_do_not_count():
    scores, membership = sides([1.0] * 50, [1.0] + [0.0] * 49)
    test = tail_tests(scores, membership)[0]
    assert (test.found, test.p_value) == (0, 1.0)


def test_a_person_counts_once():
    """Fifty rows of one member above everyone are one person, and no evidence."""
    rng = np.random.default_rng(1)
    scores, membership = sides(rng.uniform(0, 1, 300), rng.uniform(0, 1, 300))
    scores[:50], scores[300] = 10.0, 1.0
    unit = np.arange(600)
    assert tail_tests(scores, membership, unit=unit)[1].p_value < 1e-9
    unit[:50] = 0
    test = tail_tests(scores, membership, unit=unit)[1]
    assert (test.found, test.members, test.nonmembers) == (1, 251, 300)
    assert test.p_value > 0.4
    mixed = np.full(600, "x", dtype=object)
    with pytest.raises(InputError, match="among the members and the non-members"):
        tail_tests(scores, membership, unit=mixed)


def test_halves_that_learned_from_each_other_are_tested_apart():
    """Scores of one half are shifted as a whole, which is no evidence within either half."""
    rng = np.random.default_rng(2)
    membership = np.arange(2000) % 2 == 0
    half = np.r_[np.ones(1000, bool), np.zeros(1000, bool)]
    half &= membership | (np.arange(2000) < 20)  # the first half holds few non-members
    scores = rng.normal(size=2000) + 10.0 * half
    assert min(test.p_value for test in tail_tests(scores, membership)) < 1e-6
    assert min(test.p_value for test in tail_tests(scores, membership, halves=half)) > 0.02
    parts = [tail_tests(scores[part], membership[part])[0] for part in (half, ~half)]
    test = tail_tests(scores, membership, halves=half)[0]
    assert test.p_value == min(1.0, 2 * min(part.p_value for part in parts))
    assert test.found == sum(part.found for part in parts)
    assert test.members == 1000


def test_no_test_where_no_half_has_both_sides():
    membership = np.array([True, True, False, False])
    assert tail_tests(np.arange(4.0), membership, halves=membership) == ()


def test_holm_covers_every_group_and_rate():
    rng = np.random.default_rng(4)
    tests = {at: tail_tests(*sides(rng.normal(size=200), rng.normal(size=200))) for at in range(3)}
    adjusted = adjust_together(tests)
    smallest = min(test.p_value for several in tests.values() for test in several)
    least = min(test.adjusted_p for several in adjusted.values() for test in several)
    assert least == pytest.approx(min(1.0, 3 * len(TAIL_FPRS) * smallest))
    assert adjusted[0][0].to_dict()["adjusted_p"] == adjusted[0][0].adjusted_p


@pytest.mark.parametrize("by_person", [False, True])
@pytest.mark.parametrize("in_halves", [False, True])
def test_the_members_above_the_threshold_are_those_that_the_test_counts(by_person, in_halves):
    rng = np.random.default_rng(5)
    n = 1200
    unit = np.arange(n) // 3 if by_person else None
    membership = np.arange(n) % 6 < 3  # whole persons
    half = np.arange(n) // 3 % 4 < 2 if in_halves else None
    scores = rng.normal(size=n) + 0.5 * membership
    for test in tail_tests(scores, membership, unit=unit, halves=half):
        above = above_tail(scores, membership, test.fpr, unit=unit, halves=half)
        assert not (above & ~membership).any()
        found = np.unique(unit[above]) if by_person else np.flatnonzero(above)
        assert len(found) == test.found


def test_persons_with_more_rows_on_one_side_are_no_leak():
    """500 members with four rows each against 1,500 non-members with one, of one distribution."""
    rng = np.random.default_rng(6)
    unit = np.r_[np.repeat(np.arange(500), 4), 500 + np.arange(1500)]
    membership = unit < 500
    p = [
        [test.p_value for test in tail_tests(rng.normal(size=3500), membership, unit=unit)]
        for _ in range(400)
    ]
    for level in (0.1, 0.025):
        assert ((np.array(p) <= level).mean(axis=0) <= level + 4 * np.sqrt(level / 400)).all()


def test_the_order_of_rows_changes_nothing():
    rng = np.random.default_rng(7)
    scores, membership = sides(rng.normal(1, 1, 300), rng.normal(size=300))
    unit = np.arange(600) // 3
    shuffled = rng.permutation(600)
    assert tail_tests(scores, membership, unit=unit) == tail_tests(
        scores[shuffled], membership[shuffled], unit=unit[shuffled]
    )
