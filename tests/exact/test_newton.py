from __future__ import annotations

import numpy as np
import pytest

import leakscope.exact.newton as module
from leakscope.exact.families import Binomial, Gaussian, Multinomial
from leakscope.exact.newton import Minimum, least_sharpness, minimum
from leakscope.exact.penalized import Regression

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
ONES = np.ones(50)


def logistic(l2: float = 1.0, scale: float = 1.0, classes: int = 2) -> Regression:
    y = np.digitize(X[:, 0] + 0.5 * RNG.normal(size=50), np.linspace(-1, 1, classes + 1)[1:-1])
    family = Binomial() if classes == 2 else Multinomial(classes)
    return Regression.of(family, X * scale, y, ONES, l2)


def found(regression: Regression, **given: np.ndarray) -> Minimum:
    result = minimum(regression, given.pop("weights", ONES), **given)
    assert result is not None
    return result


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_the_gradient_vanishes_at_the_minimum(classes: int, scale: float) -> None:
    regression = logistic(scale=scale, classes=classes)
    best = found(regression)
    gradient = regression.gradients(best.model[..., None], ONES)
    np.testing.assert_allclose(gradient, 0, atol=1e-10 * scale)
    # The factor is that of the curvature there, and solve applies its inverse.
    hessian = regression.hessian(best.model, ONES)
    vector = RNG.normal(size=(*best.model.shape, 2))
    product = (hessian @ vector.reshape(len(hessian), 2)).reshape(vector.shape)
    np.testing.assert_allclose(best.solve(product), vector, rtol=1e-6, atol=1e-6)
    again = best.inverse @ product.reshape(len(hessian), 2)
    np.testing.assert_allclose(again.reshape(vector.shape), vector, rtol=1e-5, atol=1e-5)


def test_far_starts_lead_to_the_same_minimum() -> None:
    """From logits of thousands the curvature is 0 but for the penalty: plain steps diverge."""
    regression = logistic(l2=1e-2)
    best = found(regression)
    again = found(regression, start=np.full(best.model.shape, 30.0))
    np.testing.assert_allclose(again.model, best.model, atol=1e-8)


def test_sharpness_is_the_least_curvature_relative_to_that_of_an_ignorant_model() -> None:
    regression = logistic()
    best = found(regression)
    logits = regression.design @ best.model[:, 0]
    spread = 1 / (2 + np.exp(logits) + np.exp(-logits))
    assert spread.min() / 0.25 < best.sharpness < spread.max() / 0.25
    flat = Regression.of(Gaussian(), X, X[:, 0], ONES, 1.0)
    assert found(flat).sharpness == pytest.approx(1.0)


def test_the_tolerance_grows_with_what_rounding_leaves() -> None:
    assert found(logistic()).tolerance == 1e-10
    huge = Regression.of(Gaussian(), X, 1e9 * X[:, 0] + X[:, 1] ** 2 * 1e9, ONES, 1.0)
    assert 1e-10 < found(huge).tolerance <= 1e-6


def test_there_is_no_minimum_where_classes_can_be_separated() -> None:
    y = (X[:, 0] > 0).astype(int)
    assert minimum(Regression.of(Binomial(), X, y, ONES, 0.0), ONES) is None
    assert minimum(Regression.of(Binomial(), X, y, ONES, 1e-15), ONES) is None
    assert minimum(Regression.of(Binomial(), X, y, ONES, 1e-4), ONES) is not None
    assert least_sharpness(0.0) > least_sharpness(1e-4)


def test_a_class_without_weight_has_no_minimum() -> None:
    regression = logistic()
    weights = (regression.targets == 0).astype(float)
    assert minimum(regression, weights) is None


def test_a_curvature_that_vanishes_in_a_direction_has_no_minimum() -> None:
    """Without the one record that has a feature, nothing says what its weight is."""
    features = np.column_stack([X, np.arange(50) == 3])
    regression = Regression.of(Gaussian(), features, X[:, 1], ONES, 0.0)
    weights = ONES.copy()
    weights[3] = 0.0
    assert minimum(regression, weights) is None
    assert module._sharpness(np.eye(2), np.zeros((2, 2))) == 0.0


def test_it_gives_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROUNDS", 2)
    assert minimum(logistic(), ONES) is None


def test_near_the_optimum_the_curvature_is_kept_and_that_of_the_optimum_is_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    regression = logistic()
    best = found(regression)
    assert best.factor is not None
    away = RNG.normal(size=best.model.shape)
    start = best.model + 5e-4 * away / np.linalg.norm(best.factor[0].T @ away)
    turns, hessian = list[int](), Regression.hessian

    def counted(self: Regression, *given: np.ndarray) -> np.ndarray:
        turns.append(len(turns))
        return hessian(self, *given)

    monkeypatch.setattr(Regression, "hessian", counted)
    again = found(regression, start=start)
    assert len(turns) == 2  # of the start and of the optimum
    np.testing.assert_allclose(again.model, best.model, rtol=0, atol=1e-14)
    assert again.factor is not None
    lower = np.linalg.cholesky(hessian(regression, again.model, ONES))
    np.testing.assert_allclose(np.tril(again.factor[0]), lower, rtol=0, atol=1e-12)
    monkeypatch.setattr(module, "_SETTLED", 0.0)
    found(regression, start=start)
    assert len(turns) == 2 + 3


def test_a_step_that_is_too_short_is_lengthened_and_saves_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where most is predicted surely, the curvature of where nothing is makes steps short."""
    rng = np.random.default_rng(5)
    features = rng.normal(size=(400, 3))
    y = (features @ [4.0, 3.0, 2.0] + 0.5 * rng.logistic(size=400) > 0).astype(int)
    regression = Regression.of(Binomial(), features, y, np.ones(400), 0.01)
    turns, hessian = list[int](), Regression.hessian

    def counted(self: Regression, *given: np.ndarray) -> np.ndarray:
        turns.append(len(turns))
        return hessian(self, *given)

    monkeypatch.setattr(Regression, "hessian", counted)
    longer = minimum(regression, np.ones(400))
    few = len(turns)
    monkeypatch.setattr(module, "_FAR", np.inf)
    plain = minimum(regression, np.ones(400))
    assert few < len(turns) - few
    assert longer is not None
    assert plain is not None
    np.testing.assert_allclose(longer.model, plain.model, rtol=1e-10)


def test_a_step_that_leads_up_is_not_taken() -> None:
    regression = logistic()
    model = np.zeros((4, 1))
    up = regression.gradients(model[..., None], ONES)[..., 0]
    value = regression.objective(model, ONES)
    stayed, same = module._descended(regression, ONES, model, value, 0.01 * up, 1e-3)
    assert (stayed == model).all()
    assert same == value
