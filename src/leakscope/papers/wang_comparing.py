"""Defenses of one set-up side by side, as rows; and the models themselves, trained once for all.

Every table of Wang et al. (2020) is a comparison by the facade: the strongest of all attacks on the
predictions is the headline, and beside a defense stand none, equal compute and early stopping: at
half of the epochs, and at the accuracy in training of each defense that has a lower one than none.
Models are kept in a folder for each set-up, whichever table or
figure asked for them first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakscope.auditing.facade import TRIALS
from leakscope.comparing import compare
from leakscope.comparing.costs import Cost, Measured
from leakscope.comparing.setup import Plan, make_plan
from leakscope.defenses.regularization import EarlyStopping
from leakscope.errors import ModelError
from leakscope.papers.experiment import Setting
from leakscope.papers.wang_attack import InferenceAttack
from leakscope.papers.wang_setups import ATTACKS, THRESHOLDS, Pool, repetitions
from leakscope.protocols import Model, Progress
from leakscope.trials import Trials, run_trials
from leakscope.trials.packing import unpack
from leakscope.trials.store import MANIFEST, Store

NONE = "none"
LIMIT = 0.1


@dataclass(frozen=True)
class Compared:
    """The rows of one set-up, and the baselines with the reason for each that could not be."""

    setup: str
    rows: list[dict[str, Any]]
    baselines: list[dict[str, Any]]

    @property
    def without(self) -> list[str]:
        """Why a baseline is not there, a sentence each."""
        return [str(one["reason"]) for one in self.baselines if one["defense"] is None]


def compared(pool: Pool, kinds: Sequence[str], setting: Setting) -> Compared:
    """Compare defenses of these kinds, such as "prune+minmax", with none and the baselines."""
    setup = pool.setup
    comparison = compare(
        setup.recipe,
        pool.records,
        [*(setup.defense(kind) for kind in kinds), EarlyStopping()],
        members=setup.members[setting.scale],
        seeds=repetitions(setting),
        attacks=ATTACKS,
        out=folder_of(pool, setting),
        workers=setting.workers,
        limit=LIMIT,
        seed=setting.seed,
        progress=telling(pool, setting),
        dataset=setup.dataset,
    )
    rows = [row_of(setup.name, one) for one in comparison.summary]
    return Compared(setup.name, rows, comparison.to_dict()["setup"]["baselines"])


def row_of(setup: str, summary: Mapping[str, Any]) -> dict[str, Any]:
    """The row of one defense from what a comparison says of it over all seeds."""
    found, right, by_attack = (
        summary[key] for key in ("attack_accuracy", "test_accuracy", "by_attack")
    )
    threshold = max(THRESHOLDS, key=lambda name: by_attack[name]["value"])
    nothing: dict[str, float] = {}
    against = summary["against_none"] or {"attack_accuracy": nothing, "test_accuracy": nothing}
    return {
        "setup": setup,
        "defense": summary["defense"],
        "train_accuracy": summary["train_accuracy"],
        "test_accuracy": right["value"],
        "test_low": right["low"],
        "test_high": right["high"],
        "attack": summary["attack"],
        "attack_accuracy": found["value"],
        "low": found["low"],
        "high": found["high"],
        "threshold_attack": threshold,
        **_ends("threshold", by_attack[threshold], "threshold_accuracy"),
        "network_accuracy": by_attack.get(InferenceAttack.name, {}).get("value"),
        **_ends("attack_change", against["attack_accuracy"], "attack_change"),
        **_ends("test_change", against["test_accuracy"], "test_change"),
        **{key: summary[key] for key in ("js", "epsilon", "bytes", "epochs", "train_seconds")},
    }


def _ends(stem: str, interval: Mapping[str, float], value: str) -> dict[str, float | None]:
    return {
        value: interval.get("value"),
        f"{stem}_low": interval.get("low"),
        f"{stem}_high": interval.get("high"),
    }


def folder_of(pool: Pool, setting: Setting) -> Path | None:
    """Where what is trained for a set-up is kept; None where nothing is."""
    return None if setting.store is None else setting.store / f"wang-{pool.setup.name.lower()}"


def plan_of(pool: Pool, kinds: Sequence[str], setting: Setting) -> Plan:
    """Who is who and which recipes: the same that ``compared`` trains, none first."""
    setup = pool.setup
    return make_plan(
        setup.recipe,
        pool.records,
        [setup.defense(kind) for kind in kinds],
        members=setup.members[setting.scale],
        seeds=repetitions(setting),
        attacks=ATTACKS,
        channels=None,
        shadows=0,
        limit=LIMIT,
        seed=setting.seed,
    )


def first_models(pool: Pool, kinds: Sequence[str], setting: Setting) -> dict[str, Model]:
    """The model of the first seed of none and of each defense, by its name; trained if need be."""
    plan, folder = plan_of(pool, kinds, setting), folder_of(pool, setting)
    roles = plan.divisions[0].roles[None]
    models = {}
    for defended in plan.compared:
        trials = run_trials(
            Measured.of(defended.recipe),
            plan.records,
            roles,
            [Cost()],
            seed=plan.seed,
            store=None if folder is None else folder / TRIALS,
            workers=setting.workers,
            progress=telling(pool, setting, defended.name),
        )
        (models[defended.name],) = stored(trials)
    return models


def stored(trials: Trials) -> Iterator[Model]:
    """The models of a run, one after another."""
    assert trials.folder is not None  # run_trials always names one
    store = Store(trials.folder)
    manifest = json.loads((trials.folder / MANIFEST).read_text("utf-8"))
    for entry in manifest["models"]:
        packed = store.model(entry["key"])
        if packed is None:
            raise ModelError(
                f"Model {entry['number']} (counting from 0) of {manifest['recipe']['name']!r} "
                f"cannot be read from {str(trials.folder)!r}; run again with another --out"
            )
        yield unpack(packed)


def telling(pool: Pool, setting: Setting, defense: str = "") -> Progress:
    """The progress of an experiment, with the set-up it is about."""

    def tell(step: str, done: int, total: int) -> None:
        about = f"{pool.setup.name}, {defense}" if defense else pool.setup.name
        setting.progress(f"{about}: {step}", done, total)

    return tell
