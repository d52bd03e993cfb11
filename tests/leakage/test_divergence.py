from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.special import entr
from scipy.stats import multivariate_t

from leakscope.errors import InputError
from leakscope.leakage import jeffreys, mutual_information, total_variation
from leakscope.leakage.divergence import (
    _ratio_across,
    _ratio_in_line,
    knn_divergence,
    log_ratio,
    prepare_advantage,
    prepare_divergence,
    prepare_information,
)


def columns(rng, models, records, members=None):
    """A membership (m, c) with the same number of members in each column."""
    members = models // 2 if members is None else members
    return np.array([rng.permutation(models) < members for _ in range(records)]).T


def gaussians(rng, membership, shift, variance, width=1):
    """Observations whose first number is N(shift, variance) with the record, else N(0, 1)."""
    seen = rng.normal(size=(*membership.shape, width))
    seen[..., 0] = np.where(membership, shift + math.sqrt(variance) * seen[..., 0], seen[..., 0])
    return seen


def folds_of(models):
    return np.arange(models) % 20


def by_trees(one, other, k):
    """The estimator as Wang, Kulkarni & Verdú write it."""
    own = cKDTree(one).query(one, k + 1)[0][:, k]
    across = cKDTree(other).query(one, [k])[0][:, 0]
    n, w = one.shape
    return w * np.mean(np.log(across / own)) + math.log(len(other) / (n - 1))


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("w", [1, 3])
def test_nearest_neighbours_as_the_paper_has_them(k, w):
    rng = np.random.default_rng(w)
    one, other = rng.normal(size=(30, w)), 0.5 + rng.normal(size=(40, w))
    scale = np.concatenate([one, other]).std(axis=0)
    expected = by_trees(one / scale, other / scale, k)
    assert knn_divergence(one, other, k) == pytest.approx(expected, abs=1e-5)
    if w == 1:
        assert knn_divergence(one[:, 0], other[:, 0], k) == knn_divergence(one, other, k)


def test_five_neighbours_are_asked_unless_told():
    one, other = np.random.default_rng(0).normal(size=(2, 30))
    assert knn_divergence(one, other) == knn_divergence(one, other, 5)
    assert knn_divergence(one, other) != knn_divergence(one, other, 6)


@pytest.mark.parametrize(("members", "k"), [(10, 3), (3, 2), (2, 1)])  # as many as there are
@pytest.mark.parametrize("width", [1, 2])
def test_both_directions_are_summed_for_each_record(width, members, k):
    rng = np.random.default_rng(0)
    membership = columns(rng, 24, 5, members=members)
    seen = gaussians(rng, membership, 1.0, 1.0, width=width)
    found = prepare_divergence(seen, 3, seed=0)(membership)
    for record in range(5):
        side = membership[:, record]
        one, other = seen[side, record], seen[~side, record]
        expected = knn_divergence(one, other, k) + knn_divergence(other, one, k)
        assert found[record] == pytest.approx(expected, abs=1e-6)


def test_nearest_neighbours_find_the_divergence_of_gaussians():
    rng = np.random.default_rng(1)
    membership = columns(rng, 200, 60)
    for shift, variance in ((0.0, 1.0), (1.0, 1.0), (0.3, 1.0)):
        found = prepare_divergence(gaussians(rng, membership, shift, variance), 3, 0)(membership)
        error = found.std() / math.sqrt(len(found))
        truth = jeffreys(shift, variance, 0, 1)
        # Far tails are not seen: short by up to a quarter, and unbiased where there is nothing.
        assert 0.75 * truth - 6 * error <= found.mean() <= truth + 6 * error


def test_ties_are_broken_alike_on_both_sides():
    rng = np.random.default_rng(2)
    membership = columns(rng, 60, 200)
    rounded = rng.integers(0, 3, size=(60, 200, 1)).astype(float)
    found = prepare_divergence(rounded, 5, seed=3)(membership)
    assert np.isfinite(found).all()
    assert abs(found.mean()) < 6 * found.std() / math.sqrt(200)
    # Constant with the record and constant without: as far apart as the noise allows.
    assert (prepare_divergence(membership[..., None] * 1.0, 5, 0)(membership) > 20).all()
    assert np.isfinite(knn_divergence(np.ones(10), np.ones(12)))


@pytest.mark.parametrize("w", [1, 3])
def test_the_log_ratio_is_that_of_students_densities(w):
    rng = np.random.default_rng(w)
    known, asked = rng.normal(size=(12, 1, w)), rng.normal(size=(4, 1, w))
    membership = np.arange(12)[:, None] < 5
    sides = [known[membership[:, 0], 0], known[~membership[:, 0], 0]]
    scatters = [(len(side) - 1) * np.cov(side.T).reshape(w, w) for side in sides]
    common = sum(scatters) / 10 + 1e-9 * np.eye(w)
    logs = []
    for side, scatter in zip(sides, scatters, strict=True):
        freedom = len(side) + 1
        shape = (scatter + (w + 1) * common) * (1 + 1 / len(side)) / freedom
        logs.append(multivariate_t(side.mean(axis=0), shape, df=freedom).logpdf(asked[:, 0]))
    np.testing.assert_allclose(
        log_ratio(known, membership, asked)[:, 0], logs[0] - logs[1], rtol=1e-9
    )


