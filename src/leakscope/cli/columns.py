"""The columns of files that a recipe is trained on: as they are, or sorted out and told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from leakscope.errors import InputError
from leakscope.protocols import Model, Recipe
from leakscope.recipes.columns import Reading, read_columns
from leakscope.recipes.preprocessing import describe_preprocessing
from leakscope.recipes.sklearn import SklearnRecipe
from leakscope.records import Records

OTHERWISE = "Name the columns with --features to choose otherwise."


@dataclass(frozen=True)
class Sorted:
    """Tables as records, one for each, and how their columns were read."""

    records: list[Records]
    reading: Reading
    recipe: Recipe

    def told(self, model: Model | None = None) -> list[str]:
        """What the recipe makes of the columns, a sentence each; with the model, all of it."""
        estimator = getattr(model, "estimator", None)
        return [*self.reading.sentences(), *describe_preprocessing(estimator)]

    def say(self, sentences: Sequence[str], say: Callable[[str], None]) -> None:
        """Say these sentences under a heading, if there are any."""
        if sentences:
            say(f"What {self.recipe.name} makes of the columns:")
        for sentence in sentences:
            say(f"  {sentence}")


def sort_out(
    tables: Sequence[pd.DataFrame],
    names: Sequence[str],
    recipe: Recipe,
    *,
    label: str,
    groups: Sequence[str],
    unit: str | None,
    features: list[str] | None = None,
) -> Sorted:
    """These tables, of these names, as records that the recipe can be trained on.

    A recipe that prepares its records gets columns that are read and, unless features names them,
    sorted out; another one gets them as the file has them.
    """
    for name in features or ():
        if name in (label, unit):
            raise InputError(
                f"--features has {name!r}, which is the label or the unit; leave it out"
            )
    there = dict.fromkeys(name for table in tables for name in table.columns)
    columns = features or [name for name in there if name not in (label, unit)]
    reading = Reading(tuple(columns))
    if isinstance(recipe, SklearnRecipe) and recipe.prepares:
        reading = read_columns(tables, columns, keep=features is not None)
    records = [
        _entered(table, name, reading, label=label, groups=groups, unit=unit)
        for table, name in zip(tables, names, strict=True)
    ]
    return Sorted(records, reading, recipe)


def _entered(
    table: pd.DataFrame, name: str, reading: Reading, *, groups: Sequence[str], **columns: Any
) -> Records:
    records = Records.from_frame(
        reading.read(table),
        groups=groups,
        features=[*map(str, reading.features)],
        name=name,
        **columns,
    )
    changed = {*reading.written, *reading.texts}.intersection(groups)
    if not changed:
        return records
    # Groups are reported by as they are written: by a date, and not by its days since 1970.
    as_written = {group: table[group].to_numpy() for group in groups if group in changed}
    return replace(records, groups={**records.groups, **as_written})
