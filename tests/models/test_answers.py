from __future__ import annotations

import re
from math import log
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakscope.errors import ModelError, RecordsError
from leakscope.models.answers import (
    checked_labels,
    checked_numbers,
    checked_probabilities,
    class_numbers,
    first_line,
    squared_error,
)
from leakscope.models.predictions import SavedPredictions
from leakscope.probabilities import log_loss

GOOD: dict[str, tuple[Any, Any]] = {
    "rows": (np.array([[0.2, 0.8], [1.0, 0.0]]), [[0.2, 0.8], [1, 0]]),
    "one number": (np.array([0.8, 0.0]), [[0.2, 0.8], [1, 0]]),
    "one column": (np.array([[0.8], [0.0]]), [[0.2, 0.8], [1, 0]]),
    "lists": ([[0.2, 0.8], [1, 0]], [[0.2, 0.8], [1, 0]]),
    "a list": ([0.8, 0], [[0.2, 0.8], [1, 0]]),
    "a table": (pd.DataFrame([[0.2, 0.8], [1, 0]]), [[0.2, 0.8], [1, 0]]),
    "a series": (pd.Series([0.8, 0.0], index=[7, 7]), [[0.2, 0.8], [1, 0]]),
    "single precision": (np.float32([[1 + 2**-23, 0], [0.5, 0.5]]), [[1, 0], [0.5, 0.5]]),
    "just below zero": (np.array([[1, -1e-7], [0.5, 0.5]]), [[1, 0], [0.5, 0.5]]),
    "two decimals": (np.array([[0.33, 0.33, 0.33], [0.34, 0.34, 0.33]]), None),
}


@pytest.mark.parametrize("case", GOOD)
def test_probabilities_of_every_form(case: str) -> None:
    answer, expected = GOOD[case]
    checked = checked_probabilities(answer, 2, "f")
    assert checked.dtype == np.float64
    np.testing.assert_allclose(checked, answer if expected is None else expected, atol=1e-12)


class Tensor:
    """Something that refuses to become an array, as a tensor with gradients does."""

    def __array__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.\nUse detach.")


