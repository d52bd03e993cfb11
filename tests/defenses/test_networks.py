from __future__ import annotations

from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression
from torch import nn

from leakscope.defenses import as_defense
from leakscope.defenses.networks import defended, network_recipe
from leakscope.errors import InputError
from leakscope.networks import MLP
from leakscope.networks.stages import JoinedHooks
from leakscope.networks.training import Hooks
from leakscope.protocols import Recipe
from leakscope.recipes.torch import TorchRecipe

NOISE = as_defense("noise:0.1")


def mlp(inputs: int, classes: int) -> nn.Module:
    return MLP([inputs, 5, classes])


RECIPE = TorchRecipe("mlp", mlp)


def test_a_recipe_of_networks_is_needed() -> None:
    assert network_recipe(RECIPE, NOISE) is RECIPE
    with pytest.raises(InputError, match=r"'noise:0\.1' changes how a torch network .*'mine'"):
        network_recipe(TorchlessRecipe(), NOISE)


class TorchlessRecipe(Recipe):
    name = "mine"

    def fit_many(self, records: Any, roles: Any, seeds: Any) -> list[Any]:
        return []


def test_what_is_changed_is_said_and_what_was_before_is_kept() -> None:
    one, two = Hooks(), Hooks(penalty=lambda module, X, y: y.sum())
    changed = defended(RECIPE, NOISE, epochs=3, hooks=one)
    assert (changed.name, changed.epochs, changed.recipe) == ("mlp+noise:0.1", 3, RECIPE)
    assert changed.hooks is one
    assert defended(changed, NOISE, hooks=two).hooks == JoinedHooks((one, two))
    assert defended(changed, NOISE).hooks is one


def test_estimators_are_recipes_of_no_network() -> None:
    with pytest.raises(InputError, match="give a TorchRecipe"):
        network_recipe(LogisticRegression(), NOISE)
