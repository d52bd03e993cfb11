from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from xgboost import XGBClassifier

from leakscope.auditing.doors import check_side, enter_model, enter_records, missing_values
from leakscope.errors import InputError, ModelError, RecordsError
from leakscope.models.predictions import SavedPredictions
from leakscope.records import Records

N = 40
X = np.random.default_rng(0).normal(size=(N, 2))
Y = np.arange(N) % 2
FRAME = pd.DataFrame(X, columns=["age", "pay"])
JOBS = FRAME.assign(job=np.where(X[:, 0] > 0, "clerk", "nurse"))


def edited(features: Any, row: int, column: int, value: Any) -> Any:
    """A copy with one value changed."""
    if isinstance(features, pd.DataFrame):
        frame = features.astype({features.columns[column]: object})
        frame.iloc[row, column] = value
        return frame.infer_objects()
    array = features.copy()
    array[row, column] = value
    return array


def through_the_door(
    model: Any,
    data: Any,
    label: str | None = None,
    groups: list[str] | None = None,
    unit: str | None = None,
    classes: Any = None,
    task: Any = None,
) -> Records:
    """What an audit does with its input before any work."""
    wrapped = enter_model(model, data, label, classes, task)
    names = getattr(wrapped, "feature_names", None)
    records = enter_records(data, "members", label=label, groups=groups, unit=unit, features=names)
    check_side(wrapped, records)
    return records


def logistic() -> Any:
    return LogisticRegression().fit(X, Y)


def logistic_of_table() -> Any:
    return LogisticRegression().fit(FRAME, Y)


def encoding(*, imputing: bool = True, unknown: str = "ignore") -> Any:
    """A pipeline that encodes the job and, if so told, fills gaps of the age; never of the pay."""
    columns = make_column_transformer(
        (SimpleImputer() if imputing else "passthrough", ["age"]),
        ("passthrough", ["pay"]),
        (OneHotEncoder(handle_unknown=unknown), ["job"]),
    )
    return make_pipeline(columns, LogisticRegression()).fit(JOBS, Y)


def picky(X: Any) -> Any:
    """A function that answers nothing for what is missing."""
    return np.where(np.isnan(np.asarray(X)).any(axis=1), np.nan, 0.5)