def test_nothing_is_known_of_a_side_that_was_never_seen():
    known, asked = np.ones((6, 2, 1)) * np.arange(6)[:, None, None], np.zeros((3, 2, 1))
    membership = np.zeros((6, 2), dtype=bool)
    membership[:3, 1] = True
    found = log_ratio(known, membership, asked)
    assert (found[:, 0] == 0).all()
    assert (found[:, 1] > 0).all()


@pytest.mark.parametrize(
    ("shift", "variance", "width"), [(0, 1, 1), (1, 1, 1), (1, 0.25, 1), (3, 1, 1), (1, 1, 3)]
)
def test_information_approaches_that_of_gaussians_from_below(shift, variance, width):
    rng = np.random.default_rng(5)
    membership = columns(rng, 256, 150)
    seen = gaussians(rng, membership, shift, variance, width)
    found = prepare_information(seen, folds_of(256) % 10)(membership)
    truth = mutual_information(shift, variance, 0, 1)
    error = 6 * found.std() / math.sqrt(150)
    moments = width + width * (width + 1) / 2
    assert truth - 2 * moments / 256 - error <= found.mean() <= truth + error


def test_a_wrong_shape_invents_no_information():
    # Cauchy, exponential, two-valued and clipped observations, none of which knows membership.
    rng = np.random.default_rng(6)
    membership = columns(rng, 64, 400)
    size = (64, 400, 1)
    for seen in (
        rng.standard_cauchy(size),
        rng.exponential(size=size),
        rng.integers(0, 2, size).astype(float),
        np.clip(rng.normal(size=size), -0.5, 0.5),
    ):
        found = prepare_information(seen, folds_of(64) % 10)(membership)
        assert found.mean() < 6 * found.std() / 20
    # And with a difference in the tails alone it stays below the truth, ln 2.
    heavy = np.where(membership[..., None], rng.standard_cauchy(size), 50.0)
    assert prepare_information(heavy, folds_of(64) % 10)(membership).max() <= math.log(2)


def test_certain_membership_is_one_bit_and_a_constant_is_nothing():
    membership = columns(np.random.default_rng(7), 40, 6)
    rng = np.random.default_rng(7)
    certain = membership[..., None] * 2.0 + 1e-4 * rng.uniform(size=(40, 6, 1))
    folds = folds_of(40)
    np.testing.assert_allclose(
        prepare_information(certain, folds % 10)(membership), math.log(2), atol=1e-6
    )
    np.testing.assert_array_equal(prepare_advantage(certain, folds)(membership), 1.0)
    third = np.full((40, 6, 2), 1 / 3)
    large = 1e9 + 1e-6 * membership[..., None] * np.ones(2)  # its last digits are rounding
    for constant in (third, large):
        assert (prepare_information(constant, folds % 10)(membership) == 0).all()
        assert (prepare_advantage(constant, folds)(membership) == 0).all()
        assert (prepare_advantage(constant[..., :1], folds)(membership) == 0).all()
    small = 1e-9 * (1 + 1e-6 * membership[..., None])  # and these are not
    np.testing.assert_array_equal(prepare_advantage(small, folds)(membership), 1.0)


def test_scale_and_offset_change_nothing():
    rng = np.random.default_rng(8)
    membership = columns(rng, 40, 8)
    seen = gaussians(rng, membership, 1.0, 1.0, width=2)
    folds = folds_of(40)
    moved = seen * [1e-7, 1e5] + [3.0, -1e4]
    for prepare in (
        lambda x: prepare_information(x, folds % 10),
        lambda x: prepare_divergence(x, 3, 0),
        lambda x: prepare_advantage(x, folds),
    ):
        np.testing.assert_allclose(prepare(moved)(membership), prepare(seen)(membership), atol=1e-5)


def slow_advantage(seen, membership, half):
    """The threshold rule, one record and one threshold at a time."""
    total = 0.0
    for learned in (half, ~half):
        values, sides = seen[learned], membership[learned]
        best = (0.0, 0.0, 1)
        ordered = np.unique(values)
        for low, high in pairwise(ordered):
            cut = (low + high) / 2
            gain = np.mean(values[sides] < cut) - np.mean(values[~sides] < cut)
            if abs(gain) > best[0] + 1e-12:  # the first of the best
                best = (abs(gain), cut, int(np.sign(gain)))
        asked, truth = seen[~learned], membership[~learned]
        below = np.mean(asked[truth] < best[1]) - np.mean(asked[~truth] < best[1])
        total += best[2] * below
    return total / 2


