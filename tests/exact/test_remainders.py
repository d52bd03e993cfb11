from __future__ import annotations

import numpy as np
import pytest

import leakscope.exact.penalized as module
from leakscope.exact.families import Binomial, Family, Gaussian, Multinomial
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
