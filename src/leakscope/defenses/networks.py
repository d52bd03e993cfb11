"""What the defenses share that change how a network is trained."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from leakscope.errors import InputError
from leakscope.protocols import Defense, Recipe
from leakscope.recipes import as_recipe

if TYPE_CHECKING:
    from torch import Tensor

    from leakscope.networks.stages import Stage
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


def refuse_own_loop(recipe: TorchRecipe, defense: Defense, what: str) -> None:
    """Refuse a recipe whose networks are trained by another loop than the usual one.

    Whoever put the loop there, such as differential privacy, promises something of one training by
    the loss alone; what: the more that is asked for.
    """
    if recipe.loop is not None:
        raise InputError(
            f"The defense {str(defense)!r} needs {what}, for which the training loop of the recipe "
            f"{recipe.name!r} makes no promise; leave one of the two out"
        )


def refuse_no_logits(stage: Stage, defense: Defense) -> Tensor:
    """The outputs of the first records, (n,) or (n, k), if they are the logits of classes."""
    from leakscope.networks.endings import kind_of_outputs
    from leakscope.networks.tracing import evaluating

    with evaluating(stage.module):
        outputs: Tensor = stage.module(stage.X[:2])
    if stage.y.is_floating_point() or kind_of_outputs(outputs) != "logits":
        raise not_for(str(defense))
    return outputs.detach()


def not_for(defense: str) -> InputError:
    """What to raise where a network has no logits of classes."""
    return InputError(
        f"The defense {defense!r} is for networks that give logits of classes, and this one gives "
        "probabilities or predicts numbers; leave out its softmax, or the defense"
    )
