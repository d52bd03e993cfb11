from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from numpy.typing import NDArray

from leakscope.datasets import load_dataset
from leakscope.errors import InputError, MissingDataError

TRAIN, TEST = 10, 2


def rows(n: int, seed: int) -> tuple[NDArray[np.uint8], list[int], list[int]]:
    """Pixels (n, 3072) plane by plane, fine labels, coarse labels."""
    rng = np.random.default_rng(seed)
    fine = rng.integers(0, 100, n)
    return rng.integers(0, 256, (n, 3072), dtype=np.uint8), fine.tolist(), (fine // 5).tolist()


def images(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The slow way: each pixel from its plane, row and column."""
    out = np.empty((len(pixels), 32, 32, 3), np.float32)
    for plane in range(3):
        for row in range(32):
            start = 1024 * plane + 32 * row
            out[:, row, :, plane] = pixels[:, start : start + 32].astype(np.float32)
    return out / np.float32(255)


def write_python(folder: Path) -> None:
    (folder / "cifar-100-python").mkdir()
    for piece, n, seed in (("train", TRAIN, 0), ("test", TEST, 1)):
        pixels, fine, coarse = rows(n, seed)
        content = {
            "filenames": [f"{i}.png" for i in range(n)],
            "batch_label": "batch",
            "fine_labels": fine,
            "coarse_labels": coarse,
            "data": pixels,
        }
        path = folder / "cifar-100-python" / piece
        path.write_bytes(pickle.dumps(content, protocol=2))


def write_binary(folder: Path) -> None:
    (folder / "cifar-100-binary").mkdir()
    for piece, n, seed in (("train", TRAIN, 0), ("test", TEST, 1)):
        pixels, fine, coarse = rows(n, seed)
        table = np.column_stack([coarse, fine, pixels]).astype(np.uint8)
        (folder / "cifar-100-binary" / f"{piece}.bin").write_bytes(table.tobytes())


@pytest.mark.parametrize("write", [write_python, write_binary])
def test_cifar100_is_read_from_either_of_its_usual_forms(tmp_path: Path, write: Any) -> None:
    write(tmp_path)
    train, test = rows(TRAIN, 0), rows(TEST, 1)
    records = load_dataset("cifar100", folder=tmp_path)
    assert isinstance(records.X, np.ndarray)
    assert records.X.dtype == np.float32
    assert records.X.flags.c_contiguous
    np.testing.assert_array_equal(records.X, images(np.concatenate([train[0], test[0]])))
    assert records.y.tolist() == train[1] + test[1]
    coarse = load_dataset("cifar100", folder=tmp_path, labels="coarse", part="test")
    assert coarse.y.tolist() == test[2]
    np.testing.assert_array_equal(coarse.X, images(test[0]))
    assert len(load_dataset("cifar100", folder=tmp_path, n=3)) == 3


def test_a_missing_half_is_said(tmp_path: Path) -> None:
    write_python(tmp_path)
    (tmp_path / "cifar-100-python" / "test").unlink()
    assert len(load_dataset("cifar100", folder=tmp_path, part="train")) == TRAIN
    with pytest.raises(MissingDataError, match="needs cifar-100-python/train with"):
        load_dataset("cifar100", folder=tmp_path)


def test_damaged_cifar100_files_are_one_sentence(tmp_path: Path) -> None:
    write_binary(tmp_path)
    path = tmp_path / "cifar-100-binary" / "train.bin"
    for content in (path.read_bytes()[:-1], b""):
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"has {len(content)} bytes, not a multiple of 3074"):
            load_dataset("cifar100", folder=tmp_path)
    write_python(tmp_path)
    path = tmp_path / "cifar-100-python" / "train"
    for content in (
        {"data": rows(2, 0)[0]},
        {"data": 5, "fine_labels": [1]},
        {"data": rows(2, 0)[0][:, :99], "fine_labels": [1, 2]},
    ):
        path.write_bytes(pickle.dumps(content, protocol=2))
        with pytest.raises(InputError, match=r"train cannot be read \(.+\)"):
            load_dataset("cifar100", folder=tmp_path)
    path.write_bytes(pickle.dumps({"data": rows(2, 0)[0], "fine_labels": [1]}, protocol=2))
    with pytest.raises(InputError, match="have 2 images and 1 labels"):
        load_dataset("cifar100", folder=tmp_path)
    with pytest.raises(InputError, match="labels cannot be 'rough'; choose from: fine, coarse"):
        load_dataset("cifar100", folder=tmp_path, labels="rough")


def test_cifar10_comes_from_an_npz_or_from_openml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, test = rows(TRAIN, 0), rows(TEST, 1)
    everything = np.concatenate([train[0], test[0]])
    labels = np.array(train[2] + test[2]) % 10
    stored = (images(everything) * 255).round().astype(np.uint8)
    np.savez_compressed(
        tmp_path / "cifar10.npz",
        x_train=stored[:TRAIN],
        y_train=labels[:TRAIN].astype(np.uint8),
        x_test=stored[TRAIN:],
        y_test=labels[TRAIN:].astype(np.uint8),
    )

    def fetch(name: str, *, version: int, as_frame: bool) -> SimpleNamespace:
        assert (name, version, as_frame) == ("CIFAR_10", 1, True)
        columns = [f"a{i}" for i in range(3072)]
        return SimpleNamespace(
            data=pd.DataFrame(everything, columns=columns),
            target=pd.Series(labels.astype(str), dtype="category", name="class"),
        )

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    for part, piece in (
        ("all", slice(None)),
        ("train", slice(TRAIN)),
        ("test", slice(TRAIN, None)),
    ):
        for records in (
            load_dataset("cifar10", folder=tmp_path, part=part),
            load_dataset("cifar10", folder=tmp_path / "nowhere", part=part, download=True),
        ):
            np.testing.assert_array_equal(records.X, images(everything)[piece])
            np.testing.assert_array_equal(records.y, labels[piece])
