"""The model of ``--model`` where the file holds weights: the network they belong to, filled."""

from __future__ import annotations

from typing import Any

import numpy as np

from leakscope.errors import InputError
from leakscope.models.torch import TorchModel
from leakscope.models.torch_files import Weights, network_for, of_rows
from leakscope.protocols import Labels, Recipe
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records
from leakscope.records.sides import joined_labels


def filled_network(
    weights: Weights,
    network: str | None,
    recipe: Recipe | None,
    members: Records,
    nonmembers: Records,
) -> TorchModel:
    """The network of --network, or of the factory of --recipe, with these weights.

    Its outputs stand for the labels 0, 1, … where the records have such, and else for all the
    labels they have, in sorted order, as those of a network that a recipe trains do.
    """
    labels = joined_labels(members.y, nonmembers.y, "label")
    numbers = labels.dtype.kind == "f"
    classes = None if numbers or _count_from_zero(labels) else np.unique(labels)
    outputs = 1 if numbers else int(labels.max()) + 1 if classes is None else len(classes)
    module, image = _made(weights, network, recipe, len(members.feature_names), outputs)
    filled = weights.into(module)
    if image is not None:
        filled = of_rows(filled, image)
    model = TorchModel(filled, classes, "regression" if numbers else "classification")
    model.name = type(module).__name__
    return model


def _made(
    weights: Weights, network: str | None, recipe: Recipe | None, features: int, outputs: int
) -> tuple[Any, tuple[int, ...] | None]:
    if network is not None:
        return network_for(network, features, outputs)
    assert recipe is not None  # that neither was named is said before records are read
    if not isinstance(recipe, TorchRecipe):
        raise InputError(
            f"The model file {str(weights.path)!r} holds the weights of a network, and the recipe "
            f"{recipe.name!r} makes no torch network; name the network with --network"
        )
    return recipe.factory(features, outputs), None


def _count_from_zero(labels: Labels) -> bool:
    """Whether labels can be the numbers of outputs."""
    return labels.dtype.kind in "biu" and bool(labels.min() >= 0)
