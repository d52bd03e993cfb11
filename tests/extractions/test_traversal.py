from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.extractions import Traversal

Make = Callable[..., Any]
GRAPH = [[1, 2], [2, 0], [0, 1], [0, 4], [3, 0], [5, 0], [0, 3], [6, 1]]
ORDERS = ["breadth", "depth", "walk"]


def seen_from(neighbours: np.ndarray, start: int) -> set[int]:
    seen, waiting = {start}, [start]
    while waiting:
        new = set(neighbours[waiting.pop()].tolist()) - seen
        seen |= new
        waiting += new
    return seen


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("start", range(8))
def test_a_traversal_asks_once_about_all_it_can_reach(
    one_to_one: Make, order: Any, start: int
) -> None:
    oracle = one_to_one(GRAPH)
    told = Traversal(oracle.X[[start]], order).run(oracle)
    seen = seen_from(np.array(GRAPH), start)
    shown = set(np.array(GRAPH)[sorted(seen)].ravel().tolist())
    assert told.queries == len(seen)
    assert set(told.records.tolist()) == shown
    assert told.recovered == len(shown)
    assert told.details == {"order": order, "starts": 1}
    assert told.stopped == "every record that was shown had been asked about"


def test_the_orders_are_what_they_say(one_to_one: Make) -> None:
    tree = [[1, 2], [3, 4], [5, 6], [3, 0], [4, 0], [5, 0], [6, 0]]

    def asked(order: Any, seed: int = 0) -> list[int]:
        heard: list[int] = []
        oracle = one_to_one(tree)
        explain = oracle.explain
        oracle.explain = lambda Q, k: (heard.append(int(Q[0, 0])), explain(Q, k))[1]
        Traversal(oracle.X[:1], order, seed).run(oracle)
        return heard

    assert asked("breadth") == [0, 1, 2, 3, 4, 5, 6]
    assert asked("depth") == [0, 1, 3, 4, 2, 5, 6]
    walks = [tuple(asked("walk", seed)) for seed in range(40)]
    assert len(set(walks)) > 5
    for walk in walks:
        # After 1 comes 3 or 4, after 2 comes 5 or 6: a walk goes on from where it is.
        assert walk[0] == 0
        assert walk[2] in tree[walk[1]]
    assert asked("walk", 3) == list(walks[3])


def test_several_starts_see_what_each_of_them_sees(one_to_one: Make) -> None:
    oracle = one_to_one(GRAPH)
    told = Traversal(oracle.X[[0, 3, 0]]).run(oracle)
    assert set(told.records.tolist()) == {0, 1, 2, 3, 4}
    assert told.queries == 5
    assert told.details["starts"] == 3


def test_a_start_that_is_no_training_record_is_asked_about_first(problem: Make) -> None:
    made = problem(30, 3)
    told = Traversal(made.X[:1] + 0.1).run(made.oracle(k=2))
    neighbours = made.explain(made.X, 2)[0]
    first = made.explain(made.X[:1] + 0.1, 2)[0][0]
    seen = set[int]().union(*(seen_from(neighbours, int(one)) for one in first))
    assert set(told.records.tolist()) == seen
    assert told.queries == 1 + len(seen)


def test_equal_records_are_asked_about_once(one_to_one: Make) -> None:
    oracle = one_to_one([[1], [2], [1]])
    oracle.X[2] = oracle.X[1]
    told = Traversal(oracle.X[:1]).run(oracle)
    assert told.queries == 2
    assert set(told.records.tolist()) == {1, 2}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("budget", [0, 1, 4])
def test_it_stops_with_what_it_has(one_to_one: Make, order: Any, budget: int) -> None:
    oracle = one_to_one(GRAPH, budget=budget)
    told = Traversal(oracle.X[[7]], order).run(oracle)
    assert (told.queries, told.stopped) == (budget, "the budget of queries was spent")
    np.testing.assert_array_equal(told.records, oracle.log.shown)


def test_an_unknown_order_is_refused(one_to_one: Make) -> None:
    oracle = one_to_one(GRAPH)
    with pytest.raises(InputError, match="order cannot be 'deep'; did you mean 'depth'"):
        Traversal(oracle.X, "deep").run(oracle)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", ORDERS)
def test_where_nothing_is_shown_the_walk_ends(one_to_one: Make, order: Any) -> None:
    table = np.array([[1, -1], [-1, 2], [-1, -1], [0, 1]])
    oracle = one_to_one(table)
    told = Traversal(oracle.X[:1], order).run(oracle)
    assert told.queries == 3
    np.testing.assert_array_equal(told.records, [1, 2])
