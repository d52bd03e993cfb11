"""Membership leakage of ridge regression, with and without each record (Farokhi & Kaafar 2020).

Their remark 3 fits Gaussians to models trained with and without a record. Here the two samples
are paired: a base of n − 1 records is completed with the record, or with another one, so that the
noise the two share cancels; and completing is a rank-one update, so that the same bases serve
every record. Each sample alone is what independent training would give.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy import sparse
from threadpoolctl import threadpool_limits

from leakscope.errors import InputError
from leakscope.exact.bases import Indices, draw_members, solve_bases
from leakscope.exact.checks import checked_population, checked_records, magnitude, whole_number
from leakscope.exact.moments import Accumulator, Release
from leakscope.exact.result import RidgeLeakage
from leakscope.metrics.gaussian import jeffreys
from leakscope.protocols import Bools, Floats

GROUPS = 20  # of draws, for the delete-group jackknife

_CHUNK = (
    2**16
)  # numbers in the solutions of one chunk of records and one group of draws: fits caches


def ridge_leakage(
    X: ArrayLike,
    y: ArrayLike,
    n: int,
    l2: float = 0.0,
    noise: float = 0.0,
    grid: float | None = None,
    draws: int = 1000,
    *,
    records: ArrayLike | None = None,
    seed: int = 0,
    workers: int | None = None,
) -> RidgeLeakage:
    """How much a ridge regression on n of these records tells of who was among them.

    X (N, p) and y (N,): the population. l2: λ in mean squared error + λ‖θ‖², without an intercept.
    What is released is θ rounded to multiples of ``grid``, with Gaussian noise of deviation
    ``noise`` on each coordinate. draws: training sets, at least 40. records: the indices or a mask
    of the records to ask about, all by default. workers: threads, as many as there are cores by
    default; the figures do not depend on it.
    """
    features, targets = checked_population(X, y)
    size, p = features.shape
    whole_number("n", n, 1, size - 1)
    whole_number("draws", draws, 2 * GROUPS)
    whole_number("seed", seed, 0)
    if workers is not None:
        whole_number("workers", workers, 1)
    magnitude("l2", l2)
    magnitude("noise", noise)
    if grid is not None:
        magnitude("grid", grid, above=True)
    asked = checked_records(records, size)
    with threadpool_limits(limits=1):  # many small products: threads of BLAS would only wait
        members = draw_members(size, n, draws, seed)
        bases = solve_bases(features, targets, members, l2)
        accumulator = Accumulator.of(bases, _groups(draws), Release(noise, grid))
        inside = _memberships(members, asked, size)
        _refuse_few(inside, asked, p)
        step = max(16, _CHUNK * GROUPS // (draws * p))
        parts = Parallel(n_jobs=workers or -1, prefer="threads")(
            delayed(_leakage_of)(
                accumulator,
                features[asked[start : start + step]],
                targets[asked[start : start + step]],
                ~inside[start : start + step].toarray(),
            )
            for start in range(0, len(asked), step)
        )
    found = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    rho_kl, replicates, kept, mean1, cov1, mean0, cov0 = found
    return RidgeLeakage(
        records=asked,
        population=size,
        n=n,
        draws=draws,
        rho_kl=rho_kl,
        replicates=replicates,
        kept=kept,
        mean_with=mean1 + accumulator.centre,
        cov_with=cov1,
        mean_without=mean0 + accumulator.centre,
        cov_without=cov0,
    )


def _leakage_of(
    accumulator: Accumulator, X: Floats, y: Floats, kept: Bools
) -> tuple[Indices | Floats, ...]:
    """For a chunk of r records: rho_kl, its replicates, draws kept, and the two centred Gaussians.

    kept (r, M): which draws count for each record.
    """
    variance = accumulator.release.variance
    sums1, sums0 = accumulator.sums(X, y, kept)
    mean1, cov1 = sums1.gaussians(variance)
    mean0, cov0 = sums0.gaussians(variance)
    try:
        rho = jeffreys(mean1, cov1, mean0, cov0)
    except InputError as error:
        raise InputError(
            "The models with or without some record do not vary in every parameter, so that they "
            "have no density to compare; drop features that depend on others, or give noise, a "
            "grid or more draws"
        ) from error
    gaussians = mean1[:, 0], cov1[:, 0], mean0[:, 0], cov0[:, 0]
    return rho[:, 0], rho[:, 1:], kept.sum(axis=1), *gaussians


def _groups(draws: int) -> tuple[slice, ...]:
    """The draws in GROUPS parts that differ by one at the most."""
    ends = [draws * g // GROUPS for g in range(GROUPS + 1)]
    return tuple(slice(start, end) for start, end in pairwise(ends))


def _memberships(members: Indices, asked: Indices, size: int) -> sparse.csr_array:
    """Whether each record asked about is in each training set, partner included: (r, draws).

    A draw that has the record in its base, or as the partner, says nothing about it: given that it
    has not, base and partner are a uniform sample of the other records.
    """
    place = np.full(size, -1)
    place[asked] = np.arange(len(asked))
    rows = place[members]
    draw, column = np.nonzero(rows >= 0)
    shape = len(asked), len(members)
    return sparse.csr_array((np.ones(len(draw), bool), (rows[draw, column], draw)), shape=shape)


def _refuse_few(inside: sparse.csr_array, asked: Indices, p: int) -> None:
    """Each record needs more draws than parameters, also without any one group."""
    draws = inside.shape[1]
    kept = draws - np.diff(inside.indptr)
    worst = int(kept.argmin())
    needed = p + 2 + -(-draws // GROUPS)
    if kept[worst] < needed:
        raise InputError(
            f"Record {asked[worst]} is left out of {kept[worst]} of {draws} draws, where {needed} "
            f"are needed for {p} parameters; take more draws or a smaller n"
        )
