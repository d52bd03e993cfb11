"""A penalized regression as the sum it minimizes: its gradient and curvature for many models.

    minimize  Σ weight · loss(logits of the record, its target) + ½ l2 ‖w‖²,

with an intercept that is not penalized. Features are centred, which changes the intercept alone;
and the weights of an optimum lie in the row space of the centred features. So features that are the
same for all records have no weight and are left out; and with more features than records, or with
l2 = 0, the coordinates are those in a basis of that space. Of many optima, which collinear features
have at l2 = 0, that is the shortest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from leakscope.exact.designs import BLOCK, Dense, Design, Number, Sparse, factored, spans, sums
from leakscope.exact.families import Family
from leakscope.exact.threads import Each
from leakscope.protocols import Bools, Floats, Indices

_ROWS, _PARTS = 1024, 16  # records that one thread is given at the least, and groups of them
_FEW = 8  # models up to which products with a dense matrix are faster than with a sparse one


@dataclass(frozen=True, eq=False)
class Regression:
    """What is minimized, in D coordinates of which the last is the intercept.

    design (n, D), mirrored for one of two classes, targets (n,) and weights (n,) of the records.
    Models are arrays of free parameters (D, K, m). varied (d,): which v features are not the same
    for all records. Of these, centre (v,) and rotation (v, D − 1), or None, lead back to them. turn
    (D, D): leads back from other coordinates, or None, see ``turned``; factored: the design in
    those, where a sparse matrix leads to it. penalty (D,): of the square of each coordinate; of
    products of two of them, (D, D), where they are turned.
    """

    family: Family
    design: Floats
    targets: NDArray[Any]
    weights: Floats
    l2: float
    varied: Bools
    centre: Floats
    rotation: Floats | None
    turn: Floats | None = None
    factored: Sparse[np.float64] | None = None
    penalty: Floats = field(init=False)
    basis: Floats = field(init=False)

    def __post_init__(self) -> None:
        penalty = np.full(self.design.shape[1], self.l2)
        penalty[-1] = 0.0
        if self.turn is not None:
            penalty = self.turn.T @ (penalty[:, None] * self.turn)
        object.__setattr__(self, "penalty", penalty)
        object.__setattr__(self, "basis", self.family.basis)

    @classmethod
    def of(
        cls, family: Family, X: Floats, targets: NDArray[Any], weights: Floats, l2: float
    ) -> Regression:
        """The regression of targets (n,) on features (n, d)."""
        counted = weights > 0
        first = X[counted.argmax()]
        varied = (first != X)[counted].any(axis=0)
        some = X[:, varied]
        centre = weights @ some / weights.sum()
        design = np.ones((len(some), some.shape[1] + 1))
        np.subtract(some, centre, out=design[:, :-1])
        rotation = None
        if varied.any() and (l2 == 0 or some.shape[1] >= len(some)):
            rotation = _row_space(design[counted, :-1], float(np.abs(some).max()))
            design = np.column_stack([design[:, :-1] @ rotation, design[:, -1]])
        if family.name == "binomial":  # the mirror image of a record is one of the other class
            design *= np.where(targets == 1, 1.0, -1.0)[:, None]
            targets = np.ones_like(targets)
        return cls(family, design, targets, weights, l2, varied, centre, rotation)

    def turned(self, turn: Floats, each: Each = map) -> Regression:
        """The same in coordinates that this matrix (D, D) leads back from.

        each: maps what is done for groups of records.
        """
        design = np.empty((len(self.design), turn.shape[1]))

        def put(rows: slice) -> None:
            np.matmul(self.design[rows], turn, out=design[rows])

        for _ in each(put, spans(len(design), _ROWS)):
            pass
        found = factored(self.design) if self.rotation is None else None
        sparse = None if found is None else found.turned(turn)
        return replace(self, design=design, turn=turn, factored=sparse)

    def gradients(self, models: Floats, weights: Floats, without: Indices | None = None) -> Floats:
        """The gradient of the sum at each of m models (D, K, m), in the same shape.

        without (m,): a record for each model that is not in its sum.
        """
        gradients = self.penalty_gradient(models)

        def residuals(rows: slice, logits: Floats) -> Floats:
            return self.family.residuals(logits, self.targets[rows], weights[rows])

        design: Design[np.float64] = Dense(self.design, self.design)
        if self.factored is not None and models.shape[2] > _FEW:
            design = self.factored
        total = sums(design, times(self.basis, models), residuals, without)
        gradients += times(self.basis.T, total)
        return gradients

    @cached_property
    def squares(self) -> Floats:
        """The square of the length of each row of the design, (n,)."""
        squares: Floats = np.einsum("nd,nd->n", self.design, self.design)
        return squares

    @property
    def reach(self) -> float:
        """The length of the longest row of the design."""
        return float(np.sqrt(self.squares.max()))

    def largest_changes(self, changes: Floats) -> Floats:
        """The most by which changes (D, K, m) of m models move a logit of any record, (m,).

        Between several logits it is the difference that counts.
        """
        width, _, m = changes.shape
        outputs = len(self.basis)
        logits = (self.basis @ changes).reshape(width, outputs * m)
        largest = np.zeros(m)
        for rows in spans(len(self.design), BLOCK // 8 // max(1, outputs * m)):
            part = self.design[rows]
            block = (part @ logits).reshape(len(part), outputs, m)
            spread = np.ptp(block, axis=1) if outputs > 1 else np.abs(block[:, 0])
            np.maximum(largest, spread.max(axis=0), out=largest)
        return largest

    def own_gradients(self, models: Floats, records: Indices) -> Floats:
        """What record j adds to the gradient of model j, for m records and models (D, K, m)."""
        rows = self.design[records]
        logits = np.einsum("dm,dcm->mc", rows.T.copy(), times(self.basis, models))
        residuals = self.family.residuals(
            logits[..., None], self.targets[records], self.weights[records]
        )[..., 0]
        own: Floats = rows.T[:, None] * (residuals @ self.basis).T
        return own

    def own_curvatures(self, model: Floats, records: Indices) -> Floats:
        """The weighted second derivative of these records' losses at one model, (m, K, K)."""
        logits = self.design[records] @ (model @ self.basis.T)
        return self.weights[records, None, None] * self.family.curvatures(logits)

    def hessian(self, model: Floats, weights: Floats, each: Each = map) -> Floats:
        """The second derivative of the sum at one model (D, K), as a matrix (D·K, D·K)."""
        width, free = model.shape
        curvatures = self.family.curvatures(self.design @ (model @ self.basis.T))
        curvatures *= weights[:, None, None]
        hessian = np.empty((width, free, width, free))
        for a in range(free):
            hessian[:, a, :, a] = self._gram(np.maximum(curvatures[:, a, a], 0.0), each)
            for b in range(a):
                part = self.design.T @ (curvatures[:, a, b, None] * self.design)
                hessian[:, a, :, b] = part
                hessian[:, b, :, a] = part.T
        return self._penalized(hessian)

    def flat_hessian(self, weights: Floats, each: Each = map) -> Floats:
        """The second derivative where no record is predicted surely: the largest there can be."""
        gram = self._gram(self.family.flat * weights, each)
        return self._penalized(np.einsum("de,ab->daeb", gram, np.eye(self.basis.shape[1])))

    def _gram(self, weights: Floats, each: Each) -> Floats:
        """The sum over the records of a weight times the square of the row, (D, D)."""
        roots, width = np.sqrt(weights)[:, None], self.design.shape[1]

        def part(rows: slice) -> Floats:
            total = np.zeros((width, width))
            for some in spans(rows.stop - rows.start, BLOCK // 8 // width):
                root = roots[rows][some] * self.design[rows][some]
                total += root.T @ root  # a matrix by itself: half the work
            return total

        count, gram = len(self.design), np.zeros((width, width))
        # Few parts, as each has a matrix of its own.
        for one in each(part, spans(count, max(_ROWS, count // _PARTS))):
            gram += one
        return gram

    def _penalized(self, hessian: Floats) -> Floats:
        width, free = hessian.shape[:2]
        matrix = hessian.reshape(width * free, width * free)
        if self.penalty.ndim == 1:
            matrix[np.diag_indices(len(matrix))] += np.repeat(self.penalty, free)
        else:
            matrix += np.kron(self.penalty, np.eye(free))
        return matrix

    def penalty_gradient(self, models: Floats) -> Floats:
        """The derivative of the penalty at models (D, K, …)."""
        return _weighed(self.penalty, models)

    def objective(self, model: Floats, weights: Floats) -> float:
        """The sum itself at one model (D, K)."""
        losses = self.family.losses(self.design @ (model @ self.basis.T), self.targets)
        return float(weights @ losses + (self.penalty_gradient(model) * model).sum() / 2)

    def magnitudes(self, model: Floats, weights: Floats) -> Floats:
        """The size of the terms that cancel in the gradient at one model, (D, K)."""
        logits = self.design @ (model @ self.basis.T)
        residuals = self.family.residuals(logits[..., None], self.targets, weights)[..., 0]
        sizes: Floats = np.abs(self.design).T @ np.abs(residuals @ self.basis)
        return sizes + _weighed(np.abs(self.penalty), np.abs(model))

    def parameters(self, models: Floats) -> Floats:
        """Models (D, K, m) as the user knows them: weights and intercept, (m, C, d + 1)."""
        if self.turn is not None:
            models = np.tensordot(self.turn, models, 1)
        found = np.ascontiguousarray(times(self.basis, models).transpose(2, 1, 0))
        flat = found.reshape(-1, found.shape[2])  # one product in place of one for each model
        weights = flat[:, :-1] if self.rotation is None else flat[:, :-1] @ self.rotation.T
        theta = np.zeros((len(flat), len(self.varied) + 1))
        theta[:, np.append(self.varied, False)] = weights
        theta[:, -1] = flat[:, -1] - weights @ self.centre
        return theta.reshape(*found.shape[:2], -1)


def _weighed(penalty: Floats, models: Floats) -> Floats:
    """The penalty (D,) or (D, D) times models (D, K, …)."""
    if penalty.ndim == 1:
        each: Floats = penalty.reshape(-1, *[1] * (models.ndim - 1)) * models
        return each
    return np.tensordot(penalty, models, 1)


def times(basis: NDArray[Number], models: NDArray[Number]) -> NDArray[Number]:
    """The basis (C, K) times models (D, K, m); where one output is free they are themselves."""
    return models if basis.size == 1 else basis @ models


def _row_space(centred: Floats, scale: float) -> Floats:
    """An orthonormal basis (d, rank) of what the rows (n, d) span.

    scale: the size of the numbers before they were centred, which left rounding errors of it.
    """
    directions, triangle, _ = qr(centred.T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(triangle))
    limit = np.finfo(np.float64).eps * max(centred.shape) * max(scale, sizes[0])
    basis: Floats = np.asarray(directions[:, : np.count_nonzero(sizes > limit)], dtype=np.float64)
    return basis
