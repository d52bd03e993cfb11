"""Which records can be the most influential: all others are left out before exact products.

The change of a logit without record j is x·w_j, and the k most influential records are among the k
lowest and the k highest changes. Two bounds say who cannot be there. Queries near one another have
nearly the same changes: at a distance of r from their centre they are off by at most r‖w_j‖, so
that the products of the centre alone leave few records to compare. And products in single precision
are twice as fast, and off by at most γ‖x‖‖w_j‖, γ the number of terms times the unit of rounding
(Higham 2002, section 3.1, and the rounding of x and w themselves): whoever is within twice that of
an end is compared in double precision. Neither changes an answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.protocols import Bools, Floats, Indices

_UNIT = 2.0**-24
_DOUBLE = 2.0**-29  # the unit of rounding in double precision, in those of single
_CENTRED = 32  # queries whose mean is taken for the centre of all


@dataclass(frozen=True, eq=False)
class Screen:
    """The changes of logits by n records of d features: weights (n, d) and intercepts (n,)."""

    weights: Floats
    intercepts: Floats
    lengths: Floats
    rough: NDArray[np.float32]
    error: float

    @classmethod
    def of(cls, weights: Floats, intercepts: Floats) -> Screen:
        """Prepare the products; error: of a change, for a query of length 1 with its constant 1."""
        squares = np.vecdot(weights, weights)
        longest = float(np.sqrt((squares + np.square(intercepts)).max(initial=0.0)))
        terms = weights.shape[1] + 3  # with the intercept, and a rounding of each factor
        error = 1.01 * terms * _UNIT * longest
        return cls(weights, intercepts, np.sqrt(squares), weights.astype(np.float32), error)

    def candidates(self, queries: Floats, k: int) -> Indices:
        """The records (c,) that may be one of the k lowest or highest changes of a query.

        At least all of those of every query, in order; few more where the queries (q, d), at least
        one, are near one another.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            centre = queries[:: -(-len(queries) // _CENTRED)].mean(axis=0)
            changes = self.weights @ centre + self.intercepts
            distance = _farthest(queries, centre)
            off = distance * self.lengths
            # The products of the centre and of the queries are rounded too.
            off += 2.0 * _DOUBLE * self.error * (np.sqrt(1.0 + centre @ centre) + distance)
            last = len(changes) - k
            low = np.partition(changes + off, k - 1)[k - 1]
            high = np.partition(changes - off, last)[last]
            # What is too large to be a number leaves nobody out.
            left_out = (changes - off > low) & (changes + off < high)
        return np.flatnonzero(~left_out)

    def pairs(self, queries: Floats, k: int) -> tuple[Indices, Indices]:
        """Queries and records (p,) that may be one of the k lowest or highest changes of a query.

        At least all of those, query by query; few more where single precision tells them apart.
        """
        mask = self._near_the_ends(queries, k)
        rows, records = np.nonzero(mask)
        return rows, records

    def changes(self, queries: Floats, rows: Indices, records: Indices) -> Floats:
        """The changes (p,) of queries (q, d) without these records, in double precision."""
        products: Floats = np.einsum("pd,pd->p", queries[rows], self.weights[records])
        return products + self.intercepts[records]

    def _near_the_ends(self, queries: Floats, k: int) -> Bools:
        with np.errstate(over="ignore", invalid="ignore"):
            changes = queries.astype(np.float32) @ self.rough.T
            changes += self.intercepts.astype(np.float32)
            return self._within(changes, queries, k)

    def _within(self, changes: NDArray[np.float32], queries: Floats, k: int) -> Bools:
        """Who is near an end, from rough changes (q, n)."""
        lengths = np.sqrt(1.0 + np.square(queries).sum(axis=1, keepdims=True))
        within = 2.0 * self.error * lengths
        if k == 1:
            low, high = changes.min(axis=1, keepdims=True), changes.max(axis=1, keepdims=True)
        else:
            last = changes.shape[1] - k
            ordered = np.partition(changes, [k - 1, last], axis=1)
            low, high = ordered[:, k - 1 : k], ordered[:, last : last + 1]
        # Rounded away from the ends, so that a comparison in single precision leaves nobody out.
        below = np.nextafter((low + within).astype(np.float32), np.float32(np.inf))
        above = np.nextafter((high - within).astype(np.float32), np.float32(-np.inf))
        near: Bools = changes <= below
        near |= changes >= above
        # What is too large for single precision is compared in double for every record.
        near[~np.isfinite(below - above)[:, 0]] = True
        return near


def _farthest(queries: Floats, centre: Floats) -> float:
    """The largest distance of a query (q, d) from the centre (d,), or a little more."""
    squares, length = np.vecdot(queries, queries), float(centre @ centre)
    apart = squares - 2.0 * (queries @ centre) + length
    # The difference has lost the digits that the squares share.
    lost = 8.0 * len(centre) * _UNIT * _DOUBLE * (squares + length)
    return float(np.sqrt((apart + lost).max()))