def test_the_threshold_is_the_best_of_one_half_judged_on_the_other():
    rng = np.random.default_rng(9)
    membership = columns(rng, 40, 50)
    seen = gaussians(rng, membership, -1.0, 1.0)
    seen[:, 25:] = seen[:, 25:] < -0.5  # half of the records show one of two values
    folds = folds_of(40)
    found = prepare_advantage(seen, folds)(membership)
    expected = [slow_advantage(seen[:, i, 0], membership[:, i], folds % 2 == 0) for i in range(50)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("width", [1, 2])
def test_the_advantage_is_signed_and_approaches_the_total_variation_from_below(width):
    rng = np.random.default_rng(10)
    membership = columns(rng, 256, 200)
    folds = folds_of(256)
    for shift in (0.0, 1.0, -2.0):
        seen = gaussians(rng, membership, shift, 1.0, width)
        found = prepare_advantage(seen, folds)(membership)
        error = 6 * found.std() / math.sqrt(200)
        truth = total_variation(abs(shift), 1, 0, 1)
        assert truth - 0.06 - error <= found.mean() <= truth + error
        if shift == 0:
            assert (found < 0).mean() == pytest.approx(0.5, abs=0.25)


@pytest.mark.parametrize(
    ("one", "other", "k", "message"),
    [
        (np.ones((5, 2)), np.ones((5, 3)), 1, "same columns"),
        (np.ones((5, 2, 1)), np.ones((5, 2, 1)), 1, "same columns"),
        (np.ones((5, 2)), np.ones((5, 2, 1)), 1, "same columns"),
        (np.ones((5, 2, 1)), np.ones((5, 2)), 1, "same columns"),
        (np.ones(5), np.ones(4), 4, "smaller sample, which has 4, got 4"),
        (np.ones(5), np.ones(5), 0, "got 0"),
    ],
)
def test_samples_that_have_no_divergence_are_refused(one, other, k, message):
    with pytest.raises(InputError, match=message):
        knn_divergence(one, other, k)


@pytest.mark.parametrize("width", [1, 2])
def test_a_side_that_was_hardly_seen_tells_nothing(width):
    seen = np.random.default_rng(11).normal(size=(9, 3, width))
    membership = np.arange(9)[:, None] < np.array([0, 1, 2])
    found = prepare_divergence(seen, 3, seed=0)(membership)
    assert (found[:2] == 0).all()
    assert found[2] != 0


def test_folds_in_line_are_those_of_every_width():
    rng = np.random.default_rng(12)
    known = rng.normal(size=(14, 5, 1))
    membership = columns(rng, 14, 5)
    membership[:, 0] = np.arange(14) < 2  # a fold may hold all members of a record
    folds = np.arange(14) // 2
    slow = np.empty(membership.shape)
    for fold in range(7):
        out = folds == fold
        slow[out] = log_ratio(known[~out], membership[~out], known[out])
    np.testing.assert_allclose(_ratio_in_line(known, folds)(membership), slow, atol=1e-9)
    np.testing.assert_array_equal(_ratio_across(known, folds)(membership), slow)


def slow_counts(seen, membership, folds):
    """The log-ratios of numbers that tie, one model at a time; NaN where they are not counted."""
    found = np.full(membership.shape, np.nan)
    for model, record in np.ndindex(membership.shape):
        others = folds != folds[model]
        alike = seen[others, record] == seen[model, record]
        side = membership[others, record]
        values, sizes = np.unique(seen[:, record], return_counts=True)
        few = len(values) <= len(seen) / 8
        if (sizes > 1).any() and (few or alike.sum() > 1):
            shares = [(alike[one].sum() + 0.5) / (one.sum() + 1) for one in (side, ~side)]
            found[model, record] = math.log(shares[0] / shares[1])
    return found


def test_numbers_that_tie_are_counted_and_others_have_a_density():
    rng = np.random.default_rng(13)
    membership = columns(rng, 40, 12)
    seen = rng.normal(size=(40, 12, 1))
    seen[:, :4] = np.round(seen[:, :4])  # up to seven values
    seen[:, 4:8] = np.clip(seen[:, 4:8], -9, 0.2)  # many at one end
    seen[:, 8:10] = seen[:, 8:10] > -1  # two values
    seen[0, 9] = 7.0  # and one that is seen once
    folds = folds_of(40) % 10
    expected = slow_counts(seen[..., 0], membership, folds)
    plain = _ratio_across(seen, folds)(membership)
    found = _ratio_in_line(seen, folds)(membership)
    assert 0.2 < np.isnan(expected).mean() < 0.8
    assert np.isfinite(expected[0, 9])
    np.testing.assert_allclose(
        found, np.where(np.isnan(expected), plain, expected), atol=1e-6, rtol=1e-6
    )


def test_a_model_that_shows_two_numbers_tells_what_their_shares_tell():
    # Always right of its members and of three in four others, like a tree grown to the end.
    rng = np.random.default_rng(14)
    membership = columns(rng, 64, 400)
    right = membership | (rng.random((64, 400)) < 0.75)
    truth = entr([0.125, 0.875]).sum() - entr([0.25, 0.75]).sum() / 2
    found = prepare_information(right[..., None] * 1.0, folds_of(64) % 10)(membership)
    error = 6 * found.std() / 20
    assert truth - 2 / 64 - error <= found.mean() <= truth + error
