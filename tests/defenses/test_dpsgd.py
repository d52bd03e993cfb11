from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from leakscope.defenses import as_defense
from leakscope.defenses.dpsgd import DPSGD, PrivateRecipe
from leakscope.defenses.networks import defended
from leakscope.errors import InputError, MissingExtraError
from leakscope.networks import MLP
from leakscope.networks import private as module_of_private
from leakscope.networks.stages import Stage, plainly
from leakscope.networks.training import Hooks, train
from leakscope.protocols import Recipe
from leakscope.recipes.fingerprint import fingerprint
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 4))
RECORDS = Records(X, (X[:, 0] > 0).astype(int))
ROLES = np.ones((1, 30), dtype=np.int8)


def mlp(inputs: int, classes: int) -> nn.Module:
    return MLP([inputs, 5, classes])


def normalized(inputs: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 4), nn.BatchNorm1d(4), nn.Linear(4, classes))


# All at once: what accountants say of it costs little.
PLAIN = TorchRecipe("mlp", mlp, epochs=3, batch_size=30)
DEFENSE = DPSGD(6.28)


def test_the_budget_is_what_the_loop_spends(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    original = module_of_private.PrivateTraining.__call__

    def noted(self: Any, *arguments: Any, **options: Any) -> Any:
        told.append(original(self, *arguments, **options).privacy)
        return None

    monkeypatch.setattr(module_of_private.PrivateTraining, "__call__", noted)
    for recipe in (PLAIN, replace(PLAIN, validation=0.3, epochs=2)):
        DEFENSE.wrap_recipe(recipe).fit_many(RECORDS, ROLES, [1])
        privacy = told.pop()
        assert DEFENSE.budget(recipe, 30) == (privacy.epsilon, privacy.delta)
        assert 6.27 <= privacy.epsilon <= 6.28
        assert privacy.delta == 1e-5
    assert privacy.sampling.rate == 1.0  # 21 of 30 records, in batches of 30


def test_nothing_is_promised_of_what_is_refused() -> None:
    assert DEFENSE.budget(replace(PLAIN, hooks=Hooks()), 30) is None
    assert DEFENSE.budget(replace(PLAIN, loop=train), 30) is None
    with pytest.raises(InputError, match="n must be a whole number"):
        DEFENSE.budget(PLAIN, 0)


def test_the_models_are_plain_and_repeated_by_their_seed() -> None:
    recipe = DEFENSE.wrap_recipe(PLAIN)
    (one,), (same,), (other,) = (recipe.fit_many(RECORDS, ROLES, [seed]) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.predict_proba(X), same.predict_proba(X))
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert type(one.module) is MLP  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.predict_proba(X), one.predict_proba(X))


def test_secure_models_are_never_the_same() -> None:
    recipe = DPSGD(6.28, secure=True).wrap_recipe(PLAIN)
    one, other = (recipe.fit_many(RECORDS, ROLES, [1])[0] for _ in range(2))
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))


def test_a_wrapped_recipe_is_one_like_any_other() -> None:
    recipe = DEFENSE.wrap_recipe(PLAIN)
    assert isinstance(recipe, PrivateRecipe)
    assert (recipe.name, recipe.recipe, recipe.epochs) == ("mlp+dpsgd:6.28", PLAIN, 3)
    longer = defended(recipe, as_defense("noise:0.1"), epochs=4, weight_decay=0.1)
    assert isinstance(longer, PrivateRecipe)
    assert (longer.loop, longer.recipe) == (recipe.loop, recipe)
    prints = {
        fingerprint(one.wrap_recipe(PLAIN))
        for one in (
            DEFENSE,
            DPSGD(3.0),
            DPSGD(6.28, 1e-6),
            DPSGD(6.28, clip=2.0),
            DPSGD(6.28, accountant="prv"),
            DPSGD(6.28, secure=True),
            DPSGD(6.28, convert=True),
        )
    }
    assert len(prints) == 7


def twice(stage: Stage) -> None:
    plainly(stage)
    plainly(stage)


