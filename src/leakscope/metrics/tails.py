"""The share of members found at a low false positive rate, with the threshold's own uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betainc

from leakscope.metrics.intervals import binomial, finite, tail_of
from leakscope.metrics.rates import effective_size
from leakscope.metrics.samples import Codes, check_scores, unit_codes
from leakscope.options import share
from leakscope.protocols import Bools, Floats

# Below so many expected non-members above the threshold, their number cannot carry the rate.
ENOUGH = 5.0


@dataclass(frozen=True)
class Rate:
    """The true positive rate at a false positive rate; unresolved where non-members are too few."""

    fpr: float
    value: float
    low: float
    high: float
    resolved: bool

    def to_dict(self) -> dict[str, float | bool | None]:
        """For JSON."""
        ends = {key: finite(getattr(self, key)) for key in ("value", "low", "high")}
        return {"fpr": self.fpr, **ends, "resolved": self.resolved}


def cut_at(others: Floats, fpr: float) -> float:
    """The score that at most this share of the non-members, sorted and rising, lies above."""
    return float(others[len(others) - 1 - allowed_false_positives(len(others), fpr)])


def allowed_false_positives(n: int, fpr: float) -> int:
    """The number of n non-members that a rate allows; rounding must not lose one."""
    return math.floor(fpr * n * (1 + 1e-12))


def tpr_at_fpr(
    scores: ArrayLike,
    membership: ArrayLike,
    fpr: float,
    *,
    unit: ArrayLike | None = None,
    inflation: float = 1.0,
    confidence: float = 0.95,
) -> Rate:
    """The largest TPR with an empirical FPR of at most ``fpr``, and an interval for the true one.

    The threshold that truly has this FPR is not known: the number K of the N non-members above it
    is Binomial(N, fpr). Were it known to be k, the members above it would give the TPR the
    distribution Beta(h + ½, M − h + ½) (Jeffreys), h of the M members being above the threshold
    that k non-members exceed. The ends are quantiles of the mixture of these over K, so that both
    uncertainties are carried, exactly where either side is the smaller. N and M are effective
    numbers. Unresolved rates have a lower end of 0.
    """
    share("fpr", fpr)
    values, members = check_scores(scores, membership)
    codes = unit_codes(unit, members)
    ours, others = np.sort(values[members]), np.sort(values[~members])
    found = _found_by_false_positives(ours, others)
    n1, n0 = len(ours), len(others)
    allowed = allowed_false_positives(n0, fpr)
    cut = cut_at(others, fpr)
    size1 = _effective_size(values, members, (cut, ours[n1 // 2]), codes, inflation)
    size0 = _effective_size(values, ~members, (cut, others[n0 // 2]), codes, inflation)
    resolved = fpr * size0 * (1 + 1e-12) >= ENOUGH

    trials = max(round(size0), 1)
    reach = 5 * math.sqrt(trials * fpr * (1 - fpr)) + 5
    count = np.arange(max(int(trials * fpr - reach), 0), min(int(trials * fpr + reach), trials) + 1)
    weight = binomial(count, trials, fpr)
    weight /= weight.sum()
    above = np.rint(count * (n0 / trials)).astype(np.intp)
    most = found[above] / n1
    least = np.where(above > 0, found[np.maximum(above - 1, 0)], 0) / n1

    tail = tail_of(confidence)
    if resolved:
        middle = (least + most) / 2
        low = _mixture_quantile(weight, middle, size1, tail)
        high = 1 - _mixture_quantile(weight, 1 - middle, size1, tail)
    else:
        low, high = 0.0, 1 - _mixture_quantile(weight, 1 - most, size1, tail)
    value = float(found[allowed] / n1)
    return Rate(float(fpr), value, min(low, value), max(high, value), bool(resolved))


def _found_by_false_positives(members: Floats, others: Floats) -> Codes:
    """How many members are found at the price of at most k non-members, for k = 0 … n0: (n0 + 1,).

    They are those strictly above the next non-member, so that tied records fall together. Both
    sides come sorted.
    """
    found = len(members) - np.searchsorted(members, others[::-1], side="right")
    return np.append(found, len(members))


def _effective_size(
    scores: Floats, side: Bools, cuts: tuple[float, float], unit: Codes | None, inflation: float
) -> float:
    """The effective number of records of a side, for the share of it above the first cut.

    A tail holds so few rows that a design effect seen there alone is often too small; the one at
    the second cut, the median of the side, is steady, and the larger of the two counts.
    """
    codes = None if unit is None else unit[side]
    return min(effective_size(scores[side] > cut, codes, inflation) for cut in cuts)


def _mixture_quantile(weight: Floats, rate: Floats, n: float, tail: float) -> float:
    """The ``tail`` quantile of Beta(rate·n + ½, (1 − rate)·n + ½) mixed with the weights.

    A component without a single success is a point at 0: a lower end of a rate never seen is 0.
    """
    at_zero = rate == 0
    if weight[at_zero].sum() >= tail:
        return 0.0
    weight, rate = weight[~at_zero], rate[~at_zero]
    wanted = tail - (1 - weight.sum())
    a, b = rate * n + 0.5, (1 - rate) * n + 0.5
    return float(brentq(lambda x: weight @ betainc(a, b, x) - wanted, 0.0, 1.0, xtol=1e-8))
