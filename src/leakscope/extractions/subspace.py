"""Affine subspaces of queries, cut down by one linear condition after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dger

from leakscope.protocols import Floats


@dataclass(frozen=True, eq=False)
class Subspace:
    """The points origin + t @ basis: origin (d,), basis (r, d) with orthonormal rows."""

    origin: Floats
    basis: Floats

    @classmethod
    def whole(cls, d: int) -> Subspace:
        """All points of d coordinates."""
        return cls(np.zeros(d), np.eye(d))

    @property
    def dimension(self) -> int:
        """How many directions are left, r."""
        return len(self.basis)

    def nearest(self, point: Floats) -> Floats:
        """The point of the subspace that is nearest to a point (d,)."""
        return self.origin + (self.basis @ (point - self.origin)) @ self.basis

    def towards(self, points: Floats, gradient: Floats, rises: Floats) -> Floats:
        """The nearest points at which a function of this gradient (d,) is larger by the rises (q,).

        The points (q, d) themselves where the function hardly changes within the subspace.
        """
        inside = self.basis @ gradient
        square = float(inside @ inside)
        # Below, what is left of the gradient is mostly rounding, and the way would be too long.
        if square <= 1e-12 * float(gradient @ gradient):
            return points
        return points + rises[:, None] * ((inside / square) @ self.basis)

    def cut(self, point: Floats, slope: Floats, value: float) -> Subspace:
        """The part on which value + slope · t is 0, where t (r,) is counted from ``point``.

        One Householder reflection turns the slope into the first direction, which then goes; the
        others stay orthonormal, at the cost of one product of two vectors.
        """
        length = float(np.linalg.norm(slope))
        reflector = slope / length
        reflector[0] += np.copysign(1.0, reflector[0])
        image = reflector @ self.basis
        factor = -2.0 / float(reflector @ reflector)
        # The transpose is in Fortran's order already: BLAS writes one new array and no other.
        turned = dger(factor, image, reflector, a=self.basis.T).T
        return Subspace(point - (value / length**2 * slope) @ self.basis, turned[1:])
