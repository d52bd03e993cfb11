from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leakscope.defenses.pruning import Pruning
from leakscope.papers import wang_comparing, wang_setups, wang_tables
from leakscope.papers.experiment import Experiment, Setting
from leakscope.papers.wang_attack import InferenceAttack
from leakscope.papers.wang_setups import LOCATION, MNIST, THRESHOLDS, Pool
from leakscope.papers.wang_tables import (
    _by_gap,
    _choices,
    against_differential_privacy,
    imagenet,
    pruning_and_minmax,
    pruning_with_minmax,
    training_and_test_accuracy,
)
from leakscope.protocols import Attack

KEYS = {
    "setup", "defense", "train_accuracy", "test_accuracy", "test_low", "test_high", "attack",
    "attack_accuracy", "low", "high", "threshold_attack", "threshold_accuracy", "threshold_low",
    "threshold_high", "network_accuracy", "js", "epsilon", "bytes", "epochs", "train_seconds",
}  # fmt: skip
PRUNED = "prune:4 (epochs 1; retrain 1)"
TINY = replace(
    wang_setups.STAND_IN, dataset="synthetic", members={"quick": 60, "full": 60},
    options={"n": 240, "features": 10, "classes": 3},
    training={"epochs": 4, "lr": 0.01, "batch_size": 16}, pruning=Pruning(4, epochs=1, retrain=1),
)  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all tables: what one has trained the next one finds."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, store: Path) -> Callable[..., Experiment]:
    """Runs a table on the tiny set-up, by threshold attacks and a short attack network."""
    attacks: list[str | Attack] = [*THRESHOLDS, InferenceAttack(epochs=1)]
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)
    monkeypatch.setattr(wang_setups, "STAND_IN", TINY)
    monkeypatch.setattr(wang_comparing, "ATTACKS", attacks)

    def made(table: Callable[[Setting], Experiment], **more: Any) -> Experiment:
        return table(Setting(**{"seeds": 1, "workers": 1, "store": store} | more))

    return made


def defenses(experiment: Experiment) -> list[str]:
    return [row["defense"] for row in experiment.rows]


@pytest.mark.slow
def test_table_1_has_pruning_and_minmax_beside_the_baselines(
    run: Callable[..., Experiment],
) -> None:
    experiment = run(pruning_and_minmax)
    assert defenses(experiment)[:4] == ["none", PRUNED, "minmax:0.3", "early-stop"]
    assert "equal-compute:4" in defenses(experiment)
    assert all(row.keys() >= KEYS for row in experiment.rows)
    assert {row["setup"] for row in experiment.rows} == {"Digits-MLP"}
    none, pruned, minmax = experiment.rows[:3]
    assert none["attack_change"] is None
    assert pruned["bytes"] < none["bytes"] == minmax["bytes"]
    assert (none["epochs"], pruned["epochs"], minmax["epochs"]) == (4, 8, 4)
    assert none["threshold_attack"] in THRESHOLDS
    assert len(experiment.paper_rows) == 18
    notes = " ".join(experiment.notes)
    assert "Pruning leaks surely less than no defense in" in notes
    assert "99.39 % in Table 1 and of 99.30 % in Table 2" in notes
    assert "With --scale full there are also: CIFAR-10-VGG16, CIFAR-10-MobileNetV2" in notes
    assert "mnist.npz is not in the data folder" in notes


def test_what_algorithm_1_chose_is_told_where_it_stands() -> None:
    records = TINY.load(Setting())
    apart = replace(TINY, name=MNIST.name, apart={"seed": 1})
    setups = [apart, replace(TINY, name=LOCATION.name), TINY]
    pools = [Pool(one, records) for one in setups]
    first, second = _choices(pools, ["minmax", "prune+minmax"])
    chosen = f"the learning rates of {PRUNED} were chosen by Algorithm 1"
    assert first.startswith(f"{MNIST.name}: {chosen}")
    assert "among records that are in no table" in first
    assert second.startswith(f"{LOCATION.name}: {chosen}")
    assert "D′ of the tables at quick and seed 0" in second
    assert _choices(pools, ["minmax"]) == []


