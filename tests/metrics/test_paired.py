from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student

from leakscope.errors import InputError
from leakscope.metrics.curves import auc_delong
from leakscope.metrics.paired import advantage_difference, auc_difference, tpr_difference
from leakscope.metrics.tails import tpr_at_fpr

FPR = 0.05
ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()), min_size=2, max_size=40
).filter(lambda rows: len({side for _, _, side in rows}) == 2)


def ends(interval):
    return interval.value, interval.low, interval.high


def columns(rows):
    first, second, members = zip(*rows, strict=True)
    return np.array(first, dtype=float), np.array(second, dtype=float), np.array(members)


def world(rng, shift, other_shift, n=1000, shared=0.5):
    """Two correlated Gaussian scores of n members and n non-members."""
    members = np.arange(2 * n) < n
    common, own, others = rng.normal(size=(3, 2 * n))
    first, second = (
        math.sqrt(shared) * common + math.sqrt(1 - shared) * noise for noise in (own, others)
    )
    return first + shift * members, second + other_shift * members, members


def people(rng, n=400, shift=0.7, other_shift=0.7):
    """The same with one to five rows per person, who has an effect of their own on each score."""
    unit = np.repeat(np.arange(n), rng.integers(1, 6, n))
    members = unit < n // 2
    common = rng.normal(size=n)[unit]
    first, second = (
        0.5 * common
        + math.sqrt(0.35) * rng.normal(size=n)[unit]
        + math.sqrt(0.4) * rng.normal(size=len(unit))
        + by * members
        for by in (shift, other_shift)
    )
    return first, second, members, unit


# --- the difference of areas -------------------------------------------------------------------


def slow_difference(first, second, members, unit, inflation=1.0):
    """DeLong's covariance of two areas pair by pair, clustered, and the degrees of freedom."""
    wins = [
        (s[members][:, None] > s[~members]) + (s[members][:, None] == s[~members]) / 2
        for s in (first, second)
    ]
    variances, freedoms = [], []
    for axis, side in ((1, members), (0, ~members)):
        residuals = []
        for won in wins:
            components = won.mean(axis=axis) - won.mean()
            residuals.append([components[unit[side] == u].sum() for u in np.unique(unit[side])])
        k, n = len(residuals[0]), np.count_nonzero(side)
        covariance = np.cov(residuals) * k / n**2  # the residuals of a side sum to 0
        variances.append(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
        squares = np.square(np.subtract(*residuals))
        freedoms.append(max(min(squares.sum() ** 2 / np.square(squares).sum(), k) - 1, 1))
    total = sum(variances)
    freedom = total**2 / sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))
    half = student.ppf(0.975, freedom) * math.sqrt(inflation * total)
    difference = wins[0].mean() - wins[1].mean()
    return difference, difference - half, difference + half


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("inflation", [1.0, 2.0])
@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_areas_differ_as_a_slow_count_says(clustered, inflation, decimals):
    first, second, members, unit = people(np.random.default_rng(0), 60, 1.0)
    first, second = np.round(first, decimals), np.round(second, decimals)
    owner = unit if clustered else np.arange(len(unit))
    found = auc_difference(
        first, second, members, unit=unit if clustered else None, inflation=inflation
    )
    expected = slow_difference(first, second, members, owner, inflation)
    assert ends(found) == pytest.approx(expected, abs=1e-12)


@given(ROWS)
def test_the_difference_of_areas_is_that_of_the_two_areas(rows):
    first, second, members = columns(rows)
    found = auc_difference(first, second, members)
    areas = [auc_delong(scores, members).value for scores in (first, second)]
    assert found.value == pytest.approx(areas[0] - areas[1], abs=1e-12)
    assert -1 <= found.low <= found.value <= found.high <= 1


def test_opposite_areas_of_few_records_keep_an_interval():
    # No variance to see: every record wins with one score and loses with the other.
    members = np.arange(6) < 3
    found = auc_difference(-np.arange(6), np.arange(6), members)
    assert found.value == 1.0
    assert 0 < found.low < 0.9
    alone = auc_difference([2.0, 1.0], [1.0, 2.0], [True, False])
    assert alone.value == 1.0
    assert alone.low < 0


