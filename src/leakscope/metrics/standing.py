"""Where one record's score stands among those of others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from leakscope.errors import InputError
from leakscope.metrics.intervals import NONE, Interval, tail_of
from leakscope.metrics.rates import effective_size
from leakscope.protocols import Floats


def clopper_pearson(hits: float, n: float, confidence: float = 0.95) -> Interval:
    """A rate, hits of n, with the exact interval of Clopper & Pearson (1934).

    It covers at least as often as it says whatever the rate. Both numbers may be effective ones.
    """
    if not (n > 0 and 0 <= hits <= n):
        raise InputError(f"A rate needs 0 <= hits <= n and n > 0, got {hits!r} of {n!r}")
    tail = tail_of(confidence)
    low = float(betaincinv(hits, n - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0
    return Interval(hits / n, low, high)


def share_at_least(
    score: float, others: Floats, unit: NDArray[np.intp] | None = None, inflation: float = 1.0
) -> Interval:
    """The share of the others (n,) whose score is as high or higher, with an interval.

    Among non-members it is the false positive rate at which the record just comes to be called a
    member. Rows of one unit (n,) count together; the inflation divides their number. NaN without
    others to compare with.
    """
    if not len(others):
        return NONE
    hits = others >= score
    n = effective_size(hits, unit, inflation)
    return clopper_pearson(float(hits.mean()) * n, n)
