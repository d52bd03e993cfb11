from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from gated import attacked
from leakscope.gate.bounds import (
    advantage_together,
    auc_low,
    tpr_low,
)
from leakscope.metrics.curves import auc_delong, roc_curve_points
from leakscope.metrics.intervals import Interval, newcombe
from leakscope.metrics.tails import Rate, tpr_at_fpr


@pytest.mark.parametrize("tries", [1, 2, 12, 40])
@pytest.mark.parametrize(
    ("tpr", "fpr", "n"),
    [(0.6, 0.4, (800, 800)), (0.5, 0.5, (50, 50)), (1.0, 0.8, (50.5, 150)), (0.0, 0.1, (400, 80))],
)
def test_the_ends_of_an_advantage_are_newcombes_at_the_corrected_level(tpr, fpr, n, tries) -> None:
    found = advantage_together(attacked(tpr=tpr, fpr=fpr, n=n), tries)
    assert found == newcombe(tpr, n[0], fpr, n[1], 1 - 0.05 / tries)


@pytest.mark.parametrize(("shift", "n"), [(0.3, 60), (1.0, 200), (2.5, 100)])
@pytest.mark.parametrize("tries", [1, 8, 30])
def test_the_lower_end_of_an_area_is_that_of_the_scores(shift, n, tries) -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(shift, 1, n), rng.normal(size=n)])
    members = np.arange(2 * n) < n
    exact = auc_delong(scores, members, confidence=1 - 0.05 / tries).low
    found = auc_low(auc_delong(scores, members), tries, (n, n))
    # The degrees of freedom are not in the report: those of one side give a lower end.
    assert found <= exact + 1e-12
    assert found == pytest.approx(exact, abs=0.004)


def test_the_lower_end_of_an_area_of_1_and_of_one_that_may_be_0() -> None:
    scores, members = np.arange(200.0), np.arange(200) >= 100
    exact = auc_delong(scores, members, confidence=1 - 0.05 / 8).low
    assert auc_low(auc_delong(scores, members), 8, (100, 100)) == pytest.approx(exact, abs=0.003)
    assert auc_low(Interval(0.0, 0.0, 0.1), 8, (100, 100)) == 0
    assert math.isnan(auc_low(Interval(0.5, math.nan, 0.6), 8, (100, 100)))


def test_a_single_person_leaves_one_degree_of_freedom() -> None:
    # Student's is then Cauchy's distribution, whose quantiles are cotangents.
    stretch = math.tan(0.025 * math.pi) / math.tan(0.025 / 8 * math.pi)
    odds = (0.6 / 0.4) * ((0.55 / 0.45) / (0.6 / 0.4)) ** stretch
    found = auc_low(Interval(0.6, 0.55, 0.7), 8, (1, 9))
    assert found == pytest.approx(odds / (1 + odds), rel=1e-9)


@pytest.mark.parametrize(
    ("shift", "n", "fpr"), [(1.0, 300, 0.05), (2.0, 300, 0.05), (3.5, 500, 0.05), (1.5, 1000, 0.01)]
)
@pytest.mark.parametrize("tries", [1, 4, 12])
def test_the_lower_end_of_a_tpr_is_near_that_of_the_scores(shift, n, fpr, tries) -> None:
    rng = np.random.default_rng(3)
    scores = np.concatenate([rng.normal(shift, 1, n), rng.normal(size=n)])
    members = np.arange(2 * n) < n
    rate = tpr_at_fpr(scores, members, fpr)
    exact = tpr_at_fpr(scores, members, fpr, confidence=1 - 0.05 / tries).low
    curve = roc_curve_points(scores, members)
    one = attacked(curve=list(zip(*(part.tolist() for part in curve[:2]), strict=True)))
    found = tpr_low(one, rate, tries, n)
    assert found == pytest.approx(exact, abs=0.2 * (rate.value - exact))


def test_the_lower_end_of_a_tpr_at_the_edges() -> None:
    one = attacked(curve=((0.0, 1.0), (1.0, 1.0)))
    assert tpr_low(one, Rate(0.01, 0.01, 0.0, 0.1, True), 8, 1000) == 0
    # The plain scale would go below 0.
    assert tpr_low(one, Rate(0.01, 0.02, 0.01, 0.1, True), 10**6, 1000) == 0
    assert 0.9 < tpr_low(one, Rate(0.01, 1.0, 0.95, 1.0, True), 8, 1000) < 0.95


@pytest.mark.parametrize("tries", [2, 8, 30])
@pytest.mark.parametrize(("n", "fpr"), [(500, 0.01), (1000, 0.05), (5000, 0.001)])
def test_the_lower_end_of_a_tpr_is_on_the_curve_at_as_few_false_alarms_as_chance_allows(
    n, fpr, tries
) -> None:
    fewest = binom.ppf(0.025 / tries, n, fpr)
    # A curve that rises by one step where it should not matter, and by one where it should.
    steps = [(0.0, 0.0), (fewest / n, 0.31), ((fewest + 1) / n, 0.5), (1.0, 1.0)]
    rate = Rate(fpr, 0.5, 0.49, 0.6, True)
    assert tpr_low(attacked(curve=steps), rate, tries, n) == 0.31
    assert tpr_low(attacked(curve=[]), rate, tries, n) == 0
    assert tpr_low(attacked(curve=steps), rate, 1, n) == 0.49
