"""Table 4 of Wang et al. (2020): how small pruned networks are, in weights, in bytes, in seconds.

Budgets are those of the paper's ratios, on networks built as it names them. Bytes are those of
files that were really written, dense and compact in the same format; seconds those of an answer to
a batch of images in one thread.
"""

from __future__ import annotations

import copy
import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import MissingDataError
from leakscope.models.torch import TorchModel
from leakscope.papers.experiment import Experiment, Row, Setting
from leakscope.papers.wang_comparing import first_models
from leakscope.papers.wang_networks import build
from leakscope.papers.wang_printed import printed
from leakscope.papers.wang_setups import MNIST, PAPER, Pool
from leakscope.registry import register

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Pruned:
    """A network of the paper, how many times fewer weights it keeps, and the batch it is timed on.

    inputs: the channels, height and width of an image.
    """

    data: str
    model: str
    network: str
    inputs: tuple[int, int, int]
    classes: int
    ratio: float
    batch: int


NETWORKS = (
    Pruned("MNIST", "LeNet-5", "lenet5", (1, 28, 28), 10, 15.78, 256),
    Pruned("CIFAR-10/100", "VGG16", "vgg16", (3, 32, 32), 10, 13.84, 32),
    Pruned("CIFAR-10/100", "ResNet-18", "resnet18", (3, 32, 32), 10, 10.54, 32),
    Pruned("CIFAR-10/100", "MobileNetV2", "mobilenet-v2", (3, 32, 32), 10, 10.06, 32),
    Pruned("ImageNet", "ResNet-18", "resnet18", (3, 224, 224), 1000, 3.37, 4),
    Pruned("ImageNet", "MobileNetV2", "mobilenet-v2", (3, 224, 224), 1000, 3.27, 4),
)
# A speed-up is claimed where an answer takes at most this part of the time, the best of so many.
FASTER, TRIES = 0.9, 4


@register("experiment", "wang-table4", paper=f"{PAPER}, table 4")
def sizes_of_pruned_networks(setting: Setting) -> Experiment:
    """Weights, bytes and seconds of pruned networks beside unpruned ones."""
    rows = []
    for at, one in enumerate(NETWORKS):
        setting.progress(f"{one.data}, {one.model}", at, len(NETWORKS))
        rows.append(magnitude_row(one, setting.seed))
    trained, missing = trained_row(setting)
    rows[1:1] = trained
    return Experiment(
        experiment="wang-table4",
        paper=f"{PAPER}, table 4",
        setup={
            "budgets": "the same share of every layer, the first and the last protected; "
            "convolutional and linear weights alone",
            "bytes": "of files that were written: the same format, zeros left out where that is "
            "shorter",
            "seconds": f"of an answer to a batch of records, the shortest of {TRIES} tries in one "
            "thread; sparse: linear layers skip zeros where that was measured to be faster, of "
            "which there are sparse_layers",
            "scale": setting.scale,
            "seed": setting.seed,
        },
        rows=rows,
        paper_rows=printed("wang-table4"),
        notes=[*_notes(rows), *missing],
    )


def magnitude_row(one: Pruned, seed: int) -> dict[str, Any]:
    """The row of a network with first weights, of which the largest are kept: none is trained."""
    from leakscope.networks.pruning import Masks, layer_budgets, prunable
    from leakscope.networks.seeding import Purpose, drawing_from, generator

    with drawing_from(generator(seed, Purpose.WEIGHTS)):
        dense = build(one.network, one.inputs, one.classes)
    pruned = copy.deepcopy(dense)
    weights = prunable(pruned)
    budgets = layer_budgets({path: w.numel() for path, w in weights.items()}, one.ratio)
    Masks.of_largest(weights, budgets).hold(pruned)
    X = np.random.default_rng(seed).random((one.batch, *one.inputs), dtype=np.float32)
    return _row(one.data, one.model, "magnitude, not trained", dense, pruned, X)


