from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.defenses.pruning import Pruning
from leakscope.errors import ModelError
from leakscope.models.torch import TorchModel
from leakscope.papers import wang_comparing
from leakscope.papers.experiment import Setting
from leakscope.papers.wang_comparing import (
    compared,
    first_models,
    plan_of,
    row_of,
    stored,
    telling,
)
from leakscope.papers.wang_setups import STAND_IN, THRESHOLDS, Pool
from leakscope.trials import run_trials

TINY = replace(
    STAND_IN, dataset="synthetic", members={"quick": 60}, options={"n": 240, "features": 10},
    training={"epochs": 3, "lr": 0.01}, pruning=Pruning(4, epochs=1, retrain=1),
)  # fmt: skip
POOL = Pool(TINY, TINY.load(Setting()))


@pytest.fixture(autouse=True)
def few_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wang_comparing, "ATTACKS", THRESHOLDS)


def summary(**more: Any) -> dict[str, Any]:
    interval = {"value": 0.6, "low": 0.5, "high": 0.7}
    by_attack = {
        name: {"value": 0.5 + at / 100, "low": 0.4 + at / 100, "high": 0.9}
        for at, name in enumerate((*THRESHOLDS, "inference-network"))
    }
    return {
        "defense": "prune:16", "attack": "loss", "attack_accuracy": interval,
        "test_accuracy": {"value": 0.9, "low": 0.8, "high": 0.95}, "by_attack": by_attack,
        "train_accuracy": 1.0, "js": None, "epsilon": None, "bytes": 10, "epochs": 3.0,
        "train_seconds": 1.0,
        "against_none": {
            "attack_accuracy": {"value": -0.1, "low": -0.2, "high": 0.0},
            "test_accuracy": {"value": 0.1, "low": 0.0, "high": 0.2},
        },
    } | more  # fmt: skip


def test_a_row_has_the_strongest_threshold_and_the_network() -> None:
    row = row_of("here", summary())
    assert (row["setup"], row["defense"]) == ("here", "prune:16")
    assert row["threshold_attack"] == "modified-entropy"
    ends = [row[f"threshold_{key}"] for key in ("accuracy", "low", "high")]
    assert ends == pytest.approx([0.53, 0.43, 0.9])
    assert row["network_accuracy"] == 0.54
    assert (row["attack_accuracy"], row["low"], row["high"]) == (0.6, 0.5, 0.7)
    assert (row["test_accuracy"], row["test_low"], row["test_high"]) == (0.9, 0.8, 0.95)
    assert (row["attack_change"], row["attack_change_high"]) == (-0.1, 0.0)
    assert (row["test_change_low"], row["test_change_high"]) == (0.0, 0.2)
    plain = row_of("here", summary(against_none=None))
    assert plain["attack_change"] is plain["test_change_high"] is None
    assert plain.keys() == row.keys()
    without = summary()
    del without["by_attack"]["inference-network"]
    assert row_of("here", without)["network_accuracy"] is None


def test_the_three_sets_are_disjoint_and_of_equal_size() -> None:
    plan = plan_of(POOL, ["prune"], Setting(seeds=2))
    assert len(plan.divisions) == 2
    for division in plan.divisions:
        members, reference = division.roles == 1, division.roles == 2
        sets = np.stack([members, reference, division.evaluated])
        assert sets.sum(axis=0).max() == 1
        assert sets.sum(axis=1).tolist() == [60, 60, 60]
    assert (plan.divisions[0].roles != plan.divisions[1].roles).any()


def steps_of(run: Callable[[Setting], Any], setting: Setting) -> tuple[Any, list[str]]:
    """What a run gives, and what it says meanwhile."""
    steps: list[str] = []

    def note(step: str, done: int, total: int) -> None:
        steps.append(step)

    return run(replace(setting, progress=note)), steps


@pytest.mark.slow
def test_tables_and_figures_share_their_models(tmp_path: Path) -> None:
    setting = Setting(seeds=2, store=tmp_path, workers=1)
    first, steps = steps_of(lambda own: compared(POOL, ["prune"], own), setting)
    names = [row["defense"] for row in first.rows]
    pruned = "prune:4 (epochs 1; retrain 1)"
    assert names[:2] == ["none", pruned]
    assert names[2] == "early-stop"
    assert "equal-compute:4" in names
    assert sum("training" in step for step in steps) > 0
    again, steps = steps_of(lambda own: compared(POOL, ["prune", "minmax"], own), setting)
    trained = {step.split(": ")[1] for step in steps if "training" in step}
    assert "minmax:0.3" in trained
    assert not trained & {"none", pruned, "equal-compute:4"}
    both = {row["defense"]: row for row in again.rows}
    for row in first.rows:
        assert both[row["defense"]]["attack_accuracy"] == row["attack_accuracy"]
    models, steps = steps_of(lambda own: first_models(POOL, ["prune"], own), setting)
    assert not any("training" in step for step in steps)
    assert list(models) == ["none", pruned]
    assert all(isinstance(one, TorchModel) for one in models.values())
    plan = plan_of(POOL, ["prune"], setting)
    members = plan.records.take(np.flatnonzero(plan.divisions[0].roles == 1))
    right = float((models["none"].predict(members.X) == members.y).mean())
    told = json.loads((tmp_path / "wang-digits-mlp" / "compare.json").read_text("utf-8"))
    assert (told["rows"][0]["defense"], told["rows"][0]["seed"]) == ("none", 0)
    assert told["rows"][0]["train_accuracy"] == pytest.approx(right)


def test_without_a_store_models_are_trained_and_not_kept(tmp_path: Path) -> None:
    setting = Setting(seeds=1, workers=1)
    models = first_models(POOL, ["minmax"], setting)
    assert list(models) == ["none", "minmax:0.3"]
    assert not list(tmp_path.iterdir())


def test_reasons_for_missing_baselines_are_kept() -> None:
    found = wang_comparing.Compared(
        "here", [], [{"defense": None, "reason": "No."}, {"defense": "x", "reason": "Yes."}]
    )
    assert found.without == ["No."]


def test_a_model_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    plan = plan_of(POOL, ["prune"], Setting(seeds=1))
    trials = run_trials(
        plan.compared[0].recipe, plan.records, plan.divisions[0].roles[None], ["loss"],
        store=tmp_path, workers=1,
    )  # fmt: skip
    (model,) = stored(trials)
    assert model.task == "classification"
    for path in tmp_path.glob("*/model.bin"):
        shutil.rmtree(path.parent)
    with pytest.raises(ModelError, match="cannot be read from"):
        list(stored(trials))


def test_progress_says_what_it_is_about() -> None:
    _, steps = steps_of(lambda own: telling(POOL, own)("a", 0, 1), Setting())
    _, more = steps_of(lambda own: telling(POOL, own, "none")("a", 0, 1), Setting())
    assert (steps, more) == (["Digits-MLP: a"], ["Digits-MLP, none: a"])
