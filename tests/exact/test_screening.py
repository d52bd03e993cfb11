from __future__ import annotations

import numpy as np
import pytest

import leakscope.exact.influence as module
from leakscope.exact import leave_one_out
from leakscope.exact.screening import Screen

RNG = np.random.default_rng(0)
X = np.maximum(RNG.normal(size=(120, 40)), 0.0)
Y = (X[:, 0] + RNG.normal(size=120) > 0.5).astype(int)
QUERIES = np.concatenate(
    [
        RNG.normal(size=(60, 40)),
        X,
        1e4 * RNG.normal(size=(10, 40)),  # sure predictions, whose influence rounds to 0
        1e-6 * RNG.normal(size=(10, 40)),
        np.zeros((1, 40)),
    ]
)


@pytest.mark.parametrize("measure", ["probability", "log-loss"])
@pytest.mark.parametrize("k", [1, 5, 59])
def test_explanations_are_those_of_double_precision(
    monkeypatch: pytest.MonkeyPatch, k: int, measure: str
) -> None:
    expected = leave_one_out(X, Y).explain(QUERIES, k, measure)
    monkeypatch.setattr(module, "_WIDE", 1)
    models = leave_one_out(X, Y)
    assert models._screen is not None
    shown, values = models.explain(QUERIES, k, measure)
    np.testing.assert_array_equal(shown, expected[0])
    np.testing.assert_allclose(values, expected[1], rtol=1e-9, atol=1e-15)


def test_records_that_are_the_same_or_few_are_not_screened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WIDE", 1)
    twice = leave_one_out(np.concatenate([X, X[:1]]), np.append(Y, Y[0]))
    assert twice._screen is None
    models = leave_one_out(X, Y)
    everyone, _ = models.explain(QUERIES[:3], len(X))
    np.testing.assert_array_equal(np.sort(everyone, axis=1)[0], np.arange(len(X)))


def test_nobody_near_an_end_is_left_out_and_few_others_are_let_in() -> None:
    weights, intercepts = RNG.normal(size=(200, 30)), RNG.normal(size=200)
    # Records so alike that single precision cannot tell them apart.
    weights[1:6] = weights[0] + 1e-9 * RNG.normal(size=(5, 30))
    intercepts[1:6] = intercepts[0]
    screen = Screen.of(weights, intercepts)
    queries = np.concatenate([RNG.normal(size=(50, 30)), 10.0 * weights[:1]])
    exact = queries @ weights.T + intercepts
    rows, records = screen.pairs(queries, 3)
    assert len(rows) < 12 * len(queries)
    for row in range(len(queries)):
        order = np.argsort(exact[row])
        assert {*order[:3], *order[-3:]} <= set(records[rows == row])
    assert set(range(6)) <= set(records[rows == 50])
    np.testing.assert_allclose(screen.changes(queries, rows, records), exact[rows, records])


def test_queries_beyond_single_precision_are_compared_with_every_record() -> None:
    screen = Screen.of(X, np.zeros(len(X)))
    rows, _ = screen.pairs(np.array([np.full(40, 1e60), np.full(40, 1.0)]), 1)
    assert np.bincount(rows)[0] == len(X)
    assert np.bincount(rows)[1] < 5
