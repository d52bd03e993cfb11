from __future__ import annotations

import csv
import lzma
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets

from leakscope.datasets import load_dataset
from leakscope.datasets.hospital import CATEGORICAL, NUMERIC
from leakscope.errors import InputError
from leakscope.records import Records

OTHER = ["weight", "payer_code", "medical_specialty", "diag_1", "diag_2", "diag_3"]
IDS = ["admission_type_id", "admission_source_id"]


def small_table(n: int = 30) -> pd.DataFrame:
    """A table with the columns of diabetic_data.csv; one stay in three is followed by another."""
    table = pd.DataFrame({"encounter_id": np.arange(n), "patient_nbr": np.arange(n) // 2})
    for shift, column in enumerate([*NUMERIC, *IDS]):
        table[column] = (np.arange(n) + shift) % 7
    for column in [*CATEGORICAL, *OTHER]:
        table[column] = np.resize(["No", "Steady", "Up"], n)
    table["race"] = np.resize(["?", "Asian", "Other"], n)
    table["gender"] = np.resize(["Female", "Male"], n)
    table["age"] = np.resize(["[0-10)", "[10-20)"], n)
    table["discharge_disposition_id"] = np.resize([1, 2, 11], n)
    table["diag_1"] = np.resize(["250.83", "V27", "?"], n)
    table["examide"] = "No"
    table["A1Cresult"] = np.resize(["None", ">7"], n)
    table["readmitted"] = np.resize(["NO", "<30", ">30"], n)
    return table


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small_table().to_csv(tmp_path / "diabetic_data.csv", index=False)
    return tmp_path


def test_a_small_file_encodes_as_by_hand(folder: Path) -> None:
    records = load_dataset("hospital", folder=folder, balanced=False, frame=True)
    table = small_table()
    assert isinstance(records.X, pd.DataFrame)
    # Of 31 categories three have two levels (gender, age, A1Cresult) and one has one (examide).
    assert len(records.feature_names) == 8 + 3 * 1 + 1 * 1 + 27 * 3
    np.testing.assert_array_equal(records.X[NUMERIC], table[NUMERIC])
    for name in ("race=?", "race=Asian", "gender=Male", "age=[10-20)", "insulin=No", "examide=No"):
        column, _, value = name.partition("=")
        np.testing.assert_array_equal(records.X[name], table[column] == value)
    assert "gender=Female" not in records.X.columns
    discharge = [name for name in records.X.columns if name.startswith("discharge")]
    assert discharge == [f"discharge_disposition_id={i}" for i in (1, 2, 11)]
    np.testing.assert_array_equal(records.y, table["readmitted"] == "<30")
    assert records.unit is not None
    np.testing.assert_array_equal(records.unit, table["patient_nbr"])
    assert {name: values.tolist() for name, values in records.groups.items()} == {
        name: table[name].tolist() for name in ("race", "gender", "age")
    }


def test_the_table_keeps_its_columns_and_question_marks(folder: Path) -> None:
    records = load_dataset("diabetes130", folder=folder, encoding="table", balanced=False)
    table = small_table()
    expected = table.drop(columns=["encounter_id", "patient_nbr", "readmitted"])
    assert isinstance(records.X, pd.DataFrame)
    assert records.feature_names == list(expected.columns)
    for column in expected.columns:
        assert records.X[column].tolist() == expected[column].tolist()
    assert Counter(records.y.tolist()) == {"<30": 10, "not <30": 20}


def test_balanced_takes_all_of_the_few_and_as_many_of_the_others(folder: Path) -> None:
    table = small_table()
    drawn = {}
    for seed in (0, 1):
        records = load_dataset(
            "hospital", folder=folder, encoding="table", balanced=True, seed=seed
        )
        assert Counter(records.y.tolist()) == {"<30": 10, "not <30": 10}
        drawn[seed] = _rows_of(records, table)
        assert drawn[seed] == sorted(drawn[seed])
        assert set(drawn[seed]) >= set(np.flatnonzero(table["readmitted"] == "<30"))
    assert drawn[0] != drawn[1]
    again = load_dataset("hospital", folder=folder, encoding="table", seed=1)
    assert _rows_of(again, table) == drawn[1]


def _rows_of(records: Records, table: pd.DataFrame) -> list[int]:
    # A patient's two stays differ in their numbers, so patient and count tell the row.
    assert isinstance(records.X, pd.DataFrame)
    assert records.unit is not None
    place = {
        (patient, days): row
        for row, (patient, days) in enumerate(
            zip(table["patient_nbr"], table["time_in_hospital"], strict=True)
        )
    }
    return [place[key] for key in zip(records.unit, records.X["time_in_hospital"], strict=True)]


def test_columns_do_not_depend_on_who_was_drawn(folder: Path) -> None:
    everyone = load_dataset("hospital", folder=folder, balanced=False, frame=True)
    for seed in range(5):
        some = load_dataset("hospital", folder=folder, frame=True, seed=seed)
        assert some.feature_names == everyone.feature_names
        assert len(some) == 20


def test_a_packed_file_and_openml_give_the_same_records(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path_factory.mktemp("packed")
    content = (folder / "diabetic_data.csv").read_bytes()
    (packed / "diabetic_data.csv.xz").write_bytes(lzma.compress(content))

    def fetch(name: str, *, version: int, as_frame: bool) -> SimpleNamespace:
        assert (name, version, as_frame) == ("Diabetes130US", 1, True)
        # As scikit-learn reads ARFF: ? is missing, nominal columns are categories, codes are text.
        table = small_table().replace("?", np.nan)
        for column in [*CATEGORICAL, *OTHER, "readmitted"]:
            values = table[column]
            text = values.map(str, na_action="ignore").astype("category")
            table[column] = text
        table["num_procedures"] = table["num_procedures"].astype(float)
        return SimpleNamespace(data=table.drop(columns="readmitted"), target=table["readmitted"])

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    empty = tmp_path_factory.mktemp("empty")
    for encoding in ("onehot", "table"):
        options: dict[str, Any] = {"encoding": encoding, "frame": True, "seed": 3}
        first = load_dataset("hospital", folder=folder, **options)
        for other in (
            load_dataset("hospital", folder=packed, **options),
            load_dataset("hospital", folder=empty, download=True, **options),
        ):
            pd.testing.assert_frame_equal(other.X, first.X)  # type: ignore[arg-type]
            np.testing.assert_array_equal(other.y, first.y)
            np.testing.assert_array_equal(other.unit, first.unit)
            assert all((other.groups[name] == first.groups[name]).all() for name in first.groups)


def test_wrong_files_and_options_are_one_sentence(tmp_path: Path) -> None:
    table = small_table()
    path = tmp_path / "diabetic_data.csv"
    table.drop(columns="insulin").to_csv(path, index=False)
    with pytest.raises(InputError, match=r"diabetic_data\.csv have no column 'insulin'; get them"):
        load_dataset("hospital", folder=tmp_path)
    table.assign(patient_nbr="x").to_csv(path, index=False)
    with pytest.raises(InputError, match=r"diabetic_data\.csv cannot be read \(.+\)"):
        load_dataset("hospital", folder=tmp_path)
    path.write_text("")
    with pytest.raises(InputError, match=r"diabetic_data\.csv cannot be read \(.+\)"):
        load_dataset("hospital", folder=tmp_path)
    table.assign(readmitted="NO").to_csv(path, index=False)
    with pytest.raises(InputError, match="one class only; use balanced=False"):
        load_dataset("hospital", folder=tmp_path)
    with pytest.raises(InputError, match="encoding cannot be 'pca'"):
        load_dataset("hospital", folder=tmp_path, encoding="pca")
    with pytest.raises(InputError, match="seed must be a whole number of at least 0, got -1"):
        load_dataset("hospital", folder=tmp_path, seed=-1)


@pytest.fixture(scope="module")
def real(data_folder: Path) -> Path:
    if not (data_folder / "diabetic_data.csv.xz").is_file():
        pytest.skip("diabetic_data.csv.xz is not in the data folder")
    return data_folder


@pytest.mark.slow
def test_the_real_file_has_127_features(real: Path) -> None:
    records = load_dataset("hospital", folder=real)
    assert isinstance(records.X, np.ndarray)
    assert records.X.shape == (2 * 11_357, 127)
    assert Counter(records.y.tolist()) == {0: 11_357, 1: 11_357}
    assert set(np.unique(records.X[:, 8:])) == {0.0, 1.0}


@pytest.mark.slow
def test_the_real_file_encodes_as_by_hand(real: Path) -> None:
    with lzma.open(real / "diabetic_data.csv.xz", "rt") as stream:
        rows = list(csv.DictReader(stream))
    records = load_dataset("hospital", folder=real, balanced=False, frame=True)
    assert isinstance(records.X, pd.DataFrame)
    assert len(records) == len(rows) == 101_766
    assert records.unit is not None
    assert len(np.unique(records.unit)) == len({row["patient_nbr"] for row in rows}) == 71_518
    assert records.y.tolist() == [int(row["readmitted"] == "<30") for row in rows]
    assert records.groups["race"].tolist() == [row["race"] for row in rows]
    matrix = records.X.to_numpy()
    for index in (0, 1, 50_000, 101_765):
        expected = []
        for name in records.feature_names:
            column, _, value = name.partition("=")
            expected.append(float(rows[index][column] == value if value else rows[index][column]))
        np.testing.assert_array_equal(matrix[index], expected)
