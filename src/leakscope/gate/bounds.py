"""How high an attack's figure surely is, given that many attacks were tried.

A report has intervals of 95 % for each attack alone. One of many attacks exceeds a limit by chance,
so that the lower ends must hold all together: each at 2.5 % divided by the number of attacks, which
is Holm's first step and what the verdict does. The upper ends need no correction, as a limit holds
only where all of them are below it. An advantage has its rates in the report, and its ends are
computed again; the scores are not there, and the other ends are stretched from what is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import expit, logit, ndtri, stdtrit

from leakscope.gate.reading import Attacked
from leakscope.metrics.intervals import Interval, binomial, ratio_ends, wilson_ends
from leakscope.metrics.tails import Rate

# The chance left at either end of an interval of 95 %, and its normal quantile.
TAIL = 0.025
Z = float(-ndtri(TAIL))

Sides = tuple[int, int]


def advantage_together(one: Attacked, tries: int) -> Interval:
    """The advantage, between ends that hold for so many attacks together."""
    return one.rates.advantage(1 - 2 * TAIL / tries)


def auc_low(auc: Interval, tries: int, persons: Sides) -> float:
    """The lower end of an area that holds for so many attacks together.

    The interval is even on the logit scale, with a quantile of Student's, whose degrees of freedom
    are at least those of the smaller side. At an area of 1 it is a score interval instead, where
    the odds of the end fall with the square of the quantile.
    """
    if tries == 1 or not auc.low > 0:
        return auc.low
    freedom = max(min(persons) - 1, 1)
    stretch = float(stdtrit(freedom, TAIL / tries) / stdtrit(freedom, TAIL))
    if auc.value >= 1:
        return float(expit(logit(auc.low) - 2 * math.log(stretch)))
    return _stretched_odds(auc, stretch)


def tpr_low(one: Attacked, rate: Rate, tries: int, nonmembers: int) -> float:
    """The lower end of a TPR at an FPR that holds for so many attacks together.

    Its distance from the estimate grows with the normal quantile, on the plain scale or on the
    logit scale, whichever is lower: neither suits rates near 0 and near 1 alike. Nor can it be
    above what the ROC curve shows at as few false alarms as chance alone allows: where few are
    expected, the next step down the curve is a large one.
    """
    if tries == 1 or not rate.low > 0:
        return rate.low
    stretch = float(ndtri(TAIL / tries) / ndtri(TAIL))
    plain = max(rate.value - stretch * (rate.value - rate.low), 0.0)
    reached = _reached(one.curve, _fewest(nonmembers, rate.fpr, TAIL / tries) / nonmembers)
    if rate.value >= 1:
        return min(plain, reached)
    odds = _stretched_odds(Interval(rate.value, rate.low, rate.high), stretch)
    return min(plain, odds, reached)


def tpr_of_call(
    one: Attacked, call: tuple[float, float], fpr: float, tries: int
) -> tuple[Interval, float]:
    """The TPR at an FPR of an attack that answers yes or no, from the rates of its one call.

    Where the call accuses at most ``fpr`` of the non-members, its own TPR counts. Where it accuses
    more, no threshold reaches the rate, but an adversary may believe a random part of the calls:
    that finds TPR · fpr / FPR of the members. So the TPR is the smaller of the call's TPR and of
    its likelihood ratio times ``fpr``; the ends are those of the call's rates, which few records
    know as well. Also the lower end that holds for so many attacks together.
    """
    at, tpr = call
    sizes = one.rates.members, one.rates.nonmembers

    def ends(tail: float) -> tuple[float, float]:
        z = float(-ndtri(tail))
        ratio, share = ratio_ends(tpr, sizes[0], at, sizes[1], z), wilson_ends(tpr, sizes[0], z)
        return min(share[0], fpr * ratio[0]), min(share[1], fpr * ratio[1])

    alone = ends(TAIL)
    value = tpr if at <= fpr else tpr * fpr / at
    low = ends(TAIL / tries)[0]
    return Interval(value, min(alone[0], value), max(alone[1], value)), min(low, value)


def _fewest(nonmembers: int, fpr: float, tail: float) -> int:
    """How many non-members a threshold of this FPR accuses, with this chance of as few or fewer."""
    counts = np.arange(int(nonmembers * fpr) + 1)
    return int(np.searchsorted(np.cumsum(binomial(counts, nonmembers, fpr)), tail))


def _reached(curve: Iterable[tuple[float, float]], most: float) -> float:
    """The highest TPR among the points of a curve with at most this FPR."""
    return max((tpr for fpr, tpr in curve if fpr <= most + 1e-12), default=0.0)


def _stretched_odds(figure: Interval, stretch: float) -> float:
    """The lower end so many times as far from the estimate, on the logit scale."""
    middle = logit(figure.value)
    return float(expit(middle - stretch * (middle - logit(figure.low))))