def trained_row(setting: Setting) -> tuple[list[dict[str, Any]], list[str]]:
    """The row of the LeNet-5 that Table 1 has pruned by ADMM; a sentence where it cannot be."""
    try:
        pool = Pool(MNIST, MNIST.load(setting))
    except MissingDataError:
        return [], [
            f"LeNet-5 is pruned by magnitude alone: {MNIST.file}, with which Table 1 trains it and "
            "prunes it by ADMM, is not in the data folder; name the folder that has it with --data."
        ]
    dense, pruned = (module_of(model) for model in first_models(pool, ["prune"], setting).values())
    X = np.asarray(pool.records.X[: NETWORKS[0].batch])
    return [_row("MNIST", "LeNet-5", "ADMM, as in Table 1", dense, pruned, X)], []


def module_of(model: Any) -> nn.Module:
    """The network inside a model."""
    while not isinstance(model, TorchModel):
        model = model.wrapped
    return model.module


def _row(
    data: str,
    model: str,
    pruned_by: str,
    dense: nn.Module,
    pruned: nn.Module,
    X: NDArray[np.float32],
) -> dict[str, Any]:
    from leakscope.networks.pruning import prunable
    from leakscope.networks.seeding import repeatable
    from leakscope.networks.sparse import SparseLinear, faster_sparse

    weights = {path: weight.numel() for path, weight in prunable(dense).items()}
    kept = sum(int(weight.count_nonzero()) for weight in prunable(pruned).values())
    with repeatable():
        tensor = prunable(pruned)[next(iter(weights))].new_tensor(X)
        sparse = faster_sparse(pruned, tensor)
        seconds = _seconds([dense, sparse], X)
    return {
        "data": data,
        "model": model,
        "pruned_by": pruned_by,
        "weights": sum(weights.values()),
        "weights_kept": kept,
        "ratio": sum(weights.values()) / kept,
        "bytes_dense": file_size(dense),
        "bytes_sparse": file_size(pruned),
        "records": len(X),
        "seconds_dense": seconds[0],
        "seconds_sparse": seconds[1],
        "sparse_layers": sum(isinstance(layer, SparseLinear) for layer in sparse.modules()),
    }


def _seconds(modules: Sequence[nn.Module], X: NDArray[np.float32]) -> list[float]:
    """How long each network takes to answer for X, tried in turn: what else runs adds to all."""
    models = [TorchModel(one, outputs="logits") for one in modules]
    best = [math.inf] * len(models)
    for _ in range(TRIES):
        for place, model in enumerate(models):
            started = time.perf_counter()
            model.predict(X)
            best[place] = min(best[place], time.perf_counter() - started)
    return best


def file_size(module: nn.Module) -> int:
    """How many bytes the file of a network has, written and looked at."""
    from leakscope.networks.sparse import save_sparse

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network"
        save_sparse(module.state_dict(), path)
        return path.stat().st_size


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        yield (
            f"{row['data']}, {row['model']} ({row['pruned_by']}): {row['weights_kept']:,} of "
            f"{row['weights']:,} weights are left, {row['ratio']:.2f} times fewer; the file has "
            f"{row['bytes_sparse']:,} bytes instead of {row['bytes_dense']:,}, "
            f"{row['bytes_dense'] / row['bytes_sparse']:.2f} times fewer."
        )
    faster = [
        f"{row['data']} {row['model']} ({row['seconds_dense'] / row['seconds_sparse']:.1f} times)"
        for row in rows
        if row["sparse_layers"] and row["seconds_sparse"] < FASTER * row["seconds_dense"]
    ]
    yield (
        f"Zeros made answers faster in {len(faster)} of {len(rows)} networks here"
        f"{': ' + ', '.join(faster) if faster else ''}; convolutions are computed in full whatever "
        "they hold, so that fewer weights are not less time by themselves."
    )
    yield (
        "In print MobileNetV2 has 3.46 M weights for CIFAR too, which is the form for ImageNet; "
        "and ResNet-18 has 11.17 M for ImageNet too, which is the form for CIFAR: from these to "
        "3.47 M is 3.22 times fewer, and not 3.37. VGG16 has 13.83 M in print."
    )
