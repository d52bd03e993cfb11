"""Shadow models for an audit: the target's recipe on other draws from the audited pool."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.auditing.battery import Progress, applies, channel_of
from leakscope.errors import InputError
from leakscope.metrics.experiment import membership_experiment
from leakscope.protocols import Attack, Bools, Model, Recipe
from leakscope.recipes import as_recipe, recipe_of, task_of
from leakscope.records import Records
from leakscope.trials import Trials, expand, fixed_size, run_trials

# Yeom's experiment is told of all shadow models where they have a loss.
LOSS = "loss"


@dataclass(frozen=True)
class Shadowing:
    """How shadow models are made: the recipe, how many, and where they are trained and kept."""

    recipe: Recipe
    models: int
    store: Path | None = None
    workers: int | None = None
    backend: str = "local"
    address: str | None = None
    fresh: bool = False


def shadow_recipe(recipe: Any, model: Model) -> Recipe:
    """The recipe that was given, or the clone of a scikit-learn model.

    An estimator is trained on the records as they are: so was the model, as far as can be told.
    """
    found = recipe_of(model) if recipe is None else as_recipe(recipe, prepare=False)
    if found is None:
        raise InputError(
            f"How {model.name} was trained is not known, and shadow models are trained like it; "
            "give recipe="
        )
    task = task_of(found)
    if task is not None and task != model.task:
        raise InputError(
            f"The recipe {found.name!r} is for {task}, and {model.name} for {model.task}; give the "
            "recipe that made it"
        )
    return found


def train_shadows(
    shadowing: Shadowing,
    model: Model,
    records: Records,
    membership: Bools,
    blocks: NDArray[np.intp],
    attacks: Sequence[Attack],
    *,
    seed: int,
    progress: Progress,
) -> Trials | None:
    """Shadow models for the attacks that need them; None where none of them can use any.

    Each is trained on as many persons, or different records, as the target, drawn from members and
    non-members together; blocks (n,) are kept whole. Each record is in the same number of models.
    """
    names = {one.channel for one in attacks if one.shadows and applies(one.channel, one, model)}
    if not names:
        warnings.warn(
            "None of the attacks asked for can use shadow models on this one; none is trained",
            stacklevel=4,
        )
        return None
    if "loss" in model.abilities:
        names.add(LOSS)
    size = len(np.unique(blocks[membership]))
    design = fixed_size(int(blocks.max()) + 1, size, shadowing.models, seed)
    return run_trials(
        shadowing.recipe,
        records,
        expand(design, blocks),
        [channel_of(name, seed) for name in sorted(names)],
        seed=seed,
        classes=model.classes,
        store=shadowing.store,
        workers=shadowing.workers,
        backend=shadowing.backend,
        address=shadowing.address,
        fresh=shadowing.fresh,
        progress=progress,
    )


def describe_trials(
    shadowing: Shadowing | None, trials: Trials | None, blocks: NDArray[np.intp]
) -> dict[str, Any] | None:
    """The part of the report about the shadow models; blocks (n,) of records count together."""
    if shadowing is None or trials is None:
        return None
    losses = trials.observations.get(LOSS)
    experiment = None
    if losses is not None:
        experiment = membership_experiment(losses, trials.membership, unit=blocks).to_dict()
    return {
        "recipe": shadowing.recipe.name,
        "models": len(trials),
        "members": round(float(trials.membership.sum(axis=1).mean())),
        "experiment": experiment,
    }
