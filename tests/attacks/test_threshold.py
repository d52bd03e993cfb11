from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from leakscope.attacks.threshold import (
    Confidence,
    EntropyThreshold,
    GaussianError,
    LabelGap,
    LossThreshold,
    ModifiedEntropyThreshold,
    RobustLabel,
    rank_in_class,
)
from leakscope.evidence import Evidence, Folds


def evidence(observations, labels, membership=None, knowledge="none", task="classification"):
    n = len(labels)
    half = np.arange(n) % 2 == 0
    return Evidence(
        task=task,
        observations=np.asarray(observations, float).reshape(n, -1),
        labels=np.asarray(labels),
        classes=int(np.max(labels)) + 1 if task == "classification" else 0,
        folds=Folds(half, np.arange(n) % 5 == 0),
        seed=0,
        knowledge=knowledge,
        _membership=None if membership is None else np.asarray(membership),
    )


def test_loss_is_thresholded_at_the_average_over_members():
    given = evidence([1.0, 2.0, 6.0], [0, 0, 1], [True, True, False], "average training loss")
    attack = LossThreshold()
    assert attack.score(given).tolist() == [-1.0, -2.0, -6.0]
    assert attack.threshold(given) == -1.5


def test_label_gap_is_whether_the_label_is_right():
    given = evidence([0, 1, 1], [0, 0, 1])
    assert LabelGap().score(given).tolist() == [1.0, 0.0, 1.0]
    assert LabelGap().threshold(given) == 0.5


def slow_ranks(values, labels):
    """Wins against the records of the same class, ties by half, over their number."""
    ranks = []
    for value, label in zip(values, labels, strict=True):
        same = [other for other, which in zip(values, labels, strict=True) if which == label]
        wins = sum(other < value for other in same) + 0.5 * sum(other == value for other in same)
        ranks.append(wins / len(same))
    return ranks


def test_ranks_within_a_class_agree_with_counting():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 6, 60).astype(float)
    labels = rng.integers(0, 4, 60)
    np.testing.assert_allclose(rank_in_class(values, labels), slow_ranks(values, labels))


@pytest.mark.parametrize(
    ("attack", "sign"),
    [(Confidence(), 1), (EntropyThreshold(), -1), (ModifiedEntropyThreshold(), -1)],
    ids=lambda value: getattr(value, "name", value),
)
def test_thresholds_per_class_are_blind_to_the_level_of_a_class(attack, sign):
    rng = np.random.default_rng(1)
    values, labels = rng.normal(size=50), rng.integers(0, 2, 50)
    plain = attack.score(evidence(values, labels))
    shifted = attack.score(evidence(values + 100 * labels, labels))
    np.testing.assert_array_equal(plain, shifted)
    one_class = labels == 0
    assert np.corrcoef(values[one_class], plain[one_class])[0, 1] * sign > 0.9
    assert attack.threshold(evidence(values, labels)) is None


def test_robust_label_is_what_the_channel_shows():
    assert RobustLabel().score(evidence([0.2, 1.0], [0, 1])).tolist() == [0.2, 1.0]


def test_gaussian_error_decides_as_the_log_likelihood_ratio_of_the_other_half():
    rng = np.random.default_rng(2)
    membership = np.arange(400) % 4 < 2
    errors = rng.normal(size=400) * np.where(membership, 0.5, 2.0)
    given = evidence(
        errors**2, np.zeros(400), membership, "members of the other half", "regression"
    )
    scores = GaussianError().score(given)
    for half in (False, True):
        asked = given.folds.half == half
        taught = ~asked
        inside = np.sqrt(np.mean(errors[taught & membership] ** 2))
        outside = np.sqrt(np.mean(errors[taught & ~membership] ** 2))
        ratio = norm.logpdf(errors[asked], 0, inside) - norm.logpdf(errors[asked], 0, outside)
        np.testing.assert_array_equal(scores[asked] >= 0, ratio >= 0)
        # Linear in the squared error, as the ratio is: the two differ by a factor only.
        factor = (1 / inside**2 - 1 / outside**2) / 2
        np.testing.assert_allclose(scores[asked] * factor, ratio, rtol=1e-9, atol=1e-12)
    assert GaussianError().threshold(given) == 0.0


def test_gaussian_error_stays_finite_where_members_are_interpolated():
    membership = np.arange(40) % 4 < 2
    squares = np.where(membership, 0.0, 1.0)
    given = evidence(squares, np.zeros(40), membership, "members of the other half", "regression")
    scores = GaussianError().score(given)
    assert np.isfinite(scores).all()
    assert scores[membership].min() > scores[~membership].max()
    nothing = evidence(np.zeros(40), np.zeros(40), membership, given.knowledge, "regression")
    assert np.ptp(GaussianError().score(nothing)) == 0
