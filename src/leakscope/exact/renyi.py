"""Rényi divergences of models with and without a record, and how sure they let an adversary be.

Index 1 is with the record, 0 without. ρ_KL is the mean of the log-likelihood ratio; Rényi
divergences of higher orders weigh the models that tell more than that (left as future work by
Farokhi & Kaafar 2020, v2, remark 1). From them follows what the ratio exceeds with probability δ
at the most (Mironov 2017, proposition 3; Canonne, Kamath & Steinke 2020, proposition 12).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from leakscope.errors import InputError
from leakscope.exact.checks import whole_number
from leakscope.metrics.gaussian import Pair, as_given, diagonalize, log_spread
from leakscope.protocols import Floats

# "with": over models with the record, what speaks for it; "without": over models without it, what
# speaks against it; "both": the larger of the two.
Direction = Literal["both", "with", "without"]
Statement = Literal["ratio", "privacy"]
Gaussians = tuple[Floats, Floats, Floats, Floats]

# The search over ln(α − 1): from where D_α is that of order 1 to where it is the largest there is.
_LEAST, _MOST = -20.0, 28.0
_GOLDEN = (math.sqrt(5) - 1) / 2
_STEPS = 40


def both_ways(gaussians: Gaussians) -> tuple[Pair, Pair]:
    """The pairs N1 against N0 and N0 against N1, in coordinates of independent components."""
    pair = diagonalize(*gaussians)
    back = Pair(
        shift=pair.shift / np.sqrt(pair.spread),
        spread=1 / pair.spread,
        excess=-pair.excess / pair.spread,
    )
    return pair, back


def renyi_leakage(gaussians: Gaussians, order: float, direction: Direction = "both") -> Floats:
    """The Rényi divergence of an order above 1 for each pair (…); infinite from its α* on."""
    if not 1 < order < np.inf:
        raise InputError(
            f"The order of Rényi leakage must be above 1 and finite, got {order!r}; order 1 is "
            "the Kullback–Leibler divergence, and max_divergence the limit"
        )
    beyond = order - 1
    return _chosen(gaussians, direction, lambda pair: _cumulant(pair, beyond) / beyond)


def epsilon_leakage(
    gaussians: Gaussians,
    delta: float,
    statement: Statement = "ratio",
    direction: Direction = "both",
) -> Floats:
    """How sure an adversary gets of membership but for a chance of δ, ε for each pair (…), in nats.

    "ratio": the likelihood ratio of a released model is above e^ε with probability at most δ, by
    min over α of D_α + ln(1/δ)/(α − 1). "privacy": the two distributions are within (ε, δ) in the
    sense of differential privacy, for this record and random others; never the larger of the two.
    """
    if not 0 < delta < 1:
        raise InputError(f"delta must be between 0 and 1, got {delta!r}")
    if statement not in ("ratio", "privacy"):
        raise InputError(f"The statement must be 'ratio' or 'privacy', got {statement!r}")
    return _chosen(gaussians, direction, lambda pair: _epsilon(pair, delta, statement))


def largest_orders(gaussians: Gaussians) -> Floats:
    """The order α* below which Rényi divergences are finite in both directions, (…)."""
    there, back = both_ways(gaussians)
    return as_given(1 + np.minimum(_beyond(there), _beyond(back)))


def renyi_curve(gaussians: Gaussians, points: int = 50) -> tuple[Floats, Floats]:
    """Orders (…, points) from near 1 to near each pair's α*, and the leakage at each, both ways.

    (…, points, 2): with against without, and without against with. Where α* is infinite, up to 1e6.
    """
    whole_number("points", points, 2)
    top = np.minimum(largest_orders(gaussians) - 1, 1e6)[..., None]
    beyond = top * np.geomspace(1e-3, 0.99, points)
    pairs = [
        Pair(pair.shift[..., None, :], pair.spread[..., None, :], pair.excess[..., None, :])
        for pair in both_ways(gaussians)
    ]
    values = np.stack([_cumulant(pair, beyond) / beyond for pair in pairs], axis=-1)
    return 1 + beyond, values


def _chosen(
    gaussians: Gaussians, direction: Direction, measure: Callable[[Pair], Floats]
) -> Floats:
    """A measure of one direction, or the larger one of both."""
    if direction not in ("both", "with", "without"):
        raise InputError(f"The direction must be 'both', 'with' or 'without', got {direction!r}")
    there, back = both_ways(gaussians)
    if direction == "both":
        return as_given(np.maximum(measure(there), measure(back)))
    return as_given(measure(there if direction == "with" else back))


def _beyond(pair: Pair) -> Floats:
    """α* − 1, (…): the first order beyond 1 at which the divergence is infinite."""
    largest = pair.excess.max(axis=-1)
    wider = largest > pair.rounding
    return np.where(wider, 1 / np.where(wider, largest, 1.0), np.inf)


def _cumulant(pair: Pair, beyond: Floats | float) -> Floats:
    """(α − 1)·D_α at α − 1 = beyond, which broadcasts against the pairs (…)."""
    t = np.asarray(beyond, dtype=np.float64)[..., None]
    inside = np.asarray((t * pair.excess < 1).all(axis=-1))
    step = np.where(inside[..., None], -t * pair.excess, 0.0)  # the eigenvalues of Σ_α, less 1
    moved = t * (1 + t) * np.square(pair.shift) / (1 + step)
    total = (moved - np.log1p(step) - t * log_spread(pair)).sum(axis=-1) / 2
    return np.where(inside, np.maximum(total, 0.0), np.inf)


def _epsilon(pair: Pair, delta: float, statement: Statement) -> Floats:
    """The least bound over all orders, (…), by golden sections of ln(α − 1).

    A convex function over α − 1 has one valley, whichever the statement.
    """

    def bound(log: Floats) -> Floats:
        t = np.exp(log)
        tighter = 0.0 if statement == "ratio" else t * log - (1 + t) * np.log1p(t)
        return np.asarray((_cumulant(pair, t) - math.log(delta) + tighter) / t)

    high = np.minimum(np.log(_beyond(pair)), _MOST)
    low = np.minimum(_LEAST, high + _LEAST)  # below the limit, also where that is very low
    for _ in range(_STEPS):
        width = _GOLDEN * (high - low)
        left, right = high - width, low + width
        falls = bound(left) > bound(right)
        low, high = np.where(falls, left, low), np.where(falls, high, right)
    return np.maximum(bound((low + high) / 2), 0.0)