def test_a_single_person_on_a_side_decides_nothing():
    rng = np.random.default_rng(0)
    members = np.arange(200) < 100
    unit = np.where(members, 0, np.arange(200))
    first, second = rng.normal(size=(2, 200)) + [[3.0], [0.0]] * members
    assert auc_difference(first, second, members).low > 0
    assert auc_difference(first, second, members, unit=unit).low < 0


# --- the difference of rates -------------------------------------------------------------------


@given(ROWS, st.sampled_from([0.1, 0.25, 0.5, 0.9]))
def test_the_difference_of_rates_is_that_of_the_two_rates(rows, fpr):
    first, second, members = columns(rows)
    found = tpr_difference(first, second, members, fpr, draws=40)
    rates = [tpr_at_fpr(scores, members, fpr).value for scores in (first, second)]
    assert found.value == rates[0] - rates[1]
    assert -1 <= found.low <= found.value <= found.high <= 1


def slow_draws(first, second, members, fpr, rng, draws):
    """Differences of rates drawn record by record, with weights for every non-member."""
    drawn = []
    others = first[~members], second[~members]
    for _ in range(draws):
        weight, prior = rng.exponential(size=len(others[0])), rng.gamma(0.5, size=2)
        limit = fpr * (weight.sum() + prior.sum())
        above = []
        for scores, values, own in zip((first, second), others, prior, strict=True):
            order = np.argsort(-values)
            k = np.count_nonzero(own + np.cumsum(weight[order]) <= limit)
            above.append(scores[members] > values[order[k]])
        one, other = np.sum(above[0] & ~above[1]), np.sum(above[1] & ~above[0])
        shares = rng.dirichlet([one + 0.5, other + 0.5, members.sum() - one - other + 0.5])
        drawn.append(shares[0] - shares[1])
    return np.array(drawn)


@pytest.mark.parametrize("decimals", [1, 8])
def test_the_ends_are_those_of_drawing_record_by_record(decimals):
    rng = np.random.default_rng(0)
    first, second, members = world(rng, 1.5, 0.7, 300)
    first = np.round(first, decimals)
    found = tpr_difference(first, second, members, FPR, draws=40_000)
    drawn = slow_draws(first, second, members, FPR, rng, 4000)
    # An end of 4,000 draws is known to about 0.04 of their standard deviation; five of that.
    assert [found.low, found.high] == pytest.approx(
        np.quantile(drawn, [0.025, 0.975]), abs=0.2 * drawn.std()
    )


def test_where_no_threshold_is_in_doubt_the_shares_of_members_follow_jeffreys():
    # Of 20 members, all far from any threshold, five are found by one alone and two by the other.
    rng = np.random.default_rng(0)
    members = np.arange(420) < 20
    first, second = rng.normal(size=(2, 420))
    first[:20], second[:20] = -10.0, -10.0
    first[:5], second[5:7] = 10.0, 10.0
    found = tpr_difference(first, second, members, FPR, draws=40_000)
    shares = rng.dirichlet([5.5, 2.5, 13.5], size=400_000)
    expected = np.quantile(shares[:, 0] - shares[:, 1], [0.025, 0.975])
    assert [found.low, found.high] == pytest.approx(expected, abs=0.01)


def test_work_in_parts_draws_as_well(monkeypatch):
    first, second, members = world(np.random.default_rng(0), 1.0, 0.5)
    whole = tpr_difference(first, second, members, FPR, draws=20_000)
    monkeypatch.setattr("leakscope.metrics.paired.AT_ONCE", 3000)
    parts = tpr_difference(first, second, members, FPR, draws=20_000)
    assert ends(parts) == pytest.approx(ends(whole), abs=0.004)


def test_an_unresolved_difference_always_holds_0():
    rng = np.random.default_rng(0)
    members = np.arange(800) < 400
    first, second = rng.normal(size=(2, 800)) + [[6.0], [0.0]] * members
    found = tpr_difference(first, second, members, 0.01)  # 4 non-members above it
    assert found.value > 0.9
    assert found.low < 0 < found.high
    assert tpr_difference(first, second, members, 0.0125).low > 0.5  # 5


