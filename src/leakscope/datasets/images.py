"""MNIST and Fashion-MNIST, and what all image data sets share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakscope.datasets.catalog import DataFolder, about
from leakscope.datasets.files import read_idx, read_npz
from leakscope.errors import InputError
from leakscope.options import one_of, whole_number
from leakscope.records import Records
from leakscope.registry import register

# The images (n, height, width[, 3]) and labels (n,) of "train" or of "test".
Piece: TypeAlias = tuple[NDArray[np.uint8], NDArray[Any]]
ReadPiece: TypeAlias = Callable[[str], Piece]

PARTS = {"all": ("train", "test"), "train": ("train",), "test": ("test",)}


@register("dataset", "mnist", paper="LeCun et al. 1998 (Proceedings of the IEEE)")
@about(
    source="https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
    license="CC BY-SA 3.0",
    files=("mnist.npz",),
    openml=("mnist_784", 1),
)
def mnist(folder: DataFolder, *, part: str = "all", n: int | None = None, seed: int = 0) -> Records:
    """Handwritten digits: 70,000 grey images of 28 × 28 in 10 classes.

    part: ``all``, ``train`` (the first 60,000) or ``test``. n: that many of them, drawn by the
    seed. Features are 32-bit numbers in [0, 1], (n, 28, 28).
    """
    path = folder.find("mnist.npz")
    read = keras_pieces(path, (28, 28)) if path else openml_pieces(folder, (28, 28), train=6 / 7)
    return image_records(read, part, n, seed, "mnist records")


@register("dataset", "fashion-mnist", paper="Xiao, Rasul & Vollgraf 2017 (arXiv:1708.07747)")
@about(
    source="https://github.com/zalandoresearch/fashion-mnist, or Debian's package "
    "dataset-fashion-mnist (its folder is /usr/share/datasets)",
    license="MIT",
    files=("fashion-mnist.npz", "fashion-mnist/train-images-idx3-ubyte.gz with its three siblings"),
    openml=("Fashion-MNIST", 1),
)
def fashion_mnist(
    folder: DataFolder, *, part: str = "all", n: int | None = None, seed: int = 0
) -> Records:
    """Articles of clothing: 70,000 grey images of 28 × 28 in 10 classes.

    part: ``all``, ``train`` (the first 60,000) or ``test``. n: that many of them, drawn by the
    seed. Features are 32-bit numbers in [0, 1], (n, 28, 28).
    """
    path = folder.find("fashion-mnist.npz")
    if path:
        read = keras_pieces(path, (28, 28))
    elif folder.find(*_idx_names("train-images-idx3")):
        read = _idx_pieces(folder)
    else:
        read = openml_pieces(folder, (28, 28), train=6 / 7)
    return image_records(read, part, n, seed, "fashion-mnist records")


def image_records(read: ReadPiece, part: str, n: int | None, seed: int, name: str) -> Records:
    """Records of the images of a part, n of them if that is said, as 32-bit numbers in [0, 1]."""
    one_of("part", part, PARTS)
    pieces = [read(piece) for piece in PARTS[part]]
    images = np.concatenate([images for images, _ in pieces])
    labels = np.concatenate([labels for _, labels in pieces]).astype(np.int64)
    if n is not None:
        whole_number("n", n, 1, len(images))
        # Drawn before bytes become numbers of four bytes: a sample costs the memory of a sample.
        rows = np.random.default_rng(whole_number("seed", seed, 0)).permutation(len(images))[:n]
        rows.sort()
        images, labels = images[rows], labels[rows]
    return Records(X=np.divide(images, 255, dtype=np.float32, order="C"), y=labels, name=name)


def keras_pieces(path: Path, shape: tuple[int, ...]) -> ReadPiece:
    """Reads an .npz in the layout of Keras: x_train, y_train, x_test, y_test."""

    def read(piece: str) -> Piece:
        images, labels = read_npz(path, f"x_{piece}", f"y_{piece}")
        if images.dtype != np.uint8 or images.shape[1:] != shape:
            raise InputError(
                f"The images x_{piece} of {path} are {images.dtype} of shape {images.shape}, where "
                f"uint8 of shape (n, {', '.join(map(str, shape))}) is needed; get the file again"
            )
        return checked_piece(images, labels.reshape(-1), path)

    return read


def openml_pieces(folder: DataFolder, shape: tuple[int, ...], train: float) -> ReadPiece:
    """Pieces of what openml.org has: rows of pixels, the training share first."""
    data, target = folder.fetch()
    pixels = data.to_numpy(dtype=np.uint8)
    labels = target.astype(str).astype(np.int64).to_numpy()
    images = pixels.reshape(-1, *shape) if len(shape) == 2 else from_planes(pixels)
    cut = round(train * len(images))
    slices = {"train": slice(cut), "test": slice(cut, None)}
    return lambda piece: (images[slices[piece]], labels[slices[piece]])


def from_planes(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images (n, 32, 32, 3) from rows (n, 3072) that hold the red plane, the green, the blue."""
    return pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


def checked_piece(images: NDArray[np.uint8], labels: NDArray[Any], path: Path) -> Piece:
    """Images and labels, if there are as many of both."""
    if len(images) != len(labels):
        raise InputError(
            f"The data of {path} have {len(images)} images and {len(labels)} labels; get them again"
        )
    return images, labels


def _idx_names(stem: str) -> list[str]:
    return [f"{place}{stem}-ubyte.gz" for place in ("fashion-mnist/", "")]


def _idx_pieces(folder: DataFolder) -> ReadPiece:
    def read(piece: str) -> Piece:
        prefix = {"train": "train", "test": "t10k"}[piece]
        path = folder.need(*_idx_names(f"{prefix}-images-idx3"))
        labels = read_idx(folder.need(*_idx_names(f"{prefix}-labels-idx1")), 1)
        return checked_piece(read_idx(path, 3), labels, path)

    return read
