"""How many records would decide: the power of the interval of the advantage."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import ndtri

from leakscope.errors import InputError
from leakscope.metrics.intervals import newcombe_ends, quantile_of

# Beyond so many records per side an answer is no longer a plan.
MOST = 10**12


def records_to_show_leak(
    p1: float, p0: float, *, alpha: float = 0.025, power: float = 0.8, overhead: float = 1.0
) -> int | None:
    """Records per side that would put the advantage above 0 with this power, if rates stay.

    ``p1`` and ``p0`` are the shares of members and of non-members called members; ``alpha`` is the
    one-sided level, after Holm's correction; ``overhead`` is how many actual records make an
    effective one. None where the advantage is not above 0, so that no number shows it.
    """
    margin = _margin(p1, p0, alpha, power, overhead)
    if p1 <= p0:
        return None
    z = float(-ndtri(alpha))

    def shown(n: float) -> bool:
        return newcombe_ends(p1, n, p0, n, z)[0] - margin / math.sqrt(n) > 0

    return _fewest(shown, overhead)


def records_to_rule_out(
    p1: float,
    p0: float,
    limit: float,
    *,
    power: float = 0.8,
    overhead: float = 1.0,
    confidence: float = 0.95,
) -> int | None:
    """Records per side that would put the whole interval within ±limit with this power.

    None where the advantage itself is not within the limit. See ``records_to_show_leak``.
    """
    margin = _margin(p1, p0, (1 - confidence) / 2, power, overhead)
    if abs(p1 - p0) >= limit:
        return None
    z = quantile_of(confidence)

    def ruled_out(n: float) -> bool:
        low, high = newcombe_ends(p1, n, p0, n, z)
        reach = margin / math.sqrt(n)
        return high + reach <= limit and low - reach >= -limit

    return _fewest(ruled_out, overhead)


def records_to_bound_tpr(
    tpr: float, fpr: float, limit: float, *, power: float = 0.8, confidence: float = 0.95
) -> int | None:
    """Records per side that would put the upper end of a TPR at this FPR within the limit.

    Few members and few non-members lie above the threshold, and both counts vary like Poisson's:
    on the log scale the ratio of the two has the variance 1 / (n·TPR) + 1 / (n·FPR). None where
    the TPR itself is not within the limit.
    """
    rate = max(tpr, fpr)  # at chance the TPR is the FPR; a smaller estimate is luck
    if rate >= limit:
        return None
    reach = quantile_of(confidence) + float(ndtri(power))
    return math.ceil((1 / rate + 1 / fpr) * (reach / math.log(limit / rate)) ** 2)


def _margin(p1: float, p0: float, alpha: float, power: float, overhead: float) -> float:
    """How far the advantage of one effective record per side may fall short, at this power."""
    if not (0 < alpha < 0.5 and 0.5 <= power < 1 and overhead >= 1):
        raise InputError(
            f"A power needs 0 < alpha < 0.5, 0.5 <= power < 1 and overhead >= 1, "
            f"got {alpha!r}, {power!r} and {overhead!r}"
        )
    return float(ndtri(power)) * math.sqrt(p1 * (1 - p1) + p0 * (1 - p0))


def _fewest(decides: Callable[[float], bool], overhead: float) -> int | None:
    """The smallest number that decides, given that every larger one does too, in actual records."""
    high = 1
    while not decides(high):
        high *= 2
        if high > MOST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return math.ceil(high * overhead)
