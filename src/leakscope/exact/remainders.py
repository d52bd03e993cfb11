"""What a gradient changes by beyond first order, for many changes of a model at once.

In single precision: the remainder of a change is smaller than the change, and its error is smaller
by 1e-7 still.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.exact.families import Singles
from leakscope.exact.penalized import Regression, sums, times
from leakscope.protocols import Floats, Indices


@dataclass(frozen=True, eq=False)
class Remainders:
    """The expansion of a regression's gradient around one of its models.

    design (n, D), over the family's unit, and the same times each record's weight and scale; known
    (n, C, 1): what the family knows of the logits there.
    """

    regression: Regression
    design: Singles
    weighted: Singles
    known: Singles

    @classmethod
    def around(cls, regression: Regression, model: Floats) -> Remainders:
        """Around this model (D, K)."""
        logits = regression.design @ (model @ regression.basis.T)
        known, scales = regression.family.expansion(logits)
        unit = regression.family.unit
        weights = (regression.weights * scales * unit)[:, None]
        design, scaled = regression.design / unit, weights * regression.design
        return cls(regression, design.astype(np.float32), scaled.astype(np.float32), known)

    def of(self, changes: Singles, records: Indices) -> Singles:
        """The remainders (D, K, m) of changes (D, K, m), each without the one of m records."""
        basis, family = self.regression.basis.astype(np.float32), self.regression.family

        def beyond(rows: slice, moves: Singles, *spare: Singles) -> Singles:
            return family.remainders(self.known[rows], moves, spare)

        moves = times(basis, changes)
        total = sums(self.design, self.weighted, moves, beyond, records, spare=3)
        return times(basis.T, total)
