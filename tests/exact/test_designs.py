from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leakscope.exact.designs as module
from leakscope.exact.designs import Dense, Design, Sparse, factored, spans, sums
from leakscope.protocols import Floats

RECORDS, OUTPUTS, MODELS = 700, 2, 40


def table(rng: np.random.Generator, records: int = RECORDS) -> Floats:
    """Categories, a number that is mostly the same and one that is not, centred; an intercept."""
    kinds = [np.eye(k)[rng.choice(k, records, p=rng.dirichlet(np.ones(k)))] for k in (9, 14, 17)]
    mostly = np.where(rng.random(records) < 0.1, rng.normal(size=records), 7.0)
    features = np.column_stack([*kinds, mostly, rng.normal(size=records)])
    return np.column_stack([features - features.mean(axis=0), np.ones(records)])


def matrix(sparse: Sparse[Any]) -> Floats:
    """The matrix of mostly zeros, (n, S)."""
    zeros, others = sparse.rows
    return np.column_stack([zeros.toarray(), others])


def mirrored(design: Floats) -> Floats:
    signs = np.where(np.random.default_rng(7).random(len(design)) < 0.5, 1.0, -1.0)
    return design * signs[:, None]


@pytest.mark.parametrize("change", [lambda rows: rows, mirrored], ids=["upright", "mirrored"])
def test_a_table_of_categories_is_a_sparse_matrix_and_its_lead(change: Any) -> None:
    design = change(table(np.random.default_rng(1)))
    sparse = factored(design)
    assert sparse is not None
    np.testing.assert_allclose(matrix(sparse) @ sparse.lead, design, atol=1e-13)
    assert sparse.rows[0].nnz < 5 * len(design)  # of 41: three categories, an amount
    assert sparse.rows[1].shape == (len(design), 2)  # a number, the intercept
    lengths = np.random.default_rng(3).uniform(size=len(sparse.lead))
    np.testing.assert_allclose(sparse.squared(lengths), matrix(sparse) ** 2 @ lengths, rtol=1e-12)
    turn = np.random.default_rng(2).normal(size=(design.shape[1],) * 2)
    there = sparse.turned(turn)
    np.testing.assert_allclose(matrix(there) @ there.lead, design @ turn, atol=1e-12)


def test_other_numbers_stay_dense() -> None:
    rng = np.random.default_rng(0)
    assert factored(np.column_stack([rng.normal(size=(60, 8)), np.ones(60)])) is None
    assert factored(np.ones((60, 1))) is None  # an intercept alone
    half = np.column_stack([np.eye(2)[rng.integers(2, size=(60, 6))].reshape(60, -1), np.ones(60)])
    assert factored(half) is None  # half of each is not mostly the other half


def test_few_records_stay_dense() -> None:
    design = table(np.random.default_rng(1))
    assert factored(design[: 4 * design.shape[1]]) is not None
    assert factored(design[: 4 * design.shape[1] - 1]) is None


