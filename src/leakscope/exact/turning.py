"""Coordinates in which the curvature of a regression is the unit matrix.

In these a gradient is Newton's step, and its length the decrement: no product with H⁻¹ is needed,
and nothing is a small difference of large terms, however features are scaled and correlated, so
that single precision keeps most of its digits. Where a record has several free outputs, one matrix
serves them all, and the curvature is the unit matrix in their mean alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.linalg.lapack import dpocon

from leakscope.exact.newton import Minimum
from leakscope.exact.penalized import Regression
from leakscope.exact.threads import Each
from leakscope.protocols import Floats

_EPSILON = float(np.finfo(np.float64).eps)


def turned(regression: Regression, full: Minimum, each: Each = map) -> tuple[Regression, Minimum]:
    """A regression and its optimum in coordinates of unit curvature at that optimum.

    each: maps what is done for groups of records.
    """
    assert full.factor is not None  # an optimum as it was found
    lower = np.tril(full.factor[0])
    width, free = full.model.shape
    curvature = (lower @ lower.T).reshape(width, free, width, free)
    root = lower if free == 1 else np.linalg.cholesky(_mean(curvature))
    turn = solve_triangular(root, np.eye(width), lower=True).T
    now = np.tensordot(np.tensordot(turn.T, curvature, 1), turn, (2, 0)).transpose(0, 1, 3, 2)
    rounding = float(np.abs(_mean(now) - np.eye(width)).max())
    made = regression.turned(turn, each)
    factor, condition = None, 1.0
    if free > 1:
        matrix = now.reshape(width * free, -1)
        factor = cho_factor(matrix)
        reciprocal, _ = dpocon(factor[0], np.abs(matrix).sum(axis=0).max())
        condition = 1.0 / max(reciprocal, _EPSILON)
    return made, replace(
        full,
        model=root.T @ full.model,
        factor=factor,
        # Rounding is relative to the largest curvature, and counts where it is smallest. No logit
        # is further away than the rest, and a curvature changes by no more, relative to it.
        doubt=max(rounding, _EPSILON) * condition + 2.0 * made.reach * full.away,
        condition=condition,
    )


def _mean(curvature: Floats) -> Floats:
    """The mean (D, D) over the free outputs of a curvature (D, K, D, K)."""
    mean: Floats = np.einsum("dkek->de", curvature) / curvature.shape[1]
    return mean
