"""What the defenses share that change how a network is trained."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from leakscope.errors import InputError
from leakscope.protocols import Defense, Recipe
from leakscope.recipes import as_recipe

if TYPE_CHECKING:
    from leakscope.recipes.torch import TorchRecipe


def network_recipe(recipe: Recipe | Any, defense: Defense) -> TorchRecipe:
    """The recipe, or what ``as_recipe`` makes one of, if it trains torch networks."""
    from leakscope.recipes.torch import TorchRecipe

    made = as_recipe(recipe)
    if not isinstance(made, TorchRecipe):
        raise InputError(
            f"The defense {str(defense)!r} changes how a torch network is trained, and the recipe "
            f"{made.name!r} trains none; give a TorchRecipe"
        )
    return made


def defended(recipe: TorchRecipe, defense: Defense, **changes: Any) -> TorchRecipe:
    """The recipe with these settings changed, under a name that says so; it keeps the one before.

    hooks: beside those that there are.
    """
    from leakscope.networks.stages import JoinedHooks

    if recipe.hooks is not None and "hooks" in changes:
        changes["hooks"] = JoinedHooks((recipe.hooks, changes["hooks"]))
    return replace(recipe, name=f"{recipe.name}+{defense}", recipe=recipe, **changes)
