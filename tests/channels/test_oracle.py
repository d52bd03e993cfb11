from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leakscope.channels.oracle import LocalOracle
from leakscope.errors import InputError, LeakscopeError, ModelError, OracleBudgetError
from leakscope.protocols import Oracle

X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 1, 0, 1, 0, 1])
TOP = np.array([[4, 1], [1, 0], [4, 1], [5, 2]])
VALUES = np.array([[0.3, -0.2], [-0.4, 0.1], [0.3, -0.2], [0.2, 0.1]])
QUERIES = np.column_stack([np.arange(4.0), np.zeros(4)])


def predict(Q: np.ndarray) -> np.ndarray:
    return np.full(len(Q), 0.25)


def explain(Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    rows = Q[:, 0].astype(int)
    return TOP[rows, :k], VALUES[rows, :k]


def oracle(**options: Any) -> LocalOracle:
    chosen: dict[str, Any] = {"predict": predict, "explain": explain, "X": X, "y": Y, "k": 2}
    return LocalOracle(**(chosen | options))


def test_it_shows_the_records_that_explain_each_query() -> None:
    asked: Oracle = oracle()
    answers = asked.ask(QUERIES)
    assert (asked.width, asked.k, asked.show) == (2, 2, "signed")
    np.testing.assert_array_equal(answers.predictions, [0.25] * 4)
    np.testing.assert_array_equal(answers.shown, TOP)
    np.testing.assert_array_equal(answers.features, X[TOP])
    np.testing.assert_array_equal(answers.labels, Y[TOP])
    np.testing.assert_array_equal(answers.values, VALUES)


def test_one_answer_keeps_its_shapes() -> None:
    answers = oracle().ask(QUERIES)
    one = answers.only(2)
    for name in ("predictions", "shown", "features", "labels", "values"):
        np.testing.assert_array_equal(getattr(one, name), getattr(answers, name)[2:3])
    assert oracle(show="records").ask(QUERIES).only(1).values is None


def test_values_are_shown_as_asked_for() -> None:
    np.testing.assert_array_equal(oracle(show="absolute").ask(QUERIES).values, np.abs(VALUES))
    assert oracle(show="records").ask(QUERIES).values is None


def test_the_log_has_each_record_once_at_its_first_query() -> None:
    asked = oracle()
    assert asked.log.queries == 0
    assert len(asked.log.shown) == len(asked.log.first) == 0
    asked.ask(QUERIES[:3])
    np.testing.assert_array_equal(asked.log.shown, [4, 1, 0])
    np.testing.assert_array_equal(asked.log.first, [1, 1, 2])
    asked.ask(QUERIES[[1, 3]])
    assert asked.log.queries == 5
    np.testing.assert_array_equal(asked.log.shown, [4, 1, 0, 5, 2])
    np.testing.assert_array_equal(asked.log.first, [1, 1, 2, 5, 5])


def test_beyond_the_budget_nothing_is_answered_and_nothing_counted() -> None:
    calls = []

    def counted(Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        calls.append(len(Q))
        return explain(Q, k)

    asked = oracle(explain=counted, budget=3)
    asked.ask(QUERIES[:1])
    assert asked.remaining == 2
    with pytest.raises(OracleBudgetError, match="answers 2 more of its 3 queries and was asked 3"):
        asked.ask(QUERIES[:3])
    assert (asked.remaining, asked.log.queries, calls) == (2, 1, [1])
    asked.ask(QUERIES[2:])
    assert asked.remaining == 0
    assert issubclass(OracleBudgetError, LeakscopeError)
    assert oracle().remaining is None


def test_probabilities_of_all_classes_are_passed_on() -> None:
    answers = oracle(predict=lambda Q: np.tile([0.2, 0.5, 0.3], (len(Q), 1))).ask(QUERIES)
    assert answers.predictions.shape == (4, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X": X[0]}, r"needs records X \(n, d\).* got shapes \(2,\) and \(6,\)"),
        ({"y": Y[:5]}, r"got shapes \(6, 2\) and \(5,\)"),
        ({"k": 0}, "option k must be a whole number from 1 to 6, got 0"),
        ({"k": 7}, "option k must be a whole number from 1 to 6, got 7"),
        ({"show": "sighned"}, "option show cannot be 'sighned'; did you mean 'signed'"),
        ({"budget": -1}, "option budget must be a whole number of at least 0, got -1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        oracle(**options)


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        (np.zeros(2), r"shape \(q, 2\), got \(2,\)"),
        (np.zeros((1, 3)), r"shape \(q, 2\), got \(1, 3\)"),
        (np.array([[0.0, np.nan]]), "not finite"),
    ],
)
def test_wrong_queries_are_refused(queries: np.ndarray, message: str) -> None:
    asked = oracle()
    with pytest.raises(InputError, match=message):
        asked.ask(queries)
    assert asked.log.queries == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"predict": lambda Q: np.zeros(3)}, r"4 queries with predictions of shape \(3,\)"),
        ({"predict": lambda Q: np.zeros((4, 1, 1))}, r"predictions of shape \(4, 1, 1\)"),
        ({"predict": lambda Q: np.full(4, np.nan)}, "predicted a number that is not finite"),
        ({"explain": lambda Q, k: (TOP[:, :1], VALUES)}, r"shape \(4, 2\), got \(4, 1\)"),
        ({"explain": lambda Q, k: (TOP, VALUES[:3])}, r"\(4, 2\) and \(3, 2\)"),
        ({"explain": lambda Q, k: (TOP + 1, VALUES)}, "not one of 6"),
        ({"explain": lambda Q, k: (TOP - 2, VALUES)}, "not one of 6"),
        ({"explain": lambda Q, k: (TOP.astype(float), VALUES)}, "not one of 6"),
        ({"explain": lambda Q, k: (TOP * 0, VALUES)}, "named a record twice"),
        ({"explain": lambda Q, k: (TOP, VALUES * np.nan)}, "an influence that is not finite"),
    ],
)
def test_a_model_that_answers_nonsense_is_refused(options: dict[str, Any], message: str) -> None:
    asked = oracle(**options)
    with pytest.raises(ModelError, match=message):
        asked.ask(QUERIES)
    assert asked.log.queries == 0


