"""Shadow models for an audit: the target's recipe on other draws from the audited pool."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.auditing.battery import applies, channel_of
from leakscope.errors import InputError
from leakscope.leakage.gaussian import models_needed
from leakscope.metrics.experiment import membership_experiment
from leakscope.protocols import Attack, Bools, Labels, Model, Progress, Recipe
from leakscope.recipes import as_recipe, recipe_of, task_of
from leakscope.records import Records
from leakscope.trials import Trials, expand, fixed_size, run_trials

# Yeom's experiment is told of all shadow models where they have a loss; leakage is measured on the
# log-odds of the true class, and on parameters where they are few.
LOSS, MARGIN, PARAMETERS = "loss", "margin", "parameters"


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


@dataclass(frozen=True, eq=False)
class Dealing:
    """Which records each shadow model is trained on.

    As many persons, or different records, as the target, drawn from members and non-members
    together; blocks (n,) are kept whole. Each record is in the same number of models.
    """

    blocks: NDArray[np.intp]
    membership: Bools
    models: int

    @property
    def size(self) -> int:
        """How many blocks a model has."""
        return len(np.unique(self.blocks[self.membership]))

    @property
    def smaller_share(self) -> float:
        """In which share of the models a record is, or is not, whichever is less."""
        return self._smaller / self._total

    def models_for(self, each: int) -> int:
        """How many models give every record so many with it, and so many without."""
        return -(-each * self._total // self._smaller)

    @property
    def _total(self) -> int:
        return int(self.blocks.max()) + 1

    @property
    def _smaller(self) -> int:
        return min(self.size, self._total - self.size)

    def deal(self, seed: int) -> NDArray[np.int8]:
        """The roles (m, n)."""
        design = fixed_size(self._total, self.size, self.models, seed)
        return expand(design, self.blocks)


def why_no_parameters(model: Model, records: Records, dealing: Dealing, seed: int) -> str:
    """Why leakage through the parameters cannot be measured; empty where it can."""
    if PARAMETERS not in model.abilities:
        return f"{model.name} shows no vector of parameters."
    width = channel_of(PARAMETERS, seed).width(model)
    needed = models_needed(width)
    if (models := dealing.models_for(needed)) > dealing.models:
        return (
            f"{model.name} has {width} parameters, which takes {needed} shadow models with each "
            f"record and {needed} without; {ask_for(models)}."
        )
    members = dealing.deal(seed) == 1
    if not all(members[:, records.y == one].any(axis=1).all() for one in _labels(model)):
        return "Some shadow model never sees one of the classes, and has other parameters."
    return ""


def _labels(model: Model) -> Labels:
    return np.array([]) if model.classes is None else model.classes


def ask_for(models: int) -> str:
    """How to ask for so many shadow models."""
    return f"give --shadows {models} (shadows={models})"


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
    dealing: Dealing,
    attacks: Sequence[Attack],
    *,
    seed: int,
    progress: Progress,
) -> Trials | None:
    """Shadow models for the attacks that need them; None where none of them can use any."""
    names = {one.channel for one in attacks if one.shadows and applies(one.channel, one, model)}
    if not names:
        warnings.warn(
            "None of the attacks asked for can use shadow models on this one; none is trained",
            stacklevel=4,
        )
        return None
    # What is measured on all shadow models, whatever attacks are asked for.
    names |= {name for name in (LOSS, MARGIN) if channel_of(name, seed).needs <= model.abilities}
    if not why_no_parameters(model, records, dealing, seed):
        names.add(PARAMETERS)
    return run_trials(
        shadowing.recipe,
        records,
        dealing.deal(seed),
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
        # The same seed gives the same network for the same number of threads.
        "threads": getattr(shadowing.recipe, "threads", 1),
        "experiment": experiment,
    }
