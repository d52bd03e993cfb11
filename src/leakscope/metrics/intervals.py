"""Intervals for rates, differences and ratios of rates, and areas, that hold near 0 and 1 too.

Sample sizes are *effective* ones and may be fractional: rows of one person, or scores that depend
on each other, count for less than their number. Everything here is a function of a few numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betaln, expit, gammaln, logit, ndtr, ndtri, stdtrit, xlog1py, xlogy

from leakscope.errors import InputError
from leakscope.options import share


@dataclass(frozen=True)
class Interval:
    """An estimate with the ends of its interval; NaN where there is none."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float | None]:
        """For JSON: numbers that are not finite become None."""
        return {key: finite(getattr(self, key)) for key in ("value", "low", "high")}


NONE = Interval(math.nan, math.nan, math.nan)


def finite(number: float) -> float | None:
    """The number as JSON can hold it: None where it is not finite."""
    return float(number) if math.isfinite(number) else None


def tail_of(confidence: float) -> float:
    """The chance left at each end of a two-sided interval at this confidence."""
    share("confidence", confidence)
    return (1 - confidence) / 2


def quantile_of(confidence: float) -> float:
    """The normal quantile z of a two-sided interval at this confidence."""
    return float(-ndtri(tail_of(confidence)))


def wilson(successes: float, n: float, confidence: float = 0.95) -> Interval:
    """A rate, successes of n, with Wilson's score interval (Wilson 1927)."""
    if not (n > 0 and 0 <= successes <= n):
        raise InputError(f"A rate needs 0 <= successes <= n and n > 0, got {successes!r} of {n!r}")
    rate = successes / n
    return Interval(rate, *wilson_ends(rate, n, quantile_of(confidence)))


def newcombe(p1: float, n1: float, p0: float, n0: float, confidence: float = 0.95) -> Interval:
    """The difference p1 − p0 of independent rates (Newcombe 1998, method 10: hybrid score)."""
    if not (n1 > 0 and n0 > 0 and 0 <= p1 <= 1 and 0 <= p0 <= 1):
        raise InputError(
            f"A difference needs two rates from 0 to 1 of some records each, "
            f"got {p1!r} of {n1!r} and {p0!r} of {n0!r}"
        )
    return Interval(p1 - p0, *newcombe_ends(p1, n1, p0, n0, quantile_of(confidence)))


def advantage_p_value(p1: float, n1: float, p0: float, n0: float) -> float:
    """The one-sided p-value against p1 <= p0 that agrees exactly with Newcombe's interval.

    It is the p at which the lower end of the interval of confidence 1 − 2p is 0; above one half,
    where p1 < p0, the upper end is.
    """
    if p1 == p0:
        return 0.5
    end = 0 if p1 > p0 else 1
    sign = 1 if p1 > p0 else -1
    z = crossing(lambda z: sign * newcombe_ends(p1, n1, p0, n0, z)[end])
    return float(ndtr(-sign * z))


def fisher_p_value(hits1: int, n1: int, hits0: int, n0: int) -> float:
    """The chance of at least hits1 of n1, given hits1 + hits0 of all (Fisher's exact test)."""
    hits = hits1 + hits0
    k = np.arange(max(0, hits - n0), min(hits, n1) + 1)
    log = -(betaln(k + 1, n1 - k + 1) + betaln(hits - k + 1, n0 - hits + k + 1))
    weight = np.exp(log - log.max())
    return float(weight[k >= hits1].sum() / weight.sum())


def ratio_ends(p1: float, n1: float, p0: float, n0: float, z: float) -> tuple[float, float]:
    """The ends of an interval for p1 / p0, from Wilson's ends (Donner & Zou 2012, section 3).

    The lower end is the smaller t at which the same construction for p1 − t·p0 touches 0, the
    upper end the larger; written so that nothing cancels where p0 or p1 is near 0.
    """
    low1, high1 = wilson_ends(p1, n1, z)
    low0, high0 = wilson_ends(p0, n0, z)
    both = p1 * p0
    # a·t² − 2·both·t + c = 0 for either end
    c = low1 * (2 * p1 - low1)
    denominator = both + math.sqrt(max(both**2 - high0 * (2 * p0 - high0) * c, 0))
    low = c / denominator if denominator > 0 else 0.0
    a = low0 * (2 * p0 - low0)
    numerator = both + math.sqrt(max(both**2 - a * high1 * (2 * p1 - high1), 0))
    high = numerator / a if a > 0 else math.inf
    return low, high


