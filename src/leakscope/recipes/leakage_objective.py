"""What a noisy release of a linear model tells of each training record, and its gradient.

A model of n records that is released with noise of variance σ² per parameter tells of record i,
for large n and in nats (ρ_KL of Farokhi & Kaafar 2020),

    ρ_i(θ) = c_iᵀ (G + nσ²H²)⁻¹ c_i / n,

c_i the gradient of its loss less the mean gradient, G the mean of ccᵀ, H the Hessian of the
objective: the record moves θ by H⁻¹c_i/n, and θ varies by H⁻¹GH⁻¹/n + σ²I. Without noise the mean
of ρ is p/n for whatever θ, and nothing is left to penalize; a grid counts as noise of variance
grid²/12. This is what a plain estimator that arrives at θ leaks, not what the penalized one does:
docs/future_works.md has that by measurement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from leakscope.protocols import Bools, Floats

# Of scores and targets (…, n): the loss of each record and its first three derivatives.
Loss = Callable[[Floats, Floats], tuple[Floats, Floats, Floats, Floats]]

_ROUNDING = 1e-12  # what is below this share of its scale counts as 0


def squared_loss(scores: Floats, targets: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """(score − target)², not halved, and its derivatives."""
    miss = scores - targets
    return np.square(miss), 2 * miss, np.full_like(miss, 2.0), np.zeros_like(miss)


def logistic_loss(scores: Floats, targets: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """−ln of the probability of the target, 0 or 1, and its derivatives."""
    chance, other = expit(scores), expit(-scores)
    slope = np.where(targets > 0, -other, chance)
    loss = np.logaddexp(0.0, np.where(targets > 0, -scores, scores))
    return loss, slope, chance * other, chance * other * (other - chance)


@dataclass(frozen=True, eq=False)
class LeakageObjective:
    """Mean loss + l2·θ² + weight · (mean of ρ^power)^(1/power), with its exact gradient.

    X (…, n, q) and y (…, n): the records of one model, or of many on leading axes. l2 (q,): the
    penalty of each parameter. variance: σ² of the release.
    """

    X: Floats
    y: Floats
    loss: Loss
    l2: Floats
    weight: float = 0.0
    variance: float = 0.0
    power: float = 1.0

    def plain(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean loss + l2·θ² at θ (…, q): value (…), gradient (…, q), Hessian (…, q, q)."""
        loss, slope, curvature, _ = self.loss(self._scores(theta), self.y)
        value = loss.mean(axis=-1) + (self.l2 * np.square(theta)).sum(axis=-1)
        gradient = self._times_records(slope) / self.y.shape[-1] + 2 * self.l2 * theta
        return value, gradient, self._hessian(curvature)

    def leakage(self, theta: Floats) -> Floats:
        """ρ of each record at θ, (…, n), in nats."""
        _, slope, curvature, _ = self.loss(self._scores(theta), self.y)
        centred, solved = self._solved(slope, self._hessian(curvature))
        return _dots(centred, solved) / float(self.y.shape[-1])

    def penalized(self, theta: Floats) -> tuple[Floats, Floats]:
        """The whole objective at θ (…, q): value (…), gradient (…, q)."""
        n = self.y.shape[-1]
        loss, slope, curvature, third = self.loss(self._scores(theta), self.y)
        hessian = self._hessian(curvature)
        centred, solved = self._solved(slope, hessian)
        level, shares = _power_mean(_dots(centred, solved) / n, self.power)
        weighted = shares[..., None] * solved
        outer = _transposed(solved) @ weighted
        # The changes of c_i, both on its own and within G; then that of H.
        pull = weighted - centred @ outer / n
        pull -= pull.mean(axis=-2, keepdims=True)
        turned = hessian @ outer
        turned += _transposed(turned)
        along = 2 * curvature * _dots(pull, self.X)
        along -= self.variance * third * _dots(self.X @ turned, self.X)
        mean_loss = loss.mean(axis=-1) + (self.l2 * np.square(theta)).sum(axis=-1)
        gradient = self._times_records(slope + self.weight * along) / n + 2 * self.l2 * theta
        return mean_loss + self.weight * level, gradient

    @cached_property
    def _floor(self) -> Floats:
        """What keeps G + nσ²H² definite where records leave directions open, (…, q)."""
        _, slope, curvature, _ = self.loss(np.zeros_like(self.y), self.y)
        diagonal = np.diagonal(self._spread(slope, self._hessian(curvature))[1], 0, -2, -1)
        return np.where(diagonal > 0, _ROUNDING * diagonal, 1.0)

    def _scores(self, theta: Floats) -> Floats:
        scores: Floats = (self.X @ theta[..., None])[..., 0]
        return scores

    def _times_records(self, values: Floats) -> Floats:
        total: Floats = (values[..., None, :] @ self.X)[..., 0, :]
        return total

    def _hessian(self, curvature: Floats) -> Floats:
        products = _transposed(self.X) @ (curvature[..., None] * self.X)
        return np.asarray(products / self.y.shape[-1] + np.diag(2 * self.l2))

    def _spread(self, slope: Floats, hessian: Floats) -> tuple[Floats, Floats]:
        """The centred gradients (…, n, q) and G + nσ²H² (…, q, q)."""
        n = self.y.shape[-1]
        gradients = slope[..., None] * self.X
        centred = gradients - gradients.mean(axis=-2, keepdims=True)
        spread = _transposed(centred) @ centred / n + n * self.variance * (hessian @ hessian)
        return centred, spread

    def _solved(self, slope: Floats, hessian: Floats) -> tuple[Floats, Floats]:
        """The centred gradients, and (G + nσ²H²)⁻¹ of each, both (…, n, q)."""
        centred, spread = self._spread(slope, hessian)
        spread = spread + self._floor[..., None] * np.eye(spread.shape[-1])
        solved: Floats = np.linalg.solve(spread, _transposed(centred)).astype(
            np.float64, copy=False
        )
        return centred, _transposed(solved)


