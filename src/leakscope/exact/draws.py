"""Training sets drawn for a ridge regression and solved once, ready for any records."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from leakscope.exact.bases import Indices, draw_members, solve_bases
from leakscope.exact.checks import checked_population, checked_records, magnitude, whole_number
from leakscope.exact.moments import Accumulator, Release
from leakscope.protocols import Floats

GROUPS = 20  # of draws, for the delete-group jackknife


@dataclass(frozen=True, eq=False)
class Draws:
    """Training sets of a population X (N, p), y (N,), and the r records that are asked about.

    asked (r,): which they are. inside (r, draws): whether each is in each training set, partner
    included. A draw that has the record in its base, or as the partner, says nothing about it:
    given that it has not, base and partner are a uniform sample of the other records.
    """

    X: Floats
    y: Floats
    asked: Indices
    inside: sparse.csr_array
    accumulator: Accumulator

    @classmethod
    def of(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        n: int,
        l2: float,
        noise: float,
        grid: float | None,
        draws: int,
        records: ArrayLike | None,
        seed: int,
    ) -> Draws:
        """Check the options (see ``ridge_leakage``), draw the training sets and solve them."""
        features, targets = checked_population(X, y)
        size = len(features)
        whole_number("n", n, 1, size - 1)
        whole_number("draws", draws, 2 * GROUPS)
        whole_number("seed", seed, 0)
        magnitude("l2", l2)
        magnitude("noise", noise)
        if grid is not None:
            magnitude("grid", grid, above=True)
        asked = checked_records(records, size)
        members = draw_members(size, n, draws, seed)
        bases = solve_bases(features, targets, members, l2)
        accumulator = Accumulator.of(bases, _groups(draws), Release(noise, grid))
        return cls(features, targets, asked, _memberships(members, asked, size), accumulator)

    def fewest(self) -> tuple[int, int, int]:
        """The record that the fewest draws leave out, how many do, and how many are needed.

        Those are more than there are parameters, also without any one group.
        """
        draws, p = self.inside.shape[1], self.X.shape[1]
        kept = draws - np.diff(self.inside.indptr)
        worst = int(kept.argmin())
        return int(self.asked[worst]), int(kept[worst]), p + 2 + -(-draws // GROUPS)

    def gaussians(self, part: slice) -> tuple[Indices, Floats, Floats, Floats, Floats]:
        """For a part of the records asked about: draws that count (r,), and centred Gaussians.

        Means (r, 1 + G, p) and covariances (r, 1 + G, p, p) with the record, then without it: of
        all draws, and of all but each group.
        """
        chosen, kept = self.asked[part], ~self.inside[part].toarray()
        variance = self.accumulator.release.variance
        with_it, without = self.accumulator.sums(self.X[chosen], self.y[chosen], kept)
        return kept.sum(axis=1), *with_it.gaussians(variance), *without.gaussians(variance)


def _groups(draws: int) -> tuple[slice, ...]:
    """The draws in GROUPS parts that differ by one at the most."""
    ends = [draws * g // GROUPS for g in range(GROUPS + 1)]
    return tuple(slice(start, end) for start, end in pairwise(ends))


def _memberships(members: Indices, asked: Indices, size: int) -> sparse.csr_array:
    """Whether each record asked about is in each training set, (r, draws)."""
    place = np.full(size, -1)
    place[asked] = np.arange(len(asked))
    rows = place[members]
    draw, column = np.nonzero(rows >= 0)
    shape = len(asked), len(members)
    return sparse.csr_array((np.ones(len(draw), bool), (rows[draw, column], draw)), shape=shape)