def auc_interval(
    auc: float,
    variance: float,
    members: float,
    nonmembers: float,
    freedom: float = math.inf,
    confidence: float = 0.95,
) -> Interval:
    """An area under the ROC curve with its interval on the logit scale, given its variance.

    On that scale the interval stays inside 0 and 1 and covers near 1, where the plain one does
    not; the quantile is Student's at the given degrees of freedom. At an area of 0 or 1, or where
    the scores give no variance, the effective numbers of records decide (Newcombe 2006, method 5).
    """
    z = quantile_of(confidence)
    if not (0 < auc < 1 and variance > 0):
        return Interval(auc, *_auc_ends_from_sizes(auc, members, nonmembers, z))
    t = float(stdtrit(freedom, float(ndtr(z)))) if math.isfinite(freedom) else z
    width = t * math.sqrt(variance) / (auc * (1 - auc))
    return Interval(auc, float(expit(logit(auc) - width)), float(expit(logit(auc) + width)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values (Holm 1979), in the order given; NaN was no test and stays NaN."""
    p = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(p.shape, math.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in adjusted]


def wilson_ends(rate: float, n: float, z: float) -> tuple[float, float]:
    """The ends of Wilson's interval at the normal quantile z."""
    shrink = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    # Rounding must not push an end past the rate itself, least of all at 0 and 1.
    low = 0.0 if rate == 0 else max(min(centre - half, rate), 0.0)
    high = 1.0 if rate == 1 else min(max(centre + half, rate), 1.0)
    return low, high


def newcombe_ends(p1: float, n1: float, p0: float, n0: float, z: float) -> tuple[float, float]:
    """The ends of Newcombe's interval at the normal quantile z."""
    low1, high1 = wilson_ends(p1, n1, z)
    low0, high0 = wilson_ends(p0, n0, z)
    difference = p1 - p0
    low = difference - math.hypot(p1 - low1, high0 - p0)
    return low, difference + math.hypot(high1 - p1, p0 - low0)


def tango_ends(b: float, c: float, n: float, z: float) -> tuple[float, float]:
    """The ends of Tango's score interval (1998) for the difference (b − c) / n of paired rates.

    Of n records b are hit by the first of two decisions alone, and c by the second alone. Each end
    is the difference that a score test at the normal quantile z just does not reject.
    """

    def distance(delta: float) -> float:
        # The share of c that is likeliest if the difference is delta solves A·q² + B·q + C = 0.
        linear = (2 * n - b + c) * delta - b - c
        root = math.sqrt(linear**2 + 8 * n * c * delta * (1 - delta)) - linear
        variance = max(root / (2 * n) + delta * (1 - delta), 0.0)
        return abs(b - c - n * delta) - z * math.sqrt(n * variance)

    difference = (b - c) / n
    low = -1.0 if c == n else _root_beside(distance, difference, -1.0)
    high = 1.0 if b == n else _root_beside(distance, difference, 1.0)
    return low, high


def binomial(counts: NDArray[np.intp], n: int, chance: float) -> NDArray[np.float64]:
    """The probability of each count (k,) of n at this chance, strictly between 0 and 1.

    As scipy.stats.binom.pmf gives it, and many times faster.
    """
    choices = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
    return np.exp(choices + xlogy(counts, chance) + xlog1py(n - counts, -chance))


def crossing(bound: Callable[[float], float]) -> float:
    """The z at which a bound that falls from a positive number at z = 0 reaches 0, at most 64.

    Beyond, no p-value can be told from 0 in floating point, and some bounds never reach 0.
    """
    high = 1.0
    while bound(high) > 0:
        high *= 2
        if high > 64:
            return 64.0
    return float(brentq(bound, 0.0, high, xtol=1e-13, rtol=1e-14))


def _auc_ends_from_sizes(
    auc: float, members: float, nonmembers: float, z: float
) -> tuple[float, float]:
    """Score interval of an area from the numbers of records alone (Newcombe 2006, method 5)."""
    half = (members + nonmembers) / 2 - 1

    def distance(area: float) -> float:
        spread = 1 + half * ((1 - area) / (2 - area) + area / (1 + area))
        variance = area * (1 - area) * max(spread, 1.0) / (members * nonmembers)
        return abs(auc - area) - z * math.sqrt(variance)

    low = 0.0 if auc == 0 else _root_beside(distance, auc, 0.0)
    high = 1.0 if auc == 1 else _root_beside(distance, auc, 1.0)
    return low, high


def _root_beside(distance: Callable[[float], float], inner: float, outer: float) -> float:
    """Where the distance changes sign between an end of its range and the estimate itself."""
    # At 0 and 1 the variance vanishes, and so does the distance at the estimate: a hair inside.
    start = inner + (outer - inner) * 1e-12
    return float(brentq(distance, min(start, outer), max(start, outer), xtol=1e-14))