def test_a_few_records_on_which_attacks_differ_do_not_decide():
    # Equal but for three members at the top of one score and the bottom of the other.
    first, _, members = world(np.random.default_rng(0), 1.0, 1.0)
    second = first.copy()
    found = np.argsort(-first * members)[:3]
    second[found] = -9.0
    for result in (
        auc_difference(first, second, members),
        tpr_difference(first, second, members, FPR),
    ):
        assert result.low < 0 < result.value < result.high


# --- both --------------------------------------------------------------------------------------


def both(first, second, members, **options):
    return (
        ends(auc_difference(first, second, members, **options)),
        ends(tpr_difference(first, second, members, FPR, draws=200, **options)),
    )


@pytest.mark.parametrize("with_unit", [False, True])
@pytest.mark.parametrize("decimals", [1, 8])
def test_order_changes_nothing_and_swapping_mirrors_to_the_last_bit(with_unit, decimals):
    rng = np.random.default_rng(0)
    first, second, members, unit = people(rng, shift=1.0)
    first, second = np.round(first, decimals), np.round(second, decimals)

    def run(order, one, other):
        owner = {"unit": unit[order]} if with_unit else {}
        return both(one[order], other[order], members[order], inflation=1.5, **owner)

    expected = run(np.arange(len(unit)), first, second)
    mirrored = tuple((-value, -high, -low) for value, low, high in expected)
    for _ in range(4):
        order = rng.permutation(len(unit))
        assert run(order, first, second) == expected
        assert run(order, second, first) == mirrored


def test_scores_that_order_records_alike_differ_by_exactly_0():
    first, _, members = world(np.random.default_rng(0), 1.0, 1.0, 150)
    assert both(first, np.exp(first), members) == ((0, 0, 0), (0, 0, 0))
    assert both(np.zeros(300), np.ones(300), members) == ((0, 0, 0), (0, 0, 0))


def test_confidence_inflation_and_persons_widen_the_intervals():
    first, second, members, unit = people(np.random.default_rng(0), 600, 1.0)
    narrow = both(first, second, members)
    for options in ({"confidence": 0.999}, {"inflation": 3.0}, {"unit": unit}):
        for wide, plain in zip(both(first, second, members, **options), narrow, strict=True):
            assert wide[2] - wide[1] > plain[2] - plain[1]


@pytest.mark.slow
@pytest.mark.parametrize("together", ["found by one alone", "above the median"])
@pytest.mark.parametrize("swapped", [False, True])
def test_rows_of_persons_count_together_wherever_that_shows(together, swapped):
    # Two rows each of 200 persons a side. Of 20 rows that the first score alone finds, of 20 that
    # the second alone does and of 10 that both do, no two are of one person, but for those that go
    # together: then there are half as many independent records, as with an inflation of 2.
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(400), 2)
    members = unit < 200
    pairs = together == "found by one alone"
    base = rng.random((2, 800)) if pairs else rng.random((2, 400))[:, unit]
    scores = base + 1e-6 * rng.random((2, 800))
    for side in (members, ~members):
        rows = np.flatnonzero(side)[::2]  # the first row of each person
        high = rng.permutation(rows[pairs | (base[:, rows] > 0.5).all(axis=0)])
        first = np.append(high[:10], high[:10] + 1) if pairs else high[:20]
        scores[0, first] += 2.0
        scores[1, high[20:40]] += 2.0
        scores[:, high[40:50]] += 2.0
    one, other = scores[::-1] if swapped else scores
    found = tpr_difference(one, other, members, 0.075, unit=unit, draws=20_000)
    halved = tpr_difference(one, other, members, 0.075, inflation=2.0, draws=20_000)
    # An end of 20,000 draws is known to about 0.02 of a quarter of this width.
    assert found.high - found.low == pytest.approx(halved.high - halved.low, rel=0.05)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"other": np.zeros(5)}, "other scores have shape"),
        ({"other": np.full(6, math.nan)}, "finite"),
        ({"membership": np.ones(6, dtype=bool)}, "no non-members"),
        ({"inflation": 0.5}, "inflation"),
        ({"confidence": 95}, "confidence"),
        ({"unit": ["a"] * 6}, "among the members and the non-members"),
        ({"fpr": 1.0}, "fpr must be between 0 and 1"),
        ({"draws": 1}, "draws"),
    ],
)
def test_what_is_wrong_is_named(changed, message):
    given_ = {
        "scores": np.arange(6.0),
        "other": -np.arange(6.0),
        "membership": np.arange(6) < 3,
    } | changed
    with pytest.raises(InputError, match=message):
        tpr_difference(**{"fpr": 0.5, **given_})
    if not {"fpr", "draws"} & set(changed):
        with pytest.raises(InputError, match=message):
            auc_difference(**given_)


