"""The optimum of one regression by damped Newton steps, or that there is none.

How far a model is from its optimum is measured by Newton's decrement √(gᵀH⁻¹g), which is the
gradient relative to the curvature: it does not depend on the scale of the features, twice the
excess of the sum is its square, and no logit x·θ is off by more than √(xᵀH⁻¹x) times it. The
tolerance is 1e-10, or what rounding leaves of the gradient if that is more.

Where classes can be separated the sum has no minimum: the gradient becomes small on the way to
infinity all the same. What tells is the curvature, which vanishes in the direction of that way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, solve_triangular

from leakscope.exact.penalized import Regression
from leakscope.exact.threads import Each
from leakscope.protocols import Floats

TOLERANCE = 1e-10
_COARSEST = 1e-6  # a tolerance above this one says nothing
_ROUNDS = 100
# From which decrement on the curvature is kept, for as long as each is so much less than the last.
_SETTLED, _SHRUNK = 1e-3, 0.1
_FAR = 0.1  # a decrement above which a step may be too short
_SHORTEST, _LONGEST = 1e-10, 4.0  # of the steps that are tried
_NOISE = 1e-9  # relative differences of the sum that may be rounding
_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Minimum:
    """The optimum of a regression.

    model (D, K); factor: the Cholesky factor of the curvature (D·K, D·K) there, or None where that
    is the unit matrix; sharpness: its smallest eigenvalue relative to the curvature where nothing
    is predicted surely; tolerance: the decrement below which a model is at the optimum; away: the
    decrement of the model at which the curvature was taken, one step before; doubt: how much the
    curvature may be off for that and for rounding, relative to it, where that is known; condition:
    the largest over the smallest curvature, about.
    """

    model: Floats
    factor: tuple[Floats, bool] | None
    sharpness: float
    tolerance: float
    away: float
    doubt: float = np.inf
    condition: float = np.inf

    def solve(self, vectors: Floats) -> Floats:
        """H⁻¹ times vectors (D, K, m), in the same shape."""
        if self.factor is None:
            return vectors.copy()
        flat = vectors.reshape(len(self.factor[0]), -1)
        solved: Floats = cho_solve(self.factor, flat, check_finite=False)
        return solved.reshape(vectors.shape)

    @cached_property
    def inverse(self) -> Floats | None:
        """H⁻¹, for steps of which the next corrects the rounding: a product is the fastest."""
        if self.factor is None:
            return None
        inverse: Floats = cho_solve(self.factor, np.eye(len(self.factor[0])))
        return inverse


def least_sharpness(l2: float) -> float:
    """Below which a regression has no optimum, or none that can be computed.

    Without a penalty there is none, and Newton's steps stop in the middle of nowhere; with one
    there is an optimum always, and it is its digits that get lost.
    """
    return 1e-8 if l2 == 0 else 1e-12


def minimum(
    regression: Regression, weights: Floats, start: Floats | None = None, each: Each = map
) -> Minimum | None:
    """The optimum under these weights (n,) of the records; None if there is none.

    start (D, K): a model that is not far from it. each: maps what is done for groups of records.
    """
    width, free = regression.design.shape[1], regression.basis.shape[1]
    model = np.zeros((width, free)) if start is None else start.copy()
    value = regression.objective(model, weights)
    flat = regression.flat_hessian(weights, each)
    kept, last = False, np.inf
    for turn in range(_ROUNDS):
        at_zero = turn == 0 and start is None
        if not kept:
            hessian = flat if at_zero else regression.hessian(model, weights, each)
            try:
                factor = cho_factor(hessian, lower=True)
            except LinAlgError:
                return None
        gradient = regression.gradients(model[..., None], weights)[..., 0]
        step = cho_solve(factor, -gradient.ravel()).reshape(model.shape)
        decrement = float(np.sqrt(max(0.0, -(gradient * step).sum())))
        if decrement <= _COARSEST and decrement <= (
            tolerance := _tolerance(regression.magnitudes(model, weights), factor)
        ):
            if kept:  # what is returned is the curvature of the optimum itself
                kept = False
                continue
            sharpness = _sharpness(hessian, flat)
            if sharpness < least_sharpness(regression.l2):
                return None
            return Minimum(model + step, factor, sharpness, tolerance, decrement)
        model, value = _descended(regression, weights, model, value, step, decrement)
        kept = decrement <= (min(_SETTLED, _SHRUNK * last) if kept else _SETTLED)
        last = decrement
    return None


def _tolerance(magnitudes: Floats, factor: tuple[Floats, bool]) -> float:
    """The decrement that counts as zero, from the size of the terms of the gradient."""
    root = solve_triangular(factor[0], np.diag(magnitudes.ravel()), lower=True)
    rounding = _EPSILON * float(np.linalg.norm(root))
    return min(max(TOLERANCE, rounding), _COARSEST)


def _sharpness(hessian: Floats, flat: Floats) -> float:
    try:
        return float(eigh(hessian, flat, eigvals_only=True, subset_by_index=[0, 0])[0])
    except LinAlgError:  # no curvature in some direction even where nothing is sure
        return 0.0


def _descended(
    regression: Regression,
    weights: Floats,
    model: Floats,
    value: float,
    step: Floats,
    decrement: float,
) -> tuple[Floats, float]:
    """The model after the longest of some steps that lowers the sum enough, and the sum.

    They are 1, ½, ¼, … times Newton's step; far from the optimum, where that is often too short,
    the first is where the slope along the step would end if it went on as it began. Close to the
    optimum the sum is all rounding, and a step is good that halves the slope.
    """

    def slope(model: Floats) -> float:
        return float((regression.gradients(model[..., None], weights)[..., 0] * step).sum())

    length = 1.0
    if decrement > _FAR:
        left = -slope(model + step) / decrement**2
        if 0.0 < left < 1.0:
            length = min(_LONGEST, 1.0 / (1.0 - left))
    while length > _SHORTEST:
        after = model + length * step
        below = regression.objective(after, weights)
        gain = value - below
        if gain >= 1e-4 * length * decrement**2:
            return after, below
        if gain >= -_NOISE * abs(value) and abs(slope(after)) <= decrement**2 / 2:
            return after, below
        length /= 2
    return model, value
