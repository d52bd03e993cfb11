"""A lower bound on the ε of differential privacy, from a single trained model."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv, expit, logit

from leakscope.errors import InputError
from leakscope.metrics.intervals import binomial, tail_of
from leakscope.metrics.samples import Codes, check_scores
from leakscope.protocols import Bools, Floats

# How many records are guessed about, as shares of all. Fixed before anything is seen, and paid
# for: each gets an equal part of the error allowed. Few guesses suit an attack that is sure of a
# few records, many suit one that knows a little about each.
SHARES = (0.01, 0.05, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class Epsilon:
    """The training is not (ε, δ)-differentially private for any ε below the value."""

    value: float
    delta: float
    confidence: float = 0.95
    method: str = "one-run"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def epsilon_lower_bound(
    scores: ArrayLike, membership: ArrayLike, delta: float = 1e-5, confidence: float = 0.95
) -> Epsilon:
    """A lower bound on ε at this δ (Steinke, Nasr & Jagielski 2023, section 5); 0 if none.

    It holds only where a coin per record decided who is a member, and where the scores (n,) came
    from the model without knowledge of the coins. The highest scores are guessed to be members,
    as many of the lowest not to be: with equal numbers guessed on both sides, sides of unequal
    size give away nothing by themselves.

    Records with tied scores cannot be told apart, and any order that would break the tie could
    hide a look at the answer. They count with the number of right guesses that a random order
    would have on average, rounded down, which varies less than that of any one random order.
    """
    if not 0 <= delta < 1:
        raise InputError(f"δ must be at least 0 and less than 1, got {delta!r}")
    values, members = check_scores(scores, membership)
    n = len(values)
    allowed = 2 * tail_of(confidence) / len(SHARES)
    guesses = sorted({2 * max(1, int(share * n / 2)) for share in SHARES})
    right = _right_guesses(values, members, np.array(guesses) // 2)
    bounds = [
        _bound(count, guessed, n, delta, allowed)
        for count, guessed in zip(right, guesses, strict=True)
    ]
    return Epsilon(max(bounds), delta, confidence)


def audit_p_value(right: int, guesses: int, n: int, epsilon: float, delta: float) -> float:
    """The chance of so many right guesses about n records if training were (ε, δ)-private, at most.

    Theorem 5.2: P[B >= v] + 2nδ · max over i of P[v > B >= v − i] / i, B ~ Binomial(r, σ(ε)).
    """
    chance = float(expit(epsilon))
    if right == 0:
        return 1.0
    tail = float(betainc(right, guesses - right + 1, chance))
    if delta == 0:
        return tail
    # The mean of the probabilities just below v grows until the window has passed the mode, and
    # ten standard deviations further down there is nothing left to add.
    spread = math.sqrt(guesses * chance * (1 - chance))
    lowest = max(0, min(right - 1, math.floor(guesses * chance - 10 * spread) - 10))
    counts = np.arange(right - 1, lowest - 1, -1)
    means = np.cumsum(binomial(counts, guesses, chance)) / np.arange(1, len(counts) + 1)
    return min(tail + 2 * n * delta * float(means.max()), 1.0)


def _right_guesses(scores: Floats, membership: Bools, per_side: Codes) -> list[int]:
    """Right guesses when so many of the highest and of the lowest scores are guessed about."""
    values, where = np.unique(scores, return_inverse=True)
    total = np.bincount(where, minlength=len(values))
    members = np.bincount(where[membership], minlength=len(values))

    def expected_members(order: slice) -> Floats:
        """Members among the first k; between whole ties the expectation is a straight line."""
        ends = np.concatenate([[0], np.cumsum(total[order])])
        found = np.concatenate([[0], np.cumsum(members[order])])
        return np.asarray(np.interp(per_side, ends, found))

    highest, lowest = expected_members(slice(None, None, -1)), expected_members(slice(None))
    return [math.floor(count + 1e-9) for count in highest + per_side - lowest]


def _bound(right: int, guesses: int, n: int, delta: float, allowed: float) -> float:
    """The smallest ε at which so many right guesses have a p-value of ``allowed``."""
    if audit_p_value(right, guesses, n, 0.0, delta) >= allowed:
        return 0.0
    # Without δ the bound is Clopper and Pearson's; δ can only lower it, and does so steadily.
    highest = float(logit(betaincinv(right, guesses - right + 1, allowed)))

    def excess(epsilon: float) -> float:
        return audit_p_value(right, guesses, n, epsilon, delta) - allowed

    if excess(highest) <= 0:
        return highest
    return float(brentq(excess, 0.0, highest, xtol=1e-9))
