"""Affine subspaces of queries, cut down by one linear condition after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dger

from leakscope.protocols import Floats

# Points written at a time, so that they stay in the cache while they are worked on.
BLOCK = 64


@dataclass(eq=False)
class Subspace:
    """The queries (origin + t @ basis) · scale: origin (d,), basis (r, d) with orthonormal rows.

    scale (d,): the usual size of each feature. Points within are counted in these sizes, queries
    are not. ``t`` (r,) are the coordinates of a point.
    """

    origin: Floats
    basis: Floats
    scale: Floats

    @classmethod
    def whole(cls, scale: Floats) -> Subspace:
        """All queries of as many features as the scale has."""
        return cls(np.zeros(len(scale)), np.eye(len(scale)), scale)

    @property
    def dimension(self) -> int:
        """How many directions are left, r."""
        return len(self.basis)

    def nearest(self, point: Floats) -> Floats:
        """The coordinates (r,) of the point of the subspace that is nearest to a point (d,)."""
        return self.basis @ (point - self.origin)

    def points(self, coordinates: Floats) -> Floats:
        """The points (q, d) at coordinates (q, r)."""
        return self.origin + coordinates @ self.basis

    def towards(self, coordinates: Floats, gradient: Floats, values: Floats) -> Floats:
        """The nearest coordinates (q, r) at which point @ gradient has the values (q,).

        gradient (d,). Those given where that hardly changes within the subspace.
        """
        inside = self.basis @ gradient
        square = float(inside @ inside)
        # Below, what is left of the gradient is mostly rounding, and the way would be too long.
        if square <= 1e-12 * float(gradient @ gradient):
            return coordinates
        rises = values - (self.origin @ gradient + coordinates @ inside)
        return coordinates + rises[:, None] * (inside / square)

    def queries_along(self, point: Floats, directions: NDArray[np.intp], steps: Floats) -> Floats:
        """The queries (q, d) at steps (q,) from a point (d,), each along one of the basis."""
        queries = np.empty((len(directions), len(point)))
        for start in range(0, len(directions), BLOCK):
            rows = slice(start, start + BLOCK)
            block = np.multiply(self.basis[directions[rows]], steps[rows, None], out=queries[rows])
            block += point
            block *= self.scale
        return queries

    def cut(self, point: Floats, slope: Floats, value: float) -> None:
        """Keep the part on which value + slope · t is 0, where t (r,) is counted from ``point``.

        One Householder reflection turns the slope into the first direction, which then goes; the
        others stay orthonormal, at the cost of one product of two vectors, written in place.
        """
        length = float(np.linalg.norm(slope))
        normal = (slope / length) @ self.basis
        reflector = slope / length
        sign = np.copysign(1.0, reflector[0])
        reflector[0] += sign
        factor = -2.0 / float(reflector @ reflector)
        # The transpose is in Fortran's order already, as BLAS wants it.
        turned = dger(
            factor, normal + sign * self.basis[0], reflector, a=self.basis.T, overwrite_a=True
        )
        self.origin = point - value / length * normal
        self.basis = turned.T[1:]
