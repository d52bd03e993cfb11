from __future__ import annotations

import lzma
import time
from collections import Counter
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from leakscope.datasets import load_dataset
from leakscope.datasets.census import COLUMNS, NUMERIC, age_bands
from leakscope.errors import InputError
from leakscope.records import Records


@pytest.fixture(scope="module")
def raw() -> list[list[str]]:
    """The lines of both files, split by hand."""
    rows = []
    for name in ("adult.data.xz", "adult.test.xz"):
        packed = files("leakscope").joinpath("data", name).read_bytes()
        for line in lzma.decompress(packed).decode().splitlines():
            if line and not line.startswith("|"):
                rows.append([field.strip() for field in line.rstrip(".").split(",")])
    return rows


@pytest.fixture(scope="module")
def onehot() -> Records:
    return load_dataset("adult", frame=True)


@pytest.fixture(scope="module")
def table() -> Records:
    return load_dataset("adult", encoding="table")


def test_there_are_48842_records_in_the_order_of_the_files(
    raw: list[list[str]], table: Records
) -> None:
    assert len(raw) == len(table) == 32_561 + 16_281
    assert isinstance(table.X, pd.DataFrame)
    assert list(table.X.columns) == COLUMNS
    for column, name in enumerate(COLUMNS):
        assert table.X[name].astype(str).tolist() == [row[column] for row in raw]
    assert table.y.tolist() == [row[14] for row in raw]


def test_classes_have_their_published_shares(onehot: Records, table: Records) -> None:
    assert Counter(onehot.y.tolist()) == {0: 37_155, 1: 11_687}
    assert round(100 * onehot.y.mean(), 2) == 23.93
    assert Counter(table.y.tolist()) == {"<=50K": 37_155, ">50K": 11_687}
    np.testing.assert_array_equal(onehot.y == 1, table.y == ">50K")


def test_one_hot_has_104_features_equal_to_an_encoding_by_hand(
    raw: list[list[str]], onehot: Records
) -> None:
    names = onehot.feature_names
    assert onehot.X.shape == (48_842, 104)
    assert len(set(names)) == 104
    place = {column: index for index, column in enumerate(COLUMNS)}
    mean = {column: sum(float(row[place[column]]) for row in raw) / len(raw) for column in NUMERIC}
    matrix = onehot.X.to_numpy()  # type: ignore[union-attr]
    unknown = next(index for index, row in enumerate(raw) if row[13] == "?" and row[1] == "?")
    for index in (0, 1, 4, unknown, 32_561, 48_841):
        row = raw[index]
        expected = dict.fromkeys(names, 0.0)
        for column in NUMERIC:
            expected[column] = float(row[place[column]]) / (2 * mean[column])
        for column in set(COLUMNS) - set(NUMERIC) - {"sex"}:
            if row[place[column]] != "?":
                assert f"{column}={row[place[column]]}" in expected
                expected[f"{column}={row[place[column]]}"] = 1.0
        expected["sex=Male"] = float(row[place["sex"]] == "Male")
        np.testing.assert_allclose(matrix[index], list(expected.values()), rtol=1e-12)


def test_numeric_features_have_mean_one_half_and_unknown_is_all_zeros(
    raw: list[list[str]], onehot: Records
) -> None:
    matrix = onehot.X
    assert isinstance(matrix, pd.DataFrame)
    np.testing.assert_allclose(matrix[NUMERIC].mean(), 0.5, rtol=1e-12)
    for column, unknown in (("workclass", 2_799), ("occupation", 2_809), ("native-country", 857)):
        shown = matrix.filter(like=f"{column}=").sum(axis=1)
        assert (shown == 0).sum() == unknown
        assert (shown == 1).sum() == 48_842 - unknown
    assert not any("?" in name for name in onehot.feature_names)
    assert [name for name in onehot.feature_names if name.startswith("sex")] == ["sex=Male"]


def test_without_a_frame_features_are_the_same_numbers(onehot: Records) -> None:
    plain = load_dataset("adult")
    assert isinstance(plain.X, np.ndarray)
    assert plain.X.dtype == np.float64
    np.testing.assert_array_equal(plain.X, onehot.X)


