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

from leakscope.metrics.gaussian import Pair, as_given, diagonalize, orders_beyond, renyi_of
from leakscope.options import magnitude, one_of, share
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
    """The Rényi divergence of an order above 1 for each pair (…); infinite from its α* on.

    Order 1 is the Kullback–Leibler divergence, and ``max_divergence`` the limit.
    """
    magnitude("order", order, above=1)
    return _chosen(gaussians, direction, lambda pair: renyi_of(pair, order - 1))


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
    share("delta", delta)
    one_of("statement", statement, ["ratio", "privacy"])
    return _chosen(gaussians, direction, lambda pair: _epsilon(pair, delta, statement))


def largest_orders(gaussians: Gaussians) -> Floats:
    """The order α* below which Rényi divergences are finite in both directions, (…)."""
    there, back = both_ways(gaussians)
    return as_given(1 + np.minimum(orders_beyond(there), orders_beyond(back)))


def _chosen(
    gaussians: Gaussians, direction: Direction, measure: Callable[[Pair], Floats]
) -> Floats:
    """A measure of one direction, or the larger one of both."""
    one_of("direction", direction, ["both", "with", "without"])
    there, back = both_ways(gaussians)
    if direction == "both":
        return as_given(np.maximum(measure(there), measure(back)))
    return as_given(measure(there if direction == "with" else back))


def _epsilon(pair: Pair, delta: float, statement: Statement) -> Floats:
    """The least bound over all orders, (…), by golden sections of ln(α − 1).

    A convex function over α − 1 has one valley, whichever the statement.
    """

    def bound(log: Floats) -> Floats:
        t = np.exp(log)
        tighter = 0.0 if statement == "ratio" else t * log - (1 + t) * np.log1p(t)
        return np.asarray(renyi_of(pair, t) + (tighter - math.log(delta)) / t)

    high = np.minimum(np.log(orders_beyond(pair)), _MOST)
    low = np.minimum(_LEAST, high + _LEAST)  # below the limit, also where that is very low
    for _ in range(_STEPS):
        width = _GOLDEN * (high - low)
        left, right = high - width, low + width
        falls = bound(left) > bound(right)
        low, high = np.where(falls, left, low), np.where(falls, high, right)
    return np.maximum(bound((low + high) / 2), 0.0)
