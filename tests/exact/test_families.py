from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, log_expit, softmax

from leakscope.exact.families import Binomial, Family, Gaussian, Multinomial

CASES: list[tuple[Family, np.ndarray]] = [
    (Binomial(), np.array([0, 1, 1, 0])),
    (Multinomial(2), np.array([0, 1, 1, 0])),
    (Multinomial(4), np.array([3, 1, 0, 2])),
    (Gaussian(), np.array([0.5, -1.0, 2.0, 0.0])),
]


@pytest.fixture(params=CASES, ids=lambda case: repr(case[0]))
def case(request: pytest.FixtureRequest) -> tuple[Family, np.ndarray]:
    found: tuple[Family, np.ndarray] = request.param
    return found


def numeric(family: Family, logits: np.ndarray, targets: np.ndarray, order: int) -> np.ndarray:
    """First or second derivatives of the losses by the logits, from differences."""
    if order == 0:
        return family.losses(logits, targets)
    step = 1e-4
    columns = []
    for output in range(logits.shape[1]):
        shift = np.zeros(logits.shape[1])
        shift[output] = step
        ends = [numeric(family, logits + sign * shift, targets, order - 1) for sign in (1, -1)]
        columns.append((ends[0] - ends[1]) / (2 * step))
    return np.stack(columns, axis=-1)


def test_residuals_and_curvatures_are_derivatives_of_the_loss(
    case: tuple[Family, np.ndarray],
) -> None:
    family, targets = case
    logits = np.random.default_rng(0).normal(size=(4, len(family.basis)))
    weights = np.array([1.0, 0.5, 2.0, 0.0])
    first = family.residuals(logits[..., None].copy(), targets, weights)[..., 0]
    expected = weights[:, None] * numeric(family, logits, targets, 1)
    np.testing.assert_allclose(first, expected, atol=1e-7)
    second = family.basis.T @ numeric(family, logits, targets, 2) @ family.basis
    np.testing.assert_allclose(family.curvatures(logits), second, atol=1e-6)
    largest = np.linalg.eigvalsh(family.curvatures(0 * logits))
    np.testing.assert_allclose(largest, family.flat, atol=1e-12)


def test_the_basis_is_orthonormal_and_leaves_out_what_changes_nothing(
    case: tuple[Family, np.ndarray],
) -> None:
    family, _ = case
    outputs, free = family.basis.shape
    np.testing.assert_allclose(family.basis.T @ family.basis, np.eye(free), atol=1e-15)
    assert free == max(1, outputs - 1)
    if outputs > 1:
        np.testing.assert_allclose(family.basis.sum(axis=0), 0, atol=1e-15)


def test_residuals_of_several_models_are_those_of_each(case: tuple[Family, np.ndarray]) -> None:
    family, targets = case
    logits = np.random.default_rng(1).normal(size=(4, len(family.basis), 3))
    together = family.residuals(logits.copy(), targets, np.ones(4))
    for model in range(3):
        alone = family.residuals(logits[..., [model]].copy(), targets, np.ones(4))
        np.testing.assert_allclose(together[..., [model]], alone, atol=1e-15)


def test_a_sure_prediction_keeps_the_digits_of_its_error() -> None:
    sure = np.array([[40.0]])
    one, weight = np.array([1]), np.ones(1)
    assert Binomial().losses(sure, one)[0] == pytest.approx(-log_expit(40.0), rel=1e-14)
    assert Binomial().residuals(sure[..., None].copy(), one, weight).item() == pytest.approx(
        -expit(-40.0), rel=1e-14
    )
    assert Binomial().residuals(np.array([[[-800.0]]]), one, weight).item() == -1.0
    assert Binomial().residuals(np.array([[[800.0]]]), one, weight).item() == 0.0
    assert Binomial().curvatures(sure).item() == pytest.approx(np.exp(-40.0), rel=1e-14)
    logits, shares = np.array([[0.0, 40.0, 1.0]]), softmax([0.0, 40.0, 1.0])
    family, others = Multinomial(3), shares[0] + shares[2]
    assert family.losses(logits, one)[0] == pytest.approx(others, rel=1e-14)
    np.testing.assert_allclose(
        family.residuals(logits[..., None].copy(), one, weight)[0, :, 0],
        [shares[0], -others, shares[2]],
        rtol=1e-14,
    )
    spread = np.array([[shares[0], -shares[0], 0], [-shares[0], others, -shares[2]],
                       [0, -shares[2], shares[2]]])  # fmt: skip
    expected = family.basis.T @ spread @ family.basis
    np.testing.assert_allclose(family.curvatures(logits)[0], expected, rtol=1e-12)


