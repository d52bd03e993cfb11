from __future__ import annotations

import numpy as np
import pytest

from leakscope.exact.families import Binomial, Family, Gaussian, Multinomial
from leakscope.exact.penalized import Regression

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3)) + 2.0
WEIGHTS = RNG.uniform(0.0, 2.0, size=20)
NUMBERS = X[:, 0] + RNG.normal(size=20)
CASES: list[tuple[Family, np.ndarray]] = [
    (Binomial(), np.arange(20) % 2),
    (Multinomial(4), np.arange(20) % 4),
    (Gaussian(), NUMBERS),
]


@pytest.fixture(params=CASES, ids=lambda case: case[0].name)
def regression(request: pytest.FixtureRequest) -> Regression:
    family, targets = request.param
    return Regression.of(family, X, targets, WEIGHTS, 0.7)


def models(regression: Regression, m: int) -> np.ndarray:
    shape = (regression.design.shape[1], regression.basis.shape[1], m)
    return np.random.default_rng(1).normal(size=shape)


def in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 16 records."""
    for module in ("designs", "penalized"):
        monkeypatch.setattr(f"leakscope.exact.{module}.BLOCK", 1)


def slopes(function: object, model: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Derivatives of a function of one model (D, K) by each of its numbers."""
    found = []
    for place in np.ndindex(model.shape):
        shift = np.zeros(model.shape)
        shift[place] = step
        ends = [np.asarray(function(model + sign * shift)) for sign in (1, -1)]  # type: ignore[operator]
        found.append((ends[0] - ends[1]) / (2 * step))
    return np.stack(found)


