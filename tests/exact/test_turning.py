from __future__ import annotations

import numpy as np
import pytest

from leakscope.exact.families import Binomial, Family, Multinomial
from leakscope.exact.newton import Minimum, minimum
from leakscope.exact.penalized import Regression
from leakscope.exact.turning import turned

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * [1e-3, 1.0, 10.0, 1e3] + 2.0
WEIGHTS = RNG.uniform(0.5, 2.0, size=60)
NOISY = X[:, 1] + RNG.normal(size=60)
CASES: list[tuple[Family, np.ndarray]] = [
    (Binomial(), (NOISY > 2).astype(int)),
    (Multinomial(3), np.digitize(NOISY, [1.5, 2.5])),
]


@pytest.fixture(params=CASES, ids=lambda case: case[0].name)
def found(request: pytest.FixtureRequest) -> tuple[Regression, Minimum]:
    family, y = request.param
    regression = Regression.of(family, X, y, WEIGHTS, 0.5)
    full = minimum(regression, WEIGHTS)
    assert full is not None
    return regression, full


def test_the_curvature_is_the_unit_matrix_in_the_mean(found: tuple[Regression, Minimum]) -> None:
    regression, full = turned(*found)
    width, free = full.model.shape
    curvature = regression.hessian(full.model, WEIGHTS)
    parts = curvature.reshape(width, free, width, free)
    mean = np.einsum("dkek->de", parts) / free
    np.testing.assert_allclose(mean, np.eye(width), atol=1e-9)
    assert (full.factor is None) == (full.inverse is None) == (free == 1)
    known = 1.0 if free == 1 else np.linalg.cond(curvature, 1)
    assert known / 3 < full.condition < 1.01 * known  # LAPACK finds it without the inverse
    assert full.doubt >= 2e-16 * full.condition
    some = RNG.normal(size=(width, free, 3))
    solved = np.linalg.solve(curvature, some.reshape(width * free, 3)).reshape(some.shape)
    np.testing.assert_allclose(full.solve(some), solved, atol=1e-8)


def test_the_model_is_the_same_for_whoever_uses_it(found: tuple[Regression, Minimum]) -> None:
    regression, full = turned(*found)
    before, now = (
        one.parameters(optimum.model[..., None]) for one, optimum in (found, (regression, full))
    )
    np.testing.assert_allclose(now, before, rtol=1e-9)
    logits = regression.design @ full.model
    np.testing.assert_allclose(logits, found[0].design @ found[1].model, atol=1e-10)


def test_the_sum_and_its_derivatives_are_the_same_function(
    found: tuple[Regression, Minimum],
) -> None:
    regression, full = turned(*found)
    assert regression.turn is not None
    models = full.model[..., None] + 0.1 * RNG.normal(size=(*full.model.shape, 2))
    as_before = np.tensordot(regression.turn, models, 1)
    for column in range(2):
        one, other = models[..., column], as_before[..., column]
        expected = found[0].objective(other, WEIGHTS)
        assert regression.objective(one, WEIGHTS) == pytest.approx(expected, rel=1e-12)
    gradients = found[0].gradients(as_before, WEIGHTS)
    expected = np.tensordot(regression.turn.T, gradients, 1)
    np.testing.assert_allclose(regression.gradients(models, WEIGHTS), expected, atol=1e-8)
    each = np.kron(regression.turn, np.eye(full.model.shape[1]))
    flat = each.T @ found[0].flat_hessian(WEIGHTS) @ each
    np.testing.assert_allclose(regression.flat_hessian(WEIGHTS), flat, atol=1e-8)
    sizes = regression.magnitudes(full.model, WEIGHTS)
    assert (sizes >= np.abs(regression.gradients(full.model[..., None], WEIGHTS)[..., 0])).all()
