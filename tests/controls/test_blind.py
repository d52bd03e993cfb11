from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

from leakscope.controls.blind import (
    ENOUGH,
    LEVEL,
    PERMUTATIONS,
    _permutation_test,
    blind_control,
)
from leakscope.evidence import Folds
from leakscope.records import Records


def run(records, membership, seed=0):
    return blind_control(records, membership, Folds.draw(records.blocks(), membership, seed), seed)


def population(n=600, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, 2, n), rng.random(n) < 0.5


@pytest.mark.parametrize("seed", range(5))
def test_honest_splits_are_not_accused(seed):
    X, y, membership = population(seed=seed)
    control = run(Records(X, y), membership, seed)
    assert control.passed
    assert control.fatal


def test_a_shift_in_one_feature_is_seen():
    X, y, membership = population()
    X[membership, 2] += 0.8
    control = run(Records(X, y), membership)
    assert control.passed is False
    assert control.voids
    assert "differ before the model enters" in control.detail


def test_a_shift_in_the_labels_is_seen():
    X, _, membership = population()
    y = (np.random.default_rng(1).random(600) < np.where(membership, 0.7, 0.3)).astype(int)
    assert run(Records(X, y), membership).passed is False


def test_a_shift_in_a_text_column_is_seen():
    X, y, membership = population()
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["month"] = np.where(membership & (X[:, 0] > -0.5), "january", "june")
    assert run(Records(frame, y), membership).passed is False


def test_a_shift_in_wide_records_is_seen_through_projections():
    X, y, membership = population(d=300)
    assert run(Records(X, y), membership).passed
    X[membership] += 0.3
    assert run(Records(X, y), membership).passed is False


def test_gaps_are_no_obstacle():
    X, y, membership = population()
    X[::7, 1] = np.nan
    X[:, 3] = np.nan
    assert run(Records(X, y), membership).passed


def test_one_side_alone_in_a_half_cannot_be_run():
    X, y, _ = population(n=6)
    half = np.arange(6) < 3
    control = blind_control(Records(X, y), half, Folds(half, half), 0)
    assert control.passed is None


def p_after_all(scores, membership, seed):
    """The share of all permutations, one after another."""
    rng, own = np.random.default_rng(seed), membership.astype(float)
    apart = [scores[membership].mean() - scores[~membership].mean()]
    for _ in range(PERMUTATIONS):
        drawn = rng.permuted(own[None], axis=1)[0] > 0
        apart.append(scores[drawn].mean() - scores[~drawn].mean())
    return np.mean(np.array(apart) >= apart[0] - 1e-9)


@pytest.mark.parametrize("shift", [0.0, 0.5, 0.9, 1.3])
def test_the_permutation_test_ends_early_and_decides_the_same(shift):
    rng = np.random.default_rng(int(10 * shift))
    assert ENOUGH / PERMUTATIONS >= LEVEL
    membership = np.arange(60) < 30
    ranks = rankdata(rng.normal(size=60) + shift * membership)
    _, p = _permutation_test(ranks, membership, np.arange(60), 1)
    whole = p_after_all(ranks, membership, 1)
    assert (p < LEVEL) == (whole < LEVEL)
    if whole < ENOUGH / PERMUTATIONS / 2:
        assert p == pytest.approx(whole, rel=1e-12)
    else:
        assert abs(p - whole) < 4 * whole / np.sqrt(ENOUGH)


@pytest.mark.slow
def test_the_permutation_test_is_exact_under_the_null():
    """p-values of pure noise: no more than α of them at or below α (binomial, 1 in 10⁶)."""
    rng = np.random.default_rng(0)
    p = []
    for seed in range(150):
        membership = rng.random(80) < 0.4
        p.append(_permutation_test(rng.normal(size=80), membership, np.arange(80), seed)[1])
    assert 40 <= np.sum(np.array(p) <= 0.5) <= 110
    assert np.sum(np.array(p) <= 0.02) <= 14


def test_units_are_permuted_whole():
    """Twenty equal rows per person: as rows the difference is certain, as persons it is not."""
    rng = np.random.default_rng(3)
    person = np.repeat(np.arange(12), 20)
    scores = np.repeat(rng.normal(size=12), 20)
    membership = np.repeat(np.argsort(np.argsort(scores[::20])) % 3 > 0, 20)
    _, by_row = _permutation_test(scores, membership, np.arange(240), 0)
    _, by_person = _permutation_test(scores, membership, person, 0)
    assert by_row < 0.05 < by_person


def test_blocks_of_unequal_size_may_leave_a_side_empty():
    blocks = np.array([0] * 9 + [1])
    auc, p = _permutation_test(np.arange(10.0), blocks == 0, blocks, 0)
    assert auc == 0.0
    assert 0 < p <= 1


def test_one_giveaway_among_thousands_of_features_is_seen():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3000)), rng.integers(0, 2, 600)
    membership = np.arange(600) % 2 == 0
    assert run(Records(X, y), membership).passed
    X[:, 7] = membership
    assert run(Records(X, y), membership).passed is False


def test_spans_of_time_and_huge_numbers_are_no_obstacle():
    X, y, membership = population()
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["span"] = pd.to_timedelta(np.arange(600), unit="h")
    frame["huge"] = X[:, 0] * 1e300
    assert run(Records(frame, y), membership).passed


@pytest.mark.parametrize("kind", ["26 digits", "truth and gaps", "dates"])
def test_a_shift_in_columns_that_floats_or_nanoseconds_do_not_hold_is_seen(kind):
    X, y, membership = population()
    values = {
        "26 digits": 10**25 + membership.astype(object),
        "truth and gaps": np.where(membership, True, None),
        "dates": np.where(membership, "9999-12-31", "1601-01-01").astype("datetime64[s]"),
    }
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["given_away"] = values[kind]
    assert run(Records(frame, y), membership).passed is False
