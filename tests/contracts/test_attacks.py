"""What every registered attack must hold to, whatever it does."""

from __future__ import annotations

import re

import numpy as np
import pytest

from leakscope.auditing.battery import run_battery
from leakscope.evidence import Folds
from leakscope.metrics import roc
from leakscope.registry import entries

ATTACKS = [entry.thing() for entry in entries("attack")]
CHANNELS = {entry.name for entry in entries("channel")}


def shoot(attack, world, order=None, swap=False, seed=0):
    """The attack's shot on a world, in canonical order, with membership in that order."""
    records, membership = world.records, world.membership ^ swap
    if order is not None:
        records, membership = records.take(order), membership[order]
    canonical = records.canonical_order()
    records, membership = records.take(canonical), membership[canonical]
    folds = Folds.draw(records.blocks(), membership, seed)
    battery = run_battery(
        world.model,
        records,
        membership,
        folds,
        [attack],
        seed,
        lambda *_: None,
        trials=world.trials(attack.channel) if attack.shadows else None,
    )
    assert not battery.not_run
    return battery.shots[attack.name], membership


def judged(shot, membership, confidence=0.95):
    return roc(
        shot.scores,
        membership,
        threshold=shot.threshold,
        inflation=shot.inflation,
        confidence=confidence,
    )


@pytest.fixture(params=ATTACKS, ids=lambda attack: attack.name)
def attack(request):
    return request.param


def task_of(attack):
    return "classification" if "classification" in attack.tasks else "regression"


def test_says_what_it_is(attack):
    assert attack.channel in CHANNELS
    assert attack.paper
    assert type(attack).__doc__.partition("\n")[0].endswith(".")
    assert attack.tasks <= {"classification", "regression"}


@pytest.mark.parametrize("sizes", [(300, 300), (500, 300)])
def test_a_constant_model_is_at_chance(attack, world, sizes):
    # Shadow models are real: what they find hard still differs from record to record.
    confidence = 1 - 1e-6 if attack.shadows else 0.95
    found = judged(*shoot(attack, world("constant", task_of(attack), sizes)), confidence)
    assert found.auc.low <= 0.5 <= found.auc.high
    assert found.advantage.low <= 0 <= found.advantage.high


@pytest.mark.parametrize("kind", ["exchangeable", "untrained"])
def test_models_that_know_nobody_here_are_at_chance(attack, world, kind):
    """Eight worlds together: a bias of nine tenths of an interval's half-width in each is seen."""
    auc, advantage = [], []
    for seed in range(8):
        found = judged(*shoot(attack, world(kind, task_of(attack), seed=seed)))
        auc.append((found.auc.value - 0.5) / (found.auc.high - found.auc.low))
        width = found.advantage.high - found.advantage.low
        advantage.append(found.advantage.value / width)
    for distances in (auc, advantage):
        z = np.sum(distances) * (2 * 1.96) / np.sqrt(8)
        assert abs(z) < 4.9


def test_a_forest_that_knows_its_members_is_found_out(attack, world):
    found = judged(*shoot(attack, world("leaky", task_of(attack))))
    assert found.auc.low > 0.5


def test_the_order_of_records_changes_nothing(attack, world):
    leaky = world("leaky", task_of(attack))
    order = np.random.default_rng(5).permutation(len(leaky.records))
    plain, membership = shoot(attack, leaky)
    shuffled, shuffled_membership = shoot(attack, leaky, order)
    np.testing.assert_array_equal(plain.scores, shuffled.scores)
    np.testing.assert_array_equal(membership, shuffled_membership)
    assert plain.threshold == shuffled.threshold


def test_swapping_the_sides_maps_auc_to_one_minus_auc(attack, world):
    leaky = world("leaky", task_of(attack))
    plain = judged(*shoot(attack, leaky)).auc.value
    swapped = judged(*shoot(attack, leaky, swap=True)).auc.value
    assert swapped == pytest.approx(1 - plain, abs=1e-12)


def test_nan_is_refused_by_name(attack, world):
    leaky = world("leaky", task_of(attack))

    class Broken:
        name, task, abilities = "broken", leaky.model.task, leaky.model.abilities
        classes = leaky.model.classes

        def predict(self, X):
            return np.full(len(X), np.nan) if self.task == "regression" else self._nan(X)

        def predict_proba(self, X):
            return np.full((len(X), 3), np.nan)

        def loss(self, X, y):
            return np.full(len(X), np.nan)

        def _nan(self, X):
            return np.full(len(X), np.nan)

    records = leaky.records
    folds = Folds.draw(records.blocks(), leaky.membership, 0)
    trials = leaky.trials(attack.channel) if attack.shadows else None
    observed = run_battery(
        Broken(), records, leaky.membership, folds, [attack], 0, lambda *_: None, trials=trials
    )
    assert not observed.shots
    assert list(observed.not_run) == [attack.name]
    assert re.search(r"not finite|unknown to broken", observed.not_run[attack.name])
