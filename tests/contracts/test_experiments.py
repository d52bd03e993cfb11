"""What every figure and table of a paper keeps, whatever it shows."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from leakscope.channels.explanations import Gradient, SmoothGrad
from leakscope.defenses.pruning import Pruning
from leakscope.papers import (
    farokhi,
    farokhi_network,
    farokhi_ridge,
    shokri_gradients,
    shokri_methods,
    shokri_queries,
    shokri_reconstruction,
    shokri_reveal,
    shokri_samples,
    shokri_smoothing,
    shokri_synthetic,
    shokri_targets,
    wang_comparing,
    wang_curves,
    wang_setups,
    wang_sizes,
)
from leakscope.papers.experiment import Experiment, Setting
from leakscope.papers.saving import save
from leakscope.papers.wang_attack import InferenceAttack
from leakscope.registry import entries, lookup

FAROKHI = {
    "rho_kl", "rho_kl_low", "rho_kl_high", "rho_mi", "rho_mi_balanced", "total_variation",
    "advantage_bound", "advantage_median", "advantage_q1", "advantage_q3", "advantage_signed",
}  # fmt: skip

# The row keys that others read, where they are promised.
KEYS = {
    "farokhi-fig1": {"n", *FAROKHI},
    "farokhi-fig2": {"n", *FAROKHI},
    "farokhi-fig3": {"l2", *FAROKHI},
    "farokhi-fig4": {"features", *FAROKHI},
    "farokhi-fig5": {"sigma", *FAROKHI},
    "shokri-fig1": {"dataset", "gap", "access", "attack_accuracy", "low", "high"},
    "shokri-table2": {"dataset", "group", "value", "share", "k1", "k5", "k10"},
    "shokri-table3": {
        "dataset", "features", "records", "bound", "k", "recovered", "queries", "seconds",
    },
    "shokri-table4": {
        "dataset", "scc", "scc_size_1", "largest_scc", "max_in_degree", "in_degree_0",
    },
}  # fmt: skip


def small(source: shokri_targets.Source) -> shokri_targets.Source:
    """The same data set with few members, trained for a few epochs."""
    return replace(source, members={"quick": 100}, epochs={"quick": 3})


def brief(setup: wang_setups.Setup) -> wang_setups.Setup:
    """The same set-up with few members, trained and pruned for a few epochs."""
    return replace(
        setup,
        members={"quick": 60},
        training={**setup.training, "epochs": 4},
        pruning=Pruning(4, epochs=1, retrain=1),
    )


# What makes experiments so small that all of them take seconds: module, attribute, value.
TINY: list[tuple[Any, str, Any]] = [
    (farokhi_ridge, "SIZES", {"quick": farokhi_ridge.Size(20, 60, 20)}),
    (farokhi, "SIZES", {"quick": farokhi_ridge.Size(20, 60, 20)}),
    (farokhi, "SIZES_SWEPT", (10, 30)),
    (farokhi, "PENALTIES", (0.0, 1.0)),
    (farokhi, "FEATURES", (1, 2)),
    (farokhi, "SIGMAS", (0.0, 10.0)),
    (farokhi_network, "SIZES", {"quick": farokhi_network.Size(16, 2)}),
    (farokhi_network, "SIZES_SWEPT", (12,)),
    (farokhi_network, "STEPS", 20),
    (shokri_samples, "SAMPLES", {"quick": 2}),
    (shokri_samples, "RECORDS", 150),
    (shokri_reveal, "SIZES_SWEPT", {"quick": (50, 100)}),
    (shokri_reconstruction, "STAND_IN", {"quick": (12, 15)}),
    (shokri_queries, "POINTS", (1, 10, 30)),
    (shokri_targets, "SOURCES", tuple(map(small, shokri_targets.SOURCES))),
    (shokri_targets, "STAND_IN", small(shokri_targets.STAND_IN)),
    (shokri_targets, "LEVELS", {"quick": (0.1,)}),
    (shokri_gradients, "EPOCHS", 1),
    (
        shokri_methods,
        "METHODS",
        {"gradient": Gradient, "SmoothGrad": partial(SmoothGrad, samples=2)},
    ),
    (shokri_smoothing, "SIGMAS", {"quick": (0.5,)}),
    (shokri_smoothing, "SAMPLES", {"quick": (1, 2)}),
    (shokri_smoothing, "ASKED", 10),
    (shokri_synthetic, "EPOCHS", 1),
    (shokri_synthetic, "FIGURE_5", {"quick": shokri_synthetic.Study(("base",), (5, 10), 200)}),
    (shokri_synthetic, "FIGURE_14", {"quick": shokri_synthetic.Study(("small",), (10, 20), 200)}),
    (wang_setups, "SETUPS", {name: brief(one) for name, one in wang_setups.SETUPS.items()}),
    (wang_setups, "STAND_IN", brief(wang_setups.STAND_IN)),
    (wang_setups, "SEEDS", {"quick": 1}),
    (wang_comparing, "ATTACKS", (*wang_setups.THRESHOLDS, InferenceAttack(epochs=1))),
    (wang_curves, "EPOCHS", 2),
    (wang_sizes, "MNIST", brief(wang_sizes.MNIST)),
    (wang_sizes, "NETWORKS", wang_sizes.NETWORKS[:1]),
    (wang_sizes, "TRIES", 1),
]
NAMES = [entry.name for entry in entries("experiment")]
# Of each paper some for every day: all of them together take half a minute.
SHORT = {
    "farokhi-fig3",
    "farokhi-fig5",
    "shokri-fig15",
    "shokri-table4",
    "wang-fig3",
    "wang-table4",
}
LISTED = [pytest.param(name, marks=[] if name in SHORT else [pytest.mark.slow]) for name in NAMES]


@cache
def made(name: str) -> Experiment:
    """The experiment at a tiny scale, computed once."""
    with pytest.MonkeyPatch.context() as patch:
        for module, attribute, value in TINY:
            patch.setattr(module, attribute, value)
        experiment: Experiment = lookup("experiment", name).thing(Setting(workers=1))
    return experiment


@pytest.mark.parametrize("name", LISTED)
def test_it_says_what_it_is(name: str) -> None:
    entry, experiment = lookup("experiment", name), made(name)
    assert experiment.experiment == name
    assert entry.paper
    assert entry.summary
    assert experiment.paper.startswith(entry.paper)
    assert set(experiment.to_dict()) == {
        "experiment", "paper", "setup", "rows", "paper_rows", "notes",
    }  # fmt: skip


@pytest.mark.parametrize("name", LISTED)
def test_rows_have_the_keys_that_others_read(name: str) -> None:
    rows = made(name).rows
    assert rows
    for row in rows:
        assert row.keys() == rows[0].keys()
        assert row.keys() >= KEYS.get(name, set())


@pytest.mark.parametrize("name", LISTED)
def test_it_is_plain_json_without_what_json_cannot_hold(name: str) -> None:
    told = made(name).to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told


@pytest.mark.parametrize("name", LISTED)
def test_notes_are_sentences(name: str) -> None:
    notes = made(name).notes
    assert notes
    assert len(set(notes)) == len(notes)
    assert all(note.endswith(".") and "\n" not in note for note in notes)


@pytest.mark.parametrize("name", LISTED)
def test_it_can_be_saved(name: str, tmp_path: Path) -> None:
    paths = save(made(name), tmp_path)
    assert [path.suffix for path in paths][:2] == [".json", ".csv"]
    assert all(path.stem == name and path.stat().st_size > 0 for path in paths)
    assert len(paths[1].read_text("utf-8").splitlines()) > len(made(name).rows)
    assert (len(paths) == 3) is (made(name).draw is not None)


def test_every_promised_figure_is_there() -> None:
    assert set(KEYS) <= set(NAMES)
