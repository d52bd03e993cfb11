"""CIFAR-10 and CIFAR-100."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from leakscope.datasets.catalog import DataFolder, about
from leakscope.datasets.files import read_bytes, reading
from leakscope.datasets.images import (
    Piece,
    checked_piece,
    from_planes,
    image_records,
    keras_pieces,
    openml_pieces,
)
from leakscope.datasets.unpickle import unpickle_bytes
from leakscope.errors import InputError
from leakscope.options import one_of
from leakscope.records import Records
from leakscope.registry import register

_PIXELS = 3 * 32 * 32
_PAPER = "Krizhevsky 2009 (technical report), Learning multiple layers of features"
_SITE = "https://www.cs.toronto.edu/~kriz/cifar.html"


@register("dataset", "cifar10", paper=_PAPER)
@about(
    source=f"{_SITE} (save it with np.savez as x_train, y_train, x_test, y_test)",
    license="not stated by its authors",
    files=("cifar10.npz",),
    openml=("CIFAR_10", 1),
)
def cifar10(
    folder: DataFolder, *, part: str = "all", n: int | None = None, seed: int = 0
) -> Records:
    """Photographs of animals and vehicles: 60,000 colour images of 32 × 32 in 10 classes.

    part: ``all``, ``train`` (the first 50,000) or ``test``. n: that many of them, drawn by the
    seed. Features are 32-bit numbers in [0, 1], (n, 32, 32, 3): 12 kB an image.
    """
    path = folder.find("cifar10.npz")
    shape = (32, 32, 3)
    read = keras_pieces(path, shape) if path else openml_pieces(folder, shape, train=5 / 6)
    return image_records(read, part, n, seed, "cifar10 records")


@register("dataset", "cifar100", paper=_PAPER)
@about(
    source=f"{_SITE} (unpack the python or the binary version)",
    license="not stated by its authors",
    files=(
        "cifar-100-python/train with cifar-100-python/test",
        "cifar-100-binary/train.bin with cifar-100-binary/test.bin",
    ),
)
def cifar100(
    folder: DataFolder,
    *,
    labels: str = "fine",
    part: str = "all",
    n: int | None = None,
    seed: int = 0,
) -> Records:
    """Photographs: 60,000 colour images of 32 × 32 in 100 classes.

    labels: the 100 ``fine`` classes or the 20 ``coarse`` ones. part: ``all``, ``train`` (the first
    50,000) or ``test``. n: that many of them, drawn by the seed. Features are 32-bit numbers in
    [0, 1], (n, 32, 32, 3): 12 kB an image.
    """
    one_of("labels", labels, ["fine", "coarse"])

    def read(piece: str) -> Piece:
        path = folder.need(f"cifar-100-python/{piece}", f"cifar-100-binary/{piece}.bin")
        reader = _read_binary if path.suffix == ".bin" else _read_python
        return reader(path, labels)

    return image_records(read, part, n, seed, "cifar100 records")


def _read_python(path: Path, labels: str) -> Piece:
    content = unpickle_bytes(path)
    with reading(path):
        pixels, numbers = content["data"], np.asarray(content[f"{labels}_labels"], np.int64)
        return checked_piece(from_planes(pixels), numbers, path)


def _read_binary(path: Path, labels: str) -> Piece:
    """Each image is a byte of the coarse label, one of the fine label, and its three planes."""
    content = np.frombuffer(read_bytes(path), np.uint8)
    if len(content) == 0 or len(content) % (2 + _PIXELS):
        raise InputError(
            f"The file {path} has {len(content)} bytes, not a multiple of {2 + _PIXELS}; "
            "get it again"
        )
    rows = content.reshape(-1, 2 + _PIXELS)
    return from_planes(rows[:, 2:]), rows[:, ["coarse", "fine"].index(labels)]
