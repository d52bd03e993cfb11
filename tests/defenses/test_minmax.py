from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from leakscope.defenses import as_defense
from leakscope.defenses.minmax import MinMax
from leakscope.defenses.pruning import Pruning
from leakscope.errors import InputError
from leakscope.networks import MLP
from leakscope.networks.training import Hooks, train
from leakscope.protocols import Defense
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 12))
RECORDS = Records(X, rng.integers(3, size=90))
ROLES = np.repeat([[1, 2, 0]], 30, axis=1).astype(np.int8)


def normalized(inputs: int, classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, classes)
    )


def mlp(inputs: int, classes: int) -> nn.Module:
    return MLP([inputs, 16, classes])


def single(inputs: int, classes: int) -> nn.Module:
    return MLP([inputs, 6, 1])


def probable(inputs: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, classes), nn.Softmax(dim=1))


RECIPE = TorchRecipe("net", normalized, epochs=3, batch_size=8, lr=0.01, stack=1)


def module_of(recipe: Any, records: Records = RECORDS, seed: int = 5) -> nn.Module:
    (model,) = recipe.fit_many(records, ROLES, [seed])
    found: nn.Module = model.module
    return found


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(mine, yours) for mine, yours in pairs)


def test_without_a_weight_the_game_changes_no_bit() -> None:
    assert same(module_of(MinMax(0.0).wrap_recipe(RECIPE)), module_of(RECIPE))


def test_the_same_seed_gives_the_same_bits() -> None:
    recipe = MinMax(1.0, attack_steps=1).wrap_recipe(RECIPE)
    assert same(module_of(recipe), module_of(recipe))
    assert not same(module_of(recipe), module_of(recipe, seed=6))
    assert not same(module_of(recipe), module_of(RECIPE))


@pytest.mark.slow
def test_reference_records_take_part_and_those_left_out_do_not() -> None:
    recipe = MinMax(3.0, attack_steps=6).wrap_recipe(replace(RECIPE, dtype="float64"))
    plain = module_of(recipe)
    for role, changes in ((0, False), (2, True)):
        moved = X.copy()
        moved[ROLES[0] == role] += 1
        other = module_of(recipe, Records(moved, RECORDS.y))
        assert same(plain, other) is not changes


@pytest.mark.slow
def test_it_hides_members_where_nothing_else_can_be_learnt() -> None:
    own = np.random.default_rng(1)
    features, labels = own.normal(size=(180, 12)), own.integers(2, size=180)
    roles = np.repeat([[1, 2, 0]], 60, axis=1).astype(np.int8)
    recipe = TorchRecipe("net", mlp, epochs=40, batch_size=20, lr=0.03)

    def losses(one: Any) -> tuple[float, float]:
        (model,) = one.fit_many(Records(features, labels), roles, [0])
        loss = model.loss(features, labels)
        return float(loss[roles[0] == 1].mean()), float(loss[roles[0] == 0].mean())

    plain, plain_others = losses(recipe)
    guarded, others = losses(MinMax(4.0, attack_batch=20).wrap_recipe(recipe))
    assert plain < 0.05
    assert guarded > 5 * plain
    assert others - guarded < 0.85 * (plain_others - plain)


def test_one_logit_is_of_two_classes() -> None:
    records = Records(X, (RECORDS.y == 1).astype(int))
    recipe = replace(RECIPE, factory=single, dtype="float64")
    plain = module_of(recipe, records)
    assert same(plain, module_of(MinMax(0.0).wrap_recipe(recipe), records))
    assert not same(plain, module_of(MinMax(2.0).wrap_recipe(recipe), records))


def never(*_: Any) -> None:
    pytest.fail("nothing is trained")


UNTRAINED = replace(RECIPE, hooks=Hooks(on_batch=never))


def test_reference_records_are_needed() -> None:
    with pytest.raises(InputError, match=r"'minmax:0\.3' needs reference records, those of role 2"):
        MinMax().wrap_recipe(UNTRAINED).fit_many(RECORDS, np.minimum(ROLES, 1), [0])


@pytest.mark.parametrize("others", [(), (Pruning(4, epochs=1, retrain=1),)])
def test_reference_records_are_nobody_else(others: Sequence[Defense]) -> None:
    """Neither members nor records that a model may be judged on, also under another defense."""
    reference = int(np.flatnonzero(ROLES[0] == 2)[0])
    for role, what in ((1, "a member"), (0, "left out for the evaluation")):
        other = int(np.flatnonzero(ROLES[0] == role)[0])
        X, y = RECORDS.X.copy(), RECORDS.y.copy()
        X[other], y[other] = X[reference], y[reference]
        recipe = MinMax().wrap_recipe(UNTRAINED)
        for defense in others:
            recipe = defense.wrap_recipe(recipe)
        with pytest.raises(InputError, match=f"such as row {other}, equal a .*in D′ and {what}"):
            recipe.fit_many(Records(X, y), ROLES, [0])


@pytest.mark.parametrize(
    ("recipe", "y"),
    [
        (replace(UNTRAINED, loss="squared_error"), X[:, 0]),
        (replace(UNTRAINED, factory=probable, loss=nn.functional.cross_entropy), RECORDS.y),
    ],
)
def test_networks_that_give_logits_of_classes_are_needed(recipe: TorchRecipe, y: Any) -> None:
    with pytest.raises(InputError, match=r"'minmax:0\.3' is for networks that give logits"):
        MinMax().wrap_recipe(recipe).fit_many(Records(X, y), ROLES, [0])


def test_a_loop_that_promises_something_is_left_alone() -> None:
    with pytest.raises(InputError, match=r"'minmax:0\.3' needs a penalty .* recipe 'net' makes no"):
        MinMax().wrap_recipe(replace(RECIPE, loop=train))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gamma": -0.1}, r"gamma must be a finite number of at least 0, got -0\.1"),
        ({"attack_steps": 0}, "attack_steps must be a whole number of at least 1, got 0"),
        ({"attack_batch": 0}, "attack_batch must be a whole number of at least 1, got 0"),
        ({"attack_lr": 0.0}, r"attack_lr must be a finite number above 0, got 0\.0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        MinMax(**options)


def test_how_it_is_written() -> None:
    assert as_defense("minmax:0.3") == MinMax()
    assert str(MinMax(2)) == "minmax:2"
    other = MinMax(attack_steps=3, attack_lr=0.01)
    assert str(other) == "minmax:0.3 (attack_steps 3, attack_lr 0.01)"
    assert MinMax().budget(RECIPE, 30) is None


def test_the_recipe_that_is_wrapped_stays_as_it_was() -> None:
    before = copy.deepcopy(RECIPE)
    wrapped = MinMax().wrap_recipe(RECIPE)
    assert isinstance(wrapped, TorchRecipe)
    assert (wrapped.recipe, wrapped.together) == (RECIPE, 1)
    assert before == RECIPE