@pytest.mark.slow
def test_table_2_has_differential_privacy(run: Callable[..., Experiment]) -> None:
    experiment = run(against_differential_privacy)
    assert defenses(experiment)[:4] == ["none", "dpsgd:6.28", PRUNED, "early-stop"]
    private = experiment.rows[1]
    assert 5 < private["epsilon"] <= 6.28
    (note,) = [note for note in experiment.notes if "DP-SGD spends" in note]
    place = "at" if private["low"] <= 0.5 else "above"
    assert f"attacks on it are {place} chance" in note


def test_table_3_says_which_folder_is_missing(run: Callable[..., Experiment]) -> None:
    experiment = run(imagenet)
    assert defenses(experiment)[:3] == ["none", PRUNED, "early-stop"]
    assert sum("imagenet is not in the data folder" in note for note in experiment.notes) == 2


@pytest.mark.slow
def test_table_5_and_6_train_only_what_is_new(run: Callable[..., Experiment]) -> None:
    steps: list[str] = []
    experiment = run(pruning_with_minmax, progress=lambda step, *_: steps.append(step))
    both = f"{PRUNED}+minmax:0.3"
    assert defenses(experiment)[:3] == ["none", PRUNED, both]
    trained = {step.split(": ")[1] for step in steps if "training" in step}
    assert both in trained
    assert not trained & {"none", PRUNED, "early-stop", "equal-compute:4"}
    steps.clear()
    last = run(training_and_test_accuracy, progress=lambda step, *_: steps.append(step))
    assert defenses(last)[:4] == ["none", PRUNED, "minmax:0.3", both]
    assert not any("training" in step for step in steps)
    assert any("rise" in note and "with the gap" in note for note in last.notes)


def test_the_full_scale_begins_with_an_estimate(
    run: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    monkeypatch.setattr(wang_tables, "estimates", lambda *_: ["So many hours."])
    experiment = run(imagenet, scale="full", progress=lambda step, *_: steps.append(step))
    assert experiment.notes[-1] == "So many hours."
    assert not any("--scale full" in note for note in experiment.notes)


@pytest.mark.parametrize(
    ("scale", "workers", "together"), [("quick", 2, 2), ("quick", 1, 1), ("full", 2, 1)]
)
def test_quick_comparisons_run_side_by_side(
    scale: Any, workers: int, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [wang_setups.Pool(replace(TINY, name=name), None) for name in "ab"]  # type: ignore[arg-type]
    batches: list[int] = []

    def each(tasks: Any, setting: Setting, step: str) -> list[Any]:
        batches.append(len(tasks))
        return [task() for task in tasks]

    def compared(pool: Any, kinds: Any, setting: Setting) -> Any:
        return pool.setup.name, setting.workers

    monkeypatch.setattr(wang_tables, "each", each)
    monkeypatch.setattr(wang_tables, "compared", compared)
    made = wang_tables._all(found, ["prune"], Setting(scale, workers=workers))
    assert batches == ([2] if together == 2 else [])
    # Side by side each has one process to itself.
    assert made == [(name, 1 if together == 2 else workers) for name in "ab"]


def test_the_order_by_gaps_is_that_of_the_attacks_or_not() -> None:
    rows = [
        {"setup": "a", "defense": name, "train_accuracy": 1.0, "test_accuracy": test,
         "attack_accuracy": found}
        for name, test, found in (("none", 0.5, 0.9), ("x", 0.7, 0.6), ("y", 0.6, 0.8))
    ]  # fmt: skip
    assert _by_gap("a", rows) == (
        "a: attack accuracy rises with the gap between the accuracies in training and on others "
        "(x 0.300 and 0.600, y 0.400 and 0.800, none 0.500 and 0.900)."
    )
    rows[1]["attack_accuracy"] = 0.95
    assert "does not always rise" in _by_gap("a", rows)
