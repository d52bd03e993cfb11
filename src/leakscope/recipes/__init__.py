"""Recipes: how a model is made from records, each registered where it stands."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from leakscope.errors import InputError
from leakscope.models.callable import is_torch
from leakscope.protocols import Model, Recipe, Task
from leakscope.records import Records
from leakscope.registry import lookup

_LOG = logging.getLogger(__name__)

__all__ = ["as_recipe", "named_recipe", "recipe_of", "task_of", "train"]


def named_recipe(name: str) -> Recipe:
    """A recipe by its registered name."""
    make: Callable[[], Recipe] = lookup("recipe", name).thing
    return make()


def as_recipe(thing: Any, name: str | None = None, *, prepare: bool | None = None) -> Recipe:
    """A recipe as it is, one by its registered name, or an estimator, cloned for every model.

    Whether the estimator is fitted does not matter; name is what messages call it; prepare is that
    of SklearnRecipe.
    """
    if isinstance(thing, str):
        return named_recipe(thing)
    called = "The recipe" if name is None else f"The recipe {name!r}"
    if isinstance(thing, type):
        raise InputError(f"{called} is the class {thing.__qualname__}; pass an instance of it")
    if hasattr(thing, "fit_many"):
        return _complete(thing, called)
    if is_torch(thing):
        raise InputError(
            f"{called} is a torch module ({type(thing).__name__}), which is one network and not a "
            "way to make others; pass leakscope.recipes.torch.TorchRecipe(name, factory)"
        )
    if not (hasattr(thing, "fit") and hasattr(thing, "get_params")):
        raise InputError(
            f"{called} is a {type(thing).__name__}, not an estimator; pass a scikit-learn "
            "estimator, the name of a registered recipe, or a subclass of leakscope.protocols."
            "Recipe"
        )
    from leakscope.recipes.sklearn import SklearnRecipe

    return SklearnRecipe(name or type(thing).__name__, _unfitted(thing, called), prepare)


def recipe_of(model: Model) -> Recipe | None:
    """The recipe that made a scikit-learn model, as far as it can be told; None for other models.

    It is the estimator's clone, without the preparation of tables that other recipes do: a fitted
    estimator was given its records as they are.
    """
    from leakscope.models.sklearn import SklearnModel
    from leakscope.recipes.sklearn import SklearnRecipe

    if not isinstance(model, SklearnModel):
        return None
    return SklearnRecipe(model.name, _unfitted(model.estimator, "The model"), prepare=False)


def task_of(recipe: Recipe) -> Task | None:
    """What a recipe is for, as far as its settings tell; None where only its models can."""
    from sklearn.base import is_classifier, is_regressor

    from leakscope.recipes.sklearn import SklearnRecipe
    from leakscope.recipes.torch import TorchRecipe

    if isinstance(recipe, SklearnRecipe):
        if is_classifier(recipe.estimator):
            return "classification"
        if is_regressor(recipe.estimator):
            return "regression"
    if isinstance(recipe, TorchRecipe):
        tasks: dict[Any, Task] = {
            "cross_entropy": "classification",
            "squared_error": "regression",
        }
        return tasks.get(recipe.loss)
    return None


def train(recipe: Recipe, records: Records, seed: int) -> Model:
    """One model, trained on all of the records."""
    _LOG.info("training %s on %d records", recipe.name, len(records))
    everybody = np.ones((1, len(records)), dtype=np.int8)
    return recipe.fit_many(records.protected(), everybody, [seed])[0]


def _complete(recipe: Any, called: str) -> Recipe:
    lacking = [part for part in ("name", "together") if not hasattr(recipe, part)]
    if lacking:
        raise InputError(
            f"{called} is a {type(recipe).__name__} without {' and '.join(lacking)}; make its "
            "class a subclass of leakscope.protocols.Recipe, which has all but the name"
        )
    whole: Recipe = recipe
    return whole


def _unfitted(estimator: Any, called: str) -> Any:
    from sklearn.base import clone

    from leakscope.models.answers import first_line

    try:
        return clone(estimator)
    except Exception as error:
        raise InputError(
            f"{called} is a {type(estimator).__name__} that cannot be cloned "
            f"({first_line(error)}); its constructor must keep its arguments as they are"
        ) from error