def penalty(module: nn.Module, X: Tensor, y: Tensor) -> Tensor:
    return sum((part.square().sum() for part in module.parameters()), torch.tensor(0.0))


def hooks_of(beginning: Any) -> Hooks:
    return Hooks(penalty=penalty)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hooks": Hooks(penalty=penalty)}, "it has hooks, such as the penalties of min-max"),
        ({"hooks": hooks_of}, "it has hooks"),
        ({"course": twice}, "it is trained in several parts, and the budget is for one"),
        ({"stop_at_accuracy": 0.9}, "it stops at an accuracy or at a gap"),
        ({"stop_at_gap": 0.1, "validation": 0.2}, "it stops at an accuracy or at a gap"),
    ],
)
def test_what_is_not_accounted_for_is_refused_in_either_order(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=f"'mlp' cannot be trained by DP-SGD: {said}"):
        DEFENSE.wrap_recipe(replace(PLAIN, **changes))
    with pytest.raises(InputError, match=r"'mlp\+dpsgd:6\.28\+noise:0\.1' cannot be .*" + said):
        defended(DEFENSE.wrap_recipe(PLAIN), as_defense("noise:0.1"), **changes)


def test_one_loop_does_not_take_the_place_of_another() -> None:
    with pytest.raises(InputError, match="has a training loop of its own"):
        DEFENSE.wrap_recipe(replace(PLAIN, loop=train))
    with pytest.raises(InputError, match=r"'mlp\+dpsgd:6\.28' has a training loop of its own"):
        DEFENSE.wrap_recipe(DEFENSE.wrap_recipe(PLAIN))


def test_batch_normalization_is_refused_or_converted() -> None:
    recipe = replace(PLAIN, factory=normalized, epochs=1)
    with pytest.raises(InputError, match=r"The layer '1' \(BatchNorm1d\).*convert=True"):
        DEFENSE.wrap_recipe(recipe).fit_many(RECORDS, ROLES, [1])
    converted = DPSGD(6.28, convert=True).wrap_recipe(recipe)
    (model,) = converted.fit_many(RECORDS, ROLES, [1])
    assert isinstance(model.module[1], nn.GroupNorm)  # type: ignore[attr-defined]
    assert isinstance(normalized(4, 2)[1], nn.BatchNorm1d)  # type: ignore[index]


def test_other_recipes_are_refused() -> None:
    with pytest.raises(InputError, match="give a TorchRecipe"):
        DEFENSE.wrap_recipe(LogisticRegression())  # type: ignore[arg-type]

    class Mine(Recipe):
        name = "mine"

    assert DEFENSE.budget(Mine(), 30) is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": 0.0}, "epsilon must be a finite number above 0, got 0.0"),
        ({"epsilon": -1.0}, "epsilon must be a finite number above 0, got -1.0"),
        ({"epsilon": float("inf")}, "epsilon must be a finite number above 0, got inf"),
        ({"delta": 0.0}, "delta must be between 0 and 1, got 0.0"),
        ({"delta": 1.0}, "delta must be between 0 and 1, got 1.0"),
        ({"clip": 0.0}, "clip must be a finite number above 0, got 0.0"),
        ({"accountant": "rpd"}, "accountant cannot be 'rpd'; did you mean 'rdp'"),
        ({"epsilon": 101.0, "accountant": "prv"}, "takes an epsilon from 0.01 to 100, got 101.0"),
        ({"epsilon": 0.001, "accountant": "prv"}, "takes an epsilon from 0.01 to 100, got 0.001"),
    ],
)
def test_options_are_checked_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        DPSGD(**options)


def test_it_is_read_as_it_is_written() -> None:
    assert as_defense("dpsgd:6.28") == as_defense("dpsgd") == DEFENSE
    assert str(DPSGD(3)) == "dpsgd:3"


def test_without_opacus_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "leakscope.networks.private")
    monkeypatch.setitem(sys.modules, "opacus.optimizers", None)
    for call in (DEFENSE.wrap_recipe, lambda recipe: DEFENSE.budget(recipe, 30)):
        with pytest.raises(MissingExtraError, match=r"'dpsgd:6\.28' needs an optional package"):
            call(PLAIN)
