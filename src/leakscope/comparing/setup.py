"""What is compared, checked before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakscope.auditing.battery import channel_of, choose_attacks, released
from leakscope.auditing.doors import enter_records
from leakscope.auditing.settings import Settings
from leakscope.comparing.costs import alone
from leakscope.comparing.defending import (
    Combination,
    Defended,
    Releasing,
    around,
    combinations,
)
from leakscope.comparing.dividing import MEMBER, REFERENCE, Division, divide
from leakscope.errors import InputError
from leakscope.options import whole_number
from leakscope.protocols import Attack, Defense, Recipe
from leakscope.recipes import as_recipe, task_of
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records
from leakscope.records.checks import shown


@dataclass(frozen=True, eq=False)
class Plan:
    """All that is asked for; records in canonical order, recipe without any defense.

    left_out: why attacks were not asked for; unable: why those that were run on no model.
    """

    recipe: Recipe
    records: Records
    compared: Sequence[Defended]
    divisions: Sequence[Division]
    attacks: Sequence[Attack]
    left_out: Mapping[str, str]
    unable: Mapping[str, str]
    shadows: int
    limit: float
    seed: int

    @property
    def combinations(self) -> list[Combination]:
        """What is compared, as it is written."""
        return [one.combination for one in self.compared]

    @property
    def members(self) -> int:
        """How many records a model is trained on, the most of any seed."""
        return max(int((one.roles == MEMBER).sum()) for one in self.divisions)

    def described(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "recipe": self.recipe.name,
            "records": len(self.records),
            "features": len(self.records.feature_names),
            "classes": [str(one) for one in np.unique(self.records.y)],
            "persons": None if self.records.unit is None else len(set(self.records.unit.tolist())),
            "members": [int((one.roles == MEMBER).sum()) for one in self.divisions],
            "reference": [int((one.roles == REFERENCE).sum()) for one in self.divisions],
            "nonmembers": [int(one.evaluated.sum()) for one in self.divisions],
            "seeds": len(self.divisions),
            "seed": self.seed,
            "defenses": [one.name for one in self.compared],
            "attacks": [one.name for one in self.attacks],
            "shadows": self.shadows,
            "limit": self.limit,
        }


def make_plan(
    recipe: Any,
    records: Any,
    defenses: Sequence[str | Defense | Sequence[Defense]],
    *,
    members: int | None,
    seeds: int,
    attacks: Sequence[str | Attack] | None,
    channels: Sequence[str] | None,
    shadows: int,
    limit: float,
    seed: int,
) -> Plan:
    """The plan, or one sentence that says what cannot be; nothing is trained."""
    Settings(attacks, channels, limit=limit, seed=seed, shadows=shadows).check()
    whole_number("seeds", seeds, 1)
    wanted = combinations(defenses)
    chosen, left_out, unable = _attacks(attacks, channels, shadows)
    made = alone(as_recipe(recipe))
    pool = enter_records(records, "records", label=None, groups=None, unit=None, features=None)
    if task_of(made) == "regression" or pool.y.dtype.kind == "f":
        raise InputError(
            f"A comparison judges by accuracy, and the recipe {made.name!r} or the labels (such as "
            f"{shown(pool.y[0])}) are of numbers; give classes, as whole numbers or texts"
        )
    pool = pool.take(pool.canonical_order())
    divisions = divide(pool, members, seed, seeds)
    n = max(int((one.roles == MEMBER).sum()) for one in divisions)
    compared = [around(one, made, n) for one in wanted]
    for defended in compared:
        _rehearse(defended.recipe, pool)
    for one in wanted:
        for name in sorted({attack.channel for attack in chosen}):
            released(channel_of(name, seed), Releasing(_unfitted(one)))
    return Plan(made, pool, compared, divisions, chosen, left_out, unable, shadows, limit, seed)


def _attacks(
    attacks: Sequence[str | Attack] | None, channels: Sequence[str] | None, shadows: int
) -> tuple[list[Attack], dict[str, str], dict[str, str]]:
    """The attacks that have as many shadow models as they need, and why others are left out."""
    chosen, left_out = choose_attacks(attacks, channels)
    able = [one for one in chosen if one.shadows <= shadows]
    if not able:
        raise InputError(
            f"The attack {chosen[0].name!r} needs {chosen[0].shadows} shadow models for each model "
            f"at least, and shadows is {shadows}; give more, or another attack"
        )
    unable = {
        one.name: f"It needs {one.shadows} shadow models at least, and shadows is {shadows}."
        for one in chosen
        if one not in able
    }
    return able, left_out, unable


def _rehearse(recipe: Recipe | None, records: Records) -> None:
    """Refuse networks that a defense cannot train, before others are trained."""
    while recipe is not None and not isinstance(recipe, TorchRecipe):
        recipe = getattr(recipe, "recipe", None)
    if recipe is not None:
        recipe.rehearse(records)


def _unfitted(combination: Combination) -> tuple[Defense, ...]:
    """The parts that are ready before there is a model."""
    return tuple(part for part in combination.parts if not hasattr(part, "fitted"))
