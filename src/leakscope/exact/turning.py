"""Coordinates in which the curvature of a regression is the unit matrix.

In these a gradient is Newton's step, and its length the decrement: no product with H⁻¹ is needed,
and nothing is a small difference of large terms, however features are scaled and correlated. So
single precision knows as much of a model as it has digits. Where a record has several free outputs,
one matrix serves them all, and the curvature is the unit matrix in their mean.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import cho_factor, solve_triangular

from leakscope.exact.newton import Minimum
from leakscope.exact.penalized import Regression
from leakscope.protocols import Floats


def turned(regression: Regression, full: Minimum) -> tuple[Regression, Minimum]:
    """A regression and its optimum in coordinates of unit curvature at that optimum."""
    assert full.factor is not None  # an optimum as it was found
    lower = np.tril(full.factor[0])
    width, free = full.model.shape
    curvature = lower @ lower.T
    root = lower if free == 1 else np.linalg.cholesky(_mean(curvature, free))
    turn = solve_triangular(root, np.eye(width), lower=True).T
    each = turn if free == 1 else np.kron(turn, np.eye(free))
    now = each.T @ curvature @ each
    off = np.abs(_mean(now, free) - np.eye(width)).max()
    return regression.turned(turn), replace(
        full,
        model=root.T @ full.model,
        factor=None if free == 1 else cho_factor(now, lower=True),
        doubt=max(float(off), float(np.finfo(np.float64).eps)),
    )


def _mean(curvature: Floats, free: int) -> Floats:
    """The mean (D, D) over the free outputs of a curvature (D·K, D·K)."""
    width = len(curvature) // free
    parts = curvature.reshape(width, free, width, free)
    mean: Floats = np.einsum("dkek->de", parts) / free
    return mean
