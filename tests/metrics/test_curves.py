from __future__ import annotations

import math
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve

from leakscope.errors import InputError
from leakscope.metrics.curves import Roc, auc_delong, roc, roc_curve_points, thin
from leakscope.metrics.intervals import auc_interval
from leakscope.metrics.rates import Rates
from leakscope.metrics.thresholds import CHOSEN, GIVEN, best_threshold

rows = st.lists(
    st.tuples(st.integers(-5, 5) | st.floats(-1e6, 1e6), st.booleans()), min_size=2, max_size=60
).filter(lambda pairs: len({side for _, side in pairs}) == 2)


def columns(pairs):
    scores, membership = zip(*pairs, strict=True)
    return np.array(scores, dtype=float), np.array(membership)


def example(n=300, shift=0.8, seed=0, decimals=1):
    """Scores with many ties, members twice as many as non-members, and persons of several rows."""
    rng = np.random.default_rng(seed)
    unit = np.repeat(np.arange(n), rng.integers(1, 4, n))
    membership = unit % 3 > 0
    scores = np.round(rng.normal(size=n)[unit] + rng.normal(size=len(unit)), decimals)
    return scores + shift * membership, membership, unit


# --- the curve ---------------------------------------------------------------------------------


@given(rows)
def test_points_and_area_are_those_of_scikit_learn(pairs):
    scores, membership = columns(pairs)
    expected = roc_curve(membership, scores, drop_intermediate=False)
    for ours, theirs in zip(roc_curve_points(scores, membership), expected, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-12)
    area = auc_delong(scores, membership).value
    assert area == pytest.approx(roc_auc_score(membership, scores), abs=1e-12)


def test_thinning_keeps_short_curves_but_for_straight_runs():
    fpr, tpr = np.array([0, 0, 0, 0.5, 0.5, 1]), np.array([0, 0.2, 0.4, 0.4, 1, 1])
    curve = thin(fpr, tpr)
    assert curve.fpr.tolist() == [0, 0, 0.5, 0.5, 1]
    assert curve.tpr.tolist() == [0, 0.4, 0.4, 1, 1]


def test_thinning_keeps_the_low_end_dense_and_the_shape():
    rng = np.random.default_rng(0)
    membership = rng.random(50_000) < 0.5
    fpr, tpr, _ = roc_curve_points(rng.normal(size=50_000) + membership, membership)
    curve = thin(fpr, tpr)
    assert len(curve.fpr) <= 512
    assert {*zip(curve.fpr, curve.tpr, strict=True)} <= {*zip(fpr, tpr, strict=True)}
    assert (curve.fpr[0], curve.tpr[0], curve.fpr[-1], curve.tpr[-1]) == (0, 0, 1, 1)
    assert (np.diff(curve.fpr) >= 0).all()
    assert (np.diff(curve.tpr) >= 0).all()
    assert np.sum(curve.fpr < 0.001) > 20
    for rate in np.geomspace(1e-3, 0.9, 30):
        full = tpr[np.searchsorted(fpr, rate, side="right") - 1]
        kept = curve.tpr[np.searchsorted(curve.fpr, rate, side="right") - 1]
        assert 0 <= full - kept < 0.02
    assert np.trapezoid(curve.tpr, curve.fpr) == pytest.approx(np.trapezoid(tpr, fpr), abs=1e-3)


# --- the area ----------------------------------------------------------------------------------


def slow_delong(scores, membership, unit):
    """DeLong's variance with Obuchowski's clusters, pair by pair, and the degrees of freedom."""
    members, others = scores[membership], scores[~membership]
    wins = (members[:, None] > others) + (members[:, None] == others) / 2
    area, variances, freedoms = wins.mean(), [], []
    for components, owner in (
        (wins.mean(axis=1), unit[membership]),
        (wins.mean(axis=0), unit[~membership]),
    ):
        sums = [np.sum(components[owner == one] - area) for one in set(owner)]
        k = len(sums)
        variances.append(k / (k - 1) * np.sum(np.square(sums)) / len(components) ** 2)
        freedoms.append(k - 1)
    total = sum(variances)
    freedom = total**2 / sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))
    return area, total, freedom


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("inflation", [1.0, 2.0])
def test_the_area_has_the_variance_of_a_slow_count(clustered, inflation):
    scores, membership, unit = example(60)
    owner = unit if clustered else np.arange(len(scores))
    area, variance, freedom = slow_delong(scores, membership, owner)
    expected = auc_interval(area, inflation * variance, 1, 1, freedom)
    found = auc_delong(scores, membership, unit=unit if clustered else None, inflation=inflation)
    assert (found.value, found.low, found.high) == pytest.approx(
        (expected.value, expected.low, expected.high), abs=1e-12
    )