def test_gradients_and_hessians_are_derivatives_of_the_objective(
    regression: Regression, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = models(regression, 3)
    in_small_blocks(monkeypatch)
    gradients = regression.gradients(some, WEIGHTS)
    for column in range(3):
        model = some[..., column]
        expected = slopes(lambda theta: regression.objective(theta, WEIGHTS), model)
        np.testing.assert_allclose(gradients[..., column].ravel(), expected, atol=1e-6)
    expected = slopes(
        lambda theta: regression.gradients(theta[..., None], WEIGHTS).ravel(), some[..., 0]
    )
    np.testing.assert_allclose(regression.hessian(some[..., 0], WEIGHTS), expected, atol=1e-6)
    flat = regression.hessian(0 * some[..., 0], WEIGHTS)
    np.testing.assert_allclose(regression.flat_hessian(WEIGHTS), flat, atol=1e-12)


def test_what_one_record_adds_is_what_is_missing_without_it(
    regression: Regression, monkeypatch: pytest.MonkeyPatch
) -> None:
    some, records = models(regression, 3), np.array([4, 0, 19])
    own = regression.own_gradients(some, records)
    curvatures = regression.own_curvatures(some[..., 0], records)
    whole = regression.gradients(some, WEIGHTS)
    in_small_blocks(monkeypatch)
    less = regression.gradients(some, WEIGHTS, records)
    np.testing.assert_allclose(whole - own, less, atol=1e-12)
    for column, record in enumerate(records):
        weights = WEIGHTS.copy()
        weights[record] = 0.0
        left = regression.gradients(some[..., [column]], weights)[..., 0]
        np.testing.assert_allclose(whole[..., column] - own[..., column], left, atol=1e-12)
        row = regression.design[record]
        part = np.einsum("d,e,kl->dkel", row, row, curvatures[column])
        less = regression.hessian(some[..., 0], WEIGHTS) - regression.hessian(some[..., 0], weights)
        np.testing.assert_allclose(part.reshape(less.shape), less, atol=1e-12)


@pytest.mark.parametrize("m", [1, 40])
def test_many_models_are_taken_some_at_a_time(
    regression: Regression, m: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    some, records = models(regression, m), np.arange(m) % 20
    together = regression.gradients(some, WEIGHTS, records)
    monkeypatch.setattr("leakscope.exact.designs.ABREAST", 1)  # 16 models at a time
    in_small_blocks(monkeypatch)
    np.testing.assert_allclose(regression.gradients(some, WEIGHTS, records), together, atol=1e-12)


def test_no_logit_changes_by_more_than_the_reach_times_the_length(regression: Regression) -> None:
    some = models(regression, 5)
    lengths = np.sqrt((some**2).sum(axis=(0, 1)))
    largest = regression.largest_changes(some)
    assert (largest <= np.sqrt(2) * regression.reach * lengths).all()
    longest = np.linalg.norm(regression.design, axis=1).max()
    assert regression.reach == pytest.approx(longest, rel=1e-12)


def test_parameters_give_the_same_logits(regression: Regression) -> None:
    some = models(regression, 2)
    theta = regression.parameters(some)
    assert theta.shape == (2, len(regression.basis), 4)
    for column in range(2):
        logits = regression.design @ (some[..., column] @ regression.basis.T)
        plain = X @ theta[column, :, :-1].T + theta[column, :, -1]
        if regression.family.name == "binomial":  # records of the first class are mirrored
            plain[::2] *= -1
        np.testing.assert_allclose(plain, logits, atol=1e-12)


def test_the_largest_change_is_the_largest(
    regression: Regression, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_small_blocks(monkeypatch)
    some = models(regression, 2)
    logits = np.einsum("nd,dcm->mnc", regression.design, regression.basis @ some)
    single = logits.shape[2] == 1
    expected = np.abs(logits[..., 0]) if single else logits.max(axis=2) - logits.min(axis=2)
    np.testing.assert_allclose(regression.largest_changes(some), expected.max(axis=1))
    assert regression.largest_changes(some[..., :0]).shape == (0,)


def test_magnitudes_are_sums_without_signs() -> None:
    regression = Regression.of(Gaussian(), X, X[:, 0], WEIGHTS, 0.7)
    model = models(regression, 1)[..., 0]
    errors = np.abs(regression.design @ model[:, 0] - X[:, 0])
    expected = np.abs(regression.design).T @ (WEIGHTS * errors)
    expected += [*(0.7 * np.abs(model[:-1, 0])), 0.0]
    np.testing.assert_allclose(regression.magnitudes(model, WEIGHTS)[:, 0], expected)


def test_more_features_than_records_are_rotated_to_the_space_of_the_records() -> None:
    wide = RNG.normal(size=(6, 40))
    regression = Regression.of(Binomial(), wide, np.arange(6) % 2, np.ones(6), 1.0)
    assert regression.design.shape == (6, 5 + 1)  # centring takes one dimension
    assert regression.rotation is not None
    np.testing.assert_allclose(regression.rotation.T @ regression.rotation, np.eye(5), atol=1e-14)
    centred = wide - wide.mean(axis=0)
    distances = np.linalg.norm(regression.design[:, :-1], axis=1)
    np.testing.assert_allclose(distances, np.linalg.norm(centred, axis=1))


def test_without_a_penalty_collinear_features_are_one() -> None:
    double = np.column_stack([X[:, 0], X[:, 0], np.full(20, 3.0)])
    regression = Regression.of(Gaussian(), double, X[:, 1], WEIGHTS, 0.0)
    assert regression.design.shape == (20, 2)
    assert Regression.of(Gaussian(), double, X[:, 1], WEIGHTS, 0.1).design.shape == (20, 3)
    for l2 in (0.0, 0.1):
        constant = Regression.of(Gaussian(), np.ones((20, 2)), X[:, 1], WEIGHTS, l2)
        assert constant.design.shape == (20, 1)


@pytest.mark.parametrize("l2", [0.0, 0.7])
def test_features_that_are_the_same_for_all_records_of_weight_are_left_out(l2: float) -> None:
    weights = np.where(np.arange(20) == 4, 0.0, 1.0)
    same = np.where(np.arange(20) == 4, 9.0, 0.3)  # but for a record that does not count
    features = np.column_stack([X[:, 0], same, X[:, 1:], np.full(20, 0.1)])
    regression = Regression.of(Gaussian(), features, NUMBERS, weights, l2)
    assert regression.design.shape == (20, 4)
    assert regression.design.flags.c_contiguous
    theta = regression.parameters(models(regression, 2))
    assert theta.shape == (2, 1, 6)
    assert (theta[..., [1, 4]] == 0).all()
    fewer = Regression.of(Gaussian(), X, NUMBERS, weights, l2)
    assert (fewer.parameters(models(fewer, 2)) == theta[..., [0, 2, 3, 5]]).all()