# --- coverage ----------------------------------------------------------------------------------


def share_held(draw, measure, truth, repetitions):
    """The share of repetitions in which the interval holds the truth; rounding is no miss."""
    held = 0
    for _ in range(repetitions):
        found = measure(*draw())
        held += found.low - 1e-12 <= truth <= found.high + 1e-12
    return held / repetitions


def rate(fpr, shift):
    return norm.sf(norm.isf(fpr) - shift)


def plain(first, second, members):
    return first, second, members


def floored(first, second, members):
    """80 % of the non-members have no score to speak of."""
    floor = norm.ppf(0.8)
    return np.maximum(first, floor), np.maximum(second, floor), members


def capped(first, second, members):
    """A loss of 0 for 80 % of the non-members, and more members: none is found at a low FPR."""
    return np.minimum(first, norm.ppf(0.2)), second, members


def share_of_rates_held(fpr, ties, shift, other_shift, repetitions):
    rng = np.random.default_rng(1)
    truth = (0 if ties is capped else rate(fpr, shift)) - rate(fpr, other_shift)
    return share_held(
        lambda: ties(*world(rng, shift, other_shift)),
        lambda *pair: tpr_difference(*pair, fpr, draws=400),
        truth,
        repetitions,
    )


@pytest.mark.slow
@pytest.mark.parametrize("fpr", [0.05, 0.01])
@pytest.mark.parametrize("shift", [1.0, 0.5])
def test_intervals_of_rates_hold_the_truth(fpr, shift):
    # Five standard deviations of 100 repetitions are 11 points.
    assert share_of_rates_held(fpr, plain, shift, 0.5, repetitions=100) >= 0.95 - 0.11


@pytest.mark.slow
def test_intervals_of_rates_hold_the_truth_in_many_worlds_and_with_heavy_ties():
    # Where both are equally good, what is missed is what is falsely claimed.
    held = {
        (fpr, ties, *shifts): share_of_rates_held(fpr, ties, *shifts, repetitions=300)
        for fpr in (0.05, 0.01)
        for ties in (plain, floored, capped)
        for shifts in ((1.0, 0.5), (0.7, 0.7))
    }
    # Five standard deviations of 300 repetitions are 6.3 points, of all 3,600 of them 1.8.
    assert min(held.values()) >= 0.95 - 0.063
    assert np.mean(list(held.values())) >= 0.93


@pytest.mark.parametrize(
    ("n", "shift", "other_shift", "shared"),
    [(1000, 1.0, 0.5, 0.5), (200, 0.7, 0.7, 0.9), (100, 3.6, 3.2, 0.6), (60, 0.0, 0.0, 0.5)],
)
def test_intervals_of_areas_hold_the_truth(n, shift, other_shift, shared):
    rng = np.random.default_rng(1)
    truth = norm.cdf(shift / math.sqrt(2)) - norm.cdf(other_shift / math.sqrt(2))
    held = share_held(
        lambda: world(rng, shift, other_shift, n, shared), auc_difference, truth, repetitions=500
    )
    # Five standard deviations of 500 repetitions are .049; above, it may be careful.
    assert held >= 0.95 - 0.049


@pytest.mark.slow
def test_intervals_hold_the_truth_where_rows_belong_to_persons():
    rng = np.random.default_rng(1)
    missed = np.zeros(3)
    for _ in range(120):
        first, second, members, unit = people(rng, 600)
        for i, found in enumerate(
            [
                auc_difference(first, second, members, unit=unit),
                tpr_difference(first, second, members, FPR, unit=unit, draws=400),
                auc_difference(first, second, members),
            ]
        ):
            missed[i] += not found.low <= 0 <= found.high
    # 6 is the promise and 18 five standard deviations above it.
    assert (missed[:2] <= 18).all()
    assert missed[2] > 18  # were the rows taken for persons