def test_groups_are_sex_race_and_age_bands(raw: list[list[str]], onehot: Records) -> None:
    assert list(onehot.groups) == ["sex", "race", "age"]
    assert onehot.groups["sex"].tolist() == [row[9] for row in raw]
    assert onehot.groups["race"].tolist() == [row[8] for row in raw]
    assert Counter(onehot.groups["sex"].tolist()) == {"Male": 32_650, "Female": 16_192}
    ages = [int(row[0]) for row in raw]
    counts = Counter(onehot.groups["age"].tolist())
    assert counts["under 25"] == sum(age < 25 for age in ages)
    assert counts["35-44"] == sum(35 <= age <= 44 for age in ages)
    assert counts["65+"] == sum(age >= 65 for age in ages)
    assert len(counts) == 6
    assert onehot.unit is None


def test_age_bands_end_where_they_say() -> None:
    ages = np.array([17, 24, 25, 34, 35, 44, 45, 54, 55, 64, 65, 90])
    bands = ["under 25", "25-34", "35-44", "45-54", "55-64", "65+"]
    assert age_bands(ages).tolist() == [band for band in bands for _ in range(2)]


@pytest.mark.parametrize("components", [1, 5, 14])
def test_components_are_orthonormal_and_centred(components: int) -> None:
    records = load_dataset("adult", encoding="pca", components=components)
    assert isinstance(records.X, np.ndarray)
    assert records.X.shape == (48_842, components)
    np.testing.assert_allclose(np.linalg.norm(records.X, axis=0), 1, rtol=1e-10)
    np.testing.assert_allclose(records.X.T @ records.X, np.eye(components), atol=1e-10)
    np.testing.assert_allclose(records.X.sum(axis=0), 0, atol=1e-9)
    assert set(records.y.tolist()) == {0, 1}
    assert records.y.sum() == 11_687


@pytest.mark.slow
def test_components_are_those_of_integer_codes(raw: list[list[str]]) -> None:
    matrix = np.empty((len(raw), 14))
    for column, name in enumerate(COLUMNS):
        values = [row[column] for row in raw]
        if name in NUMERIC:
            matrix[:, column] = [float(value) for value in values]
        else:
            levels = {value: code for code, value in enumerate(sorted(set(values)))}
            assert name not in ("workclass", "occupation", "native-country") or levels["?"] == 0
            matrix[:, column] = [levels[value] for value in values]
    standard = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    values, vectors = np.linalg.eigh(standard.T @ standard)
    scores = standard @ vectors[:, ::-1][:, :5] / np.sqrt(values[::-1][:5])
    found = load_dataset("adult", encoding="pca", frame=True)
    assert found.feature_names == [f"component {i}" for i in range(1, 6)]
    np.testing.assert_allclose(np.abs(found.X), np.abs(scores), atol=1e-10)


@pytest.mark.slow
def test_nothing_is_missing_and_loading_twice_is_loading_once(onehot: Records) -> None:
    again = load_dataset("adult", frame=True)
    for encoding in ("onehot", "pca", "table"):
        assert not np.isnan(load_dataset("adult", encoding=encoding).numbers()).any()
    pd.testing.assert_frame_equal(again.X, onehot.X)  # type: ignore[arg-type]


def test_a_wrong_option_is_one_sentence() -> None:
    with pytest.raises(InputError, match="encoding cannot be 'one-hot'; did you mean 'onehot'"):
        load_dataset("adult", encoding="one-hot")
    with pytest.raises(InputError, match="components must be a whole number from 1 to 14, got 15"):
        load_dataset("adult", encoding="pca", components=15)
    with pytest.raises(InputError, match="components goes with encoding='pca', not with 'onehot'"):
        load_dataset("adult", components=3)


def test_loading_is_fast() -> None:
    seconds = []
    for _ in range(3):
        start = time.process_time()
        load_dataset("adult")
        seconds.append(time.process_time() - start)
    assert min(seconds) < 1.5
