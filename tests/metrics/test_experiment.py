from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import t as student

from leakscope.errors import InputError
from leakscope.metrics.experiment import Experiment, membership_experiment
from leakscope.metrics.intervals import newcombe


def halves(rng, models, n):
    """Complementary pairs of random halves (models, n)."""
    ones = [rng.permutation(n) < n // 2 for _ in range(models // 2)]
    return np.array([row for one in ones for row in (one, ~one)])


def independent(rng, models, n):
    return np.array([rng.permutation(n) < n // 2 for _ in range(models)])


def world(rng, membership, hardness=1.0, unevenness=0.0, rows=1):
    """Losses of records that differ in hardness, lower for members, more so in some models."""
    models, n = membership.shape
    hard, gain = np.repeat(rng.normal(size=(2, n // rows)), rows, axis=1)
    gain = 0.5 * np.exp(0.5 * gain - 0.125)
    uneven = np.exp(unevenness * rng.normal(size=(models, 1)))
    noise = 0.5 * rng.normal(size=(models, n))
    return np.exp(hardness * hard + noise - membership * gain * uneven)


class Files:
    """A stack that is read where it is asked, and tells what was asked for."""

    def __init__(self, values):
        self.values, self.shape, self.asked = values, values.shape, []

    def __getitem__(self, index):
        self.asked.append(index)
        return self.values[index]


# --- the figures -------------------------------------------------------------------------------


def rates_at(losses, members, cut):
    called = [loss <= cut for loss in losses]
    tpr = np.mean([hit for hit, inside in zip(called, members, strict=True) if inside])
    return tpr, np.mean([hit for hit, inside in zip(called, members, strict=True) if not inside])


def slow_experiment(losses, membership, clusters, unit):
    """Advantages cell by cell, and the two-way clustered interval of their mean."""
    m, n = losses.shape
    cuts = np.array([losses[j, membership[j]].mean() for j in range(m)])
    errors = [losses[j, membership[j]].std() / membership[j].sum() ** 0.5 for j in range(m)]
    tpr, fpr = np.array([rates_at(losses[j], membership[j], cuts[j]) for j in range(m)]).T
    lower, upper = (
        [
            np.subtract(*rates_at(losses[j], membership[j], cuts[j] + by * errors[j]))
            for j in range(m)
        ]
        for by in (-1, 1)
    )
    slope = (np.mean(upper) - np.mean(lower)) / 2
    cells = np.empty((m, n))
    for j in range(m):
        for i in range(n):
            called = losses[j, i] <= cuts[j]
            if membership[j, i]:
                moved = slope * (losses[j, i] - cuts[j]) / errors[j] if errors[j] else 0.0
                cells[j, i] = (called - tpr.mean() + moved) / membership[j].sum() / m
            else:
                cells[j, i] = -(called - fpr.mean()) / (~membership[j]).sum() / m
    blocks = np.array(
        [
            [cells[np.ix_(clusters == c, unit == u)].sum() for u in np.unique(unit)]
            for c in np.unique(clusters)
        ]
    )
    g, k = blocks.shape
    by_models = g / (g - 1) * np.square(blocks.sum(axis=1)).sum()
    by_records = k / (k - 1) * np.square(blocks.sum(axis=0)).sum()
    variance = max(by_models + by_records - np.square(blocks).sum(), by_models, by_records)
    freedom = variance**2 / (by_models**2 / (g - 1) + by_records**2 / (k - 1))
    freedom = min(freedom, g - 1) if g < 8 else freedom
    half = student.ppf(0.975, freedom) * math.sqrt(variance)
    mean = (tpr - fpr).mean()
    return tpr - fpr, (mean, mean - half, mean + half)


def ends(interval):
    return interval.value, interval.low, interval.high


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("unevenness", [0.0, 1.0])
def test_the_figures_are_those_of_a_slow_count(pairs, persons, unevenness):
    rng = np.random.default_rng(0)
    if pairs:
        order = rng.permutation(8)
        membership, clusters = halves(rng, 8, 40)[order], np.arange(8)[order] // 2
    else:
        membership, clusters = rng.random((8, 40)) < 0.3, np.arange(8)
    unit = np.arange(40) // 3 if persons else np.arange(40)
    losses = world(rng, membership, unevenness=unevenness)
    found = membership_experiment(losses, membership, unit=unit if persons else None)
    advantages, mean = slow_experiment(losses, membership, clusters, unit)
    assert found.advantages == pytest.approx(advantages, abs=1e-12)
    assert ends(found.mean) == pytest.approx(mean, abs=1e-12)
    assert (found.models, found.splits) == (8, 4 if pairs else 8)
    quartiles = np.quantile(advantages, [0.25, 0.5, 0.75])
    assert [found.q1, found.median, found.q3] == pytest.approx(quartiles)


def test_a_model_whose_members_all_have_one_loss_has_no_slope():
    rng = np.random.default_rng(0)
    membership = rng.random((8, 40)) < 0.3
    losses = world(rng, membership)
    losses[2, membership[2]] = 0.5
    found = membership_experiment(losses, membership)
    _, mean = slow_experiment(losses, membership, np.arange(8), np.arange(40))
    assert ends(found.mean) == pytest.approx(mean, abs=1e-12)


def test_a_worked_example():
    losses = np.array([[0.0, 1.0, 2.0, 0.5], [3.0, 1.0, 0.0, 2.0]])
    membership = np.array([[True, True, False, False], [False, True, True, False]])
    # Averages 0.5 and 0.5: the first model accuses records 0 and 3, the second record 2.
    found = membership_experiment(losses, membership)
    assert found.advantages.tolist() == [0.0, 0.5]
    assert found.mean.value == 0.25


def test_losses_equal_to_the_average_are_called_members_whatever_rounding_does():
    membership = np.array([[True, True, True, False], [False, True, True, True]])
    assert np.mean([0.1, 0.1, 0.1]) > 0.1 or np.mean([0.7, 0.7, 0.7]) < 0.7
    losses = np.where(membership, [[0.1], [0.7]], 5.0)
    assert membership_experiment(losses, membership).advantages.tolist() == [1.0, 1.0]


def test_a_stack_is_read_one_model_at_a_time():
    rng = np.random.default_rng(0)
    membership = halves(rng, 6, 30)
    losses = world(rng, membership)
    stack = Files(losses[:, :, None])
    expected = membership_experiment(losses, membership).to_dict()
    assert membership_experiment(stack, membership).to_dict() == expected
    assert sorted(stack.asked) == list(range(6))


def test_the_order_of_models_and_records_does_not_matter():
    rng = np.random.default_rng(0)
    membership = halves(rng, 8, 50)
    losses = world(rng, membership)
    expected = membership_experiment(losses, membership)
    models, records = rng.permutation(8), rng.permutation(50)
    found = membership_experiment(losses[models][:, records], membership[models][:, records])
    assert ends(found.mean) == pytest.approx(ends(expected.mean), abs=1e-12)
    assert found.advantages == pytest.approx(expected.advantages[models])


def test_models_of_one_split_are_told_apart_by_themselves():
    rng = np.random.default_rng(0)
    membership = np.tile(rng.permutation(40) < 20, (5, 1))
    losses = world(rng, membership)
    found = membership_experiment(losses, membership)
    expected = slow_experiment(losses, membership, np.arange(5), np.arange(40))[1]
    assert ends(found.mean) == pytest.approx(expected, abs=1e-12)
    assert (found.models, found.splits) == (5, 1)


def test_a_single_model_or_person_has_no_interval():
    rng = np.random.default_rng(0)
    membership = halves(rng, 2, 20)
    losses = world(rng, membership)
    alone = membership_experiment(losses[:1], membership[:1])
    assert alone.mean.to_dict() == {"value": alone.advantages[0], "low": None, "high": None}
    twins = membership_experiment(losses, membership)
    assert (twins.splits, math.isnan(twins.mean.low)) == (1, True)
    membership = halves(rng, 8, 20)
    person = membership_experiment(world(rng, membership), membership, unit=["one"] * 20)
    assert math.isnan(person.mean.low)


@pytest.mark.parametrize(("outside", "advantage"), [(1.0, 0.0), (2.0, 1.0)])
def test_where_all_records_agree_the_number_of_records_decides(outside, advantage):
    membership = halves(np.random.default_rng(0), 6, 30)
    found = membership_experiment(np.where(membership, 1.0, outside), membership)
    assert ends(found.mean) == pytest.approx(ends(newcombe(1, 15, 1 - advantage, 15)))
    assert found.mean.value == advantage


def test_an_experiment_as_json():
    rng = np.random.default_rng(0)
    membership = halves(rng, 4, 20)
    found = membership_experiment(world(rng, membership), membership)
    shown = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert isinstance(found, Experiment)
    assert shown["models"] == 4
    assert shown["splits"] == 2
    assert shown["advantages"] == found.advantages.tolist()
    assert shown["mean"] == found.mean.to_dict()
    assert [shown[key] for key in ("q1", "median", "q3")] == [found.q1, found.median, found.q3]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"losses": np.ones(6)}, "one number per model and record"),
        ({"losses": np.ones((2, 3, 2))}, "one number per model and record"),
        ({"losses": np.ones((0, 3))}, "one number per model and record"),
        ({"losses": np.array([[1.0, 2, 3], [1, math.inf, 3]])}, "model 1 .* record 1 .inf."),
        ({"membership": np.ones((2, 3))}, "true or false"),
        ({"membership": np.ones((3, 2), dtype=bool)}, "2 models and 3 records"),
        ({"membership": np.array([[1, 0, 0], [0, 0, 0]], dtype=bool)}, "Model 1 has no member"),
        ({"membership": np.array([[1, 1, 1], [0, 1, 0]], dtype=bool)}, "Model 0 has no non-member"),
        ({"unit": [1, 2]}, "unit has shape"),
        ({"confidence": 95}, "confidence"),
    ],
)
def test_what_is_wrong_is_named(changed, message):
    options = {
        "losses": np.arange(6.0).reshape(2, 3),
        "membership": np.array([[True, False, True], [False, True, False]]),
    } | changed
    with pytest.raises(InputError, match=message):
        membership_experiment(**options)


# --- coverage ----------------------------------------------------------------------------------


def simulate(design, *, worlds, seed, models=16, n=200, unit=None, **options):
    """The mean advantages, and the ends of their intervals, in many worlds (worlds, 3)."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(worlds):
        membership = design(rng, models, n)
        losses = world(rng, membership, **options)
        found.append(ends(membership_experiment(losses, membership, unit=unit).mean))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("design", [halves, independent])
@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"unevenness": 0.6}, marks=pytest.mark.slow),
        pytest.param({"hardness": 2.0}, marks=pytest.mark.slow),
    ],
)
def test_the_interval_holds_the_expected_advantage(design, options):
    truth = simulate(design, worlds=500, seed=1, **options)[:, 0]
    found = simulate(design, worlds=200, seed=2, **options)
    held = (found[:, 1] <= truth.mean()) & (truth.mean() <= found[:, 2])
    # Five standard deviations of 200 worlds are 7.7 points.
    assert held.mean() >= 0.95 - 0.077
    # Neither is it wider than it need be: some 2 standard deviations to either side.
    half = (found[:, 2] - found[:, 1]).mean() / 2
    assert 1.7 < half / truth.std() < 2.7


@pytest.mark.slow
def test_few_uneven_splits_have_cautious_intervals():
    options = {"models": 8, "unevenness": 1.0}
    truth = simulate(halves, worlds=500, seed=8, **options)[:, 0]
    found = simulate(halves, worlds=500, seed=9, **options)
    held = (found[:, 1] <= truth.mean()) & (truth.mean() <= found[:, 2])
    # Five standard deviations of 500 worlds are 4.9 points; with more freedom it would be .89.
    assert held.mean() >= 0.95 - 0.049


def test_twins_taken_for_independent_would_look_more_uncertain(monkeypatch):
    # Hard records on one side of a model are on the other side of its twin, and cancel.
    found = simulate(halves, worlds=60, seed=3, hardness=2.0)
    apart_each = "leakscope.metrics.experiment.model_splits"
    monkeypatch.setattr(apart_each, lambda rows: np.arange(len(rows)))
    apart = simulate(halves, worlds=60, seed=3, hardness=2.0)
    assert apart[:, 0] == pytest.approx(found[:, 0])
    widths = [np.mean(ends[:, 2] - ends[:, 1]) for ends in (found, apart)]
    assert widths[1] > 1.15 * widths[0]


@pytest.mark.slow
def test_the_interval_counts_records_and_not_models_alone():
    # Many models of the same few records: their spread says nothing of how hard those records are.
    worlds = simulate(halves, worlds=300, seed=4, models=32, n=40)
    rng = np.random.default_rng(5)
    membership = halves(rng, 32, 40)
    advantages = membership_experiment(world(rng, membership), membership).advantages
    alone = np.add(*advantages.reshape(-1, 2).T).std(ddof=1) / 2 / 4
    assert worlds[:, 0].std() > 1.5 * alone
    half = (worlds[:, 2] - worlds[:, 1]).mean() / 2
    assert half > 1.6 * worlds[:, 0].std()


@pytest.mark.slow
def test_persons_of_several_rows_count_once():
    def together(rng, models, n):
        return np.repeat(halves(rng, models, n // 4), 4, axis=1)

    unit = np.arange(200) // 4
    found = simulate(together, worlds=200, seed=6, rows=4, unit=unit)
    truth = simulate(together, worlds=500, seed=7, rows=4)
    held = (found[:, 1] <= truth[:, 0].mean()) & (truth[:, 0].mean() <= found[:, 2])
    apart = (truth[:, 1] <= truth[:, 0].mean()) & (truth[:, 0].mean() <= truth[:, 2])
    assert held.mean() >= 0.95 - 0.077
    assert apart.mean() < 0.85