@pytest.mark.slow
@pytest.mark.parametrize("changed", [0.01, 0.2])
def test_attacks_that_hardly_differ_are_rarely_said_to(changed):
    # A share of the records, drawn anew in either score: rare differences, each a large one.
    rng = np.random.default_rng(1)
    members = np.arange(1000) < 500
    claimed = np.zeros(2)
    for _ in range(200):
        common = rng.normal(size=1000)
        pair = [
            np.where(rng.random(1000) < changed / 2, rng.normal(size=1000), common) + members
            for _ in range(2)
        ]
        for i, found in enumerate(
            [auc_difference(*pair, members), tpr_difference(*pair, members, FPR, draws=400)]
        ):
            claimed[i] += not found.low <= 0 <= found.high
    assert (claimed <= 25).all()  # five standard deviations above 5 %


# --- the difference of advantages --------------------------------------------------------------


def decisions(rng, n, rates, agreeing=0.5):
    """Two decisions about n members and n non-members, equal for a share of the records."""
    members = np.arange(2 * n) < n
    common = rng.random(2 * n)
    same = rng.random(2 * n) < agreeing
    called = []
    for tpr, fpr in rates:
        draws = np.where(same, common, rng.random(2 * n))
        called.append(draws < np.where(members, tpr, fpr))
    return called[0], called[1], members


def test_the_difference_of_advantages_is_theirs_and_mirrored():
    first, second, members = decisions(np.random.default_rng(0), 200, [(0.6, 0.4), (0.5, 0.45)])
    found = advantage_difference(first, second, members)
    own = [one[members].mean() - one[~members].mean() for one in (first, second)]
    assert found.value == pytest.approx(own[0] - own[1], abs=1e-12)
    assert found.low < found.value < found.high
    swapped = advantage_difference(second, first, members)
    assert ends(swapped) == pytest.approx((-found.value, -found.high, -found.low), abs=1e-9)
    order = np.random.default_rng(1).permutation(len(members))
    assert ends(advantage_difference(first[order], second[order], members[order])) == ends(found)


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [0.95, 1 - 0.05 / 15])
@pytest.mark.parametrize(
    ("n", "rates", "agreeing"),
    [
        (400, [(0.6, 0.4), (0.5, 0.45)], 0.5),
        (400, [(0.55, 0.45), (0.55, 0.45)], 0.98),
        (80, [(0.3, 0.1), (0.5, 0.1)], 0.8),
        (400, [(0.02, 0.01), (0.03, 0.01)], 0.3),
    ],
)
def test_its_interval_holds_the_truth(n, rates, agreeing, confidence):
    rng = np.random.default_rng(2)
    truth = (rates[0][0] - rates[0][1]) - (rates[1][0] - rates[1][1])
    held = 0
    for _ in range(1500):
        found = advantage_difference(*decisions(rng, n, rates, agreeing), confidence=confidence)
        held += found.low <= truth <= found.high
    # Five standard deviations below the level, and Tango's interval may hold it more often.
    assert held / 1500 > confidence - 5 * math.sqrt(confidence * (1 - confidence) / 1500)


def test_rows_of_one_person_count_together():
    rng = np.random.default_rng(3)
    first, second, members = decisions(rng, 100, [(0.6, 0.4), (0.5, 0.45)])
    repeated = [np.repeat(one, 4) for one in (first, second, members)]
    alone = advantage_difference(first, second, members)
    together = advantage_difference(*repeated, unit=np.repeat(np.arange(200), 4))
    assert ends(together) == pytest.approx(ends(alone), abs=0.02)
    twice = advantage_difference(*repeated, unit=np.repeat(np.arange(200), 4), inflation=2.0)
    assert twice.high - twice.low > 1.3 * (together.high - together.low)


def test_decisions_that_agree_differ_by_nothing_seen():
    members = np.arange(100) < 50
    found = advantage_difference(members, members, members)
    assert found.value == 0.0
    assert 0 < found.high == -found.low < 0.15


@pytest.mark.parametrize(
    ("called", "other", "message"),
    [
        ([1.0, 0.0], [True, False], "decisions must be true or false"),
        ([True, False], [True], "other decisions has shape"),
    ],
)
def test_decisions_are_booleans_of_one_length(called, other, message):
    with pytest.raises(InputError, match=message):
        advantage_difference(called, other, [True, False])
