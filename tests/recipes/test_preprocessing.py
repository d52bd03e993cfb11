from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from leakscope.recipes import named_recipe, preprocessing
from leakscope.recipes.preprocessing import PlainTable, flatten, with_preprocessing
from leakscope.records import Records

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
    "truth with gaps": (np.array([True, None, False], dtype=object), ["True", "missing", "False"]),
    "exact decimals": (np.array([Decimal("1.5"), None, Decimal(2)], dtype=object), [1.5, None, 2]),
    "26 digits": ([10**25, 10**25 + 1, 7], [str(10**25), str(10**25 + 1), "7"]),
    "400 digits": ([10**400, 7, None], [str(10**400), "7", "missing"]),
    "64 bits": (np.array([2**64 - 1, 1, 2], dtype=object), [float(2**64), 1.0, 2.0]),
    "far dates": (
        np.array(["9999-12-31", "NaT", "0001-01-01"], "datetime64[us]"),
        [2932896.0, None, -719162.0],
    ),
    "dates of seconds": (
        np.array(["300000-01-01"] * 3, "datetime64[s]"),
        [745 * 146097 + 10957.0] * 3,
    ),
    "all missing": ([np.nan] * 3, [None] * 3),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_type_of_column_becomes_numbers_or_text(kind: str) -> None:
    values, expected = COLUMNS[kind]
    plain = PlainTable().fit_transform(pd.DataFrame({5: values}))["5"]
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


def prose(n: int, seed: int = 0) -> list[str]:
    words = ["came", "late", "and", "asked", "for", "help", "twice", "today"]
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(words, 6)) for _ in range(n)]


def test_sentences_are_counted_by_their_words_and_others_are_categories() -> None:
    few = ["one and the same sentence", "another such sentence here"]
    frame = pd.DataFrame(
        {"note": prose(150), "status": few * 75, "name": [f"n{i}" for i in range(150)]}
    )
    assert preprocessing.sentence_columns(frame) == ["note"]
    assert preprocessing.category_columns(frame) == ["status", "name"]
    matrix = encoded(frame, frame)
    assert matrix.shape == (150, 2 + preprocessing.MOST_CATEGORIES + preprocessing.HASHED)
    words = matrix[:, -preprocessing.HASHED :]
    np.testing.assert_allclose(np.linalg.norm(words, axis=1), 1)
    same = frame.assign(note=["twice and twice"] * 149 + ["and twice, twice!"])
    shown = encoded(frame, same)[:, -preprocessing.HASHED :]
    np.testing.assert_allclose(shown, shown[:1].repeat(150, axis=0))
    np.testing.assert_allclose(np.sort(shown[0])[-2:], np.array([1, 2]) / np.sqrt(5))


def test_what_was_done_is_told() -> None:
    frame = pd.DataFrame(
        {
            "age": np.arange(150.0),
            "note": prose(150),
            "town": ["a", "b"] * 75,
            "name": [f"n{i}" for i in range(150)],
        }
    )
    model = with_preprocessing(LogisticRegression(), frame).fit(frame, [0, 1] * 75)
    assert preprocessing.describe_preprocessing(model) == [
        "Numbers, gaps filled with the median, standardized: age.",
        "Categories, an indicator per value, gaps too: town, name.",
        "The 99 most frequent values each, the others share one: name (150).",
        "Sentences, words counted in 64 columns each: note.",
    ]
    towns = frame[["town"]]
    model = with_preprocessing(LogisticRegression(), towns).fit(towns, [0, 1] * 75)
    assert preprocessing.describe_preprocessing(model) == [
        "Categories, an indicator per value, gaps too: town."
    ]


def test_pipelines_of_others_are_not_told_of() -> None:
    other = make_column_transformer((OneHotEncoder(), ["town"]))
    frame = pd.DataFrame({"town": ["a", "b"]})
    model = make_pipeline(other, LogisticRegression()).fit(frame, [0, 1])
    assert preprocessing.describe_preprocessing(model) == []
    assert preprocessing.describe_preprocessing(LogisticRegression()) == []
    assert preprocessing.describe_preprocessing(None) == []


def test_only_the_members_of_a_model_are_learned_from() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=80), "town": rng.choice(["a", "b", "c"], 80)})
    table.loc[::7, "age"] = np.nan
    y = rng.integers(0, 2, 80)
    roles = np.ones((1, 80), dtype=np.int8)
    roles[0, 40:] = 0
    others = table.copy()
    others.loc[40:, "age"] *= 1000
    others.loc[40:, "town"] = "elsewhere"
    answers = [
        named_recipe("logistic")
        .fit_many(Records(X, y), roles, [0])[0]
        .predict_proba(table.head(40))
        for X in (table, others)
    ]
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize(
    ("seen", "others"),
    [
        ([np.nan] * 4, ["a", "b", None, "3"]),
        ([None] * 4, ["a", "b", None, "3"]),
        ([None] * 4, [1.5, 2.0, None, 3.0]),
        ([1.0, 2.0, 3.0, 4.0], ["a", None, "2", "b"]),
        ([1, 2, 3, 10**25], [1, 2, 3, 4]),
        ([True, None, False, True], [True, False, True, True]),
        (["a", None, "b", "a"], [np.nan] * 4),
    ],
)
def test_columns_keep_their_type_where_other_records_differ(seen: Any, others: Any) -> None:
    frame = pd.DataFrame({"a": seen, "b": range(4)})
    model = with_preprocessing(LogisticRegression(), frame).fit(frame, [0, 1, 0, 1])
    assert list(model.feature_names_in_) == ["a", "b"]
    answers = model.predict_proba(frame.assign(a=others))
    assert np.isfinite(answers).all()
    both = pd.concat([frame, frame.assign(a=others)], ignore_index=True)
    np.testing.assert_allclose(model.predict_proba(both)[4:], answers)
