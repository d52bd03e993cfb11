"""How many records would decide: the power of the interval of the advantage."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import ndtri

from leakscope.errors import InputError
from leakscope.metrics.intervals import newcombe_ends, quantile_of

# Beyond so many records per side an answer is no longer a plan.
MOST = 10**12


def records_to_decide(
    advantage: float,
    p1: float,
    p0: float,
    limit: float,
    alpha: float = 0.025,
    *,
    power: float = 0.8,
    overhead: float = 1.0,
    confidence: float = 0.95,
) -> int | None:
    """Records per side that would decide with this power, if the advantage is what was seen.

    Decided is either that the lower end of Newcombe's interval at the one-sided level ``alpha``
    (after Holm's correction) is above 0, or that the upper end at ``confidence`` is at most the
    limit, whichever takes fewer records. ``p1`` and ``p0`` are the rates of members and of
    non-members called members, which give the spread; ``overhead`` is how many actual records
    make an effective one. None where the advantage sits at 0 and at the limit, so that no number
    decides.
    """
    if not (0 < alpha < 0.5 and 0.5 <= power < 1 and overhead >= 1):
        raise InputError(
            f"A power needs 0 < alpha < 0.5, 0.5 <= power < 1 and overhead >= 1, "
            f"got {alpha!r}, {power!r} and {overhead!r}"
        )
    spread = math.sqrt(p1 * (1 - p1) + p0 * (1 - p0))
    margin = float(ndtri(power)) * spread

    def above_zero(n: float) -> bool:
        reach = p1 - p0 - newcombe_ends(p1, n, p0, n, float(-ndtri(alpha)))[0]
        return advantage - reach - margin / math.sqrt(n) > 0

    def within_limit(n: float) -> bool:
        reach = newcombe_ends(p1, n, p0, n, quantile_of(confidence))[1] - (p1 - p0)
        return advantage + reach + margin / math.sqrt(n) <= limit

    needed = min(_fewest(above_zero), _fewest(within_limit))
    return None if needed > MOST else math.ceil(needed * overhead)


def _fewest(decides: Callable[[float], bool]) -> int:
    """The smallest number that decides, given that every larger one does too."""
    high = 1
    while not decides(high):
        high *= 2
        if high > MOST:
            return high
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return high
