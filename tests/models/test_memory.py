from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leakscope.errors import ModelError
from leakscope.models import Remembering, as_model

X = np.array([[0.25], [0.75]])


class Counting:
    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, X: Any) -> Any:
        self.asked += 1
        return X[:, 0]


def test_a_model_is_asked_once_for_the_same_records() -> None:
    counting = Counting()
    model = Remembering(as_model(counting))
    assert model.classes is None
    first = model.predict_proba(X)
    assert model.predict_proba(X) is first
    loss = model.loss(X, np.array([1, 1]))
    np.testing.assert_allclose(loss, -np.log(X[:, 0]))
    assert counting.asked == 1
    assert model.classes is not None
    assert model.classes.tolist() == [0, 1]
    assert model.predict(X) is model.predict(X)
    assert counting.asked == 2


def test_other_records_are_asked_about_again() -> None:
    counting = Counting()
    model = Remembering(as_model(counting))
    for features in (X, X.copy(), X):
        model.predict(features)
        model.predict_proba(features)
    assert counting.asked == 6


def test_numbers_are_remembered_too() -> None:
    counting = Counting()
    model = Remembering(as_model(counting, task="regression"))
    assert (model.name, model.task, model.classes) == ("Counting", "regression", None)
    assert model.abilities == {"labels", "loss", "queries"}
    np.testing.assert_array_equal(model.loss(X, np.array([0, 0])), X[:, 0] ** 2)
    model.predict(X)
    assert counting.asked == 1


def test_an_answer_cannot_be_spoilt_for_the_next() -> None:
    answer = np.array([0.5, 0.5])
    model = Remembering(as_model(lambda X: answer, task="regression"))
    for given in (model.predict(X), Remembering(as_model(Counting())).predict_proba(X)):
        with pytest.raises(ValueError, match="read-only"):
            given[0] = 0
    answer[0] = 1  # the model's own array stays its own to write to


def test_the_records_that_explain_a_model_are_handed_on() -> None:
    class Explained(Counting):
        name, task = "explained", "classification"
        abilities = frozenset({"records"})
        explainer = object()

        def prepared(self, X: Any) -> Any:
            return 2 * X

    model: Any = Explained()
    remembering = Remembering(model)
    assert remembering.explainer is model.explainer
    np.testing.assert_array_equal(remembering.prepared(X), 2 * X)
    plain = Remembering(as_model(Counting()))
    with pytest.raises(ModelError, match="comes without the records that explain it"):
        _ = plain.explainer
    with pytest.raises(ModelError, match="comes without the records that explain it"):
        plain.prepared(X)
