"""An oracle behind a real server: extractions read as much out of it as out of a local one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from leakscope.channels.influence import ExactInfluence
from leakscope.channels.oracle import LocalOracle
from leakscope.channels.remote import RemoteOracle
from leakscope.errors import InputError, ModelError, OracleBudgetError
from leakscope.exact import leave_one_out
from leakscope.extractions import Reconstruction, StaticQueries
from leakscope.protocols import Oracle
from serving import Answer, Served, as_json, serving

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 4))
Y = (X[:, 0] + RNG.normal(size=40) > 0).astype(int)
QUERIES = RNG.normal(size=(9, 4))
EXPLAINER = ExactInfluence(leave_one_out(X, Y, l2=1.0), Y)


def local(k: int, **options: Any) -> LocalOracle:
    return LocalOracle.of(EXPLAINER, k=k, **options)


def explaining(k: int, numbered: bool = False) -> Answer:
    """A service that shows the k records of largest influence."""

    def answer(asked: Any, _: int) -> Any:
        told = local(k).ask(np.array(asked["instances"]))
        explanations = [
            [
                {"features": X[i].tolist(), "label": int(Y[i]), "influence": float(value)}
                | ({"id": int(i)} if numbered else {})
                for i, value in zip(rows, values, strict=True)
            ]
            for rows, values in zip(told.shown, told.values, strict=True)
        ]
        return as_json({"predictions": told.predictions.tolist(), "explanations": explanations})

    return answer


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(explaining(3)) as one:
        yield one


@pytest.mark.parametrize("show", ["signed", "absolute", "records"])
def test_it_answers_as_a_local_one(served: Served, show: Any) -> None:
    remote: Oracle = RemoteOracle(served.url, width=4, k=3, show=show, batch_size=4)
    found, expected = remote.ask(QUERIES), local(3, show=show).ask(QUERIES)
    np.testing.assert_allclose(found.predictions, expected.predictions, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.features, expected.features)
    np.testing.assert_array_equal(found.labels, expected.labels)
    if show == "records":
        assert found.values is None
    else:
        np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-12)
    # The numbers are its own, in the order in which records came up.
    same = {}
    for mine, theirs in zip(found.shown.ravel(), expected.shown.ravel(), strict=True):
        assert same.setdefault(int(theirs), int(mine)) == mine
    assert sorted(same.values()) == list(range(len(same)))
    assert [len(body["instances"]) for body in served.bodies] == [4, 4, 1]


def test_the_log_is_that_of_a_local_one(served: Served) -> None:
    remote, beside = RemoteOracle(served.url, width=4, k=3), local(3)
    for part in (QUERIES[:5], QUERIES[5:]):
        remote.ask(part)
        beside.ask(part)
    assert remote.log.queries == 9
    np.testing.assert_array_equal(remote.log.first, beside.log.first)
    np.testing.assert_array_equal(remote.log.shown, np.arange(len(beside.log.shown)))


def test_reconstruction_reads_records_out_of_it() -> None:
    with serving(explaining(1)) as served:
        remote = RemoteOracle(served.url, width=4, k=1, budget=5000)
        told = Reconstruction().run(remote)
    beside = Reconstruction().run(local(1, budget=5000))
    assert told.recovered == beside.recovered == 5  # as many as features, and one
    assert told.queries == beside.queries == remote.spent.records
    assert remote.remaining == 5000 - told.queries


def test_an_extraction_stops_with_what_it_has_when_the_budget_is_spent(served: Served) -> None:
    remote = RemoteOracle(served.url, width=4, k=3, budget=6)
    told = StaticQueries(QUERIES).run(remote)
    assert told.queries == 6
    assert told.recovered == len(remote.log.shown) > 0
    with pytest.raises(OracleBudgetError, match="asked about 6 of the 6 records"):
        remote.ask(QUERIES[:1])


@pytest.mark.parametrize("numbered", [False, True])
def test_equal_records_are_told_apart_by_an_id_alone(numbered: bool) -> None:
    def answer(asked: Any, _: int) -> Any:
        twins = [
            {"features": [1.0], "label": "a", "influence": 0.5} | ({"id": one} if numbered else {})
            for one in ("first", "second")
        ]
        return as_json({"predictions": [[0.5, 0.5]] * 2, "explanations": [[twins[0]], [twins[1]]]})

    with serving(answer) as served:
        told = RemoteOracle(served.url, width=1, k=2).ask(np.array([[0.0], [1.0]]))
    assert told.shown.tolist() == ([[0, -1], [1, -1]] if numbered else [[0, -1], [0, -1]])
    assert told.labels.tolist() == [["a", ""], ["a", ""]]
    assert told.values is not None
    assert told.values.tolist() == [[0.5, 0.0], [0.5, 0.0]]
    assert told.features[:, :, 0].tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert told.predictions.shape == (2, 2)


def test_nothing_may_be_asked_and_nothing_shown() -> None:
    with serving(lambda *_: as_json({"predictions": [0.5], "explanations": [[]]})) as served:
        remote = RemoteOracle(served.url, width=1, k=2)
        told = remote.ask(np.array([[0.0]]))
        assert remote.ask(np.empty((0, 1))).shown.shape == (0, 2)
    assert told.shown.tolist() == [[-1, -1]]
    assert len(served.bodies) == 1


GOOD = {"features": [1.0, 2.0], "label": 1, "influence": 0.25}


@pytest.mark.parametrize(
    ("predictions", "explanation", "sentence"),
    [
        (["x"], [GOOD], 'answered "x" for a query'),
        ([[[0.5]]], [GOOD], "answered [[0.5]] for a query"),
        ([0.5], {}, "not a list of at most 2 records; give k as many as it shows"),
        ([0.5], [GOOD | {"id": i} for i in range(3)], "not a list of at most 2 records"),
        ([0.5], [GOOD, GOOD], "showed a record twice"),
        ([0.5], ["x"], 'showed "x" for a record, where an object with 2 features'),
        ([0.5], [GOOD | {"features": [1.0]}], "an object with 2 features, a label and its infl"),
        ([0.5], [GOOD | {"features": [1.0, "2"]}], "an object with 2 features"),
        ([0.5], [GOOD | {"features": "ab"}], "an object with 2 features"),
        ([0.5], [GOOD | {"label": None}], "a label"),
        ([0.5], [GOOD | {"influence": None}], "and its influence is needed"),
        ([0.5], [GOOD | {"influence": True}], "and its influence is needed"),
    ],
)
def test_a_service_that_answers_nonsense_is_refused(
    predictions: Any, explanation: Any, sentence: str
) -> None:
    reply = as_json({"predictions": predictions, "explanations": [explanation]})
    with serving(lambda *_: reply) as served, pytest.raises(ModelError) as caught:
        RemoteOracle(served.url, width=2, k=2).ask(np.zeros((1, 2)))
    assert sentence in str(caught.value)


def test_predictions_of_unequal_length_are_refused() -> None:
    reply = as_json({"predictions": [[0.5], [0.1, 0.2]], "explanations": [[], []]})
    with serving(lambda *_: reply) as served, pytest.raises(ModelError, match="for a query"):
        RemoteOracle(served.url, width=1).ask(np.zeros((2, 1)))


@pytest.mark.parametrize("queries", [np.zeros(2), np.zeros((1, 3)), np.array([[0.0, np.nan]])])
def test_wrong_queries_are_refused(queries: np.ndarray) -> None:
    remote = RemoteOracle("http://127.0.0.1:1/", width=2)
    with pytest.raises(InputError, match=r"finite numbers of shape \(q, 2\)"):
        remote.ask(queries)
    assert remote.log.queries == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"width": 0}, "option width"),
        ({"width": 2, "k": 0}, "option k"),
        ({"width": 2, "show": "sighned"}, "did you mean 'signed'"),
        ({"width": 2, "budget": -1}, "option budget"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        RemoteOracle("http://127.0.0.1:1/", **options)