def remainders_by_hand(
    family: Family, logits: np.ndarray, changes: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Residuals after the change less those before and the slope times the change, (b, C)."""
    weights = np.ones(len(logits))
    after = family.residuals((logits + changes)[..., None], targets, weights)[..., 0]
    before = family.residuals(logits[..., None].copy(), targets, weights)[..., 0]
    slopes = family.basis @ family.curvatures(logits) @ family.basis.T
    return after - before - np.einsum("bcd,bd->bc", slopes, changes)


@pytest.mark.parametrize(("size", "tolerance"), [(1e-2, 1e-6), (0.5, 1e-6), (2.0, 1e-4)])
def test_remainders_are_what_is_left_beyond_first_order(
    case: tuple[Family, np.ndarray], size: float, tolerance: float
) -> None:
    family, targets = case
    rng = np.random.default_rng(2)
    logits, changes = rng.normal(size=(2, 4, len(family.basis))) * [[[3.0]], [[size]]]
    changes = changes.astype(np.float32)
    expected = remainders_by_hand(family, logits, changes.astype(np.float64), targets)
    known, scales = family.expansion(logits)
    spare = np.empty((3, *changes.shape, 1), dtype=np.float32)
    found = family.remainders(known, changes[..., None] / np.float32(family.unit), spare)[..., 0]
    found *= family.unit * scales[:, None]
    assert found.dtype == np.float32
    np.testing.assert_allclose(
        found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()
    )


@pytest.mark.parametrize("family", [Binomial(), Multinomial(3), Gaussian()], ids=lambda f: f.name)
def test_a_rough_remainder_is_right_to_a_ten_thousandth(family: Family) -> None:
    rng = np.random.default_rng(2)
    outputs = len(family.basis)
    logits = 3.0 * rng.normal(size=(50, outputs))
    changes = rng.uniform(-0.25, 0.25, size=(50, outputs, 4)).astype(np.float32)
    known, _ = family.expansion(logits)
    spare = np.empty((3, *changes.shape), dtype=np.float32)
    exact = family.remainders(known, changes / np.float32(family.unit), spare).copy()
    rough = family.roughly(known, changes / np.float32(family.unit), spare)
    assert np.linalg.norm(rough - exact) <= 1e-4 * np.linalg.norm(exact)


def test_the_remainder_of_a_small_change_keeps_its_digits() -> None:
    """It is −σ′(z) tanh(z/2) u²/2 to second order, and a difference would have none left."""
    z, u = 1.5, 1e-5
    known, scales = Binomial().expansion(np.array([[z]]))
    unit, spare = Binomial().unit, np.empty((3, 1, 1, 1), np.float32)
    changes = np.full((1, 1, 1), u / unit, np.float32)
    found = float(Binomial().remainders(known, changes, spare).item() * unit * scales[0])
    slope = expit(z) * expit(-z)
    assert found == pytest.approx(-slope * np.tanh(z / 2) * u**2 / 2, rel=1e-4)


def test_a_change_beyond_single_precision_has_no_remainder_and_no_warning() -> None:
    changes = np.array([[[200.0], [0.0], [0.0]]], dtype=np.float32)
    known, _ = Multinomial(3).expansion(np.zeros((1, 3)))
    spare = np.empty((3, 1, 3, 1), dtype=np.float32)
    assert np.isnan(Multinomial(3).remainders(known, changes, spare)).any()
