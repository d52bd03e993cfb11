from __future__ import annotations

from functools import partial
from math import log
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

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


FITTED = {
    "numbers": DecisionTreeClassifier().fit(np.arange(6.0)[:, None], [0, 0, 1, 1, 2, 2]),
    "texts": DecisionTreeClassifier().fit(np.arange(6.0)[:, None], [*"aabbcc"]),
    "two": LogisticRegression().fit(np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1]),
    "no probabilities": LinearSVC().fit(np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1]),
}
SIX = np.arange(6.0)[:, None]
PASS = r"returns {}, not probabilities; pass the model itself{}\. To audit what its labels reveal"


@pytest.mark.parametrize("name", FITTED)
def test_a_method_that_does_not_return_probabilities_is_named(name: str) -> None:
    estimator = FITTED[name]
    proper = "" if name == "no probabilities" else " or its method predict_proba"
    called = f"{type(estimator).__name__}.predict "
    with pytest.raises(ModelError, match=called + PASS.format("labels", proper)):
        as_model(estimator.predict)
    if name == "two":
        for method, what in (
            (estimator.decision_function, "scores"),
            (estimator.predict_log_proba, "logarithms of probabilities"),
        ):
            with pytest.raises(ModelError, match=PASS.format(what, proper)):
                as_model(method)
    # Who says that the labels are numbers to predict gets them.
    if name == "numbers":
        assert as_model(estimator.predict, task="regression").predict(SIX).tolist()[-1] == 2


LABELS: dict[str, Any] = {
    "whole numbers": np.array([0, 1, 1, 0, 0, 1]),
    "a column": np.array([0, 1, 1, 0, 0, 1])[:, None],
    "a list": [0, 1, 1, 0, 0, 1],
    "truth values": np.array([True, False, True, True, False, False]),
    "texts": np.array([*"abccba"]),
    "objects": np.array([*"abccba"], dtype=object),
    "a series": pd.Series([*"abccba"]),
    "categories": pd.Series([*"abccba"], dtype="category"),
    "three numbers": np.array([0, 1, 2, 2, 1, 0]),
    "three numbers with a point": np.array([0.0, 1.0, 2.0, 2.0, 1.0, 0.0]),
}


@pytest.mark.parametrize("form", LABELS)
def test_a_function_that_returns_labels_is_refused(form: str) -> None:
    message = r"the function returned labels such as .*, not probabilities; return one probability"
    for ask in ("predict", "predict_proba"):
        with pytest.raises(ModelError, match=message):
            getattr(as_model(lambda X: LABELS[form]), ask)(SIX)
    partly = as_model(partial(FITTED["texts"].predict))
    with pytest.raises(ModelError, match="returned labels such as 'a'"):
        partly.predict(SIX)


def test_labels_as_probabilities_of_one_pass() -> None:
    """What the message advises, and what a tree grown to the end answers."""
    one_hot = np.eye(2)[[0, 1, 1, 0, 0, 1]]
    for answer in (one_hot, one_hot.astype(int), one_hot[:, 1], one_hot[:, 1:]):
        model = as_model(lambda X, answer=answer: answer)
        assert model.predict(SIX).tolist() == [0, 1, 1, 0, 0, 1]


def test_scores_are_refused() -> None:
    scores = FITTED["two"].decision_function
    for function in (partial(scores), lambda X: scores(X)[:, None]):
        with pytest.raises(ModelError, match=r"a softmax to logits \(a sigmoid to one score\)"):
            as_model(function).predict(SIX)


def test_the_method_of_a_regression_is_a_regression() -> None:
    line = LinearRegression().fit(SIX, SIX[:, 0] * 2)
    model = as_model(line.predict, classes=np.array([1.0, 2.0]))
    assert (model.name, model.task) == ("LinearRegression.predict", "regression")
    np.testing.assert_allclose(model.predict(SIX), SIX[:, 0] * 2, atol=1e-12)


def test_a_table_of_probabilities_is_read_by_the_names_of_its_columns() -> None:
    texts = np.array(["no", "yes"])
    table = pd.DataFrame({"no": [0.9, 0.2, 0.4], "yes": [0.1, 0.8, 0.6]})
    for answer in (table, table[["yes", "no"]], table.set_axis(range(2), axis=1)):
        model = as_model(lambda X, answer=answer: answer, classes=texts)
        np.testing.assert_array_equal(model.predict_proba(X), table.to_numpy())
    numbers = table.set_axis([0, 1], axis=1)[[1, 0]]
    for classes in (None, np.array([0, 1])):
        model = as_model(lambda X: numbers, classes=classes)
        np.testing.assert_array_equal(model.predict_proba(X), table.to_numpy())
    other = table.set_axis(["P(no)", "P(yes)"], axis=1)  # other names: their order counts
    model = as_model(lambda X: other, classes=texts)
    np.testing.assert_array_equal(model.predict_proba(X), table.to_numpy())


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
