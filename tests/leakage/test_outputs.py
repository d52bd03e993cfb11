from __future__ import annotations

import json
import math

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.leakage import (
    mutual_information,
    output_leakage,
    outputs,
    parameter_leakage,
    total_variation,
)
from leakscope.leakage.averaging import Folded, leakage_of
from leakscope.leakage.bounds import advantage_bound, advantage_bound_of_information
from leakscope.leakage.plans import Plan


class Files:
    """A stack that is read where it is asked, and tells what was asked for."""

    def __init__(self, values):
        self.values, self.shape, self.asked = values, values.shape, []

    def __getitem__(self, index):
        self.asked.append(index)
        return self.values[index]


def measures(result):
    return result.mutual_information, result.divergence, result.advantage


def world(rng, membership, gain):
    """Log-odds that are higher for members, and in some models higher for everyone."""
    noise = rng.normal(size=membership.shape) + 0.3 * rng.normal(size=(len(membership), 1))
    return noise + gain * membership


def test_leakage_is_found_where_it_is(halves):
    rng = np.random.default_rng(0)
    membership = halves(rng, 96, 60)
    gain = np.where(np.arange(60) < 30, 2.0, 0.0)
    seen = world(rng, membership, gain)
    groups = {"kind": np.where(gain > 0, "leaky", "quiet")}
    result = output_leakage(seen, membership, groups=groups, permutations=19)
    truth = mutual_information(2.0, 1.09, 0, 1.09), total_variation(2.0, 1.09, 0, 1.09)
    for one in measures(result):
        leaky, quiet = one.groups
        assert (leaky.value, leaky.n, quiet.value) == ("leaky", 30, "quiet")
        assert leaky.null.p_value == 1 / 20
        assert leaky.mean.low > leaky.null.high
        assert quiet.mean.low <= quiet.null.mean <= quiet.mean.high
        # Averages are of the estimates, some of which are below 0 and shown as 0.
        assert one.mean.value <= (leaky.mean.value + quiet.mean.value) / 2 + 1e-12
        assert one.mean.value <= one.records.mean() + 1e-12
        assert one.mean.low <= one.mean.value <= one.mean.high
        assert (one.low <= one.records).all()
        assert (one.records <= one.high).all()
    information, _, advantage = measures(result)
    assert information.groups[0].mean.value == pytest.approx(truth[0], abs=0.05)
    assert advantage.groups[0].mean.value == pytest.approx(truth[1], abs=0.08)


def test_what_the_figures_imply_stands_beside_them(halves):
    rng = np.random.default_rng(1)
    membership = halves(rng, 48, 10)
    result = output_leakage(world(rng, membership, 1.5), membership, permutations=3)
    information, divergence, advantage = measures(result)
    # What shuffling gives below 0 is the estimator's own error, and no part of a limit.
    for found, bound in (
        (information, advantage_bound_of_information),
        (divergence, advantage_bound),
    ):
        assert found.bound == bound(found.mean.value + found.underestimate)
        assert found.bound >= bound(found.mean.value)
    assert information.underestimate > 0
    assert np.isnan(advantage.bound)  # it is reached, and limits nobody
    assert advantage.to_dict()["bound"] is None
    # Where no more is found than by chance, nothing is implied.
    quiet = [
        output_leakage(world(rng, membership, 0.0), membership, permutations=3) for _ in range(12)
    ]
    below = [
        found.mutual_information for found in quiet if found.mutual_information.null.p_value == 1.0
    ]
    assert below
    assert all(np.isnan(found.bound) for found in below)
    assert below[0].to_dict()["null_bound"] is None


def test_json_has_the_published_keys(halves):
    rng = np.random.default_rng(2)
    membership = halves(rng, 24, 6)
    result = output_leakage(
        world(rng, membership, 1.0), membership, groups={"g": [0, 0, 0, 1, 1, 1]}, permutations=2
    )
    found = json.loads(json.dumps(result.to_dict(), allow_nan=False))["leakage"]
    assert [one["measure"] for one in found] == [
        "output_mutual_information", "output_divergence", "output_advantage",
    ]  # fmt: skip
    for one in found:
        assert {"measure", "value", "low", "high", "bound", "null", "models", "groups"} <= set(one)
        assert "lower bound" in one["note"]
        assert one["models"] == 24
        assert set(one["null"]) == {"mean", "high", "p_value", "permutations"}
        assert [group["value"] for group in one["groups"]] == ["0", "1"]


