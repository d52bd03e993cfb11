from __future__ import annotations

import numpy as np
import pytest

import leakscope.exact.influence as module
from leakscope.exact import LeaveOneOut, leave_one_out
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


@pytest.mark.parametrize("measure", ["probability", "log-loss"])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("far", [0.0, 3.0, 1e4])  # at 1e4 influence rounds to 0
@pytest.mark.parametrize("apart", [0.0, 1e-9, 1e-3, 0.01])
def test_queries_near_one_another_have_the_same_explanations_from_few_records(
    monkeypatch: pytest.MonkeyPatch, apart: float, far: float, k: int, measure: str
) -> None:
    queries = far * RNG.normal(size=40) + apart * RNG.normal(size=(50, 40))
    expected = leave_one_out(X, Y).explain(queries, k, measure)
    monkeypatch.setattr(module, "_WIDE", 1)
    monkeypatch.setattr(module, "_FEW", 2)
    monkeypatch.setattr(module, "_NUMBERS", 64)  # in several chunks
    monkeypatch.delattr(LeaveOneOut, "_screened")
    shown, values = leave_one_out(X, Y).explain(queries, k, measure)
    np.testing.assert_array_equal(shown, expected[0])
    np.testing.assert_allclose(values, expected[1], rtol=1e-9, atol=1e-15)


def test_no_queries_have_no_explanations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WIDE", 1)
    shown, values = leave_one_out(X, Y).explain(np.empty((0, 40)), 2)
    assert shown.shape == values.shape == (0, 2)


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


@pytest.mark.parametrize("k", [1, 3])
def test_the_rounding_of_long_queries_leaves_nobody_out(k: int) -> None:
    # Twenty records at each end that differ by less than the rounding of a long query's products.
    rng = np.random.default_rng(1)
    ahead = rng.normal(size=30)
    weights = np.concatenate([np.tile(ahead, (20, 1)), np.tile(-ahead, (20, 1))])
    weights += 1e-6 * rng.normal(size=weights.shape)
    queries = 1e4 * (ahead + 0.1 * rng.normal(size=(200, 30)))
    rows, records = Screen.of(weights, np.zeros(40)).pairs(queries, k)
    order = np.argsort(queries @ weights.T, axis=1)
    for row in range(len(queries)):
        assert {*order[row, :k], *order[row, -k:]} <= set(records[rows == row])


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("q", [1, 7, 100])
@pytest.mark.parametrize("apart", [0.0, 1e-6, 0.1, 1.0])
def test_the_candidates_are_whoever_is_at_an_end_of_any_query(apart: float, q: int, k: int) -> None:
    weights, intercepts = RNG.normal(size=(300, 30)), RNG.normal(size=300)
    weights[1:6], intercepts[1:6] = weights[0], intercepts[0]  # tied everywhere
    screen = Screen.of(weights, intercepts)
    queries = 5 * RNG.normal(size=30) + apart * RNG.normal(size=(q, 30)) / np.sqrt(30)
    few = screen.candidates(queries, k)
    assert (np.diff(few) > 0).all()
    order = np.argsort(queries @ weights.T + intercepts, axis=1)
    assert {*order[:, :k].ravel(), *order[:, -k:].ravel()} <= set(few)
    assert len(few) < 300
    assert len({*range(6)} & set(few)) in (0, 6)
    if apart < 1e-5:
        assert len(few) <= 2 * k + 5


def test_candidates_are_those_that_the_distance_allows() -> None:
    # At a query of 3 the changes are −6, −3, 0, 3, 6. A distance of r moves each by r times its
    # weight: at 0.1 the ends stay apart from the next, at 1.5 both may come to 4.5.
    screen = Screen.of(np.arange(-2.0, 3.0)[:, None], np.zeros(5))
    assert screen.candidates(np.array([[2.9], [3.1]]), 1).tolist() == [0, 4]
    assert screen.candidates(np.array([[1.5], [4.5]]), 1).tolist() == [0, 1, 3, 4]


def test_queries_too_large_for_any_bound_leave_nobody_out() -> None:
    screen = Screen.of(X, np.zeros(len(X)))
    for large in (1e200, 1e308):
        queries = np.array([np.full(40, large), np.full(40, 1.0), np.full(40, large)])
        assert len(screen.candidates(queries, 1)) == len(X)


def test_queries_beyond_single_precision_are_compared_with_every_record() -> None:
    screen = Screen.of(X, np.zeros(len(X)))
    rows, _ = screen.pairs(np.array([np.full(40, 1e60), np.full(40, 1.0)]), 1)
    assert np.bincount(rows)[0] == len(X)
    assert np.bincount(rows)[1] < 5
