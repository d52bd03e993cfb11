"""From options to the one call of the library they ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from leakscope.cli.columns import OTHERWISE, sort_out
from leakscope.cli.options import AuditOptions
from leakscope.cli.progress import Steps
from leakscope.cli.recipes import find_recipe
from leakscope.cli.remote import model_at
from leakscope.cli.tables import read_table
from leakscope.cli.texts import names_in, values_in
from leakscope.cli.weights import filled_network
from leakscope.datasets import load_dataset
from leakscope.errors import InputError, RecordsError
from leakscope.models.files import open_model
from leakscope.models.torch_files import Weights
from leakscope.protocols import Model, Recipe
from leakscope.recipes import train
from leakscope.records import Records
from leakscope.report import Report
from leakscope.trials.backends import check_backend

DATASET, RECORDS, LABEL, SHADOWS = "adult", 4000, "label", 32

SIDES = ("members", "nonmembers")

# Columns to report by; None: all that a data set has.
Groups = list[str] | None


@dataclass(frozen=True)
class Call:
    """The call that the options ask for: about a data set, about files, or about predictions.

    steps is told what is being done; say, what stays on the screen.
    """

    asked: AuditOptions
    command: str
    steps: Steps
    say: Callable[[str], None]

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
            "tail_limit": asked.tail_limit,
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
            # They hold which records each was trained on: nothing to leave beside what is redacted.
            "store": None if asked.redact else asked.out / TRIALS,
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
        model = self._opened(recipe)
        self.steps(f"reading {files[0]} and {files[1]}")
        tables = [read_table(path) for path in files]
        columns: dict[str, Any] = {"label": asked.label, "groups": groups, "unit": asked.unit}
        if model is None and recipe is not None:
            return self._recipe_of_files(recipe, tables, columns, settings)
        if isinstance(model, Weights):
            sides = [
                enter_records(table, side, features=None, **columns)
                for table, side in zip(tables, SIDES, strict=True)
            ]
            model = filled_network(model, asked.network, recipe, *sides)
        if settings.get("shadows"):
            settings["recipe"] = recipe
        return leakscope.audit(model, tables[0], tables[1], **columns, **settings)

    def _recipe_of_files(
        self,
        recipe: Recipe,
        tables: list[pd.DataFrame],
        columns: dict[str, Any],
        settings: dict[str, Any],
    ) -> Report:
        """The audit of a model that is trained here, on columns that are sorted out before."""
        asked_for = names_in("features", self.asked.features)
        columns["groups"] = columns["groups"] or ()
        found = sort_out(tables, SIDES, recipe, features=asked_for, **columns)
        model = self._trained(recipe, found.records[0])
        told = found.told(model)
        found.say([*told, *([OTHERWISE] if found.reading.left_out else [])], self.say)
        if settings.get("shadows"):
            settings["recipe"] = recipe
        report = leakscope.audit(model, *found.records, unit=self.asked.unit, **settings)
        target = {**report.data["target"], "preparation": told}
        return replace(report, data={**report.data, "target": target})

    def _opened(self, recipe: Recipe | None) -> Any:
        """What the model file holds, or the model at --model-url, before records are read."""
        asked = self.asked
        if recipe is not None and asked.model_url is not None and not asked.shadows:
            raise InputError(
                "--recipe beside --model-url says how to train shadow models, and --shadows does "
                "not say how many; add it, or leave --recipe out"
            )
        if asked.model_url is not None:
            return model_at(asked.model_url, asked.url_options)
        if asked.model is None:
            return None
        model = open_model(asked.model, trust_pickle=asked.trust_pickle)
        if isinstance(model, Weights):
            if asked.network is None and recipe is None:
                raise model.unnamed()
            return model
        if asked.network is not None:
            raise InputError(
                f"--network is about weights, and {str(asked.model)!r} holds a whole model; leave "
                "it out"
            )
        if recipe is not None and not asked.shadows:
            raise InputError(
                "--recipe beside --model says how to train shadow models, and --shadows does not "
                "say how many; add it, or leave --recipe out"
            )
        return model

    def _trained(self, recipe: Recipe, members: Records) -> Model:
        self.steps(f"training {recipe.name} on {len(members):,} members")
        return train(recipe, members, self.asked.seed)

    def _predictions(
        self, files: tuple[Path, Path], groups: list[str], settings: dict[str, Any]
    ) -> Report:
        label, unit = self.asked.label or LABEL, self.asked.unit
        self.steps(f"reading {files[0]} and {files[1]}")
        tables = {
            side: read_table(path, text=label) for side, path in zip(SIDES, files, strict=True)
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
