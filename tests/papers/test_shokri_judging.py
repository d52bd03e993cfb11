from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr

from leakscope.attacks.threshold import LabelGap, LossThreshold
from leakscope.auditing.battery import channel_of
from leakscope.auditing.choosing import attack_of
from leakscope.metrics.intervals import Interval
from leakscope.models.callable import CallableModel
from leakscope.papers.shokri_judging import (
    attempt,
    correlation,
    ends,
    grouped,
    judged,
    over_targets,
    places,
    told,
)
from leakscope.papers.shokri_targets import STAND_IN, Target
from leakscope.records import Records

N = 400


@pytest.fixture(scope="module")
def target() -> Target:
    """A model that is right about all members and about half of the others."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 3)), rng.integers(0, 2, N)
    y[:2] = 0, 1
    records = Records(X, y)
    order = records.canonical_order()
    records = records.take(order)
    membership = rng.permutation(N) < N // 2
    right = membership | (rng.uniform(size=N) < 0.5)
    answers = dict(
        zip(map(bytes, np.asarray(records.X)), zip(right, records.y, strict=True), strict=True)
    )

    def predict(asked: np.ndarray) -> np.ndarray:
        rows = [answers[bytes(row)] for row in np.ascontiguousarray(asked)]
        one = np.array([0.9 if (label == 1) == good else 0.1 for good, label in rows])
        return np.column_stack([1 - one, one])

    model = CallableModel(predict, np.array([0, 1]), "classification")
    return Target(STAND_IN, 0, None, 7, model, records, membership)


def test_the_label_says_as_much_as_the_gap(target: Target) -> None:
    train, test = target.accuracies
    assert train == 1.0
    assert 0.35 < test < 0.65
    found = attempt(target, LabelGap(), channel_of("label", 0))
    assert found.accuracy.value == pytest.approx(0.5 + (train - test) / 2)
    assert places([target]) == {
        "dataset": "synthetic", "gap": train - test, "level": None, "epoch": 7.0,
        "train_accuracy": train, "test_accuracy": test,
    }  # fmt: skip


def test_the_threshold_of_the_loss_is_chosen_on_a_fifth(target: Target) -> None:
    found = attempt(target, LossThreshold(), channel_of("loss", 0))
    others = ~target.folds.calibration
    called = found.scores > np.log(0.5)
    assert found.accuracy.value == pytest.approx(
        np.mean([
            called[others & target.membership].mean(),
            1 - called[others & ~target.membership].mean(),
        ])
    )  # fmt: skip
    assert found.accuracy.low < found.accuracy.value < found.accuracy.high


def test_a_taught_attack_is_cut_at_even_odds(target: Target) -> None:
    observations = np.zeros((N, 9))
    observations[:, 0] = 1.0 - target.membership  # the 1-norm tells everything
    found = judged(target, attack_of("gradient-tree"), observations)
    np.testing.assert_array_equal(found.scores > 0, target.membership)
    assert found.accuracy.value == 1.0


def test_correlations_and_their_intervals_are_scipys() -> None:
    rng = np.random.default_rng(0)
    one = rng.normal(size=50)
    other = one + rng.normal(size=50)
    expected = pearsonr(one, other)
    low, high = expected.confidence_interval(0.95)
    found = correlation(one, other)
    assert (found.value, found.low, found.high) == pytest.approx((expected.statistic, low, high))
    same = correlation(one, one)
    assert (same.value, same.low, same.high) == pytest.approx((1.0, 1.0, 1.0))
    nothing = correlation(one, np.ones(50))
    assert nothing.value == 0.0
    assert nothing.low == -nothing.high < 0


def test_one_target_keeps_its_interval_and_several_are_averaged() -> None:
    assert over_targets([Interval(0.6, 0.5, 0.7)]) == Interval(0.6, 0.5, 0.7)
    alike = over_targets([Interval(0.6, 0.5, 0.7), Interval(0.6, 0.55, 0.65)])
    assert (alike.value, alike.low, alike.high) == pytest.approx((0.6, 0.525, 0.675))
    apart = over_targets([Interval(0.5, 0.49, 0.51), Interval(0.7, 0.69, 0.71)])
    # Student's with one degree of freedom: 12.706 standard errors of 0.1.
    assert (apart.low, apart.high) == pytest.approx((0.6 - 1.2706, 0.6 + 1.2706), abs=1e-4)


def test_groups_keep_the_order_of_their_keys() -> None:
    assert [*grouped([3, 1, 2, 5, 4], lambda n: n % 2)] == [[3, 1, 5], [2, 4]]


def test_figures_as_columns_and_as_words() -> None:
    row = ends(Interval(0.6284, 0.607, float("nan")))
    assert row == {"attack_accuracy": 0.6284, "low": 0.607, "high": None}
    assert told({"attack_accuracy": -0.1, "low": -0.25, "high": 0.5}) == "−0.100 (−0.250 to 0.500)"
    row = {"r": 0.5, "r_low": 0.4, "r_high": 0.6}
    assert told(row, "r", "r_low") == "0.500 (0.400 to 0.600)"
