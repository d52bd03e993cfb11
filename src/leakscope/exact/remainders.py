"""What a gradient changes by beyond first order, for many changes of a model at once.

In single precision: the remainder of a change is smaller than the change, and its error is smaller
by 1e-7 still.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.exact.designs import Dense, Design, Sparse, sums
from leakscope.exact.families import Singles
from leakscope.exact.penalized import Regression, times
from leakscope.protocols import Floats, Indices

# How many times their sum the terms of a sparse product may be, as roots of sums of squares: of so
# many their rounding is like that of the products of dense rows, which have more terms.
_CANCELLED = 5.0
_SMALLEST, _LARGEST = 1e-25, 1e25  # of numbers whose products with others can be held


@dataclass(frozen=True, eq=False)
class Remainders:
    """The expansion of a regression's gradient around one of its models.

    design (n, D): rows over the family's unit, and rows times that unit and each record's weight
    and scale; known (n, C, 1): what the family knows of the logits there.
    """

    regression: Regression
    design: Design[np.float32]
    known: Singles

    @classmethod
    def around(cls, regression: Regression, model: Floats) -> Remainders:
        """Around this model (D, K)."""
        logits = regression.design @ (model @ regression.basis.T)
        known, scales = regression.family.expansion(logits)
        unit = regression.family.unit
        weights = regression.weights * scales * unit
        design: Design[np.float32]
        if (sparse := regression.factored) is not None and _digits_kept(regression, sparse):
            design = sparse.single(weights, unit)
        else:
            rows, weighted = regression.design / unit, weights[:, None] * regression.design
            design = Dense(rows.astype(np.float32), weighted.astype(np.float32))
        return cls(regression, design, known)

    def of(self, changes: Singles, records: Indices, roughly: bool = False) -> Singles:
        """The remainders (D, K, m) of changes (D, K, m), each without the one of m records."""
        basis, family = self.regression.basis.astype(np.float32), self.regression.family
        remainders = family.roughly if roughly else family.remainders

        def beyond(rows: slice, moves: Singles, *spare: Singles) -> Singles:
            return remainders(self.known[rows], moves, spare)

        total = sums(self.design, times(basis, changes), beyond, records, spare=3)
        return times(basis.T, total)


def _digits_kept(regression: Regression, sparse: Sparse[np.float64]) -> bool:
    """Whether products with a sparse matrix are as exact as with its dense product with the lead.

    They are not where features are collinear and little penalized, so that large weights cancel;
    nor of numbers that are hardly any, or none, in single precision.
    """
    sizes = np.abs(np.append(sparse.rows[0].data, sparse.rows[1]))
    if sizes[sizes > 0].min() < _SMALLEST or sizes.max() > _LARGEST:
        return False
    terms = sparse.squared(np.einsum("sd,sd->s", sparse.lead, sparse.lead))
    return float((terms / regression.squares).mean()) <= _CANCELLED**2