def information(seen, membership, seed):
    """The mutual information alone: the other measures take longer."""
    one = outputs._measures(5, 0)[0]
    plan = Plan.draw(membership, 9, seed)
    folded = Folded.of(
        lambda start, stop: seen[:, start:stop, None], one.prepare, membership, plan, 1000
    )
    return leakage_of(
        folded, measure=one.name, note="", bound=one.bound, limits=one.limits,
        models=len(membership), groups=None, unit=None, confidence=0.95,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("models", [20, 64])
@pytest.mark.parametrize("shift", [0.0, 0.25, 1.0, 3.0])
def test_intervals_of_mutual_information_hold_the_truth(halves, models, shift):
    # 60 worlds: at 97.5 % fewer than 52 have a chance of 2e-5, at 95 % fewer than 49 one of 4e-5.
    truth = mutual_information(shift, 1, 0, 1) if shift else 0.0
    low, both = 0, 0
    for seed in range(60):
        rng = np.random.default_rng([models, seed])
        membership = halves(rng, models, 30)
        seen = rng.normal(size=membership.shape) + shift * membership
        found = information(seen, membership, seed)
        assert 0 <= found.mean.low <= found.mean.value <= found.mean.high <= math.log(2)
        low += found.mean.low <= truth
        both += found.mean.low <= truth <= found.mean.high
    assert low >= 52
    assert both >= 49


def test_no_figure_in_nats_is_below_zero(halves):
    # The estimators themselves are below 0 where there is nothing to find.
    shown = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        membership = halves(rng, 20, 30)
        seen = world(rng, membership, 0.0)
        groups = {"g": np.arange(30) % 3}
        result = output_leakage(seen, membership, groups=groups, permutations=9, seed=seed)
        one = result.mutual_information
        assert one.mean.value == one.mean.low == one.null.mean == 0
        assert one.underestimate > 0.01
        assert 0 < one.mean.high < math.log(2)
        assert (one.low <= one.records).all()
        assert (one.records <= one.high).all()
        assert min(result.advantage.null.mean, result.advantage.null.high) >= 0
        shown += [result.mutual_information, result.divergence]
        shown.append(parameter_leakage(rng.normal(size=(40, 1)), halves(rng, 40, 5), seed=seed))
    for one in shown:
        figures = [
            one.mean,
            one.null,
            *(each for row in one.groups for each in (row.mean, row.null)),
        ]
        for figure in figures:
            assert min(value for value in vars(figure).values()) >= 0
        assert min(one.records.min(), one.low.min(), one.high.min()) >= 0


def test_shuffled_membership_is_found_out_as_often_as_chance_says(halves):
    # 20 worlds without leakage and 19 shuffles: p ≤ .05 has chance .05, and 9 of 20 one of 1e-7.
    low = np.zeros(3)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        membership = halves(rng, 24, 6)
        seen = world(rng, membership, 0.0)
        result = output_leakage(seen, membership, permutations=19, seed=seed)
        low += [one.null.p_value <= 0.05 for one in measures(result)]
    assert (low < 9).all()


def test_numbers_do_not_depend_on_how_they_are_read(halves, monkeypatch):
    rng = np.random.default_rng(3)
    membership = halves(rng, 24, 7)
    seen = world(rng, membership, 1.0)
    whole = output_leakage(seen, membership, permutations=3)
    files = Files(seen[..., None])
    with monkeypatch.context() as patched:
        patched.setattr(outputs, "AT_ONCE", 3 * 24 * outputs.IN_LINE)
        parts = output_leakage(files, membership, permutations=3)
    assert {(index[1].start, index[1].stop) for index in files.asked} == {(0, 3), (3, 6), (6, 7)}
    for one, other in zip(measures(whole), measures(parts), strict=True):
        # Only the noise that breaks ties differs.
        np.testing.assert_allclose(one.records, other.records, atol=1e-5)
        assert one.null.mean == pytest.approx(other.null.mean, abs=1e-5)
    again = output_leakage(seen, membership, permutations=3)
    assert again.to_dict() == whole.to_dict()


def test_rows_of_one_person_count_together(halves):
    rng = np.random.default_rng(4)
    membership = np.repeat(halves(rng, 40, 20), 3, axis=1)
    seen = np.repeat(world(rng, membership[:, ::3], rng.uniform(0, 3, 20)), 3, axis=1)
    alone = output_leakage(seen, membership, permutations=2)
    together = output_leakage(
        seen, membership, permutations=2, unit=np.repeat(np.arange(20), 3).astype(object)
    )
    for one, other in zip(measures(alone), measures(together), strict=True):
        assert other.mean.value == one.mean.value
        assert other.mean.high - other.mean.low > one.mean.high - one.mean.low


def test_wide_observations_are_taken_whole(halves):
    # Neither number tells anything alone; their product does.
    rng = np.random.default_rng(5)
    membership = halves(rng, 120, 12, pairs=False)
    seen = rng.normal(size=(120, 12, 2))
    seen[..., 1] = np.where(membership, 1, -1) * 0.9 * seen[..., 0] + 0.3 * seen[..., 1]
    result = output_leakage(seen, membership, permutations=4)
    for one in measures(result):
        assert one.mean.low > one.null.high


def test_a_single_record_has_a_value_and_no_interval_of_the_mean(halves):
    rng = np.random.default_rng(6)
    membership = np.arange(32)[:, None] % 2 == 0
    result = output_leakage(rng.normal(size=(32, 1)), membership, permutations=2)
    for one in measures(result):
        assert math.isnan(one.mean.low)
        assert one.to_dict()["low"] is None
        assert np.isfinite(one.low).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observations": np.zeros(24)}, r"got shape \(24,\)"),
        ({"observations": np.zeros((24, 0))}, r"got shape \(24, 0\)"),
        ({"observations": np.zeros((23, 6))}, "is of 24 models, but 23 were observed"),
        ({"observations": np.zeros((24, 5))}, "is of 6 records, but 5 were observed"),
        ({"observations": np.full((24, 6), np.nan)}, r"model 0 shows \[nan\] of record 0: clip"),
        ({"observations": np.zeros((24, 6, 12))}, "needs at least 26 with each record"),
        ({"membership": np.zeros((24, 6))}, "true or false for each model and record"),
        ({"membership": np.zeros((24, 6), bool)}, "Record 0 is a member of 0 of 24 models"),
        ({"neighbours": 0}, "at least 1, got 0"),
        ({"permutations": 0}, "at least one permutation, got 0"),
        ({"unit": np.zeros(5)}, r"unit has shape \(5,\), but there are 6 records"),
        ({"groups": {"g": np.zeros(5)}}, "'g' has shape"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_what_cannot_be_measured_is_refused(halves, change, message):
    rng = np.random.default_rng(7)
    membership = halves(rng, 24, 6)
    given = {"observations": world(rng, membership, 1.0), "membership": membership}
    with pytest.raises(InputError, match=message):
        output_leakage(**{**given, "permutations": 1, **change})
