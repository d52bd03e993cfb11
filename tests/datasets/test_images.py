from __future__ import annotations

import gzip
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

TRAIN, TEST = 12, 2


def pictures(seed: int = 0) -> dict[str, NDArray[np.uint8]]:
    rng = np.random.default_rng(seed)
    return {
        "x_train": rng.integers(0, 256, (TRAIN, 28, 28), dtype=np.uint8),
        "y_train": rng.integers(0, 10, TRAIN, dtype=np.uint8),
        "x_test": rng.integers(0, 256, (TEST, 28, 28), dtype=np.uint8),
        "y_test": rng.integers(0, 10, TEST, dtype=np.uint8),
    }


def write_idx(folder: Path, arrays: dict[str, NDArray[np.uint8]]) -> None:
    folder.mkdir(exist_ok=True)
    for piece, prefix in (("train", "train"), ("test", "t10k")):
        for kind, name in (("x", "images-idx3"), ("y", "labels-idx1")):
            array = arrays[f"{kind}_{piece}"]
            header = bytes([0, 0, 8, array.ndim])
            sizes = np.array(array.shape, ">u4").tobytes()
            content = gzip.compress(header + sizes + array.tobytes())
            (folder / f"{prefix}-{name}-ubyte.gz").write_bytes(content)


def write(how: str, folder: Path, arrays: dict[str, NDArray[np.uint8]]) -> None:
    if how == "npz":
        np.savez_compressed(folder / "mnist.npz", **arrays)
        np.savez(folder / "fashion-mnist.npz", **arrays)
    else:
        write_idx(folder / how, arrays)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("mnist", "npz"),
        ("fashion-mnist", "npz"),
        ("fashion-mnist", "fashion-mnist"),
        ("fashion-mnist", "."),
    ],
)
def test_images_are_numbers_from_0_to_1(tmp_path: Path, name: str, how: str) -> None:
    arrays = pictures()
    write(how, tmp_path, arrays)
    x = np.concatenate([arrays["x_train"], arrays["x_test"]]).astype(np.float32) / np.float32(255)
    y = np.concatenate([arrays["y_train"], arrays["y_test"]])
    for part, rows in (("all", slice(None)), ("train", slice(TRAIN)), ("test", slice(TRAIN, None))):
        records = load_dataset(name, folder=tmp_path, part=part)
        assert isinstance(records.X, np.ndarray)
        assert records.X.dtype == np.float32
        assert records.X.flags.c_contiguous
        np.testing.assert_array_equal(records.X, x[rows])
        np.testing.assert_array_equal(records.y, y[rows])
        assert records.y.dtype == np.int64
        assert records.X.min() >= 0
        assert records.X.max() <= 1


def test_n_images_are_drawn_by_the_seed(tmp_path: Path) -> None:
    write("npz", tmp_path, pictures())
    everyone = load_dataset("mnist", folder=tmp_path)
    drawn = [load_dataset("mnist", folder=tmp_path, n=5, seed=seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(drawn[0].X, drawn[1].X)
    assert not np.array_equal(drawn[0].X, drawn[2].X)
    for records in drawn:
        rows = [
            next(i for i in range(len(everyone)) if np.array_equal(everyone.X[i], image))
            for image in np.asarray(records.X)
        ]
        assert rows == sorted(set(rows))
        np.testing.assert_array_equal(records.y, everyone.y[rows])
    assert len(load_dataset("mnist", folder=tmp_path, n=TRAIN + TEST)) == TRAIN + TEST
    for n in (0, TRAIN + TEST + 1, 2.5):
        with pytest.raises(InputError, match=f"n must be a whole number from 1 to 14, got {n}"):
            load_dataset("mnist", folder=tmp_path, n=n)


def test_labels_may_be_a_column_as_keras_has_them(tmp_path: Path) -> None:
    arrays = pictures()
    np.savez(tmp_path / "mnist.npz", **{**arrays, "y_train": arrays["y_train"][:, None]})
    np.testing.assert_array_equal(
        load_dataset("mnist", folder=tmp_path, part="train").y, arrays["y_train"]
    )


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_openml_gives_the_same_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    arrays = pictures()
    write("npz", tmp_path, arrays)

    def fetch(asked: str, *, version: int, as_frame: bool) -> SimpleNamespace:
        assert asked == {"mnist": "mnist_784", "fashion-mnist": "Fashion-MNIST"}[name]
        assert (version, as_frame) == (1, True)
        pixels = np.concatenate([arrays["x_train"], arrays["x_test"]]).reshape(-1, 784)
        labels = np.concatenate([arrays["y_train"], arrays["y_test"]]).astype(str)
        columns = [f"pixel{i}" for i in range(1, 785)]
        return SimpleNamespace(
            data=pd.DataFrame(pixels.astype(np.int64), columns=columns),
            target=pd.Series(labels, dtype="category", name="class"),
        )

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    for part in ("all", "train", "test"):
        here = load_dataset(name, folder=tmp_path, part=part)
        there = load_dataset(name, folder=tmp_path / "nowhere", download=True, part=part)
        np.testing.assert_array_equal(there.X, here.X)
        np.testing.assert_array_equal(there.y, here.y)


def test_a_file_in_the_folder_is_read_and_nothing_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    write("npz", tmp_path, pictures())
    assert len(load_dataset("mnist", folder=tmp_path, download=True)) == TRAIN + TEST


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"x_test": np.zeros((TEST, 784), np.uint8)},
            r"x_test of .* are uint8 of shape \(2, 784\)",
        ),
        (
            {"x_train": np.zeros((TRAIN, 28, 28))},
            r"x_train .* float64 .* uint8 of shape \(n, 28, 28",
        ),
        ({"y_train": np.zeros(3, np.uint8)}, "have 12 images and 3 labels; get them again"),
    ],
)
def test_other_layouts_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "mnist.npz", **{**pictures(), **change})
    with pytest.raises(InputError, match=message):
        load_dataset("mnist", folder=tmp_path)


def test_a_sibling_that_is_missing_is_said(tmp_path: Path) -> None:
    write("fashion-mnist", tmp_path, pictures())
    (tmp_path / "fashion-mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    assert len(load_dataset("fashion-mnist", folder=tmp_path, part="train")) == TRAIN
    with pytest.raises(MissingDataError, match="its three siblings, not found in"):
        load_dataset("fashion-mnist", folder=tmp_path)


def test_an_unknown_part_is_refused(tmp_path: Path) -> None:
    write("npz", tmp_path, pictures())
    with pytest.raises(InputError, match="part cannot be 'tests'; did you mean 'test'"):
        load_dataset("mnist", folder=tmp_path, part="tests")


def test_the_real_mnist(data_folder: Path) -> None:
    if not (data_folder / "mnist.npz").is_file():
        pytest.skip("mnist.npz is not in the data folder")
    records = load_dataset("mnist", folder=data_folder, part="test")
    assert records.X.shape == (10_000, 28, 28)
    counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.bincount(records.y).tolist() == counts
    assert (records.X.min(), records.X.max()) == (0, 1)
    drawn = load_dataset("mnist", folder=data_folder, n=100)
    assert drawn.X.shape == (100, 28, 28)
