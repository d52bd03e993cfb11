"""Training sets drawn for a ridge regression and solved once, ready for any records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from leakscope.errors import InputError
from leakscope.exact.bases import draw_members, solve_bases
from leakscope.exact.checks import checked_population, checked_records
from leakscope.exact.moments import Accumulator, Release
from leakscope.options import magnitude, whole_number
from leakscope.protocols import Floats, Indices

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
        release = Release(noise, grid)
        asked = checked_records(records, size)
        members = draw_members(size, n, draws, seed)
        bases = solve_bases(features, targets, members, l2)
        accumulator = Accumulator.of(bases, _groups(draws), release)
        inside = _memberships(members, asked, size)
        _check_left_out(inside, asked, features.shape[1])
        return cls(features, targets, asked, inside, accumulator)

    def parts(self, size: int) -> list[slice]:
        """The records asked about, so many at a time."""
        return [slice(start, start + size) for start in range(0, len(self.asked), size)]

    def gaussians(self, part: slice) -> tuple[Indices, Floats, Floats, Floats, Floats]:
        """For a part of the records asked about: draws that count (r,), and centred Gaussians.

        Means (r, 1 + G, p) and covariances (r, 1 + G, p, p) with the record, then without it: of
        all draws, and of all but each group.
        """
        chosen, kept = self.asked[part], ~self.inside[part].toarray()
        variance = self.accumulator.release.variance
        with_it, without = self.accumulator.sums(self.X[chosen], self.y[chosen], kept)
        return kept.sum(axis=1), *with_it.gaussians(variance), *without.gaussians(variance)


@contextmanager
def saying_why_singular() -> Iterator[None]:
    """Say of models without a density what to do about it."""
    try:
        yield
    except InputError as error:
        raise InputError(
            "The models with or without some record do not vary in every parameter, so that they "
            "have no density to compare; drop features that depend on others, or give noise, a "
            "grid or more draws"
        ) from error


def _check_left_out(inside: sparse.csr_array, asked: Indices, p: int) -> None:
    """Refuse a record that too few draws leave out to estimate p parameters without any group."""
    draws = inside.shape[1]
    needed = p + 2 + -(-draws // GROUPS)
    kept = draws - np.diff(inside.indptr)
    worst = int(kept.argmin())
    if kept[worst] < needed:
        raise InputError(
            f"Record {asked[worst]} is left out of {kept[worst]} of {draws} draws, where {needed} "
            f"are needed for {p} parameters; take more draws or a smaller n"
        )


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