def plain_minimum(objective: LeakageObjective, max_iter: int = 100) -> Floats:
    """The minimum (…, q) without the penalty on leakage, by Newton's method with halved steps.

    Where several do equally well, the one that needs the least of each feature's scale.
    """
    theta = np.zeros((*objective.X.shape[:-2], objective.X.shape[-1]))
    value, gradient, hessian = objective.plain(theta)
    for _ in range(max_iter):
        root = whitener(hessian)
        slope = (gradient[..., None, :] @ root)[..., 0, :]
        step = -(root @ slope[..., None])[..., 0]
        gain = np.square(slope).sum(axis=-1)
        if (gain <= _ROUNDING**2 * np.abs(value)).all():
            break
        length = np.ones_like(value)
        while (short := _short(objective, theta, step, length, value, gain)).any():
            length = np.where(short, length / 2, length)
        theta = theta + length[..., None] * step
        value, gradient, hessian = objective.plain(theta)
    return theta


def _short(
    objective: LeakageObjective,
    theta: Floats,
    step: Floats,
    length: Floats,
    value: Floats,
    gain: Floats,
) -> Bools:
    """Which steps of this length gain too little (…): less than Armijo's share of the slope's."""
    found = objective.plain(theta + length[..., None] * step)[0]
    return np.asarray(found > value - 1e-4 * length * gain + _ROUNDING * np.abs(value))


def penalized_minimum(
    objective: LeakageObjective, max_iter: int = 200, tol: float = 1e-7
) -> tuple[Floats, int, bool]:
    """The minimum (q,) for one model that L-BFGS finds from the plain one; steps; whether it did.

    With the penalty the objective is not convex: the minimum is that of the valley in which the
    plain solution lies. In the coordinates of the search the plain objective is round and of
    height 1, so that neither the scale of a feature nor that of the targets matters.
    """
    start = plain_minimum(objective)
    if objective.weight == 0:
        return start, 1, True
    height = float(objective.penalized(start)[0]) or 1.0
    root = np.sqrt(height) * whitener(objective.plain(start)[2])

    def scaled(place: Floats) -> tuple[float, Floats]:
        value, gradient = objective.penalized(start + root @ place)
        return float(value) / height, gradient @ root / height

    found = minimize(
        scaled,
        np.zeros(len(start)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "gtol": tol, "ftol": 0.0},
    )
    # Rounding may end the search a little short of the tolerance.
    reached = bool(np.abs(found.jac).max() <= np.sqrt(tol))
    return start + root @ found.x, max(int(found.nit), 1), reached


def whitener(hessian: Floats) -> Floats:
    """T (…, q, q) with TTᵀ the inverse of a Hessian, on the directions that it has."""
    diagonal = np.diagonal(hessian, 0, -2, -1)
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(scale[..., :, None] * hessian * scale[..., None, :])
    open_ = values <= _ROUNDING * values[..., -1:]
    roots = np.where(open_, 0.0, 1 / np.sqrt(np.where(open_, 1.0, values)))
    turned: Floats = scale[..., :, None] * vectors * roots[..., None, :]
    return turned


def _dots(one: Floats, other: Floats) -> Floats:
    return np.asarray(np.einsum("...i,...i->...", one, other))


def _transposed(matrices: Floats) -> Floats:
    return np.swapaxes(matrices, -1, -2)


def _power_mean(values: Floats, power: float) -> tuple[Floats, Floats]:
    """(mean of values^power)^(1/power) (…) of values (…, n) ≥ 0, and its gradient (…, n)."""
    n = values.shape[-1]
    most = values.max(axis=-1, keepdims=True)
    safe = np.where(most > 0, most, 1.0)
    level = np.power(np.power(values / safe, power).mean(axis=-1, keepdims=True), 1 / power)
    shares = np.power(values / safe / np.where(level > 0, level, 1.0), power - 1) / n
    return (level * safe)[..., 0], shares
