"""Membership leakage of ridge regression, with and without each record (Farokhi & Kaafar 2020).

Their remark 3 fits Gaussians to models trained with and without a record. Here the two samples
are paired: a base of n − 1 records is completed with the record, or with another one, so that the
noise the two share cancels; and completing is a rank-one update, so that the same bases serve
every record. Each sample alone is what independent training would give.
"""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from leakscope.exact.draws import GROUPS, Draws, saying_why_singular
from leakscope.exact.result import RidgeLeakage
from leakscope.metrics.gaussian import jeffreys
from leakscope.options import whole_number
from leakscope.protocols import Floats, Indices

# Numbers in the solutions of one chunk of records and one group of draws: fits caches.
_CHUNK = 2**16


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
    if workers is not None:
        whole_number("workers", workers, 1)
    with threadpool_limits(limits=1):  # many small products: threads of BLAS would only wait
        drawn = Draws.of(
            X, y, n=n, l2=l2, noise=noise, grid=grid, draws=draws, records=records, seed=seed
        )
        size, p = drawn.X.shape
        step = max(16, _CHUNK * GROUPS // (draws * p))
        parts = Parallel(n_jobs=workers or -1, prefer="threads")(
            delayed(_leakage_of)(drawn, part) for part in drawn.parts(step)
        )
    found = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    rho_kl, replicates, counted, mean1, cov1, mean0, cov0 = found
    return RidgeLeakage(
        records=drawn.asked,
        population=size,
        n=n,
        draws=draws,
        rho_kl=rho_kl,
        replicates=replicates,
        kept=counted,
        mean_with=mean1 + drawn.accumulator.centre,
        cov_with=cov1,
        mean_without=mean0 + drawn.accumulator.centre,
        cov_without=cov0,
    )


def _leakage_of(drawn: Draws, part: slice) -> tuple[Indices | Floats, ...]:
    """For r records: rho_kl, its replicates, draws kept, and the two centred Gaussians."""
    kept, *gaussians = drawn.gaussians(part)
    with saying_why_singular():
        rho = jeffreys(*gaussians)
    return rho[:, 0], rho[:, 1:], kept, *(one[:, 0] for one in gaussians)
