from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.defenses.pruning import Pruning
from leakscope.models import Remembering
from leakscope.models.torch import TorchModel
from leakscope.networks import LeNet5
from leakscope.networks.pruning import prunable
from leakscope.networks.sparse import save_sparse
from leakscope.papers import wang_sizes
from leakscope.papers.experiment import Setting
from leakscope.papers.wang_networks import build
from leakscope.papers.wang_sizes import (
    NETWORKS,
    _notes,
    file_size,
    magnitude_row,
    module_of,
    sizes_of_pruned_networks,
)

LENET = NETWORKS[0]
# Conv 1 → 6 and 6 → 16 of 5 × 5, linear 400 → 120 → 84 → 10.
BY_HAND = 25 * 6 + 25 * 6 * 16 + 400 * 120 + 120 * 84 + 84 * 10


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)
    monkeypatch.setattr(wang_sizes, "NETWORKS", (LENET,))
    monkeypatch.setattr(wang_sizes, "TRIES", 1)
    return Setting(data=tmp_path, workers=1)


def test_weights_are_counted_as_by_hand(tmp_path: Path) -> None:
    row = magnitude_row(LENET, 0)
    assert row["weights"] == BY_HAND == 61_470
    assert row["weights_kept"] == int(BY_HAND / 15.78) == 3895
    assert row["ratio"] == BY_HAND / 3895
    # All numbers and the biases of four bytes each, and a header.
    assert 0 < row["bytes_dense"] - 4 * (BY_HAND + 236) < 2000
    # At least the numbers that are left; at most those and a bit for each of all.
    assert 4 * (3895 + 236) < row["bytes_sparse"] < 4 * (3895 + 236) + BY_HAND / 8 + 2000
    assert row["seconds_dense"] > 0 < row["seconds_sparse"]


def test_convolutions_of_the_large_networks_are_counted_as_by_hand() -> None:
    maps = [3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    vgg = sum(9 * before * after for before, after in pairwise(maps)) + 512 * 10
    # A stage of ResNet-18 has four convolutions of 3 × 3, and all but the first a shortcut.
    stages = [64, 128, 256, 512]
    resnet = 27 * 64 + 4 * 9 * 64 * 64 + 512 * 10
    resnet += sum(9 * a * b + 27 * b * b + a * b for a, b in pairwise(stages))
    for one, by_hand in zip(NETWORKS[1:3], (vgg, resnet), strict=True):
        weights = prunable(build(one.network, one.inputs, one.classes))
        assert sum(weight.numel() for weight in weights.values()) == by_hand


def test_the_network_is_found_inside_whatever_is_around_it() -> None:
    module = LeNet5()
    model = TorchModel(module)
    assert module_of(model) is module_of(Remembering(model)) is module


def test_files_are_those_that_are_written(tmp_path: Path) -> None:
    module = LeNet5()
    assert file_size(module) == save_sparse(module.state_dict(), tmp_path / "a")


def test_without_mnist_lenet_is_pruned_by_magnitude_alone(nowhere: Setting) -> None:
    experiment = sizes_of_pruned_networks(nowhere)
    assert [row["pruned_by"] for row in experiment.rows] == ["magnitude, not trained"]
    assert experiment.notes[-1].startswith("LeNet-5 is pruned by magnitude alone: mnist.npz")
    assert len(experiment.paper_rows) == 6


def test_with_mnist_the_network_of_table_1_stands_beside_it(
    nowhere: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (120, 28, 28), np.uint8), np.arange(120) % 10
    np.savez(tmp_path / "mnist.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    tiny = replace(
        wang_sizes.MNIST, members={"quick": 40}, training={"epochs": 1},
        pruning=Pruning(16, epochs=1, retrain=1),
    )  # fmt: skip
    monkeypatch.setattr(wang_sizes, "MNIST", tiny)
    first, second = sizes_of_pruned_networks(nowhere).rows
    assert (first["pruned_by"], second["pruned_by"]) == (
        "magnitude, not trained", "ADMM, as in Table 1",
    )  # fmt: skip
    assert second["weights"] == BY_HAND
    assert second["weights_kept"] == BY_HAND // 16
    assert second["bytes_sparse"] < second["bytes_dense"] / 8


def row(**more: Any) -> dict[str, Any]:
    return {
        "data": "A", "model": "B", "pruned_by": "C", "weights": 1000, "weights_kept": 100,
        "ratio": 10.0, "bytes_dense": 4000, "bytes_sparse": 500, "seconds_dense": 1.0,
        "seconds_sparse": 0.25, "sparse_layers": 1,
    } | more  # fmt: skip


def test_a_speed_up_is_claimed_only_where_it_was_measured() -> None:
    told = [*_notes([row()])]
    assert told[0] == (
        "A, B (C): 100 of 1,000 weights are left, 10.00 times fewer; the file has 500 bytes "
        "instead of 4,000, 8.00 times fewer."
    )
    assert told[1].startswith("Zeros made answers faster in 1 of 1 networks here: A B (4.0 times);")
    for other in (row(sparse_layers=0), row(seconds_sparse=0.95)):
        assert [*_notes([other])][1].startswith(
            "Zeros made answers faster in 0 of 1 networks here;"
        )
