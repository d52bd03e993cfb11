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
    whole = lower @ lower.T if free > 1 else None
    root = lower if whole is None else _mean_root(whole, width)
    turn = solve_triangular(root, np.eye(width), lower=True).T
    factor = None
    if whole is not None:
        each = np.kron(turn, np.eye(free))
        factor = cho_factor(each.T @ whole @ each, lower=True)
    return regression.turned(turn), replace(full, model=root.T @ full.model, factor=factor)


def _mean_root(curvature: Floats, width: int) -> Floats:
    """The Cholesky factor (D, D) of the mean over the free outputs of a curvature (D·K, D·K)."""
    parts = curvature.reshape(width, len(curvature) // width, width, -1)
    root: Floats = np.linalg.cholesky(np.einsum("dkek->de", parts) / parts.shape[1])
    return root
