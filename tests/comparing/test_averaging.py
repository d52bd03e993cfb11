from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, t

from leakscope.comparing.averaging import Figure, Figures, within
from leakscope.metrics.intervals import Interval


def rates(rng, seeds, n, spread=0.0, shared=False):
    """Rates of hits whose chance is one half, moved by a spread between seeds."""
    figures, chance = [], rng.random(3 * n)
    for _ in range(seeds):
        moved = spread * rng.normal()
        place = np.arange(n) if shared else rng.permutation(3 * n)[:n]
        figures.append(Figure.rate(rng.random(n) < chance[place] + moved, place, 3 * n))
    return Figures.of(figures)


def test_one_seed_has_the_interval_of_its_records():
    hits = np.arange(100) < 30
    found = Figures.of([Figure.rate(hits, np.arange(100), 200)]).mean()
    half = norm.ppf(0.975) * np.sqrt(0.3 * 0.7 / 100)
    np.testing.assert_allclose((found.value, found.low, found.high), (0.3, 0.3 - half, 0.3 + half))


def test_records_of_one_block_count_as_one():
    hits = np.arange(1000) < 300
    alone = Figures.of([Figure.rate(hits, np.arange(1000), 1000)]).mean()
    blocks = Figures.of([Figure.rate(hits, np.arange(1000) // 10, 100)]).mean()
    assert blocks.high - blocks.low == pytest.approx(np.sqrt(10) * (alone.high - alone.low))


def test_seeds_on_other_records_have_students_interval():
    values = np.array([0.5, 0.6, 0.8])
    still = np.zeros((3, 4))
    found = Figures(values, still, 0.0).mean(tail=0.05)
    half = t.ppf(0.95, 2) * values.std(ddof=1) / np.sqrt(3)
    assert found.value == pytest.approx(values.mean())
    assert found.high - found.value == pytest.approx(half)
    assert found.value - found.low == pytest.approx(half)


def test_the_same_records_under_every_seed_are_no_more_records():
    hits = np.arange(100) < 30
    one = Figure.rate(hits, np.arange(100), 100)
    alone, thrice = Figures.of([one]).mean(), Figures.of([one] * 3).mean()
    assert thrice.high - thrice.low == pytest.approx(alone.high - alone.low)
    # Other records under each seed are three times as many.
    apart = [Figure.rate(hits, np.arange(100) + 100 * seed, 300) for seed in range(3)]
    many = Figures.of(apart).mean()
    assert many.high - many.low == pytest.approx((alone.high - alone.low) / np.sqrt(3))


def test_rates_without_any_variance_are_not_taken_for_certain():
    sure = Figures.of([Figure.rate(np.ones(50, bool), np.arange(50), 50)])
    assert sure.mean().low == pytest.approx(1 - norm.ppf(0.975) * 2 / 50)
    assert (sure - sure).mean().low < 0 < (sure - sure).mean().high


def test_balanced_accuracy_is_judged_by_side():
    called = np.array([1, 1, 1, 0, 1, 0, 0, 0, 0, 0], dtype=bool)
    members = np.arange(10) < 4
    found = Figure.accuracy(called, members, np.arange(10), 10)
    assert found.value == pytest.approx((1 + 3 / 4 - 1 / 6) / 2)
    variance = (3 / 16 / 4 + 5 / 36 / 6) / 4
    assert np.square(found.influence).sum() == pytest.approx(variance)
    twice = Figure.accuracy(called, members, np.arange(10), 10, inflation=2.0)
    assert np.square(twice.influence).sum() == pytest.approx(2 * variance)
    assert twice.least == pytest.approx(2 * found.least)


def test_differences_are_paired_by_seed_and_record():
    rng = np.random.default_rng(0)
    place = np.arange(2000)
    hits = rng.random((3, 2000)) < 0.5
    other = hits.copy()
    other[:, :10] ^= True  # they differ on ten records
    ours, theirs = (
        Figures.of([Figure.rate(one, place, 2000) for one in both]) for both in (hits, other)
    )
    paired = (ours - theirs).mean()
    assert paired.value == pytest.approx(ours.values.mean() - theirs.values.mean())
    assert paired.high - paired.low < (ours.mean().high - ours.mean().low) / 2


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("spread", [0.0, 0.05])
@pytest.mark.parametrize("shared", [False, True])
def test_the_interval_covers_seeds_and_records(seeds, spread, shared):
    rng = np.random.default_rng(seeds)
    missed = 0
    for _ in range(400):
        found = rates(rng, seeds, 60, spread, shared).mean()
        missed += not found.low <= 0.5 <= found.high
    # At 5 % more than 42 of 400 are rarer than 1e-6.
    assert missed <= 42


@pytest.mark.parametrize("spread", [0.0, 0.05])
@pytest.mark.parametrize("shared", [False, True])
def test_the_interval_of_more_seeds_is_predicted(spread, shared):
    """The mean half-width predicted for 12 seeds from 3 is that of 12, within a fifth."""
    rng = np.random.default_rng(1)
    predicted, wanted = [], []
    for _ in range(300):
        few = rates(rng, 3, 60, spread, shared).spread().with_seeds(12).interval()
        many = rates(rng, 12, 60, spread, shared).mean()
        predicted.append(few.high - few.low)
        wanted.append(many.high - many.low)
    assert np.mean(predicted) == pytest.approx(np.mean(wanted), rel=0.2)


def test_as_many_seeds_and_one_seed_predict_themselves():
    found = rates(np.random.default_rng(0), 3, 60).spread()
    assert found.with_seeds(3) == found
    one = rates(np.random.default_rng(0), 1, 60).spread()
    assert one.with_seeds(9) == one


def test_ends_stay_where_the_number_can_be():
    assert within(Interval(0.9, 0.7, 1.1), 0.0, 1.0) == Interval(0.9, 0.7, 1.0)
