from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope.errors import InputError
from leakscope.metrics.thresholds import (
    Threshold,
    best_threshold,
    check_calibration,
    draw_calibration,
)

pairs = st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=40).filter(
    lambda rows: len({side for _, side in rows}) == 2
)


def advantage(scores, membership, threshold):
    called = scores >= threshold
    return called[membership].mean() - called[~membership].mean()


@given(pairs)
def test_no_threshold_does_better_and_none_as_good_accuses_fewer(rows):
    scores, membership = (np.array(column) for column in zip(*rows, strict=True))
    best = best_threshold(scores.astype(float), membership)
    reached = advantage(scores, membership, best)
    for threshold in np.arange(-4, 4.5, 0.5):
        assert advantage(scores, membership, threshold) <= reached + 1e-12
        if 0 < (scores >= threshold).sum() < (scores >= best).sum():
            assert advantage(scores, membership, threshold) < reached - 1e-12


def test_the_threshold_lies_between_scores():
    scores, membership = np.array([0.0, 1.0, 5.0, 6.0]), np.array([False, False, True, True])
    assert best_threshold(scores, membership) == 3.0
    assert best_threshold(-scores, membership) == -6.0  # everyone, the best that can be done
    assert best_threshold(np.full(4, 2.0), membership) == 2.0


def test_the_threshold_separates_neighbouring_and_huge_floats():
    membership = np.array([False, True])
    one = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert best_threshold(one, membership) == one[1]
    assert best_threshold(np.array([-1.7e308, 1.7e308]), membership) == 0.0


def test_a_fifth_of_each_side_is_drawn():
    membership = np.arange(150) < 50
    scores = np.random.default_rng(0).normal(size=150)
    chosen = draw_calibration(scores, membership)
    assert chosen[membership].sum() == 10
    assert chosen[~membership].sum() == 20
    assert (chosen != draw_calibration(scores, membership, seed=1)).any()


def test_the_draw_does_not_depend_on_the_order_of_the_records():
    rng = np.random.default_rng(0)
    membership = rng.random(200) < 0.4
    scores = rng.integers(0, 5, 200).astype(float)
    keys = [rng.integers(0, 3, 200), rng.integers(0, 2, 200)]
    order = rng.permutation(200)
    one = draw_calibration(scores, membership, keys=keys)
    other = draw_calibration(scores[order], membership[order], keys=[key[order] for key in keys])
    rows = np.stack([scores, membership, *keys])
    drawn, redrawn = rows[:, one], rows[:, order][:, other]
    assert np.array_equal(drawn[:, np.lexsort(drawn)], redrawn[:, np.lexsort(redrawn)])


def test_units_are_drawn_whole_whatever_the_order():
    rng = np.random.default_rng(0)
    unit = rng.integers(0, 60, 200)
    membership = unit < 25
    scores = rng.normal(size=200)
    chosen = draw_calibration(scores, membership, unit)
    assert not set(unit[chosen]) & set(unit[~chosen])
    assert len(set(unit[chosen & membership])) == 5
    order = rng.permutation(200)
    again = draw_calibration(scores[order], membership[order], unit[order])
    assert np.array_equal(again, chosen[order])


@pytest.mark.parametrize(
    ("membership", "unit", "message"),
    [
        ([True, False, False], None, "only 1 member:"),
        ([True, True, False], None, "only 1 non-member:"),
        ([True, True, False], [0, 0, 1], "only 1 member unit:"),
    ],
)
def test_a_side_that_cannot_be_divided_is_refused(membership, unit, message):
    codes = None if unit is None else np.array(unit)
    with pytest.raises(InputError, match=message):
        draw_calibration(np.arange(3.0), np.array(membership), codes)


MEMBERSHIP = np.array([True, True, False, False])


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([True, True, True, False], "no member outside"),
        ([False, False, True, False], "no member inside"),
        ([True, False, True, True], "no non-member outside"),
        ([True, False, False, False], "no non-member inside"),
        ([True, False], "shape"),
        ([1, 0, 1, 0], "calibration mask must be true or false"),
    ],
)
def test_a_calibration_mask_must_leave_both_sides_in_both_parts(mask, message):
    with pytest.raises(InputError, match=message):
        check_calibration(mask, MEMBERSHIP, None)


def test_a_calibration_mask_must_not_split_units():
    mask = [True, False, True, False]
    assert check_calibration(mask, MEMBERSHIP, np.array([0, 1, 2, 3])).tolist() == mask
    with pytest.raises(InputError, match="splits the rows of 1 units"):
        check_calibration(mask, MEMBERSHIP, np.array([0, 1, 2, 2]))


def test_a_threshold_nobody_reaches_is_null_in_json():
    assert Threshold(np.inf, "given").to_dict() == {"value": None, "source": "given"}