def test_units_of_one_row_change_nothing():
    scores, membership, _ = example()
    alone = roc(scores, membership, unit=np.arange(len(scores)), threshold=0.0).to_dict()
    expected = roc(scores, membership, threshold=0.0).to_dict()
    for key in ("auc", "advantage", "accuracy", "ppv"):
        assert alone[key] == pytest.approx(expected[key], abs=1e-12)


@given(rows)
def test_swapping_the_sides_mirrors_the_area_and_its_interval(pairs):
    scores, membership = columns(pairs)
    one, other = auc_delong(scores, membership), auc_delong(scores, ~membership)
    assert other.value == pytest.approx(1 - one.value, abs=1e-12)
    assert (other.low, other.high) == pytest.approx((1 - one.high, 1 - one.low), abs=1e-9)
    assert 0 <= one.low <= one.value <= one.high <= 1


def test_equal_scores_are_at_chance_without_any_width():
    result = roc(np.full(800, 0.7), np.arange(800) < 500)  # a peer's trap: 500 members, 300 others
    assert (result.auc.low, result.auc.value, result.auc.high) == (0.5, 0.5, 0.5)
    assert result.advantage.value == 0.0
    assert result.accuracy.value == 0.5
    assert result.p_value >= 0.5


@pytest.mark.parametrize("unit", [None, [0, 0, 0, 1, 1, 1]])
def test_separated_sides_keep_an_interval(unit):
    membership = np.array([False, False, False, True, True, True])
    area = auc_delong(np.arange(6), membership, unit=unit)
    assert (area.value, area.high) == (1.0, 1.0)
    assert 0 < area.low < 1
    if unit is not None:  # one person a side knows less than three rows do
        assert area.low < auc_delong(np.arange(6), membership).low


def test_separated_sides_count_the_records_that_an_inflation_leaves():
    def low(n, inflation):
        return auc_delong(np.arange(2 * n), np.arange(2 * n) >= n, inflation=inflation).low

    assert low(24, 2.0) == pytest.approx(low(12, 1.0), rel=1e-12)
    assert low(12, 1.0) < low(25, 2.0) < low(13, 1.0)  # as of 12.5 records a side


# --- the front ---------------------------------------------------------------------------------


def test_a_given_threshold_is_judged_on_all_records():
    scores, membership, _ = example()
    result = roc(scores, membership, threshold=0.4, prior=0.1)
    expected = Rates.count(scores >= 0.4, membership)
    assert result.judged.all()
    assert result.rates == expected
    assert result.advantage == expected.advantage()
    assert result.ppv == expected.ppv(0.1)
    assert result.p_value == expected.p_value
    assert (result.threshold.value, result.threshold.source) == (0.4, GIVEN)
    shown = result.to_dict()
    assert shown["ppv"]["prior"] == 0.1
    assert [rate["fpr"] for rate in shown["tpr_at_fpr"]] == [0.001, 0.01, 0.05]


def test_a_chosen_threshold_is_judged_on_other_records_than_it_was_chosen_on():
    scores, membership, _ = example()
    inside = np.arange(len(scores)) % 5 == 0
    for result in (roc(scores, membership), roc(scores, membership, calibration=inside)):
        judged = result.judged
        assert result.threshold.source == CHOSEN
        assert result.threshold.value == best_threshold(scores[~judged], membership[~judged])
        called = scores[judged] >= result.threshold.value
        assert result.rates == Rates.count(called, membership[judged])
    assert np.array_equal(judged, ~inside)


def test_the_threshold_never_saw_the_records_it_is_judged_on():
    # Pure noise: a threshold chosen where it is judged would have a positive advantage always.
    rng = np.random.default_rng(0)
    membership = np.arange(60) < 30
    found = [
        roc(rng.normal(size=60), membership, fprs=(), seed=seed).advantage.value
        for seed in range(800)
    ]
    # The standard deviation is below 0.15; five standard errors of the mean.
    assert abs(np.mean(found)) < 5 * 0.15 / math.sqrt(800)
    peeking = [
        Rates.count(scores >= best_threshold(scores, membership), membership).advantage().value
        for scores in rng.normal(size=(100, 60))
    ]
    assert np.mean(peeking) > 0.1


def strip(result: Roc):
    return result.to_dict() | {"rates": result.rates}


@pytest.mark.parametrize("with_unit", [False, True])
@pytest.mark.parametrize("inflation", [1.0, 2.0])
def test_the_order_of_the_records_changes_nothing_at_all(with_unit, inflation):
    scores, membership, unit = example(decimals=2)
    rng = np.random.default_rng(1)
    owner = unit if with_unit else None
    expected = strip(roc(scores, membership, unit=owner, inflation=inflation))
    for _ in range(5):
        order = rng.permutation(len(scores))
        owner = unit[order] if with_unit else None
        found = roc(scores[order], membership[order], unit=owner, inflation=inflation)
        assert strip(found) == expected


