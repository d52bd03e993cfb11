from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from leakscope.recipes import preprocessing
from leakscope.recipes.preprocessing import flatten, plain_table, with_preprocessing

COLUMNS: dict[str, tuple[Any, list[Any]]] = {
    "int": ([1, 2, 3], [1.0, 2.0, 3.0]),
    "float": ([1.5, np.nan, 3], [1.5, None, 3.0]),
    "bool": ([True, False, True], [1.0, 0.0, 1.0]),
    "Int64": (pd.array([1, None, 3], dtype="Int64"), [1.0, None, 3.0]),
    "boolean": (pd.array([True, None, False], dtype="boolean"), [1.0, None, 0.0]),
    "text": (["a", None, "b"], ["a", "missing", "b"]),
    "string": (pd.array(["a", None, "b"], dtype="string"), ["a", "missing", "b"]),
    "category": (pd.Categorical(["a", None, "b"]), ["a", "missing", "b"]),
    "numbered category": (pd.Categorical([7, 8, 7]), ["7", "8", "7"]),
    "objects": (np.array([1, "a", None], dtype=object), ["1", "a", "missing"]),
    "date": (pd.to_datetime(["1970-01-02 00:00", None, "1969-12-31 12:00"]), [1.0, None, -0.5]),
    "date with zone": (
        pd.to_datetime(["1970-01-02", None, "1970-01-03"]).tz_localize("Asia/Tokyo"),
        [1 - 9 / 24, None, 2 - 9 / 24],
    ),
    "day": (np.array([datetime.date(2020, 1, 1)] * 3, dtype=object), ["2020-01-01"] * 3),
    "time": (pd.to_timedelta([1, 2, 3], unit="D"), [str(pd.Timedelta(days=i)) for i in (1, 2, 3)]),
    "all missing": ([np.nan] * 3, [None] * 3),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_type_of_column_becomes_numbers_or_text(kind: str) -> None:
    values, expected = COLUMNS[kind]
    plain = plain_table(pd.DataFrame({5: values}))["5"]
    assert plain.dtype.kind == "f" or plain.notna().all()
    assert [None if pd.isna(value) else value for value in plain] == expected


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_type_of_column_can_be_trained_on(kind: str) -> None:
    frame = pd.DataFrame({"a": COLUMNS[kind][0], "b": [1.0, 2.0, 3.0]})
    y = [0, 1, 0]
    model = with_preprocessing(LogisticRegression(), frame).fit(frame, y)
    assert model.predict_proba(frame).shape == (3, 2)
    if kind != "all missing":
        alone = frame[["a"]]
        assert with_preprocessing(LogisticRegression(), alone).fit(alone, y).predict(alone).shape


def encoded(frame: pd.DataFrame, asked: pd.DataFrame) -> Any:
    pipeline = with_preprocessing("passthrough", frame)
    return pipeline.fit(frame).transform(asked)


def test_numbers_are_standardized_and_texts_become_indicators() -> None:
    frame = pd.DataFrame({"age": [1.0, 3.0, np.nan, 2.0], "job": ["a", "b", "a", None]})
    matrix = encoded(frame, frame)
    np.testing.assert_allclose(matrix[:, 0], np.array([-1, 1, 0, 0]) * np.sqrt(2))
    np.testing.assert_array_equal(matrix[:, 1:], [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]])
    unknown = pd.DataFrame({"age": [2.0], "job": ["z"]})
    np.testing.assert_allclose(encoded(frame, unknown), [[0, 0, 0, 0]], atol=1e-12)


def test_rare_texts_share_an_indicator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preprocessing, "MOST_CATEGORIES", 3)
    frame = pd.DataFrame({"job": ["a", "a", "b", "b", "c", "d", "e"]})
    matrix = encoded(frame, frame)
    assert matrix.shape == (7, 3)
    np.testing.assert_array_equal(matrix[4:], [[0, 0, 1]] * 3)
    np.testing.assert_array_equal(encoded(frame, pd.DataFrame({"job": ["z"]})), [[0, 0, 1]])


def test_arrays_stay_as_they_are_and_images_are_flattened() -> None:
    estimator = LogisticRegression()
    assert with_preprocessing(estimator, np.zeros((2, 3))) is estimator
    images = np.arange(12.0).reshape(2, 3, 2)
    assert flatten(images).shape == (2, 6)
    pipeline = with_preprocessing(estimator, images).fit(images, [0, 1])
    assert pipeline.steps[-1][1] is estimator
    assert pipeline.predict(images).tolist() == [0, 1]
