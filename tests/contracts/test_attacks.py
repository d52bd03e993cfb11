"""What every registered attack must hold to, whatever it does."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
import torch

from leakscope.attacks.taught import ByShadows
from leakscope.auditing.battery import channel_of, run_battery
from leakscope.auditing.choosing import attack_of, parts_of
from leakscope.evidence import Folds
from leakscope.metrics import roc
from leakscope.models import as_model
from leakscope.networks import inference
from leakscope.registry import entries

CHANNELS = {entry.name for entry in entries("channel")}

# What makes attacks quick enough to be tried on dozens of worlds.
QUICK = {"trees": 30, "epochs": 10, "lr": 0.01}


def quick(attack):
    options = {option.name for option in fields(attack)} & QUICK.keys()
    return replace(attack, **{name: QUICK[name] for name in options})


ATTACKS = [quick(entry.thing()) for entry in entries("attack")]
# Those that are taught are taught by shadow models too, all in the same way.
ATTACKS += [
    ByShadows(quick(attack_of(name)), rows=2000) for name in ("gradient-forest", "network-gradient")
]

# Those that are many networks, or many queries or gradients, for each record.
LONG = (
    "network-", "smoothgrad", "lime", "kernel-shap", "integrated", "deeplift-forest",
    "gradient-forest-shadow",
)  # fmt: skip

# Members may have the larger or the smaller explanations: swapped sides are learned as they are.
UNDIRECTED = {"lime-forest", "occlusion-forest"}


def needs(attack):
    return channel_of(attack.channel, 0).needs


def wide(attack):
    """Whether it is tried on networks of many features; the others are tried on forests."""
    return "gradients" in needs(attack) or attack.name == "lime-forest"


def shoot(attack, world, order=None, swap=False, seed=0):
    """The attack's shot on a world, in canonical order, with membership in that order."""
    records, membership = world.records, world.membership ^ swap
    if order is not None:
        records, membership = records.take(order), membership[order]
    canonical = records.canonical_order()
    records, membership = records.take(canonical), membership[canonical]
    folds = Folds.draw(records.blocks(), membership, seed)
    battery = run_battery(
        world.seen_by(needs(attack)),
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


@cache
def plain_shot(attack, world):
    """The same on the world as it is, computed once for all that compare it."""
    return shoot(attack, world)


def judged(shot, membership, confidence=0.95):
    return roc(
        shot.scores,
        membership,
        threshold=shot.threshold,
        inflation=shot.inflation,
        confidence=confidence,
    )


def listed(attack):
    marks = [pytest.mark.slow] if attack.name.startswith(LONG) else []
    return pytest.param(attack, id=attack.name, marks=marks)


@pytest.fixture(params=[listed(attack) for attack in ATTACKS])
def attack(request, monkeypatch):
    for name in inference.PARTS:
        monkeypatch.setitem(inference.PARTS, name, (32, 16))
    return request.param


def home(attack, world, kind, **options):
    """The world of this kind in which the attack is tried."""
    task = "classification" if "classification" in attack.tasks else "regression"
    return world(kind, task, wide=wide(attack), **options)


def test_says_what_it_is(attack):
    assert parts_of(attack) <= CHANNELS
    assert attack.paper
    assert type(attack).__doc__.partition("\n")[0].endswith(".")
    assert attack.tasks <= {"classification", "regression"}


@pytest.mark.parametrize("sizes", [(300, 300), (500, 300)])
def test_a_constant_model_is_at_chance(attack, world, sizes):
    # Shadow models are real: what they find hard still differs from record to record.
    confidence = 1 - 1e-6 if attack.shadows else 0.95
    found = judged(*shoot(attack, home(attack, world, "constant", sizes=sizes)), confidence)
    assert found.auc.low <= 0.5 <= found.auc.high
    assert found.advantage.low <= 0 <= found.advantage.high


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["exchangeable", "untrained"])
def test_models_that_know_nobody_here_are_at_chance(attack, world, kind):
    """Eight worlds together: a bias of nine tenths of an interval's half-width in each is seen.

    Of networks, which take longer to train, four, and a bias of five fourths.
    """
    auc, advantage = [], []
    worlds = 4 if wide(attack) else 8
    for seed in range(worlds):
        found = judged(*shoot(attack, home(attack, world, kind, seed=seed)))
        width = found.auc.high - found.auc.low
        if width == 0:  # the same score for everybody, which is chance without any doubt
            assert found.auc.value == 0.5
        auc.append((found.auc.value - 0.5) / (width or 1.0))
        width = found.advantage.high - found.advantage.low
        advantage.append(found.advantage.value / width)
    for distances in (auc, advantage):
        z = np.sum(distances) * (2 * 1.96) / np.sqrt(worlds)
        assert abs(z) < 4.9


def test_a_model_that_knows_its_members_is_found_out(attack, world):
    found = judged(*plain_shot(attack, home(attack, world, "leaky")))
    assert found.auc.low > 0.5


def test_the_order_of_records_changes_nothing(attack, world):
    leaky = home(attack, world, "leaky")
    order = np.random.default_rng(5).permutation(len(leaky.records))
    plain, membership = plain_shot(attack, leaky)
    shuffled, shuffled_membership = shoot(attack, leaky, order)
    np.testing.assert_array_equal(plain.scores, shuffled.scores)
    np.testing.assert_array_equal(membership, shuffled_membership)
    assert plain.threshold == shuffled.threshold


def test_swapping_the_sides_maps_auc_to_one_minus_auc(attack, world):
    leaky = home(attack, world, "leaky")
    plain = judged(*plain_shot(attack, leaky)).auc.value
    swapped = judged(*shoot(attack, leaky, swap=True)).auc.value
    expected = plain if attack.name in UNDIRECTED else 1 - plain
    assert swapped == pytest.approx(expected, abs=1e-12)


def test_nan_is_refused_by_name(attack, world):
    leaky = home(attack, world, "leaky")
    sound = leaky.seen_by(needs(attack))

    class Lost(torch.nn.Module):
        def forward(self, X):
            return X[:, :3] * torch.nan

    class Broken:
        wrapped = as_model(Lost())  # of which explanations follow the module
        name, task, abilities = "broken", sound.task, sound.abilities
        classes = leaky.model.classes

        def predict(self, X):
            return np.full(len(X), np.nan) if self.task == "regression" else self._nan(X)

        def predict_proba(self, X):
            return np.full((len(X), 3), np.nan)

        def loss(self, X, y):
            return np.full(len(X), np.nan)

        def _nan(self, X):
            return np.full(len(X), np.nan)

        @property
        def explainer(self):
            return self

        @property
        def X(self):
            return sound.explainer.X

        def prepared(self, X):
            return sound.prepared(X)

        def explain(self, X, k):
            return np.zeros((len(X), k), dtype=int), np.full((len(X), k), np.nan)

    records = leaky.records
    folds = Folds.draw(records.blocks(), leaky.membership, 0)
    trials = leaky.trials(attack.channel) if attack.shadows else None
    observed = run_battery(
        Broken(), records, leaky.membership, folds, [attack], 0, lambda *_: None, trials=trials
    )
    assert not observed.shots
    assert list(observed.not_run) == [attack.name]
    assert re.search(r"not finite|unknown to broken", observed.not_run[attack.name])