def test_a_sample_that_misleads_costs_speed_alone() -> None:
    design = table(np.random.default_rng(1), 1000)
    step = slice(None, None, 1000 // 64)
    design[step, :-1] = 5.0  # common there, and nowhere else
    assert factored(design) is None


def slow(rows: Floats, weighted: Floats, models: Floats, without: np.ndarray) -> Floats:
    """The sums by a loop over models: of weighted rows times the squares of logits."""
    found = np.zeros_like(models)
    for column in range(models.shape[2]):
        squares = (rows @ models[..., column]) ** 2
        squares[without[column]] = 0.0
        found[..., column] = weighted.T @ squares
    return found


def square(rows: slice, logits: np.ndarray, *spare: np.ndarray) -> np.ndarray:
    assert len(logits) == rows.stop - rows.start
    assert all(one.shape == logits.shape for one in spare)
    return np.multiply(logits, logits, out=spare[0]) if spare else logits**2


def both(dtype: Any) -> tuple[list[Design[Any]], Floats, Floats]:
    """The same design, dense and sparse, and its rows, weighted and not, in double precision."""
    design = mirrored(table(np.random.default_rng(1)))
    weights, unit = np.random.default_rng(2).uniform(size=len(design)), 3.0
    turn = np.random.default_rng(3).normal(size=(design.shape[1], 12))
    sparse = factored(design)
    assert sparse is not None
    if dtype == np.float64:
        rows = design @ turn
        return [Dense(rows, rows), sparse.turned(turn)], rows, rows
    rows, weighted = design @ turn / unit, weights[:, None] * (design @ turn)
    dense = Dense(rows.astype(dtype), weighted.astype(dtype))
    return [dense, sparse.turned(turn).single(weights, unit)], rows, weighted


@pytest.mark.parametrize("spare", [0, 1])
@pytest.mark.parametrize("blocks", [True, False], ids=["blocks", "whole"])
@pytest.mark.parametrize(("dtype", "digits"), [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_sums_are_those_of_a_loop(
    dtype: Any, digits: float, blocks: bool, spare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if blocks:
        monkeypatch.setattr(module, "BLOCK", 1)  # 16 records and models at a time
        monkeypatch.setattr(module, "ABREAST", 1)
    designs, rows, weighted = both(dtype)
    models = np.random.default_rng(4).normal(size=(rows.shape[1], OUTPUTS, MODELS)).astype(dtype)
    without = np.random.default_rng(5).choice(RECORDS, MODELS)
    expected = slow(rows, weighted, models.astype(np.float64), without)
    for design in designs:
        found = sums(design, models, square, without, spare)
        assert found.dtype == dtype
        error = np.abs(found - expected).max(axis=(0, 1)) / np.abs(expected).max(axis=(0, 1))
        assert error.max() < digits


def test_many_rows_are_added_up_in_groups_where_digits_are_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    design = np.repeat(table(np.random.default_rng(1)), 20, axis=0)
    sparse = factored(design)
    assert sparse is not None
    residuals = np.random.default_rng(6).uniform(size=(len(design), 30))
    exact = sparse.rows[0].T @ residuals

    def error() -> float:
        single = sparse.single(np.ones(len(design)), 1.0)
        found = np.zeros((len(single.lead), 30), dtype=np.float32)
        single.gather(slice(0, len(design)), residuals.astype(np.float32), found)
        return float(np.abs(found[: len(exact)] - exact).max() / np.abs(exact).max())

    grouped = error()
    monkeypatch.setattr(module, "_IN_A_ROW", len(design))
    assert grouped < error() / 2


def test_a_lead_is_not_rounded() -> None:
    """What all records are off by would not average out."""
    design = table(np.random.default_rng(1))
    sparse = factored(design)
    assert sparse is not None
    turned = sparse.turned(np.random.default_rng(2).normal(size=(design.shape[1],) * 2))
    single = turned.single(np.ones(RECORDS), 1.0)
    rng = np.random.default_rng(3)
    models = rng.normal(size=(design.shape[1], 1, 9)).astype(np.float32)
    rounded = np.abs(turned.lead @ models[:, 0].astype(np.float64) - single.inward(models)[:, 0])
    sizes = np.abs(turned.lead @ models[:, 0].astype(np.float64))
    assert (rounded <= 6e-8 * sizes).all()  # half a digit of each, once


@pytest.mark.parametrize(("count", "most"), [(0, 20), (1, 20), (20, 20), (21, 20), (50, 1)])
def test_spans_cover_everything_once_and_the_last_is_the_longest(count: int, most: int) -> None:
    found = spans(count, most)
    assert [i for span in found for i in range(span.start, span.stop)] == list(range(count))
    lengths = [span.stop - span.start for span in found]
    assert max(lengths) == lengths[-1] <= max(16, most)
    assert max(lengths) - min(lengths) <= 1


def test_blocks_of_a_sparse_matrix_are_cut_out_once() -> None:
    sparse = factored(table(np.random.default_rng(1)))
    assert isinstance(sparse, Sparse)
    blocks = sparse.spans(1000)
    assert len(blocks) == 8  # a power of two of them, with 2^17 logits at the most
    assert sparse.spans(10) == [slice(0, RECORDS)]
    assert len(factored(np.repeat(table(np.random.default_rng(1)), 7, axis=0)).spans(1)) == 4
    assert sparse._block(blocks[0])[0] is sparse._block(blocks[0])[0]
