"""Combinations of defenses: as they are written, and what they do to a recipe and a channel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leakscope.auditing.battery import Release
from leakscope.defenses import as_defense
from leakscope.defenses.noise import OutputPerturbation
from leakscope.defenses.regularization import EarlyStopping, EqualCompute
from leakscope.errors import InputError
from leakscope.protocols import Channel, Defense, Model, Recipe
from leakscope.recipes.sklearn import SklearnRecipe
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

NONE = "none"
NO_GUARANTEE = "no formal guarantee"

# Between two defenses, and not within a number such as 1e+3.
PLUS = re.compile(r"\+(?=[A-Za-z])")


@dataclass(frozen=True)
class Combination:
    """Defenses in the order in which they are wrapped around each other; without any: none."""

    parts: tuple[Defense, ...] = ()

    def __str__(self) -> str:
        return "+".join(str(part) for part in self.parts) or NONE

    def release(self, model: Model, members: Records, reference: Records) -> Release:
        """What is done to each channel of this model.

        A defense that must first learn something of the model does so from its members and the
        reference records D′, never from those it is judged on.
        """
        fitted = [
            part.fitted(model, members, reference) if hasattr(part, "fitted") else part
            for part in self.parts
        ]
        return Releasing(tuple(fitted))


@dataclass(frozen=True)
class Releasing:
    """Wraps a channel in each of these defenses, the first one first."""

    parts: tuple[Any, ...]

    def __call__(self, channel: Channel) -> Channel:
        """The channel as it is released."""
        for part in self.parts:
            channel = part.wrap_channel(channel)
        return channel


@dataclass(frozen=True)
class Defended:
    """A combination around a recipe, ready to be trained.

    recipe: the one that trains the defended models. budget: their (ε, δ), or None. trains: whether
    a defense changes how models are trained, beyond how long and beyond what is done afterwards.
    """

    combination: Combination
    recipe: Recipe
    budget: tuple[float, float] | None = None
    trains: bool = False

    @property
    def name(self) -> str:
        """How the combination is written."""
        return str(self.combination)

    @property
    def guarantee(self) -> str:
        """What is promised, in words."""
        if self.budget is None:
            return NO_GUARANTEE
        return f"({self.budget[0]:g}, {self.budget[1]:g})-differential privacy"


def as_combination(thing: str | Defense | Sequence[Defense]) -> Combination:
    """What is written like ``none`` or ``prune:16+minmax:0.3``, a Defense, or several."""
    if isinstance(thing, str):
        if thing.strip() == NONE:
            return Combination()
        written = [part.strip() for part in PLUS.split(thing)]
        if NONE in written or "" in written:
            raise InputError(
                f"The combination {thing!r} has a part that is no defense; write it like "
                "'prune:16+minmax:0.3', or 'none' alone"
            )
        return Combination(tuple(as_defense(part) for part in written))
    if isinstance(thing, Sequence):
        return Combination(tuple(as_defense(part) for part in thing))
    return Combination((as_defense(thing),))


def combinations(given: Sequence[str | Defense | Sequence[Defense]]) -> list[Combination]:
    """The combinations to compare, each once; none is always the first."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputError(
            f"The defenses are {given!r}; give a list, such as ['none', 'prune:16+minmax:0.3']"
        )
    found = {NONE: Combination()} | {str(one): one for one in map(as_combination, given)}
    if len(found) == 1:
        raise InputError(
            "There is no defense to compare with none; name some, such as 'early-stop:12' (see "
            "`leakscope defenses`)"
        )
    return [*found.values()]


def around(combination: Combination, recipe: Recipe, n: int) -> Defended:
    """The combination around a recipe of models of n records each.

    The promise is that of the last defense that changes how models are made. What is done to a
    finished model takes nothing back that was promised of it.
    """
    promise: tuple[float, float] | None = None
    trains = False
    for part in combination.parts:
        wrapped = part.wrap_recipe(recipe)
        if wrapped is not recipe:
            before = promise if isinstance(part, OutputPerturbation) else None
            promises = [one for one in (before, part.budget(recipe, n)) if one is not None]
            promise = min(promises, default=None)
            # What only works on finished models is another kind of recipe around the one inside.
            trains |= isinstance(wrapped, TorchRecipe | SklearnRecipe) and not isinstance(
                part, EarlyStopping | EqualCompute
            )
        recipe = wrapped
    return Defended(combination, recipe, promise, trains)
