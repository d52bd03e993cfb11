"""A penalized regression as the sum it minimizes: its gradient and curvature for many models.

    minimize  Σ weight · loss(logits of the record, its target) + ½ l2 ‖w‖²,

with an intercept that is not penalized. Features are centred, which changes the intercept alone;
and the weights of an optimum lie in the row space of the centred features, so that with more
features than records, or with l2 = 0, the coordinates are those in a basis of that space. Of many
optima, which collinear features have at l2 = 0, that is the shortest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from leakscope.exact.families import Family, Singles
from leakscope.protocols import Floats, Indices

_BLOCK = 2**17  # logits held at a time, 1 MB: they stay in the cache


@dataclass(frozen=True, eq=False)
class Regression:
    """What is minimized, in D coordinates of which the last is the intercept.

    design (n, D), targets (n,), weights (n,) of the records. Models are arrays of free parameters
    (D, K, m). centre (d,) and rotation (d, D − 1), or None, lead back to the features.
    """

    family: Family
    design: Floats
    targets: NDArray[Any]
    weights: Floats
    l2: float
    centre: Floats
    rotation: Floats | None
    penalties: Floats = field(init=False)
    basis: Floats = field(init=False)

    def __post_init__(self) -> None:
        penalties = np.full((self.design.shape[1], 1, 1), self.l2)
        penalties[-1] = 0.0
        object.__setattr__(self, "penalties", penalties)
        object.__setattr__(self, "basis", self.family.basis)

    @classmethod
    def of(
        cls, family: Family, X: Floats, targets: NDArray[Any], weights: Floats, l2: float
    ) -> Regression:
        """The regression of targets (n,) on features (n, d)."""
        centre = np.average(X, axis=0, weights=weights)
        centred = X - centre
        rotation = None
        if l2 == 0 or X.shape[1] >= len(X):
            rotation = _row_space(centred[weights > 0], float(np.abs(X).max()))
            centred = centred @ rotation
        design = np.column_stack([centred, np.ones(len(X))])
        return cls(family, design, targets, weights, l2, centre, rotation)

    def gradients(self, models: Floats, weights: Floats) -> Floats:
        """The gradient of the sum at each of m models (D, K, m), in the same shape."""
        width, _, m = models.shape
        outputs = len(self.basis)
        logits = (self.basis @ models).reshape(width, outputs * m)
        total = np.zeros((width, outputs * m))
        step = max(16, _BLOCK // max(1, outputs * m))
        for start in range(0, len(self.design), step):
            rows = slice(start, start + step)
            part = self.design[rows]
            block = (part @ logits).reshape(len(part), outputs, m)
            block = self.family.residuals(block, self.targets[rows])
            block *= weights[rows, None, None]
            total += part.T @ block.reshape(len(part), outputs * m)
        gradients: Floats = self.basis.T @ total.reshape(width, outputs, m)
        gradients += self.penalties * models
        return gradients

    def remainders(self, logits: Floats, changes: Floats, records: Indices) -> Floats:
        """What the gradient without each record changes by beyond first order, (D, K, m).

        logits (n, C) of a model; changes (D, K, m): of the model, one for each of the records (m,)
        that is left out.
        In single precision: the remainder of a change is smaller than the change, and its error is
        smaller by 1e-7 still.
        """
        width, _, m = changes.shape
        outputs = len(self.basis)
        moves = (self.basis @ changes).reshape(width, outputs * m).astype(np.float32)
        total = np.zeros((width, outputs * m), dtype=np.float32)
        step = max(16, _BLOCK // max(1, 2 * outputs * m))
        for start in range(0, len(self.design), step):
            rows = slice(start, start + step)
            part = self.single[rows]
            block = (part @ moves).reshape(len(part), outputs, m)
            block = self.family.remainders(logits[rows], block)
            own = np.flatnonzero((records >= start) & (records < start + step))
            block[records[own] - start, :, own] = 0.0
            weighted = self.weights[rows, None].astype(np.float32) * part
            total += weighted.T @ block.reshape(len(part), outputs * m)
        remainders: Floats = self.basis.T @ total.reshape(width, outputs, m).astype(np.float64)
        return remainders

    @cached_property
    def single(self) -> Singles:
        """The design in single precision, (n, D)."""
        return self.design.astype(np.float32)

    @cached_property
    def reach(self) -> float:
        """The length of the longest row of the design."""
        return float(np.sqrt(np.einsum("nd,nd->n", self.design, self.design).max()))

    def largest_changes(self, changes: Floats) -> Floats:
        """The most by which changes (D, K, m) of m models move a logit of any record, (m,).

        Between several logits it is the difference that counts.
        """
        width, _, m = changes.shape
        outputs = len(self.basis)
        logits = (self.basis @ changes).reshape(width, outputs * m)
        largest = np.zeros(m)
        step = max(16, _BLOCK // max(1, outputs * m))
        for start in range(0, len(self.design), step):
            part = self.design[start : start + step]
            block = (part @ logits).reshape(len(part), outputs, m)
            spread = np.ptp(block, axis=1) if outputs > 1 else np.abs(block[:, 0])
            np.maximum(largest, spread.max(axis=0), out=largest)
        return largest

    def own_gradients(self, models: Floats, records: Indices) -> Floats:
        """What record j adds to the gradient of model j, for m records and models (D, K, m)."""
        rows = self.design[records]
        logits = np.einsum("md,dcm->mc", rows, self.basis @ models)
        residuals = self.family.residuals(logits[..., None], self.targets[records])[..., 0]
        free = (self.weights[records, None] * residuals) @ self.basis
        own: Floats = np.einsum("md,mk->dkm", rows, free)
        return own

    def own_curvatures(self, model: Floats, records: Indices) -> Floats:
        """The weighted second derivative of these records' losses at one model, (m, K, K)."""
        logits = self.design[records] @ (model @ self.basis.T)
        return self.weights[records, None, None] * self.family.curvatures(logits)

    def hessian(self, model: Floats, weights: Floats) -> Floats:
        """The second derivative of the sum at one model (D, K), as a matrix (D·K, D·K)."""
        width, free = model.shape
        curvatures = self.family.curvatures(self.design @ (model @ self.basis.T))
        curvatures *= weights[:, None, None]
        hessian = np.empty((width, free, width, free))
        for a in range(free):
            root = np.sqrt(np.maximum(curvatures[:, a, a, None], 0.0)) * self.design
            hessian[:, a, :, a] = root.T @ root  # a matrix by itself: half the work
            for b in range(a):
                part = self.design.T @ (curvatures[:, a, b, None] * self.design)
                hessian[:, a, :, b] = part
                hessian[:, b, :, a] = part.T
        return self._penalized(hessian)

    def flat_hessian(self, weights: Floats) -> Floats:
        """The second derivative where no record is predicted surely: the largest there can be."""
        root = np.sqrt(self.family.flat * weights)[:, None] * self.design
        gram = root.T @ root
        return self._penalized(np.einsum("de,ab->daeb", gram, np.eye(self.basis.shape[1])))

    def _penalized(self, hessian: Floats) -> Floats:
        width, free = hessian.shape[:2]
        matrix = hessian.reshape(width * free, width * free)
        matrix[np.diag_indices(len(matrix))] += np.repeat(self.penalties[:, 0, 0], free)
        return matrix

    def objective(self, model: Floats, weights: Floats) -> float:
        """The sum itself at one model (D, K)."""
        losses = self.family.losses(self.design @ (model @ self.basis.T), self.targets)
        return float(weights @ losses + (self.penalties[:, 0] * model**2).sum() / 2)

    def magnitudes(self, model: Floats, weights: Floats) -> Floats:
        """The size of the terms that cancel in the gradient at one model, (D, K)."""
        logits = self.design @ (model @ self.basis.T)
        residuals = self.family.residuals(logits[..., None], self.targets)[..., 0] @ self.basis
        sizes: Floats = np.abs(self.design).T @ (weights[:, None] * np.abs(residuals))
        return sizes + self.penalties[:, 0] * np.abs(model)

    def parameters(self, models: Floats) -> Floats:
        """Models (D, K, m) as the user knows them: weights and intercept, (m, C, d + 1)."""
        theta = np.moveaxis(self.basis @ models, 2, 0).swapaxes(1, 2)
        weights, intercept = theta[..., :-1], theta[..., -1:]
        if self.rotation is not None:
            weights = weights @ self.rotation.T
        return np.concatenate([weights, intercept - (weights @ self.centre)[..., None]], axis=2)


def _row_space(centred: Floats, scale: float) -> Floats:
    """An orthonormal basis (d, rank) of what the rows (n, d) span.

    scale: the size of the numbers before they were centred, which left rounding errors of it.
    """
    directions, triangle, _ = qr(centred.T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(triangle))
    limit = np.finfo(np.float64).eps * max(centred.shape) * max(scale, sizes[0])
    basis: Floats = np.asarray(directions[:, : np.count_nonzero(sizes > limit)], dtype=np.float64)
    return basis