# Case: the model, the members, options, and what the one sentence must say: the list.
REFUSALS: dict[str, tuple[Callable[[], Any], Any, dict[str, Any], str]] = {
    "infinite features, array": (
        logistic,
        (edited(X, 7, 1, np.inf), Y),
        {},
        "Column 1 of the members is infinite in row 7 (counting from 0)",
    ),
    "infinite features, table": (
        logistic_of_table,
        (edited(FRAME, 7, 1, -np.inf), Y),
        {},
        "Column 'pay' of the members is infinite in row 7 (counting from 0)",
    ),
    "NaN into a model that refuses it, array": (
        logistic,
        (edited(X, 9, 1, np.nan), Y),
        {},
        "Column 1 of the members is missing in row 9 (counting from 0) and LogisticRegression "
        "refuses missing values; fill it, or put an imputer into the model's pipeline",
    ),
    "NaN into a model that refuses it, table": (
        logistic_of_table,
        (edited(FRAME, 9, 1, np.nan), Y),
        {},
        "Column 'pay' of the members is missing in row 9",
    ),
    "NaN into a nearest neighbour": (
        lambda: KNeighborsClassifier().fit(X, Y),
        (edited(X, 39, 0, np.nan), Y),
        {},
        "Column 0 of the members is missing in row 39 (counting from 0) and KNeighborsClassifier",
    ),
    "NaN into a function": (
        lambda: picky,
        (edited(X, 9, 1, np.nan), Y),
        {},
        "Column 1 of the members is missing in row 9 (counting from 0) and picky refuses",
    ),
    "gaps in every record": (
        logistic,
        (np.where([[True, False]], np.nan, X), Y),
        {},
        "Column 0 of the members is missing in row 0",
    ),
    "gaps of which the second column's are refused": (
        encoding,
        (edited(edited(JOBS, 3, 0, np.nan), 20, 1, np.nan), Y),
        {},
        "Column 'pay' of the members is missing in row 20",
    ),
    "gaps of which the first column's are refused": (
        lambda: encoding(imputing=False),
        (edited(edited(JOBS, 30, 0, np.nan), 3, 2, None), Y),
        {},
        "Column 'age' of the members is missing in row 30",
    ),
    "lengths that differ, array": (
        logistic,
        (X, Y[:39]),
        {},
        "The members have 40 rows of features and 39 of label",
    ),
    "lengths that differ, table": (
        logistic_of_table,
        (FRAME, Y[:39]),
        {},
        "The members have 40 rows of features and 39 of label",
    ),
    "empty side, array": (
        logistic,
        (X[:0], Y[:0]),
        {},
        "The members are empty: features of shape (0, 2)",
    ),
    "empty side, table": (
        logistic_of_table,
        FRAME.assign(y=Y)[:0],
        {"label": "y"},
        "The members are empty: features of shape (0, 2)",
    ),
    "one class only": (
        logistic,
        (X, Y * 0 + 1),
        {},
        "All 40 members have the label 1; an audit needs",
    ),
    "one class only, text": (
        lambda: LogisticRegression().fit(X, np.where(Y, "yes", "no")),
        (X, np.full(N, "no")),
        {},
        "All 40 members have the label 'no'",
    ),
    "label unseen by the model": (
        logistic,
        (X, np.where(np.arange(N) == 12, 5, Y)),
        {},
        "The label 5 in row 12 (counting from 0) of the members is unknown to LogisticRegression, "
        "whose classes are 0, 1",
    ),
    "labels of another kind": (
        logistic,
        (X, Y.astype(str)),
        {},
        "Labels of the members are like '0' (row 0) where the classes",
    ),
    "numbers for classes": (
        logistic,
        (X, X[:, 0]),
        {},
        "(counting from 0) of the members is unknown to LogisticRegression",
    ),
    "classes for numbers": (
        lambda: Ridge().fit(X, Y),
        (X, np.where(Y, "yes", "no")),
        {},
        "The label of the members is 'no' in row 0 where Ridge predicts numbers; give numbers",
    ),
    "text in an array": (
        logistic,
        (edited(X.astype(object), 11, 1, "much"), Y),
        {},
        "Column 1 of the members is not numeric: row 11 (counting from 0) holds 'much'",
    ),
    "text without an encoder": (
        lambda: LogisticRegression().fit(FRAME.assign(job=0), Y),
        (JOBS, Y),
        {},
        f"Column 'job' of the members is not numeric (row 0, counting from 0, holds "
        f"{JOBS['job'][0]!r}) and LogisticRegression has no encoder for it",
    ),
    "one text in a column of numbers": (
        logistic_of_table,
        (edited(FRAME, 33, 1, "much"), Y),
        {},
        "Column 'pay' of the members is not numeric (row 33, counting from 0, holds 'much')",
    ),
    "text into LightGBM": (
        lambda: LGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1).fit(FRAME.assign(job=0), Y),
        (JOBS, Y),
        {},
        "Column 'job' of the members is not numeric (row 0",
    ),
    "text into XGBoost": (
        lambda: XGBClassifier(n_estimators=2, n_jobs=1).fit(FRAME.assign(job=0), Y),
        (JOBS, Y),
        {},
        "Column 'job' of the members is not numeric (row 0",
    ),
    "text into a model of an array": (
        lambda: LogisticRegression().fit(np.column_stack([X, X[:, 0]]), Y),
        (JOBS, Y),
        {},
        "Column 'job' of the members is not numeric (row 0",
    ),
    "dates into XGBoost": (
        lambda: XGBClassifier(n_estimators=2, n_jobs=1).fit(FRAME.assign(day=0), Y),
        (FRAME.assign(day=pd.Timestamp("2020-01-01")), Y),
        {},
        "Column 'day' of the members is not numeric (row 0",
    ),
    "a text the encoder does not know": (
        lambda: encoding(unknown="error"),
        (edited(JOBS, 21, 2, "pilot"), Y),
        {},
        "Column 'job' of the members holds 'pilot' in row 21 (counting from 0), which the encoder "
        "of LogisticRegression does not know",
    ),
    "a text the encoder does not know, beside a gap": (
        lambda: encoding(unknown="error"),
        (edited(edited(JOBS, 21, 2, "pilot"), 21, 0, np.nan), Y),
        {},
        "Column 'job' of the members holds 'pilot' in row 21",
    ),
    "a column the model needs": (
        logistic_of_table,
        FRAME[["age"]].assign(y=Y),
        {"label": "y"},
        "The members have no column 'pay', which the model was trained on; they have: age, y",
    ),
    "no such label": (
        logistic_of_table,
        FRAME.assign(y=Y),
        {"label": "income"},
        "The members have no column 'income'",
    ),
    "no such label for a function": (
        lambda: picky,
        FRAME.assign(y=Y),
        {"label": "income"},
        "The members have no column 'income'",
    ),
    "no such group": (
        logistic_of_table,
        FRAME.assign(y=Y),
        {"label": "y", "groups": ["sex"]},
        "The members have no column 'sex'",
    ),
    "no such group in Records": (
        logistic,
        Records(X, Y, groups={"race": Y}),
        {"groups": ["sex"]},
        "The members have no group 'sex'; they have: race",
    ),
    "no group in Records": (
        logistic,
        Records(X, Y),
        {"groups": ["sex"]},
        "The members have no group 'sex'; they have: none",
    ),
    "no unit in Records": (
        logistic,
        Records(X, Y),
        {"unit": "patient"},
        "The members are Records without units, where unit is 'patient'",
    ),
    "a group of arrays": (
        logistic,
        (X, Y),
        {"groups": ["sex"]},
        "The members are arrays, which have no column 'sex'",
    ),
    "a unit of arrays": (
        logistic,
        (X, Y),
        {"unit": "patient"},
        "The members are arrays, which have no column 'patient'",
    ),
    "a table without the name of its label": (
        logistic_of_table,
        FRAME,
        {},
        "The members are a DataFrame; name the column of their labels",
    ),
    "features alone": (logistic, X, {}, "The members are a ndarray; pass (X, y)"),
    "nothing": (logistic, None, {}, "The members are a NoneType; pass (X, y)"),
    "missing labels of a function": (
        lambda: picky,
        (X, [None, *["a", "b"] * 20][:N]),
        {},
        "The label of the members is missing in row 0",
    ),
    "a label of no dimension": (lambda: picky, (X, 3), {}, "The label of the members has shape ()"),
    "more features than the model has": (
        logistic,
        (np.column_stack([X, X]), Y),
        {},
        "LogisticRegression was trained on 2 features and these records have 4 features; give",
    ),
    "another number of classes than the function has": (
        lambda: lambda X: np.full((len(X), 2), 0.5),
        (X, np.array(["a", "b", "c", "d"] * 10)),
        {},
        "the function answered 2 probabilities per record where there are 4 classes",
    ),
    "one gap for which the model has no words": (
        lambda: lambda X: 1 / 0,
        (edited(X, 3, 0, np.nan)[3:4], Y[:1]),
        {},
        "the function could not answer for these records: division by zero",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_is_wrong_is_one_sentence_that_names_the_place(case: str) -> None:
    make, data, options, sentence = REFUSALS[case]
    with pytest.raises(InputError, match=re.escape(sentence)) as caught:
        through_the_door(make(), data, **options)
    assert "\n" not in str(caught.value)


def test_a_model_that_fails_over_gaps_together_and_not_one_by_one() -> None:
    def moody(X: Any) -> Any:
        if len(X) > 1 and np.isnan(X).any():
            raise ValueError("more than one")
        return np.full(len(X), 0.5)

    gaps = edited(edited(X, 4, 0, np.nan), 6, 1, np.nan)
    with pytest.raises(RecordsError, match="Column 0 of the members is missing in row 4"):
        through_the_door(moody, (gaps, Y))


ACCEPTED: dict[str, tuple[Callable[[], Any], Any, dict[str, Any]]] = {
    "arrays": (logistic, (X, Y), {}),
    "a list of two": (logistic, [X, Y], {}),
    "lists": (logistic, (X.tolist(), Y.tolist()), {}),
    "a table and a series": (logistic_of_table, (FRAME, pd.Series(Y, index=range(N, 0, -1))), {}),
    "a table": (logistic_of_table, FRAME.assign(y=Y), {"label": "y"}),
    "Records": (logistic, Records(X, Y), {}),
    "an array for a model of a table": (logistic_of_table, (X, Y), {}),
    "a table for a model of an array": (logistic, (FRAME, Y), {}),
    "gaps for trees": (
        lambda: HistGradientBoostingClassifier(max_iter=2).fit(X, Y),
        (edited(X, 3, 0, np.nan), Y),
        {},
    ),
    "gaps for XGBoost": (
        lambda: XGBClassifier(n_estimators=2, n_jobs=1).fit(FRAME, Y),
        (edited(FRAME, 3, 0, np.nan), Y),
        {},
    ),
    "gaps for a pipeline": (encoding, (edited(JOBS, 3, 0, np.nan), Y), {}),
    "gaps and unknown text for a pipeline": (
        encoding,
        (edited(edited(JOBS, 3, 0, np.nan), 8, 2, "pilot"), Y),
        {},
    ),
    "numbers": (lambda: Ridge().fit(X, Y), (X, X[:, 0]), {}),
    "a function": (lambda: lambda X: np.full(len(X), 0.5), (X, Y), {}),
    "a function of numbers": (lambda: lambda X: X[:, 0], (X, X[:, 1]), {"task": "regression"}),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_is_right_goes_through(case: str) -> None:
    make, data, options = ACCEPTED[case]
    records = through_the_door(make(), data, **options)
    assert (len(records), records.name) == (N, "members")


def test_a_table_keeps_groups_units_and_what_the_model_reads() -> None:
    table = FRAME.assign(sex=np.where(Y, "f", "m"), who=np.arange(N) // 2, y=Y)
    columns: dict[str, Any] = {"label": "y", "groups": ["sex"], "unit": "who"}
    records = through_the_door(logistic_of_table(), table, **columns)
    assert records.feature_names == ["age", "pay"]
    assert set(records.groups["sex"]) == {"f", "m"}
    assert records.unit is not None
    assert records.unit.tolist() == (np.arange(N) // 2).tolist()
    # Where the model knows no names, it is given every column but label and unit.
    assert enter_records(table, "members", features=None, **columns).feature_names == [
        "age",
        "pay",
        "sex",
    ]
    apart = enter_records(
        (table.drop(columns="y"), Y),
        "members",
        features=None,
        label=None,
        groups=["sex"],
        unit="who",
    )
    assert apart.feature_names == ["age", "pay", "sex"]
    assert apart.y.tolist() == Y.tolist()


def test_names_with_spaces_are_found_again() -> None:
    spaced = FRAME.set_axis(["the age", "the pay"], axis=1).assign(extra=1)
    model = LGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1).fit(spaced.iloc[:, :2], Y)
    records = through_the_door(model, spaced.assign(y=Y), label="y")
    assert records.feature_names == ["the age", "the pay"]


def test_records_keep_the_groups_asked_for() -> None:
    given = Records(X, Y, groups={"sex": Y, "race": Y}, unit=np.arange(N), name="adult records")
    for groups, kept in ((None, ["sex", "race"]), ([], []), (["race"], ["race"])):
        records = enter_records(
            given, "nonmembers", label=None, groups=groups, unit=None, features=None
        )
        assert list(records.groups) == kept
        assert records.name == "nonmembers"
        assert records.unit is not None
    assert given.name == "adult records"


CLASSES: dict[str, tuple[Any, Any, Any]] = {
    "counted from zero": ([0, 2, 1], None, None),
    "truth values": ([True, False, True], None, None),
    "whole floats": ([0.0, 2.0, 1.0], None, None),
    "negative": ([-1, 1, 1], None, [-1, 1]),
    "fractions": ([0.5, 1.5, 0.5], None, [0.5, 1.5]),
    "texts": (["b", "a", "b"], None, ["a", "b"]),
    "categories": (pd.Categorical(["b", "a", "b"]), None, ["a", "b"]),
    "given": (["b", "a", "b"], ["b", "a"], ["b", "a"]),
}


@pytest.mark.parametrize("case", CLASSES)
def test_a_function_takes_its_classes_from_the_labels(case: str) -> None:
    y, given, expected = CLASSES[case]
    table = pd.DataFrame({"a": [1, 2, 3], "y": y})
    for data, label in (
        ((X[:3], y), None),
        (table, "y"),
        (Records(X[:3], np.asarray(y)), None),
    ):
        model = enter_model(picky, data, label, None if given is None else np.array(given), None)
        assert (None if model.classes is None else model.classes.tolist()) == expected


def test_a_method_takes_the_classes_of_its_estimator_if_they_are_the_labels() -> None:
    from_one = LogisticRegression().fit(X, Y + 1)
    for y, expected in (
        (Y + 1, [1, 2]),
        (np.ones_like(Y), [1, 2]),  # members that lack a class
        (np.where(Y, "yes", "no"), ["no", "yes"]),  # encoded for the training
    ):
        model = enter_model(from_one.predict_proba, (X, y), None, None, None)
        assert model.classes is not None
        assert model.classes.tolist() == expected


def test_no_classes_are_taken_where_they_are_not_needed() -> None:
    data = (X, np.where(Y, "yes", "no"))
    assert enter_model(picky, data, None, None, "regression").classes is None
    fitted = enter_model(logistic(), data, None, None, None)
    assert fitted.classes is not None
    assert fitted.classes.tolist() == [0, 1]
    assert enter_model(picky, X, None, None, None).classes is None
    with pytest.raises(ModelError, match="is not fitted"):
        enter_model(LogisticRegression(), data, None, None, None)


def test_saved_predictions_are_asked_about_labels_alone() -> None:
    saved = SavedPredictions(np.array([0, 1]))
    check_side(saved, Records(np.full((N, 2), 0.5), Y))
    with pytest.raises(RecordsError, match="The label 3 in row 0"):
        check_side(saved, Records(np.full((N, 2), 0.5), Y + 3))


def test_a_probe_asks_about_few_records() -> None:
    asked: list[int] = []

    def counting(X: Any) -> Any:
        asked.append(len(X))
        return np.full(len(X), 0.5)

    many = np.tile(X, (250, 1))
    through_the_door(counting, (many, np.tile(Y, 250)))
    assert asked == [5]
    asked.clear()
    names = [f"name {i}" for i in range(len(many))]
    table = pd.DataFrame(many).assign(name=names, job=["clerk", "nurse"] * (len(many) // 2))
    through_the_door(counting, (table, np.tile(Y, 250)))
    assert asked == [200]


def test_gaps_are_counted() -> None:
    gaps = edited(edited(X, 3, 0, np.nan), 8, 1, np.nan)
    for features in (gaps, pd.DataFrame(gaps), gaps.reshape(N, 2, 1)):
        assert missing_values(Records(features, Y)) == 2
    assert missing_values(Records(edited(gaps, 3, 1, np.nan), Y)) == 3
    assert missing_values(Records(edited(JOBS, 5, 2, None), Y)) == 1
    for features in (X, X.astype(int), FRAME, np.full((N, 2), 1e308)):
        assert missing_values(Records(features, Y)) == 0
