"""Random training sets short of one record, solved so that any record can complete them.

A base is n − 1 records and a partner. Completed with the record that is asked about it gives a
model with that record, completed with the partner one without it. Ridge regression is

    minimize  ‖y − Xθ‖² / n + λ‖θ‖²,   (XᵀX + nλI) θ = Xᵀy,

without an intercept; where several θ do equally well, it is the shortest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.protocols import Bools, Floats, Indices

_BLOCK = 2**22  # numbers gathered from the features at a time, 32 MB
_ILL = 1e-9  # ratio of squared singular values below which an update would lose its digits

# Sine of the angle between a record and what a singular base spans: below the first it is a
# rounding error, above the second the direction is new, and between them the record is solved for.
_SPANNED, _NEW = 1e-14, 1e-4


@dataclass(frozen=True)
class Solved:
    """k ridge regressions on p features, solved.

    theta (k, p). inverse (k, p, p): of the penalized Gram matrix, on the directions the records
    have. outside (k, p, p): the projection on the directions left open, zero unless singular.
    root (k, p, p) and aim (k, p): p records that stand for all, with the same XᵀX and Xᵀy. ill
    (k,): whether the inverse is too ill-conditioned to be updated.
    """

    theta: Floats
    inverse: Floats
    outside: Floats
    root: Floats
    aim: Floats
    ill: Bools


@dataclass(frozen=True)
class Bases:
    """M bases of n − 1 records of p features, and what completing them needs.

    members (M, n): the records of each, the partner last. penalty: nλ, that of n records. base:
    each solved under it. without (M, p): the solution when the partner completes it.
    """

    members: Indices
    penalty: float
    base: Solved
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
    bases, without = [], []
    for start in range(0, draws, block):
        rows = members[start : start + block]
        base = rows[:, :-1]
        without.append(solve(X[rows], y[rows], penalty, n).theta)
        bases.append(solve(X[base], y[base], penalty, n))
    parts = zip(*(vars(one).values() for one in bases), strict=True)
    together = Solved(*(np.concatenate(pieces) for pieces in parts))
    return Bases(members, penalty, together, np.concatenate(without))


def solve(X: Floats, y: Floats, penalty: float, records: int) -> Solved:
    """Ridge regressions of y (k, n) on X (k, n, p).

    By singular values of X, so that nothing is squared before its rank is known; those that are
    rounding errors for so many records count as 0.
    """
    k, n, p = X.shape
    if n < p:  # zero rows change nothing and give every direction a singular value
        X = np.concatenate([X, np.zeros((k, p - n, p))], axis=1)
        y = np.concatenate([y, np.zeros((k, p - n))], axis=1)
    left, values, right = np.linalg.svd(X, full_matrices=False)
    rounding = max(records, p) * np.finfo(np.float64).eps
    values = np.where(values > rounding * values[:, :1], values, 0.0)
    squares = values**2 + penalty
    open_ = squares == 0
    inverses = np.where(open_, 0.0, 1.0 / np.where(open_, 1.0, squares))
    aim = (y[:, None, :] @ left)[:, 0]
    columns = np.swapaxes(right, 1, 2)
    return Solved(
        theta=((aim * values * inverses)[:, None, :] @ right)[:, 0],
        inverse=(columns * inverses[:, None]) @ right,
        outside=(columns * open_[:, None]) @ right,
        root=values[:, :, None] * right,
        aim=aim,
        ill=(inverses * squares[:, :1]).max(axis=1) > 1 / _ILL,
    )


@dataclass(frozen=True)
class Completer:
    """A group of m bases laid out for completing all of them with many records at once.

    n: the records of a completed base; base: the m of them. theta (p, m). inverse (p, p·m): a
    record times this is its direction in each base. singular (s,): which bases leave directions
    open; outside (p, p·s): the projections on those.
    """

    n: int
    penalty: float
    base: Solved
    theta: Floats
    inverse: Floats
    singular: Indices
    outside: Floats

    @classmethod
    def of(cls, bases: Bases, draws: slice) -> Completer:
        """For these draws of the bases."""
        base = Solved(*(part[draws] for part in vars(bases.base).values()))
        p = base.theta.shape[1]
        singular = np.flatnonzero(base.outside.any(axis=(1, 2)))
        return cls(
            n=bases.members.shape[1],
            penalty=bases.penalty,
            base=base,
            theta=np.ascontiguousarray(base.theta.T),
            inverse=np.ascontiguousarray(base.inverse.transpose(2, 1, 0)).reshape(p, -1),
            singular=singular,
            outside=np.ascontiguousarray(base.outside[singular].transpose(2, 1, 0)).reshape(p, -1),
        )

    def complete(self, X: Floats, y: Floats) -> Floats:
        """The solutions (r, p, m) of each base completed with each record of X (r, p), y (r,).

        The update is rank one: θ + k(y − xᵀθ) with k = A⁻¹x / (1 + xᵀA⁻¹x). In a singular base
        that is not what a record does that brings a new direction c: there k = c / ‖c‖², and the
        record is fitted exactly (Greville 1960, section 4). Where either would lose its digits,
        the completed base is solved from its singular values.
        """
        r, p = X.shape
        directions = (X @ self.inverse).reshape(r, p, -1)
        leverage = np.einsum("rp,rpm->rm", X, directions)
        misses = y[:, None] - X @ self.theta
        directions *= (misses / (1.0 + leverage))[:, None]
        doubtful = np.broadcast_to(self.base.ill, leverage.shape).copy()
        if self.singular.size:
            doubtful[:, self.singular] |= self._open_directions(
                X, misses[:, self.singular], directions
            )
        directions += self.theta
        records, bases = np.nonzero(doubtful)
        block = max(1, _BLOCK // (p * (p + 1)))
        for start in range(0, len(records), block):
            one, base = records[start : start + block], bases[start : start + block]
            directions[one, :, base] = self._solved(X[one], y[one], base)
        return directions

    def _open_directions(self, X: Floats, misses: Floats, directions: Floats) -> Bools:
        """Put right, in place, the records that bring a new direction to a singular base.

        Gives those (r, s) of which it is hard to say.
        """
        new = (X @ self.outside).reshape(*X.shape, -1)
        squares = np.einsum("rpm,rpm->rm", new, new)
        lengths = np.einsum("rp,rp->r", X, X)[:, None]
        brings = squares > _NEW**2 * lengths
        scale = np.divide(misses, squares, out=np.zeros_like(squares), where=brings)
        directions[:, :, self.singular] = np.where(
            brings[:, None], new * scale[:, None], directions[:, :, self.singular]
        )
        return np.asarray(~brings & (squares > _SPANNED**2 * lengths))

    def _solved(self, X: Floats, y: Floats, base: Indices) -> Floats:
        """The solutions (k, p) of these bases (k,), each completed with its record (k, p), (k,)."""
        completed = np.concatenate([self.base.root[base], X[:, None]], axis=1)
        targets = np.concatenate([self.base.aim[base], y[:, None]], axis=1)
        return solve(completed, targets, self.penalty, self.n).theta
