from __future__ import annotations

from functools import partial
from math import log
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from leakscope.errors import ModelError, OracleBudgetError, RecordsError
from leakscope.models import as_model
from leakscope.models.callable import CallableModel, is_torch

X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
P = np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.3, 0.4, 0.3]])


def three(X: NDArray[Any]) -> NDArray[Any]:
    return P[: len(X)]


def test_a_function_of_probabilities() -> None:
    model = as_model(three)
    assert (model.name, model.task, model.classes) == ("three", "classification", None)
    assert model.abilities == {"labels", "probabilities", "loss", "queries"}
    np.testing.assert_array_equal(model.predict_proba(X), P)
    assert model.classes is not None
    assert model.classes.tolist() == [0, 1, 2]
    assert model.predict(X).tolist() == [2, 0, 1]
    np.testing.assert_allclose(model.loss(X, np.array([2, 2, 2])), -np.log(P[:, 2]))


def test_the_loss_can_be_the_first_question() -> None:
    assert as_model(three).loss(X[:1], np.array([0]))[0] == pytest.approx(-log(0.1))


def test_a_function_with_classes() -> None:
    model = as_model(three, classes=np.array(["b", "c", "a"]))
    assert model.predict(X).tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(model.loss(X, np.array(["a", "a", "a"])), -np.log(P[:, 2]))
    with pytest.raises(ModelError, match="three answered 3 probabilities per record where there"):
        as_model(three, classes=np.array(["a", "b"])).predict(X)
    with pytest.raises(RecordsError, match="The label 'z' in row 0"):
        model.loss(X, np.array(["z", "a", "a"]))


@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist, pd.DataFrame])
def test_a_function_may_answer_in_lists_and_tables(form: Any) -> None:
    np.testing.assert_allclose(as_model(lambda X: form(P)).predict_proba(X), P)


def test_one_number_is_the_probability_of_the_second_class() -> None:
    for answer in (P[:, 0], P[:, :1]):
        model = as_model(lambda X, answer=answer: answer)
        np.testing.assert_allclose(model.predict_proba(X), np.column_stack([1 - P[:, 0], P[:, 0]]))
        assert model.predict(X).tolist() == [0, 1, 0]


def test_a_function_of_numbers() -> None:
    model = as_model(lambda X: X[:, :1] * 2, task="regression")
    assert (model.task, model.classes) == ("regression", None)
    assert model.abilities == {"labels", "loss", "queries"}
    assert model.predict(X).tolist() == [0, 4, 8]
    assert model.loss(X, np.array([1, 4, 6])).tolist() == [1, 0, 4]
    with pytest.raises(ModelError, match="the function has 2 outputs per record"):
        as_model(lambda X: X, task="regression").predict(X)


def test_what_a_function_refuses_in_our_own_words_is_passed_on() -> None:
    def spent(X: Any) -> Any:
        raise OracleBudgetError("the budget is spent")

    with pytest.raises(OracleBudgetError, match=r"^the budget is spent$"):
        as_model(spent).predict(np.zeros((1, 1)))


def test_a_function_that_fails_is_quoted() -> None:
    def broken(X: Any) -> Any:
        raise KeyError("age")

    with pytest.raises(ModelError, match="broken could not answer for these records: 'age'"):
        as_model(broken).predict(X)


class Scorer:
    def __call__(self, X: Any) -> Any:
        return three(X)

    def probabilities(self, X: Any) -> Any:
        return three(X)


def test_the_report_calls_a_function_by_a_name_one_knows() -> None:
    for thing, name in (
        (three, "three"),
        (lambda X: P, "the function"),
        (partial(three), "three"),
        (Scorer(), "Scorer"),
        (Scorer().probabilities, "Scorer.probabilities"),
        (partial(Scorer().probabilities), "Scorer.probabilities"),
    ):
        assert as_model(thing).name == name


# A module of torch's in all but the library: what counts is where its class comes from.
Module: type = type("Module", (), {"__module__": "torch.nn.modules.module", "__call__": three})
Net: type = type("Net", (Module,), {"__module__": "mine"})


def test_torch_modules_are_told_apart_by_their_ancestors() -> None:
    assert is_torch(Net())
    assert not is_torch(three)
    assert not CallableModel.accepts(Net())


@pytest.mark.parametrize("thing", [Scorer, LogisticRegression(), 3, "model.skops", None, Net()])
def test_what_is_no_function_is_not_accepted(thing: object) -> None:
    assert not CallableModel.accepts(thing)