def test_units_stay_together_when_a_threshold_is_chosen():
    scores, membership, unit = example()
    judged = roc(scores, membership, unit=unit).judged
    assert not set(unit[judged]) & set(unit[~judged])


def test_inflation_widens_every_interval():
    scores, membership, _ = example()
    one, two = (roc(scores, membership, threshold=0.0, inflation=i) for i in (1.0, 2.0))
    for key in ("auc", "advantage", "accuracy", "ppv"):
        assert getattr(two, key).low < getattr(one, key).low
        assert getattr(two, key).high > getattr(one, key).high
        assert getattr(two, key).value == getattr(one, key).value
    for narrow, wide in zip(one.tpr_at_fpr, two.tpr_at_fpr, strict=True):
        assert wide.high > narrow.high
    assert two.p_value > one.p_value

    def width(of):
        return math.log(of.high / (1 - of.high)) - math.log(of.low / (1 - of.low))

    assert width(two.auc) / width(one.auc) == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inflation": 0.5}, "inflation"),
        ({"inflation": math.inf}, "inflation"),
        ({"prior": 0}, "prior"),
        ({"prior": 1.0}, "prior"),
        ({"threshold": math.nan}, "threshold is not a number"),
        ({"confidence": 95}, "confidence"),
        ({"fprs": [2]}, "fpr must be between 0 and 1"),
        ({"unit": ["a"] * 6}, "among the members and the non-members"),
        ({"calibration": [True] * 6}, "no member outside"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        roc(np.arange(6.0), np.arange(6) < 3, **options)


def test_nan_scores_are_refused():
    with pytest.raises(InputError, match="finite"):
        roc([0.1, math.nan, 0.3], [True, False, True])


def test_a_hundred_thousand_records_take_well_under_a_second():
    rng = np.random.default_rng(0)
    membership = rng.random(100_000) < 0.5
    scores, unit = rng.normal(size=100_000), 2 * np.arange(100_000) // 6 * 2 + membership
    start = perf_counter()
    roc(scores, membership, unit=unit)
    assert perf_counter() - start < 2  # 0.1 s on a quiet machine


# --- coverage ----------------------------------------------------------------------------------


def coverage(draw, repetitions, area, **options):
    """Shares of repetitions in which the intervals of area and advantage hold the truth."""
    shift = norm.ppf(area) * math.sqrt(2)
    held = np.zeros(2)
    for repetition in range(repetitions):
        scores, membership, unit = draw(shift)
        result = roc(scores, membership, unit=unit, fprs=(), seed=repetition, **options)
        threshold = result.threshold.value
        advantage = norm.sf(threshold - shift) - norm.sf(threshold)
        held += [
            result.auc.low <= area <= result.auc.high,
            result.advantage.low <= advantage <= result.advantage.high,
        ]
    return held / repetitions


def test_intervals_hold_the_truth():
    rng = np.random.default_rng(0)
    membership = np.arange(240) < 100

    def draw(shift):
        return rng.normal(size=240) + shift * membership, membership, None

    # 1000 repetitions: five standard deviations are 3.4 points.
    assert (np.abs(coverage(draw, 1000, 0.8) - 0.95) < 0.034).all()


@pytest.mark.slow
def test_intervals_hold_the_truth_where_rows_belong_to_persons():
    rng = np.random.default_rng(0)

    def draw(shift, known=True):
        unit = np.repeat(np.arange(160), rng.integers(1, 6, 160))
        membership = unit < 80
        scores = math.sqrt(0.9) * rng.normal(size=160)[unit]
        scores += math.sqrt(0.1) * rng.normal(size=len(unit)) + shift * membership
        return scores, membership, unit if known else None

    assert (np.abs(coverage(draw, 700, 0.7) - 0.95) < 0.045).all()
    # Were the rows taken for persons, every third interval would miss.
    assert (coverage(lambda shift: draw(shift, known=False), 300, 0.7) < 0.85).all()


@pytest.mark.slow
def test_inflation_by_2_is_needed_and_enough_for_scores_cross_fitted_in_two_halves():
    # Features of no meaning; each half teaches the direction that scores the other half.
    rng = np.random.default_rng(0)
    n, repetitions = 120, 2500
    accused = np.zeros(2)
    for _ in range(repetitions):
        features = rng.normal(size=(n, 60))
        membership = rng.permutation(n) < n // 2
        half = rng.permutation(n) < n // 2
        scores = np.empty(n)
        for asked in (half, ~half):
            known, mine = features[~asked], membership[~asked]
            scores[asked] = features[asked] @ (known[mine].mean(0) - known[~mine].mean(0))
        for i, inflation in enumerate((1.0, 2.0)):
            rates = Rates.count(scores >= 0, membership, inflation=inflation)
            accused[i] += rates.p_value < 0.025
    # 0.025 is the promise; five standard deviations above it are 0.0406.
    assert accused[0] / repetitions > 0.05
    assert accused[1] / repetitions < 0.0406
