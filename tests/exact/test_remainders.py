from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import leakscope.exact.designs as module
from leakscope.exact.designs import Dense, Sparse
from leakscope.exact.families import Binomial, Family, Gaussian, Multinomial
from leakscope.exact.leaving_out import Task
from leakscope.exact.newton import Minimum
from leakscope.exact.penalized import Regression
from leakscope.exact.remainders import Remainders

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3)) + 2.0
WEIGHTS = RNG.uniform(0.0, 2.0, size=20)
CASES: list[tuple[Family, np.ndarray]] = [
    (Binomial(), np.arange(20) % 2),
    (Multinomial(4), np.arange(20) % 4),
    (Gaussian(), X[:, 0] + RNG.normal(size=20)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].name)
def test_remainders_are_gradients_beyond_first_order(
    case: tuple[Family, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    family, targets = case
    regression = Regression.of(family, X, targets, WEIGHTS, 0.7)
    monkeypatch.setattr(module, "BLOCK", 1)  # many blocks of 16 records
    shape = (regression.design.shape[1], regression.basis.shape[1])
    model = np.random.default_rng(1).normal(size=shape)
    changes = 0.3 * np.random.default_rng(2).normal(size=(*shape, 3)).astype(np.float32)
    records = np.array([4, 0, 19])
    found = Remainders.around(regression, model).of(changes, records)
    assert found.dtype == np.float32
    for column, record in enumerate(records):
        weights = WEIGHTS.copy()
        weights[record] = 0.0
        ends = np.stack([model, model + changes[..., column]], axis=2)
        before, after = np.moveaxis(regression.gradients(ends, weights), 2, 0)
        linear = regression.hessian(model, weights) @ changes[..., column].ravel()
        expected = after - before - linear.reshape(model.shape)
        np.testing.assert_allclose(found[..., column], expected, atol=2e-5)


def table(l2: float, scale: float = 1.0) -> tuple[Regression, Minimum]:
    """Of records with two kinds of categories that tell one another's intercept, turned."""
    rng = np.random.default_rng(3)
    kinds = np.column_stack([np.eye(8)[rng.integers(8, size=400)] for _ in range(4)])
    y = (kinds @ rng.normal(size=32) + rng.logistic(size=400) > 0).astype(int)
    return Task.of(scale * kinds, y, l2, "auto", None).turned


def test_a_sparse_table_is_used_where_it_keeps_the_digits() -> None:
    regression, full = table(1.0)
    sparse = Remainders.around(regression, full.model)
    assert isinstance(sparse.design, Sparse)
    dense = Remainders.around(replace(regression, factored=None), full.model)
    assert isinstance(dense.design, Dense)
    shape = (*full.model.shape, 20)
    changes = 0.1 * np.random.default_rng(4).normal(size=shape).astype(np.float32)
    found, expected = (one.of(changes, np.arange(20)) for one in (sparse, dense))
    assert np.linalg.norm(found - expected) < 1e-6 * np.linalg.norm(expected)


@pytest.mark.parametrize(("l2", "scale"), [(1e-5, 1.0), (1e-60, 1e-30), (1e60, 1e30)])
def test_a_sparse_table_that_would_lose_digits_is_not(l2: float, scale: float) -> None:
    regression, full = table(l2, scale)
    assert regression.factored is not None
    assert isinstance(Remainders.around(regression, full.model).design, Dense)