@pytest.mark.parametrize("labels", [Y, Y / 2, np.array(list("abcabc")), Y.astype(object)])
def test_where_no_record_is_shown_nothing_is_told_or_logged(labels: np.ndarray) -> None:
    top = np.array([[-1, -1], [5, -1], [-1, 4], [5, 4]])
    asked = oracle(explain=lambda Q, k: (top[: len(Q)], VALUES[: len(Q)]), y=labels)
    answers = asked.ask(QUERIES)
    nothing = top < 0
    np.testing.assert_array_equal(answers.shown, top)
    assert not answers.features[nothing].any()
    assert set(answers.labels[nothing].tolist()) <= {0, ""}
    assert answers.values is not None
    assert not answers.values[nothing].any()
    np.testing.assert_array_equal(answers.features[~nothing], X[top[~nothing]])
    np.testing.assert_array_equal(answers.labels[~nothing], labels[top[~nothing]])
    np.testing.assert_array_equal(answers.values[~nothing], VALUES[~nothing])
    np.testing.assert_array_equal(asked.log.shown, [5, 4])
    np.testing.assert_array_equal(asked.log.first, [2, 3])
    assert asked.log.queries == 4
    assert VALUES[0, 0] == 0.3  # what the explainer gave is left alone


def test_the_last_record_is_still_new_after_nothing_was_shown() -> None:
    tops = iter([np.array([[-1, -1]]), np.array([[5, 0]])])
    asked = oracle(explain=lambda Q, k: (next(tops), np.zeros((1, 2))))
    asked.ask(QUERIES[:1])
    asked.ask(QUERIES[:1])
    np.testing.assert_array_equal(asked.log.shown, [5, 0])


def test_an_explainer_has_an_oracle() -> None:
    class Explains:
        X, y = X, Y
        predict, explain = staticmethod(predict), staticmethod(explain)

        def influence_chunks(self, Q: np.ndarray) -> Any:
            pytest.fail("an oracle shows what explanations show")

    asked = LocalOracle.of(Explains(), k=2, show="absolute", budget=7)
    assert (asked.k, asked.show, asked.remaining) == (2, "absolute", 7)
    np.testing.assert_array_equal(asked.ask(QUERIES).shown, TOP)
    plain = LocalOracle.of(Explains())
    assert (plain.k, plain.show, plain.remaining) == (5, "signed", None)
