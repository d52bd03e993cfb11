from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from leakscope.channels.oracle import LocalOracle
from leakscope.errors import InputError, OracleBudgetError
from leakscope.extractions import session as module
from leakscope.extractions.disclosure import Disclosure
from leakscope.extractions.session import Session, held_records
from leakscope.protocols import Extraction, Log, Oracle

RING = [[1, 2], [2, 3], [3, 4], [4, 0], [0, 1]]
Make = Callable[..., LocalOracle]


@dataclass(frozen=True)
class Mine(Extraction):
    name: ClassVar[str] = "mine"
    paper: ClassVar[str] = "Nobody 2020"

    def run(self, oracle: Oracle) -> Disclosure:
        return Session(oracle).disclose(self, stopped="at once")


def test_it_remembers_what_was_shown_and_when(one_to_one: Make) -> None:
    oracle = one_to_one(RING)
    oracle.ask(oracle.X[[4]])  # somebody else, before
    session = Session(oracle)
    session.ask(oracle.X[[0, 1]])
    session.ask(oracle.X[[0, 3]])
    told = session.disclose(Mine(), stopped="done")
    assert (told.queries, told.recovered, told.stopped) == (4, 5, "done")
    np.testing.assert_array_equal(told.records, [1, 2, 3, 4, 0])
    np.testing.assert_array_equal(told.first, [1, 1, 2, 4, 4])
    for number, features in session.features.items():
        np.testing.assert_array_equal(features, oracle.X[number])


def test_where_nothing_was_shown_there_is_nothing_to_remember(one_to_one: Make) -> None:
    oracle = one_to_one([[1, 2], [1, 2], [1, 2]])
    oracle.explain = lambda Q, k: (np.array([[-1, -1], [-1, 2]])[: len(Q)], np.zeros((len(Q), 2)))
    session = Session(oracle)
    session.ask(oracle.X[:1])
    session.ask(oracle.X[:2])
    assert list(session.features) == [2]
    told = session.disclose(Mine(), stopped="done")
    np.testing.assert_array_equal(told.first, [3])
    assert (told.queries, told.recovered) == (3, 1)


def test_only_what_was_shown_is_counted_whatever_is_claimed(one_to_one: Make) -> None:
    session = Session(one_to_one(RING))
    session.ask(session.oracle.ask(np.zeros((1, 2))).features[0, :1])
    assert session.disclose(Mine(), recovered=[2, 2, 4], stopped="").recovered == 1
    assert session.disclose(Mine(), recovered=[], stopped="").recovered == 0


def test_what_the_log_lacks_is_not_counted(one_to_one: Make) -> None:
    class Forgetful:
        """Its log says that record 2 was never shown."""

        def __init__(self, oracle: LocalOracle) -> None:
            self.oracle = oracle

        def __getattr__(self, name: str) -> Any:
            return getattr(self.oracle, name)

        @property
        def log(self) -> Log:
            log = self.oracle.log
            return Log(log.queries, log.shown[log.shown != 2], log.first[log.shown != 2])

    session = Session(Forgetful(one_to_one(RING)))
    session.ask(np.zeros((1, 2)))
    told = session.disclose(Mine(), stopped="")
    np.testing.assert_array_equal(told.records, [1])
    assert told.recovered == 1
    assert session.disclose(Mine(), recovered=[1, 2], stopped="").recovered == 1


def test_long_batches_are_asked_in_parts(one_to_one: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART", 2)
    session = Session(one_to_one(RING))
    parts = list(session.ask_in_parts(np.asarray(session.oracle.ask(np.zeros((1, 2))).features[0])))
    assert [len(part.shown) for part in parts] == [2]
    queries = np.column_stack([np.arange(5.0), np.arange(5.0) ** 2])
    parts = list(session.ask_in_parts(queries))
    np.testing.assert_array_equal(np.concatenate([part.shown for part in parts]), RING)
    assert [len(part.shown) for part in parts] == [2, 2, 1]
    assert list(session.ask_in_parts(queries[:0])) == []


@pytest.mark.parametrize("budget", [0, 1, 3, 4])
def test_the_last_part_is_what_the_budget_leaves(one_to_one: Make, budget: int) -> None:
    session = Session(one_to_one(RING, budget=budget))
    queries = np.column_stack([np.arange(5.0), np.arange(5.0) ** 2])
    with pytest.raises(OracleBudgetError):
        list(session.ask_in_parts(queries))
    assert session.queries == session.oracle.log.queries == budget


@pytest.mark.parametrize("held", [np.zeros(2), np.zeros((3, 1)), np.zeros((0, 2))])
def test_records_of_another_shape_are_refused(one_to_one: Make, held: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"shape \(m, 2\) with m of at least 1"):
        held_records(held, one_to_one(RING))
