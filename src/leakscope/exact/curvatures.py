"""The curvature without each record, many at a time, from the curvature of all.

Leaving out record j takes a term of rank K out of the curvature: H_j = H − U A Uᵀ, with U the
record's features for each of the K free outputs and A (K, K) the curvature of its loss. Woodbury's
identity, Sherman and Morrison's for K = 1, turns H⁻¹ into H_j⁻¹.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from leakscope.exact.designs import Number
from leakscope.protocols import Indices


@dataclass(frozen=True, eq=False)
class Curvatures(Generic[Number]):
    """H_j⁻¹ for each of m records.

    inverse (D·K, D·K): H⁻¹, or None where it is the unit matrix; solved (D, K, K, m): H⁻¹U; inner
    (K, K, m): what Woodbury's identity multiplies.
    """

    inverse: NDArray[Number] | None
    solved: NDArray[Number]
    inner: NDArray[Number]

    def of(self, columns: Indices) -> Curvatures[Number]:
        """Those of some of the records."""
        return Curvatures(self.inverse, taken(self.solved, columns), taken(self.inner, columns))

    def single(self) -> Curvatures[np.float32]:
        """The same in single precision."""
        inverse = None if self.inverse is None else self.inverse.astype(np.float32)
        return Curvatures(inverse, self.solved.astype(np.float32), self.inner.astype(np.float32))

    def steps(self, gradients: NDArray[Number]) -> tuple[NDArray[Number], NDArray[Number]]:
        """H_j⁻¹ times the gradient of each column (D, K, m), and the decrements (m,).

        A decrement is not a number where rounding has left less than nothing of its square.
        """
        if self.inverse is None:
            steps = gradients.copy()
        else:
            flat = gradients.reshape(len(self.inverse), -1)
            steps = (self.inverse @ flat).reshape(gradients.shape)
        steps = self.corrected(steps, gradients)
        with np.errstate(invalid="ignore"):
            return steps, np.sqrt(np.einsum("dkm,dkm->m", gradients, steps))

    def corrected(self, steps: NDArray[Number], gradients: NDArray[Number]) -> NDArray[Number]:
        """H_j⁻¹ times the gradients from H⁻¹ times them, over it."""
        along = np.einsum("dklm,dkm->lm", self.solved, gradients)
        along = np.einsum("klm,lm->km", self.inner, along)
        steps += np.einsum("dklm,lm->dkm", self.solved, along)
        return steps


def taken(array: NDArray[Number], columns: Indices) -> NDArray[Number]:
    """Some of the columns, along the last axis: several times as fast as by brackets."""
    some: NDArray[Number] = np.take(array, columns, axis=-1)
    return some


def joined(parts: Sequence[tuple[Indices, NDArray[Number]]]) -> NDArray[Number]:
    """The columns of all parts in order; each part: which they are (p,), and they (…, p)."""
    places = np.concatenate([columns for columns, _ in parts])
    together = np.concatenate([array for _, array in parts], axis=-1)
    return taken(together, np.argsort(places))