BAD: dict[str, tuple[Any, str]] = {
    "too few": (np.ones(1), "f answered with shape (1,) for 2 records"),
    "too many": (np.ones((3, 2)) / 2, "f answered with shape (3, 2) for 2 records"),
    "a scalar": (0.5, "f answered with shape () for 2 records"),
    "nothing": (None, "f answered with shape () for 2 records"),
    "images": (np.ones((2, 2, 2)), "f answered with shape (2, 2, 2) for 2 records"),
    "NaN": (
        np.array([[0.5, 0.5], [np.nan, 0.5]]),
        "f answered nan, 0.5 for record 1 of the 2 asked about (counting from 0) and 0 others",
    ),
    "infinite": (np.array([[np.inf, 0.5], [np.nan, 0.5]]), "f answered inf, 0.5 for record 0 of"),
    "one NaN number": (np.array([np.nan, 0.5]), "f answered nan for record 0 of the 2"),
    "logits": (
        np.array([[0.5, 0.5], [3.25, -1.0]]),
        "f answered 3.25, -1 for record 1 of the 2 asked about (counting from 0), which are not "
        "probabilities summing to 1; apply a softmax to logits",
    ),
    "one logit": (np.array([0.5, 3.0]), "f answered 3 for record 1 of the 2"),
    "percentages": (np.array([[20, 80], [50, 50]]), "divide percentages by 100"),
    "not normalized": (np.array([[0.5, 0.4], [0.5, 0.5]]), "f answered 0.5, 0.4 for record 0"),
    "many logits": (np.full((2, 12), 7.0), "7, 7, 7, 7, 7, 7, 7, 7, 7, 7 and 2 more for record 0"),
    "texts": (["yes", "no"], "f answered with a list that is not an array of numbers: could not"),
    "ragged": ([[0.5, 0.5], [1]], "f answered with a list that is not an array of numbers"),
    "a tensor": (
        Tensor(),
        "a Tensor that is not an array of numbers: Can't call numpy() on Tensor that requires grad",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_are_no_probabilities_is_said(case: str) -> None:
    answer, sentence = BAD[case]
    with pytest.raises(ModelError, match=re.escape(sentence)) as caught:
        checked_probabilities(answer, 2, "f")
    assert "\n" not in str(caught.value)


def test_the_number_of_classes_is_checked_where_it_is_known() -> None:
    thirds = np.full((2, 3), 1 / 3)
    assert checked_probabilities(thirds, 2, "f", 3).shape == (2, 3)
    with pytest.raises(ModelError, match="f answered 3 probabilities per record where there are 2"):
        checked_probabilities(thirds, 2, "f", 2)


def test_numbers_and_labels_are_one_per_record() -> None:
    np.testing.assert_array_equal(checked_numbers([[1], [2]], 2, "f"), [1.0, 2.0])
    np.testing.assert_array_equal(checked_labels(["a", "b"], 2, "f"), ["a", "b"])
    with pytest.raises(ModelError, match="f has 3 outputs per record; audit one output at a time"):
        checked_numbers(np.ones((2, 3)), 2, "f")
    with pytest.raises(ModelError, match=r"f answered with shape \(3,\) for 2 records"):
        checked_labels([1, 2, 3], 2, "f")
    with pytest.raises(ModelError, match="f answered nan for record 1 of the 2 asked about"):
        checked_numbers([1, np.nan], 2, "f")
    with pytest.raises(ModelError, match="f answered with a list that is not an array of numbers"):
        checked_numbers(["a", "b"], 2, "f")


def test_the_squared_error() -> None:
    np.testing.assert_array_equal(squared_error([1, 2], np.array([3, 2]), "f"), [4.0, 0.0])
    assert squared_error(np.array([1.0]), np.array([True]), "f")[0] == 0


def model(classes: Any) -> Any:
    return SimpleNamespace(name="the model", classes=None if classes is None else np.array(classes))


NUMBERED: dict[str, tuple[Any, Any, list[int]]] = {
    "ints": ([0, 1, 2], np.array([2, 0, 1]), [2, 0, 1]),
    "unsorted classes": ([5, 1, 3], np.array([1, 5, 3]), [1, 0, 2]),
    "floats of ints": ([0, 1], np.array([1.0, 0.0]), [1, 0]),
    "truth values": ([0, 1], np.array([True, False]), [1, 0]),
    "classes of truth": ([False, True], np.array([1, 0]), [1, 0]),
    "objects of ints": ([0, 1], np.array([1, 0], dtype=object), [1, 0]),
    "texts": (["no", "yes"], np.array(["yes", "no"]), [1, 0]),
    "objects of texts": (["yes", "no"], np.array(["yes", "no"], dtype=object), [0, 1]),
    "texts of other lengths": (["a", "bb"], np.array(["bb", "a"], dtype="U9"), [1, 0]),
}


@pytest.mark.parametrize("case", NUMBERED)
def test_labels_become_the_numbers_of_columns(case: str) -> None:
    classes, y, expected = NUMBERED[case]
    numbers = class_numbers(model(classes), y)
    assert numbers.dtype == np.int64
    assert numbers.tolist() == expected


UNSEEN: list[tuple[Any, Any, str]] = [
    (
        [0, 1],
        [0, 1, 2],
        "The label 2 in row 2 (counting from 0) of the members is unknown to the "
        "model, whose classes are 0, 1; correct it",
    ),
    ([0, 1], [0, -1, 2], "The label -1 in row 1"),
    ([0, 1], [0.5, 1], "The label 0.5 in row 0"),
    (
        ["a", "b"],
        ["a", "c"],
        "The label 'c' in row 1 (counting from 0) of the members is unknown to "
        "the model, whose classes are 'a', 'b'",
    ),
    (range(12), [99], "whose classes are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"),
    (range(21), [0.5], "of the labels; to predict a number take a regression, such as --recipe "),
    (
        [0, 1],
        ["0", "1"],
        "Labels of the members are like '0' (row 0) where the classes of the model are like 0",
    ),
    (
        ["a"],
        [1],
        "Labels of the members are like 1 (row 0) where the classes of the model are like",
    ),
]


@pytest.mark.parametrize(("classes", "y", "sentence"), UNSEEN)
def test_labels_unknown_to_the_model_are_named_with_their_row(
    classes: Any, y: Any, sentence: str
) -> None:
    with pytest.raises(RecordsError, match=re.escape(sentence)):
        class_numbers(model(list(classes)), np.array(y), "members")


def test_a_model_without_classes_is_refused() -> None:
    with pytest.raises(ModelError, match="the model has no classes, or has not been asked"):
        class_numbers(model(None), np.array([0]))


def test_the_first_line_of_an_error() -> None:
    assert first_line(ValueError("Bad input.\nMore.")) == "Bad input"
    assert first_line(EOFError()) == "EOFError"


def test_saved_predictions_answer_with_themselves() -> None:
    P = np.array([[0.2, 0.8], [0.9, 0.1]])
    saved = SavedPredictions(["no", "yes"])  # type: ignore[arg-type]
    assert saved.abilities == {"labels", "probabilities", "loss"}
    np.testing.assert_array_equal(saved.predict_proba(P), P)
    assert saved.predict(P).tolist() == ["yes", "no"]
    np.testing.assert_allclose(saved.loss(P, np.array(["yes", "yes"])), [-log(0.8), -log(0.1)])
    np.testing.assert_array_equal(
        saved.loss(P, np.array(["no", "no"])), log_loss(P, np.array([0, 0]))
    )


def test_saved_predictions_name_the_row_that_is_wrong() -> None:
    saved = SavedPredictions(np.array([0, 1]))
    P = np.full((5, 2), 0.5)
    P[3] = [2.0, 1.0]
    with pytest.raises(ModelError, match="saved predictions answered 2, 1 for record 3 of the 5"):
        saved.predict(P)
    with pytest.raises(ModelError, match="3 probabilities per record where there are 2 classes"):
        saved.predict(np.full((5, 3), 1 / 3))


def test_a_regression_is_named_only_where_labels_may_be_numbers_to_predict() -> None:
    for classes, y in ((range(20), [99]), ([f"c{i}" for i in range(30)], ["d"])):
        with pytest.raises(RecordsError) as caught:
            class_numbers(model(list(classes)), y)
        assert "regression" not in str(caught.value)
