"""From options to the one call of the library they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import leakscope
from leakscope.auditing.battery import choose_attacks
from leakscope.auditing.doors import enter_records
from leakscope.auditing.facade import TRIALS
from leakscope.auditing.settings import Settings
from leakscope.cli.options import AuditOptions, names_in, values_in
from leakscope.cli.progress import Steps
from leakscope.cli.recipes import find_recipe
from leakscope.cli.tables import read_table
from leakscope.datasets import load_dataset
from leakscope.errors import InputError, RecordsError
from leakscope.models import load_model
from leakscope.protocols import Model, Recipe
from leakscope.recipes import train
from leakscope.records import Records
from leakscope.report import Report
from leakscope.trials.backends import check_backend

DATASET, RECORDS, LABEL, SHADOWS = "adult", 4000, "label", 32

# Columns to report by; None: all that a data set has.
Groups = list[str] | None


@dataclass(frozen=True)
class Call:
    """The call that the options ask for: about a data set, about files, or about predictions."""

    asked: AuditOptions
    command: str
    steps: Steps

    def make(self) -> Report:
        """The report; the options are checked before any work is done."""
        asked = self.asked
        groups = names_in("groups", asked.groups)
        settings = self._settings()
        Settings(**settings).check()
        choose_attacks(settings.get("attacks"), settings.get("channels"))
        backend = asked.backend.value if asked.backend else "local"
        check_backend(backend, asked.workers, asked.address)  # before the target is trained
        settings |= {"command": self.command, "progress": self._attacking}
        if asked.member_predictions is None:
            settings |= self._shadowing()
        if asked.member_predictions and asked.nonmember_predictions:
            sides = (asked.member_predictions, asked.nonmember_predictions)
            return self._predictions(sides, groups or [], settings)
        if asked.members and asked.nonmembers:
            return self._files((asked.members, asked.nonmembers), groups, settings)
        return self._dataset(asked.dataset or DATASET, groups, settings)

    def _settings(self) -> dict[str, Any]:
        """The options the library has under the same name, where they were given."""
        asked = self.asked
        # Where leakscope draws the split itself, a fair coin puts each record on its side.
        drawn_here = asked.members is None and asked.member_predictions is None
        given = {
            "attacks": names_in("attacks", asked.attacks),
            "channels": names_in("channels", asked.channels),
            "limit": asked.limit,
            "prior": asked.prior,
            "randomized": drawn_here if asked.randomized is None else asked.randomized,
            "delta": asked.delta,
            "max_overlap": asked.max_overlap,
            "seed": asked.seed,
            "shadows": asked.shadows,
        }
        return {name: value for name, value in given.items() if value is not None}

    def _shadowing(self) -> dict[str, Any]:
        """Where shadow models are trained and kept, where that was said."""
        asked = self.asked
        given = {
            "workers": asked.workers,
            "backend": asked.backend and asked.backend.value,
            "address": asked.address,
            "fresh": asked.fresh or None,
            "store": asked.out / TRIALS,
        }
        return {name: value for name, value in given.items() if value is not None}

    def _attacking(self, step: str, done: int, total: int) -> None:
        self.steps("summing up" if done == total else step, done, total)

    def _dataset(self, name: str, groups: Groups, settings: dict[str, Any]) -> Report:
        asked = self.asked
        recipe = None if asked.recipe is None else find_recipe(asked.recipe)
        self.steps(f"reading the data set {name}")
        options = values_in("dataset_options", asked.dataset_options)
        everybody = load_dataset(name, download=asked.download, folder=asked.data, **options)
        if recipe is None:
            # Numbers with fractions are predicted; whole numbers and texts are classes.
            recipe = find_recipe("forest-regressor" if everybody.y.dtype.kind == "f" else "forest")
        chosen = everybody.sample(asked.records or RECORDS, asked.seed)
        members, nonmembers = chosen.coin_split(asked.seed)
        model = self._trained(recipe, members)
        shadows = settings.pop("shadows", SHADOWS)
        return leakscope.audit(
            model,
            members,
            nonmembers,
            groups=groups,
            dataset=name,
            recipe=recipe if shadows else None,
            shadows=shadows,
            **settings,
        )

    def _files(self, files: tuple[Path, Path], groups: Groups, settings: dict[str, Any]) -> Report:
        asked = self.asked
        recipe = None if asked.recipe is None else find_recipe(asked.recipe)
        model: Any = None
        if asked.model is not None:
            model = load_model(asked.model, trust_pickle=asked.trust_pickle)
        self.steps(f"reading {files[0]} and {files[1]}")
        tables = [read_table(path) for path in files]
        columns: dict[str, Any] = {"label": asked.label, "groups": groups, "unit": asked.unit}
        if recipe is not None and model is None:
            members = enter_records(tables[0], "members", features=None, **columns)
            model = self._trained(recipe, members)
        if settings.get("shadows"):
            settings["recipe"] = recipe
        return leakscope.audit(model, tables[0], tables[1], **columns, **settings)

    def _trained(self, recipe: Recipe, members: Records) -> Model:
        self.steps(f"training {recipe.name} on {len(members):,} members")
        return train(recipe, members, self.asked.seed)

    def _predictions(
        self, files: tuple[Path, Path], groups: list[str], settings: dict[str, Any]
    ) -> Report:
        label, unit = self.asked.label or LABEL, self.asked.unit
        self.steps(f"reading {files[0]} and {files[1]}")
        tables = {
            side: read_table(path, text=label)
            for side, path in zip(("members", "nonmembers"), files, strict=True)
        }
        classes = _class_columns(tables, [label, *groups, *([] if unit is None else [unit])])
        sides = [
            Records.from_frame(table, label, groups=groups, unit=unit, features=classes, name=side)
            for side, table in tables.items()
        ]
        return leakscope.audit_predictions(
            _probabilities(sides[0]),
            sides[0].y,
            _probabilities(sides[1]),
            sides[1].y,
            classes=np.array(classes),
            member_groups=dict(sides[0].groups),
            nonmember_groups=dict(sides[1].groups),
            member_units=sides[0].unit,
            nonmember_units=sides[1].unit,
            **settings,
        )


def _class_columns(tables: dict[str, pd.DataFrame], others: Sequence[str]) -> list[str]:
    """The columns that stand for classes: all but the others, and the same on both sides."""
    classes = {
        side: [column for column in table.columns if column not in others]
        for side, table in tables.items()
    }
    if len(classes["members"]) < 2:
        raise InputError(
            f"The members' predictions have {len(classes['members'])} columns besides "
            f"{', '.join(others)}; give one of probabilities per class, named by the class"
        )
    for column in classes["nonmembers"]:
        if column not in classes["members"]:
            raise RecordsError(
                f"Only the nonmembers' predictions have the column {column!r}; give both sides "
                "the same classes"
            )
    return classes["members"]


def _probabilities(records: Records) -> NDArray[np.float64]:
    """The features as numbers, (n, k), or one sentence that names the cell which is none."""
    table = pd.DataFrame(records.X)
    for column in table.columns:
        numbers = pd.to_numeric(table[column], errors="coerce")
        bad = np.flatnonzero(numbers.isna() & table[column].notna())
        if len(bad):
            raise RecordsError(
                f"Column {column!r} of the {records.name} is not numeric: row {bad[0]} (counting "
                f"from 0) holds {table[column].iloc[bad[0]]!r}; give class probabilities"
            )
    return table.to_numpy(dtype=np.float64)
