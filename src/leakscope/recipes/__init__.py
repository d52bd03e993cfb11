"""Recipes: how a model is made from records, each registered where it stands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from leakscope.protocols import Model, Recipe
from leakscope.records import Records
from leakscope.registry import lookup

__all__ = ["named_recipe", "train"]


def named_recipe(name: str) -> Recipe:
    """A recipe by its registered name."""
    make: Callable[[], Recipe] = lookup("recipe", name).thing
    return make()


def train(recipe: Recipe, records: Records, seed: int) -> Model:
    """One model, trained on all of the records."""
    everybody = np.ones((1, len(records)), dtype=np.int8)
    return recipe.fit_many(records, everybody, [seed])[0]
