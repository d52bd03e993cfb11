from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.datasets import load_dataset
from leakscope.errors import InputError, MissingDataError, RecordsError

X = np.random.default_rng(0).integers(0, 2, (6, 4))
LABELS = np.array([10, 2, 30, 2, 10, 30])
NUMBERED = [1, 0, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("name", "pack"), [("location30.csv", bytes), ("location30.csv.xz", lzma.compress)]
)
def test_location30_has_its_label_first(tmp_path: Path, name: str, pack: Any) -> None:
    lines = [f'"{label}",' + ",".join(map(str, row)) for label, row in zip(LABELS, X, strict=True)]
    (tmp_path / name).write_bytes(pack("\n".join(lines).encode()))
    records = load_dataset("location30", folder=tmp_path)
    assert isinstance(records.X, np.ndarray)
    assert records.X.dtype == np.float32
    np.testing.assert_array_equal(records.X, X)
    assert records.y.tolist() == NUMBERED


def test_a_damaged_location30_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "location30.csv").write_text("a,b\nc,d\n")
    with pytest.raises(InputError, match=r"location30\.csv cannot be read \(.+\)"):
        load_dataset("location30", folder=tmp_path)


@pytest.mark.parametrize("name", ["purchase100", "texas100"])
@pytest.mark.parametrize("labels", [LABELS, LABELS[:, None], np.eye(3)[NUMBERED]])
def test_purchase_and_texas_number_their_classes_from_0(
    tmp_path: Path, name: str, labels: Any
) -> None:
    np.savez_compressed(tmp_path / f"{name}.npz", features=X, labels=labels)
    records = load_dataset(name, folder=tmp_path)
    assert isinstance(records.X, np.ndarray)
    assert records.X.dtype == np.float32
    np.testing.assert_array_equal(records.X, X)
    assert records.y.tolist() == NUMBERED


@pytest.mark.parametrize(
    "labels", [np.full((6, 2), 1), np.zeros((6, 2)), np.full((6, 2), 0.5), np.zeros((6, 2, 2))]
)
def test_labels_that_are_not_one_per_record_are_refused(tmp_path: Path, labels: Any) -> None:
    np.savez(tmp_path / "texas100.npz", features=X, labels=labels)
    with pytest.raises(InputError, match=r"texas100\.npz have shape \(6, 2.*; save one label per"):
        load_dataset("texas100", folder=tmp_path)


def test_a_file_of_features_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    names = np.array(["b", "a", "c", "a", "b", "c"])
    np.savez(path, features=X, labels=names, unit=LABELS, group_kind=names, unused=np.zeros(1))
    for options in ({"file": str(path)}, {"file": "mine.npz", "folder": tmp_path}):
        records = load_dataset("features", **options)  # type: ignore[arg-type]
        np.testing.assert_array_equal(records.X, X)
        np.testing.assert_array_equal(records.y, names)
        np.testing.assert_array_equal(records.unit, LABELS)
        assert {name: values.tolist() for name, values in records.groups.items()} == {
            "kind": names.tolist()
        }


def test_a_file_of_features_needs_no_unit_and_no_group(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, features=np.zeros((2, 3, 3)), labels=[0.5, 1.5])
    records = load_dataset("features", file=str(path))
    assert records.X.shape == (2, 3, 3)
    assert records.y.tolist() == [0.5, 1.5]
    assert records.unit is None
    assert records.groups == {}


def test_wrong_files_of_features_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)
    with pytest.raises(InputError, match=r"needs the option file; name an \.npz file"):
        load_dataset("features")
    with pytest.raises(MissingDataError, match=r"There is no file none\.npz; name an \.npz file"):
        load_dataset("features", file="none.npz")
    path = tmp_path / "mine.npz"
    np.savez(path, x=X)
    with pytest.raises(InputError, match="has no array 'features'; it has: x"):
        load_dataset("features", file=str(path))
    np.savez(path, features=X, labels=[1])
    with pytest.raises(RecordsError, match="6 rows of features and 1 of label"):
        load_dataset("features", file=str(path))


def test_the_real_location30(data_folder: Path) -> None:
    if not (data_folder / "location30.csv.xz").is_file():
        pytest.skip("location30.csv.xz is not in the data folder")
    records = load_dataset("location30", folder=data_folder)
    assert records.X.shape == (5_010, 446)
    assert set(np.unique(records.X)) == {0, 1}
    assert np.unique(records.y).tolist() == list(range(30))
    with lzma.open(data_folder / "location30.csv.xz", "rt") as stream:
        first = [int(field.strip('"')) for field in stream.readline().split(",")]
    assert records.y[0] == first[0] - 1
    np.testing.assert_array_equal(np.asarray(records.X)[0], first[1:])
