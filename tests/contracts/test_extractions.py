"""What every registered extraction must hold to."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from scipy.special import expit

from leakscope.channels.oracle import LocalOracle
from leakscope.protocols import Answers, Log
from leakscope.registry import entries, lookup

EXTRACTIONS = [entry.thing for entry in entries("extraction")]
N, D = 60, 5

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(N, D)), rng.integers(2, size=N)
OTHERS = rng.normal(size=(20, D))
# A logistic model and, for each record, the one without it.
WEIGHTS = rng.normal(size=D + 1) / 2
GAPS = rng.normal(size=(N, D + 1)) / 30


def predict(Q):
    return expit(Q @ WEIGHTS[:-1] + WEIGHTS[-1])


def explain(Q, k):
    logits = (Q @ WEIGHTS[:-1] + WEIGHTS[-1])[:, None]
    rise = expit(logits + Q @ GAPS[:, :-1].T + GAPS[:, -1]) - expit(logits)
    influence = np.where(logits > 0, -rise, rise)
    order = np.argsort(-np.abs(influence), axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(influence, order, axis=1)


def oracle(**options):
    return LocalOracle(predict, explain, X, Y, **{"k": 3, **options})


class Renumbered:
    """The same oracle with other numbers for its records."""

    def __init__(self, inner, numbers):
        self.inner, self.numbers = inner, numbers

    def __getattr__(self, name):
        return getattr(self.inner, name)

    @property
    def log(self):
        log = self.inner.log
        return Log(log.queries, self.numbers[log.shown], log.first)

    def ask(self, X):
        told = self.inner.ask(X)
        shown = self.numbers[told.shown]
        return Answers(told.predictions, shown, told.features, told.labels, told.values)


@pytest.fixture(params=EXTRACTIONS, ids=lambda thing: thing.name)
def extraction(request):
    thing = request.param
    return thing(np.concatenate([X[:10], OTHERS])) if thing.holds else thing()


def test_says_what_it_is(extraction):
    assert extraction.paper
    assert lookup("extraction", extraction.name).thing is type(extraction)
    assert type(extraction).__doc__.partition("\n")[0].endswith(".")
    assert is_dataclass(extraction)
    assert extraction.holds == (fields(extraction)[0].name == "records")


@pytest.mark.parametrize("show", ["signed", "absolute", "records"])
@pytest.mark.parametrize("k", [1, 3])
def test_brings_back_what_the_log_holds_and_no_more(extraction, show, k):
    asked = oracle(show=show, k=k)
    told = extraction.run(asked)
    assert told.queries == asked.log.queries
    assert set(told.records) == set(asked.log.shown)
    np.testing.assert_array_equal(told.first, asked.log.first)
    assert 0 < told.recovered <= len(told.records)
    assert told.bound is None or told.recovered <= told.bound
    assert told.stopped
    assert (told.extraction, told.paper) == (extraction.name, extraction.paper)
    assert (told.k, told.show) == (k, show)


@pytest.mark.parametrize("budget", [0, 1, 7, 25])
def test_stops_with_what_it_has_when_the_budget_is_spent(extraction, budget):
    asked = oracle(budget=budget)
    told = extraction.run(asked)
    assert told.queries == asked.log.queries <= budget
    assert len(told.records) == len(asked.log.shown)
    assert "budget" in told.stopped


def test_a_disclosure_is_json(extraction):
    told = json.loads(json.dumps(extraction.run(oracle()).to_dict(), allow_nan=False))
    assert {"extraction", "recovered", "bound", "queries", "groups"} <= set(told)
    for group in told["groups"]:
        assert group["share"]["low"] <= group["share"]["value"] <= group["share"]["high"]


def test_the_same_again_gives_the_same(extraction):
    first, again = extraction.run(oracle()), extraction.run(oracle())
    assert first.to_dict() == again.to_dict()
    np.testing.assert_array_equal(first.records, again.records)


def test_the_numbers_of_records_mean_nothing(extraction):
    numbers = 1000 + 7 * np.random.default_rng(1).permutation(N)
    plain = extraction.run(oracle())
    other = extraction.run(Renumbered(oracle(), numbers))
    np.testing.assert_array_equal(other.records, numbers[plain.records])
    assert other.to_dict() == plain.to_dict()


def test_what_was_shown_to_somebody_else_is_not_its_own(extraction):
    asked = oracle()
    asked.ask(X)
    told = extraction.run(asked)
    assert told.to_dict() == extraction.run(oracle()).to_dict()
    assert len(told.records) <= len(asked.log.shown)


def shy(Q, k):
    """The same explanations, of which those of odd records are not shown, to some queries none."""
    order, values = explain(Q, k)
    hidden = (order % 2 == 1) | (Q[:, :1] > 0.8)
    return np.where(hidden, -1, order), np.where(hidden, 0.0, values)


class Garbled:
    """The same oracle with rubbish where no record is shown: the query as if it were one."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def ask(self, X):
        told = self.inner.ask(X)
        nothing = told.shown < 0
        features = np.where(nothing[..., None], X[:, None], told.features)
        values = None if told.values is None else np.where(nothing, 0.5, told.values)
        return Answers(told.predictions, told.shown, features, told.labels, values)


@pytest.mark.parametrize("show", ["signed", "absolute", "records"])
@pytest.mark.parametrize("k", [1, 3])
def test_nothing_counts_that_was_not_shown(extraction, show, k):
    asked = LocalOracle(predict, shy, X, Y, k=k, show=show)
    told = extraction.run(asked)
    assert told.queries == asked.log.queries
    assert set(told.records) == set(asked.log.shown)
    np.testing.assert_array_equal(told.first, asked.log.first)
    assert (told.records >= 0).all()
    assert (told.records % 2 == 0).all()
    assert told.recovered <= len(told.records)
    garbled = extraction.run(Garbled(LocalOracle(predict, shy, X, Y, k=k, show=show)))
    assert garbled.to_dict() == told.to_dict()


@pytest.mark.parametrize("show", ["signed", "records"])
def test_an_oracle_that_shows_nobody_gives_nothing_away(extraction, show):
    def nobody(Q, k):
        return np.full((len(Q), k), -1), np.zeros((len(Q), k))

    told = extraction.run(LocalOracle(predict, nobody, X, Y, k=3, show=show))
    assert (told.recovered, len(told.records)) == (0, 0)
    assert told.stopped
