"""Random training sets short of one record, solved so that any record can complete them.

A base is n − 1 records and a partner. Completed with the record that is asked about it gives a
model with that record, completed with the partner one without it. Ridge regression is

    minimize  ‖y − Xθ‖² / n + λ‖θ‖²,   (XᵀX + nλI) θ = Xᵀy,

without an intercept; where several θ do equally well, it is the shortest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.protocols import Floats

Indices = NDArray[np.intp]

_BLOCK = 2**22  # numbers gathered from the features at a time, 32 MB
_OPEN = 1e-16  # squared sine of the angle below which a record adds no direction to a base


@dataclass(frozen=True)
class Bases:
    """M bases of n − 1 records of p features, and what completing them needs.

    members (M, n): the records of each, the partner last. theta (M, p): the solution of each base
    under the penalty of n records. inverse (M, p, p): of its penalized Gram matrix, on the
    directions it has. outside (M, p, p): the projection on the directions it leaves open, zero
    unless it is singular. without (M, p): the solution when the partner completes it.
    """

    members: Indices
    theta: Floats
    inverse: Floats
    outside: Floats
    without: Floats


def draw_members(records: int, n: int, draws: int, seed: int) -> Indices:
    """Distinct records, (draws, n), each row a uniform sample in random order."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.choice(records, n, replace=False) for _ in range(draws)])


def solve_bases(X: Floats, y: Floats, members: Indices, l2: float) -> Bases:
    """The bases with these members (M, n) of the records X (N, p), y (N,), solved."""
    draws, n = members.shape
    penalty = n * l2
    block = max(1, _BLOCK // (n * X.shape[1]))
    parts = []
    for start in range(0, draws, block):
        rows = members[start : start + block]
        base = rows[:, :-1]
        without, _, _ = solve(X[rows], y[rows], penalty)
        parts.append((*solve(X[base], y[base], penalty), without))
    theta, inverse, outside, without = (
        np.concatenate(pieces) for pieces in zip(*parts, strict=True)
    )
    return Bases(members, theta, inverse, outside, without)


def solve(X: Floats, y: Floats, penalty: float) -> tuple[Floats, Floats, Floats]:
    """Ridge regressions of y (k, n) on X (k, n, p): solutions, inverses and open directions.

    By singular values of X, so that nothing is squared before its rank is known; those that are
    rounding errors count as 0.
    """
    k, n, p = X.shape
    if n < p:  # zero rows change nothing and give every direction a singular value
        X = np.concatenate([X, np.zeros((k, p - n, p))], axis=1)
        y = np.concatenate([y, np.zeros((k, p - n))], axis=1)
    left, values, right = np.linalg.svd(X, full_matrices=False)
    rounding = max(n, p) * np.finfo(np.float64).eps
    values = np.where(values > rounding * values[:, :1], values, 0.0)
    squares = values**2 + penalty
    open_ = squares == 0
    inverses = np.where(open_, 0.0, 1.0 / np.where(open_, 1.0, squares))
    weights = (y[:, None, :] @ left)[:, 0] * values * inverses
    theta = (weights[:, None, :] @ right)[:, 0]
    columns = np.swapaxes(right, 1, 2)
    return theta, (columns * inverses[:, None]) @ right, (columns * open_[:, None]) @ right


@dataclass(frozen=True)
class Completer:
    """A group of m bases laid out for completing all of them with many records at once.

    theta (p, m). inverse (p, p·m): a record times this is its direction in each base. singular:
    which bases leave directions open; outside (p, p·s): the projections on those.
    """

    theta: Floats
    inverse: Floats
    singular: Indices
    outside: Floats

    @classmethod
    def of(cls, bases: Bases, draws: slice) -> Completer:
        """For these draws of the bases."""
        p = bases.theta.shape[1]
        outside = bases.outside[draws]
        singular = np.flatnonzero(outside.any(axis=(1, 2)))
        return cls(
            theta=np.ascontiguousarray(bases.theta[draws].T),
            inverse=np.ascontiguousarray(bases.inverse[draws].transpose(2, 1, 0)).reshape(p, -1),
            singular=singular,
            outside=np.ascontiguousarray(outside[singular].transpose(2, 1, 0)).reshape(p, -1),
        )

    def complete(self, X: Floats, y: Floats) -> Floats:
        """The solutions (r, p, m) of each base completed with each record of X (r, p), y (r,).

        The update is rank one: θ + k(y − xᵀθ) with k = A⁻¹x / (1 + xᵀA⁻¹x). In a singular base
        that is not what a record does that brings a new direction c: there k = c / ‖c‖², and the
        record is fitted exactly (Greville 1960, section 4).
        """
        r, p = X.shape
        directions = (X @ self.inverse).reshape(r, p, -1)
        leverage = np.einsum("rp,rpm->rm", X, directions)
        misses = y[:, None] - X @ self.theta
        directions *= (misses / (1.0 + leverage))[:, None]
        if self.singular.size:
            self._open_directions(X, misses[:, self.singular], directions)
        directions += self.theta
        return directions

    def _open_directions(self, X: Floats, misses: Floats, directions: Floats) -> None:
        """Put right, in place, the records that bring a new direction to a singular base."""
        new = (X @ self.outside).reshape(*X.shape, -1)
        squares = np.einsum("rpm,rpm->rm", new, new)
        brings = squares > _OPEN * np.einsum("rp,rp->r", X, X)[:, None]
        scale = np.divide(misses, squares, out=np.zeros_like(squares), where=brings)
        directions[:, :, self.singular] = np.where(
            brings[:, None], new * scale[:, None], directions[:, :, self.singular]
        )
