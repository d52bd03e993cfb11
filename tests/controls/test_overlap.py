from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leakscope.controls.overlap import find_overlap
from leakscope.records import Records


def sides(n=200, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(2 * n, d)), rng.integers(0, 2, 2 * n)
    return Records(X[:n], y[:n]), Records(X[n:], y[n:])


def test_disjoint_sides_pass():
    found = find_overlap(*sides())
    assert not found.found.any()
    assert found.control().passed
    assert "None of the 200" in found.control().detail


def test_equal_records_are_found_wherever_they_stand():
    members, others = sides()
    X, y = others.X.copy(), others.y.copy()
    X[[3, 77]], y[[3, 77]] = members.X[[150, 2]], members.y[[150, 2]]
    found = find_overlap(members, Records(X, y))
    assert np.flatnonzero(found.exact).tolist() == [3, 77]
    assert found.control().passed
    assert "2 equal, 0 equal within rounding" in found.control().detail


def test_the_same_features_with_another_label_are_another_record():
    members, others = sides()
    X, y = others.X.copy(), others.y.copy()
    X[5], y[5] = members.X[5], 1 - members.y[5]
    assert not find_overlap(members, Records(X, y)).found.any()


@pytest.mark.parametrize("spoil", [np.float32, np.vectorize(lambda value: float(f"{value:.7g}"))])
def test_a_trip_through_single_precision_or_seven_digits_is_seen_through(spoil):
    members, others = sides()
    X, y = others.X.copy(), others.y.copy()
    rows = np.arange(8)
    X[rows], y[rows] = np.asarray(spoil(members.X[rows]), float), members.y[rows]
    found = find_overlap(members, Records(X, y))
    assert not found.exact.any()
    assert np.flatnonzero(found.near).tolist() == rows.tolist()


def test_within_rounding_agrees_with_comparing_every_pair():
    rng = np.random.default_rng(3)
    base = rng.normal(size=(60, 2)) * [1, 1e6]
    moved = base * (1 + rng.choice([0.0, 3e-7, 1e-5, 1e-3], size=base.shape))
    y = np.zeros(60)
    found = find_overlap(Records(base, y), Records(moved, y)).found
    size = np.maximum(np.abs(base[:, None]), np.abs(moved[None]))
    slow = (np.abs(base[:, None] - moved[None]) <= 1e-6 * size).all(axis=2).any(axis=0)
    np.testing.assert_array_equal(found, slow)


def test_missing_values_equal_missing_values():
    members = Records(np.array([[np.nan, 1.0], [2.0, 3.0]]), [0, 1])
    others = Records(np.array([[np.nan, 1.0 + 1e-8], [2.0, np.nan]]), [0, 1])
    assert find_overlap(members, others).near.tolist() == [True, False]


def test_text_columns_must_be_equal():
    members = Records(pd.DataFrame({"job": ["a", "b"], "x": [1.0, 2.0]}), [0, 1])
    others = Records(pd.DataFrame({"job": ["a", "c"], "x": [1.0, 2.0]}), [0, 1])
    assert find_overlap(members, others).found.tolist() == [True, False]


def test_a_person_on_both_sides_is_found_by_unit():
    members, others = sides()
    with_units = [
        Records(side.X, side.y, unit=np.arange(200) + start)
        for side, start in ((members, 0), (others, 195))
    ]
    found = find_overlap(*with_units)
    assert np.flatnonzero(found.unit).tolist() == [0, 1, 2, 3, 4]
    assert "5 of a person who is also a member" in found.control().detail
    by_unit = find_overlap(*with_units, by_features=False)
    assert by_unit.unit.sum() == 5


def test_more_than_the_limit_is_refused():
    members, others = sides()
    X, y = others.X.copy(), others.y.copy()
    X[:11], y[:11] = members.X[:11], members.y[:11]
    found = find_overlap(members, Records(X, y))
    assert found.share == 11 / 200
    assert found.refused
    control = found.control()
    assert control.passed is False
    assert control.voids
    assert "11 of 200 non-members (5.5%)" in control.detail
    assert not find_overlap(members, Records(X, y), limit=0.1).refused


def test_different_texts_whole_numbers_and_odd_values_are_not_joined():
    rng = np.random.default_rng(0)
    n = 20_000
    texts = pd.DataFrame({"text": [f"r{number}" for number in range(2 * n)]})
    y = np.arange(2 * n) % 2
    half = np.arange(2 * n) < n
    assert not find_overlap(
        Records(texts[half], y[half]), Records(texts[~half], y[~half])
    ).found.any()
    seconds = 1_700_000_000 + rng.permutation(4000)[:, None].astype(float)
    for X in (seconds, rng.normal(size=(4000, 1)), rng.normal(size=(4000, 1)) * 1e-8):
        for odd in (X[5, 0], 1e20, np.nan):
            X[5] = odd
            label = np.zeros(2000)
            found = find_overlap(Records(X[:2000], label), Records(X[2000:], label)).found
            assert found.mean() < 0.005


def test_records_on_both_sides_are_named_on_both():
    members, others = sides()
    X, y = others.X.copy(), others.y.copy()
    X[[3, 77]], y[[3, 77]] = members.X[[150, 2]] * (1 + 1e-8), members.y[[150, 2]]
    found = find_overlap(members, Records(X, y))
    assert np.flatnonzero(found.members).tolist() == [2, 150]
