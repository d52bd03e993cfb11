from __future__ import annotations

import numpy as np
import pytest

from leakscope.metrics.histograms import histogram


def test_shares_agree_with_numpy_and_sum_to_1():
    rng = np.random.default_rng(0)
    scores, membership = rng.random(1000), rng.random(1000) < 0.3
    found = histogram(scores, membership, bins=10, cut=0.0)
    counts = np.histogram(scores[membership], found.edges)[0]
    assert found.members == pytest.approx(counts / membership.sum())
    assert found.members.sum() == pytest.approx(1)
    assert found.nonmembers.sum() == pytest.approx(1)


def test_a_few_extreme_scores_fall_into_the_end_bins():
    scores = np.append(np.linspace(0, 1, 998), [-1e9, 1e9])
    found = histogram(scores, np.arange(1000) % 2 == 0)
    assert found.edges[0] >= 0
    assert found.edges[-1] <= 1
    assert len(found.members) == 40
    assert found.members.sum() == pytest.approx(1)


@pytest.mark.parametrize("value", [0.0, -3.5, 1e12, 1e300])
def test_constant_scores_lie_in_the_middle(value):
    found = histogram(np.full(10, value), np.arange(10) < 5)
    assert (np.diff(found.edges) > 0).all()
    assert found.members.max() == found.nonmembers.max() == 1.0
    assert found.edges[0] < value < found.edges[-1]


def test_one_score_apart_from_all_others_still_widens_the_range():
    found = histogram(np.append(np.zeros(999), 1.0), np.arange(1000) < 500)
    assert found.edges[[0, -1]].tolist() == [0.0, 1.0]


def test_the_largest_floats_do_not_overflow():
    found = histogram(np.array([-1.7e308, 0.0, 1.7e308, 1.0]), np.array([True, False, True, False]))
    assert np.isfinite(found.edges).all()
    assert found.members[[0, -1]].tolist() == [0.5, 0.5]


def test_json_holds_lists():
    shown = histogram([0.0, 1.0], [True, False], bins=2).to_dict()
    assert shown == {"edges": [0.0, 0.5, 1.0], "members": [1.0, 0.0], "nonmembers": [0.0, 1.0]}
