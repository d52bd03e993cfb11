from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leakscope.errors import InputError
from leakscope.extractions import InfluenceGraph

GOLDEN = [[1, 2], [2, 0], [0, 1], [0, 4], [3, 0], [5, 0], [0, 3], [6, 1]]


def random_graph(n: int, k: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    # A few popular records, as in real ones.
    weights = rng.pareto(0.7, size=n) + 0.01
    return np.stack(
        [rng.choice(n, size=k, replace=False, p=weights / weights.sum()) for _ in range(n)]
    )


def seen_from(neighbours: np.ndarray, start: int) -> set[int]:
    seen, waiting = {start}, [start]
    while waiting:
        new = set(neighbours[waiting.pop()].tolist()) - seen
        seen |= new
        waiting += new
    return seen


def slow_omniscient(neighbours: np.ndarray, start: int) -> int:
    known, queries = {start}, 0
    while True:
        gains = {one: len(set(neighbours[one].tolist()) - known) for one in sorted(known)}
        best = max(gains, key=lambda one: gains[one])
        if not gains[best]:
            return queries
        known |= set(neighbours[best].tolist())
        queries += 1


def test_the_graph_whose_figures_are_known() -> None:
    graph = InfluenceGraph.of(GOLDEN)
    assert graph.table() == {
        "scc": 5,
        "scc_size_1": 3,
        "largest_scc": 3,
        "max_in_degree": 6,
        "in_degree_0": 1,
    }
    np.testing.assert_array_equal(graph.reach, [3, 3, 3, 5, 5, 4, 6, 7])
    # 5 shows itself; nothing that 6 leads to shows 6, nor 7.
    np.testing.assert_array_equal(graph.shown, [3, 3, 3, 5, 5, 4, 5, 6])
    np.testing.assert_array_equal(graph.component_sizes, [3, 2, 1, 1, 1])
    np.testing.assert_array_equal(graph.in_degrees, [6, 3, 2, 2, 1, 1, 1, 0])


@pytest.mark.parametrize("seed", range(5))
def test_figures_agree_with_walking_from_every_record(seed: int) -> None:
    neighbours = random_graph(40, 3, seed)
    graph = InfluenceGraph.of(neighbours)
    seen = [seen_from(neighbours, start) for start in range(40)]
    np.testing.assert_array_equal(graph.reach, [len(one) for one in seen])
    shown = [set().union(*(neighbours[one].tolist() for one in from_here)) for from_here in seen]
    np.testing.assert_array_equal(graph.shown, [len(one) for one in shown])
    mutual = {frozenset(b for b in seen[a] if a in seen[b]) for a in range(40)}
    np.testing.assert_array_equal(graph.component_sizes, sorted(map(len, mutual), reverse=True))
    for start in range(0, 40, 5):
        assert graph.omniscient_queries(start) == slow_omniscient(neighbours, start)


@pytest.mark.parametrize("seed", range(3))
def test_edges_that_lead_nowhere_count_for_nothing(seed: int) -> None:
    neighbours = random_graph(40, 3, seed)
    neighbours[np.random.default_rng(seed).random(size=(40, 3)) < 0.4] = -1
    graph = InfluenceGraph.of(neighbours)
    lists = [set(row.tolist()) - {-1} for row in neighbours]
    degrees = [sum(record in one for one in lists) for record in range(40)]
    np.testing.assert_array_equal(graph.in_degrees, degrees)
    for start in range(40):
        seen, waiting = {start}, [start]
        while waiting:
            new = lists[waiting.pop()] - seen
            seen |= new
            waiting += new
        assert graph.reach[start] == len(seen)
    known, queries = {0}, 0
    while gains := {one: len(lists[one] - known) for one in sorted(known) if lists[one] - known}:
        known |= lists[max(gains, key=lambda one: gains[one])]
        queries += 1
    assert graph.omniscient_queries(0) == queries
    assert InfluenceGraph.of([[-1], [-1]]).table()["scc"] == 2


def test_one_who_knows_the_graph_asks_only_where_there_is_something_new() -> None:
    # From 0 a chain to a hub: 1 leads nowhere new, 2 to the hub, and the hub to all others.
    graph = InfluenceGraph.of([[1, 2], [0, 2], [1, 3], [4, 5], [3, 5], [3, 4]])
    assert graph.omniscient_queries(0) == 3
    assert graph.omniscient_queries(4) == 1
    assert InfluenceGraph.of([[0], [0]]).omniscient_queries(0) == 0
    with pytest.raises(InputError, match="start must be a whole number from 0 to 5, got 6"):
        graph.omniscient_queries(6)


@pytest.mark.parametrize(
    ("neighbours", "message"),
    [
        ([0, 1], r"shape \(n, k\), got int64 \(2,\)"),
        ([[0.5], [1.0]], "whole numbers of shape"),
        ([[0], [2]], "not one of the 2 records"),
        ([[0], [-2]], "not one of the 2 records"),
    ],
)
def test_what_is_no_graph_is_refused(neighbours: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        InfluenceGraph.of(neighbours)
