"""Divergences of two Gaussian distributions, in nats, for one pair or for many at once.

Index 1 is with the record, 0 without (Farokhi & Kaafar 2020, sections 3 and 6). Means have shape
(…, p), covariances (…, p, p), and leading axes broadcast; plain numbers stand for one dimension.
Cholesky factors do all the work: with W = L0⁻¹L1 nothing is inverted, no determinant is taken,
and the scale of a parameter does not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from leakscope.errors import InputError
from leakscope.options import magnitude
from leakscope.protocols import Floats

EPS = float(np.finfo(np.float64).eps)

# How far a covariance may be from its transpose, against the standard deviations of the two.
ASYMMETRY = 1e-8


@dataclass(frozen=True, eq=False)
class Pair:
    """Two Gaussians in the coordinates where N0 is standard and N1 has independent components.

    There N1 has means ``shift`` (…, p) and variances ``spread`` (…, p); ``excess`` is spread − 1,
    exact where the two covariances are close. No divergence changes with coordinates.
    """

    shift: Floats
    spread: Floats
    excess: Floats

    @property
    def rounding(self) -> float:
        """Below this an excess cannot be told from 0."""
        p: int = self.shift.shape[-1]
        return 64 * EPS * p


def gaussian_kl(mean1: ArrayLike, cov1: ArrayLike, mean0: ArrayLike, cov0: ArrayLike) -> Floats:
    """How far the first Gaussian is from the second, D(N1‖N0), a number for each pair (…).

    ½[tr(Σ0⁻¹Σ1) − p + dᵀΣ0⁻¹d + ln(|Σ0|/|Σ1|)] with d = μ1 − μ0, summed from terms of which none
    is negative, so that small divergences keep their digits.
    """
    shift, factor1, factor0 = _factors(mean1, cov1, mean0, cov0)
    return as_given(_divergence(shift, factor1, factor0))


def jeffreys(mean1: ArrayLike, cov1: ArrayLike, mean0: ArrayLike, cov0: ArrayLike) -> Floats:
    """The Kullback–Leibler leakage ρ_KL = D(N1‖N0) + D(N0‖N1), a number for each pair (…)."""
    shift, factor1, factor0 = _factors(mean1, cov1, mean0, cov0)
    return as_given(_divergence(shift, factor1, factor0) + _divergence(shift, factor0, factor1))


def renyi_divergence(
    mean1: ArrayLike, cov1: ArrayLike, mean0: ArrayLike, cov0: ArrayLike, order: float
) -> Floats:
    """The Rényi divergence D_α(N1‖N0) of an order α > 0, a number for each pair (…).

    With Σ_α = αΣ0 + (1 − α)Σ1 it is ½α dᵀΣ_α⁻¹d − ln(|Σ_α| / (|Σ1|^{1−α}|Σ0|^α)) / (2(α − 1)),
    and infinite unless Σ_α is positive definite; order 1 is D(N1‖N0), order ∞ the max-divergence
    (van Erven & Harremoës 2014).
    """
    if order == math.inf:
        return max_divergence(mean1, cov1, mean0, cov0)
    magnitude("order", order, above=0)
    return as_given(renyi_of(diagonalize(mean1, cov1, mean0, cov0), order - 1))


def largest_order(mean1: ArrayLike, cov1: ArrayLike, mean0: ArrayLike, cov0: ArrayLike) -> Floats:
    """The order α* below which every Rényi divergence D_α(N1‖N0) is finite, for each pair (…).

    α* = s / (s − 1), s the largest generalized eigenvalue of Σ1 against Σ0; infinite where s ≤ 1.
    D_α grows without bound as α approaches a finite α*.
    """
    return as_given(1 + orders_beyond(diagonalize(mean1, cov1, mean0, cov0)))


def max_divergence(mean1: ArrayLike, cov1: ArrayLike, mean0: ArrayLike, cov0: ArrayLike) -> Floats:
    """The largest log-likelihood ratio there is, D_∞(N1‖N0), a number for each pair (…).

    ½ ln(|Σ0|/|Σ1|) + ½dᵀ(Σ0 − Σ1)⁻¹d where Σ0 − Σ1 is positive definite, and infinite elsewhere;
    directions in which the two Gaussians are the same count for nothing.
    """
    pair = diagonalize(mean1, cov1, mean0, cov0)
    length = np.linalg.norm(pair.shift, axis=-1, keepdims=True)
    level = np.abs(pair.excess) <= pair.rounding
    same = level & (np.abs(pair.shift) <= pair.rounding * np.maximum(length, 1.0))
    narrower = pair.excess < -pair.rounding
    room = np.where(narrower, -pair.excess, 1.0)
    terms = np.where(narrower, np.square(pair.shift) / room - log_spread(pair), 0.0)
    value = terms.sum(axis=-1) / 2
    return as_given(np.where((narrower | same).all(axis=-1), value, np.inf))


def diagonalize(mean1: ArrayLike, cov1: ArrayLike, mean0: ArrayLike, cov0: ArrayLike) -> Pair:
    """The pair of Gaussians in the coordinates where both have independent components."""
    shift, factor1, factor0 = _factors(mean1, cov1, mean0, cov0)
    ratio = _solve_lower(factor0, factor1)
    # Singular values of W keep the digits of small eigenvalues that those of WWᵀ would lose.
    rotation, values, _ = np.linalg.svd(ratio)
    whitened = _solve_lower(factor0, shift[..., None])
    turned = (np.swapaxes(rotation, -1, -2) @ whitened)[..., 0]
    return Pair(turned, np.square(values), (values - 1) * (values + 1))


def renyi_of(pair: Pair, beyond: ArrayLike) -> Floats:
    """The Rényi divergences of order 1 + beyond, which broadcasts against the pairs (…)."""
    t = np.asarray(beyond, dtype=np.float64)[..., None]
    finite = np.asarray((t * pair.excess < 1).all(axis=-1))
    step = np.where(finite[..., None], -t * pair.excess, 0.0)  # the eigenvalues of Σ_α, less 1
    volume = np.where(t == 0, pair.excess, -np.log1p(step) / np.where(t == 0, 1.0, t))
    terms = (1 + t) * np.square(pair.shift) / (1 + step) + volume - log_spread(pair)
    return np.where(finite, np.maximum(terms.sum(axis=-1) / 2, 0.0), np.inf)


def orders_beyond(pair: Pair) -> Floats:
    """How far beyond 1 the first order is at which the divergence is infinite, (…)."""
    largest = pair.excess.max(axis=-1)
    wider = largest > pair.rounding
    return np.where(wider, 1 / np.where(wider, largest, 1.0), np.inf)


def as_given(values: Floats) -> Floats:
    """The array, or for a single pair the number."""
    number: Floats = values[()]
    return number


def log_spread(pair: Pair) -> Floats:
    """The logarithm of the spread, exact to the last digits both near 0 and near 1."""
    near = np.abs(pair.excess) < 0.5
    return np.where(near, np.log1p(np.where(near, pair.excess, 0.0)), np.log(pair.spread))


def _divergence(shift: Floats, factor: Floats, other: Floats) -> Floats:
    """D(N‖N′) of Gaussians with Cholesky factors L and L′ whose means differ by the shift."""
    ratio = _solve_lower(other, factor)
    diagonal = np.diagonal(ratio, axis1=-2, axis2=-1)
    step = diagonal - 1
    # ln|Σ′|/|Σ| and the diagonal's part of the trace: w² − 1 − 2 ln w, with w = 1 + step.
    own = np.square(step) + 2 * (step - np.log1p(step))
    across = np.square(np.tril(ratio, -1)).sum(axis=(-2, -1))
    moved = np.square(_solve_lower(other, shift[..., None])).sum(axis=(-2, -1))
    return np.asarray((own.sum(axis=-1) + across + moved) / 2)


def _solve_lower(lower: Floats, right: Floats) -> Floats:
    """X of lower · X = right, (…, p, k), by forward substitution over all pairs at once."""
    shape = np.broadcast_shapes(lower.shape[:-2], right.shape[:-2])
    solved = np.empty((*shape, *right.shape[-2:]))
    for row in range(lower.shape[-1]):
        known = lower[..., row : row + 1, :row] @ solved[..., :row, :]
        solved[..., row, :] = (right[..., row, :] - known[..., 0, :]) / lower[..., row, row, None]
    return solved


def _factors(
    mean1: ArrayLike, cov1: ArrayLike, mean0: ArrayLike, cov0: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    """μ1 − μ0 (…, p) and the Cholesky factors of Σ1 and Σ0 (…, p, p), checked and broadcast."""
    means = [_mean(mean, name) for mean, name in ((mean1, "first"), (mean0, "second"))]
    covariances = [_covariance(cov, name) for cov, name in ((cov1, "first"), (cov0, "second"))]
    one_size = len({one.shape[-1] for one in (*means, *covariances)}) == 1
    try:
        np.broadcast_shapes(*(a.shape[:-1] for a in means), *(c.shape[:-2] for c in covariances))
    except ValueError:
        one_size = False
    if not one_size:
        shapes = ", ".join(str(one.shape) for one in (*means, *covariances))
        raise InputError(
            f"Two Gaussians need means (…, p) and covariances (…, p, p) of one p, got means and "
            f"covariances of shapes {shapes}"
        )
    factors = [
        _cholesky(cov, name) for cov, name in zip(covariances, ("first", "second"), strict=True)
    ]
    return means[0] - means[1], factors[0], factors[1]


def _numbers(values: ArrayLike, what: str) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"The {what} must be an array of numbers, as many in each row") from error


def _mean(mean: ArrayLike, name: str) -> Floats:
    """A mean (…, p) of finite numbers."""
    values = _numbers(mean, f"{name} mean")
    if not np.isfinite(values).all():
        raise InputError(f"The {name} mean must be finite, got {values[~np.isfinite(values)][0]}")
    return values[None] if values.ndim == 0 else values


def _covariance(covariance: ArrayLike, name: str) -> Floats:
    """A covariance (…, p, p): finite, symmetric, with variances above 0."""
    values = _numbers(covariance, f"{name} covariance")
    values = values[None, None] if values.ndim == 0 else values
    if values.ndim == 1 or values.shape[-1] != values.shape[-2] or values.shape[-1] == 0:
        raise InputError(
            f"The {name} covariance must be a square matrix, (…, p, p), got shape {values.shape}"
        )
    if not np.isfinite(values).all():
        raise InputError(
            f"The {name} covariance must be finite, got {values[~np.isfinite(values)][0]}"
        )
    variances = np.diagonal(values, axis1=-2, axis2=-1)
    if not (variances > 0).all():
        raise _singular(name, tuple(np.argwhere(~(variances > 0).all(axis=-1))[0]))
    deviations = np.sqrt(variances)
    scale = deviations[..., :, None] * deviations[..., None, :]
    off = np.abs(values - np.swapaxes(values, -1, -2)) > ASYMMETRY * scale
    if off.any():
        *_, row, column = np.argwhere(off)[0]
        raise InputError(
            f"The {name} covariance is not symmetric in row {row} and column {column}: give "
            f"(S + Sᵀ) / 2 if that is rounding"
        )
    return values


def _cholesky(covariance: Floats, name: str) -> Floats:
    """The lower Cholesky factor (…, p, p), or an error where a covariance is singular.

    Singular is what rounding cannot tell from singular: given the parameters before it, a
    parameter keeps less of its variance than the rounding of p products.
    """
    p = covariance.shape[-1]
    try:
        lower: Floats = np.linalg.cholesky(covariance).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        raise _singular(name, _first_not_definite(covariance)) from None
    pivots = np.square(np.diagonal(lower, axis1=-2, axis2=-1))
    kept = pivots / np.diagonal(covariance, axis1=-2, axis2=-1)
    low = (kept < 8 * p * EPS).any(axis=-1)
    if low.any():
        raise _singular(name, tuple(np.argwhere(low)[0]))
    return lower


def _first_not_definite(covariances: Floats) -> tuple[int, ...]:
    """The place of the first covariance that has no Cholesky factor."""
    for place in np.ndindex(covariances.shape[:-2]):
        try:
            np.linalg.cholesky(covariances[place])
        except np.linalg.LinAlgError:
            return place
    raise AssertionError("every covariance has a factor")  # pragma: no cover


def _singular(name: str, place: tuple[int, ...]) -> InputError:
    where = f" of pair {', '.join(str(int(index)) for index in place)}" if place else ""
    return InputError(
        f"The {name} covariance{where} is singular, so that the divergence is infinite or "
        f"undefined: take more draws than parameters, leave out parameters that depend on others, "
        f"or add noise"
    )
