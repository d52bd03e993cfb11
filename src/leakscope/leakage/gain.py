"""The inference gain of one model: how far its outputs for members are from those for others.

Wang et al. (2021, section 3) and Nasr et al. (2018) write the adversary's success on one model as a
gain G = E[log h] + E[log(1 − h)], over members and over others. The best adversary reaches −log 4 +
2·JS, with JS the Jensen–Shannon divergence of the two distributions of outputs in nats. Here JS is
estimated without an adversary: one that is trained may overfit, and its gain fall below −log 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from scipy.special import digamma, entr

from leakscope.errors import InputError
from leakscope.leakage.averaging import Null
from leakscope.leakage.bounds import advantage_bound_of_information, success_bound
from leakscope.metrics.intervals import Interval, tail_of
from leakscope.metrics.jackknife import root_ends
from leakscope.options import one_of, whole_number
from leakscope.protocols import Bools, Floats

Method = Literal["histogram", "neighbours"]

# Parts of which each is left out once for the interval.
GROUPS = 20
# The spread of the noise that tells equal outputs apart, in standard deviations of a column.
JITTER = 1e-9


def jensen_shannon(p: ArrayLike, q: ArrayLike) -> float:
    """The Jensen–Shannon divergence of two distributions (k,), in nats, from 0 to ln 2."""
    pair = [np.asarray(one, dtype=np.float64) for one in (p, q)]
    for one in pair:
        if one.ndim != 1 or one.shape != pair[0].shape or not (one >= 0).all():
            raise InputError("A distribution must be one row of shares, as long as the other one")
        if not math.isclose(one.sum(), 1.0, abs_tol=1e-9):
            raise InputError(f"The shares of a distribution must sum to 1, and sum to {one.sum()}")
    middle = (pair[0] + pair[1]) / 2
    return float(entr(middle).sum() - (entr(pair[0]).sum() + entr(pair[1]).sum()) / 2)


def optimal_gain(js: float) -> float:
    """The gain of the best adversary at this divergence: −log 4 + 2·JS, and −log 4 for nothing."""
    return 2 * js - math.log(4)


def accuracy_range(js: float) -> tuple[float, float]:
    """What this divergence says of the best adversary's accuracy: at least, and at most.

    Accuracy is (1 + TV)/2, and JS does not tell the total variation: JS/ln 2 ≤ TV, and by Fano's
    inequality an error e has an entropy of at least ln 2 − JS.
    """
    inside = min(max(js, 0.0), math.log(2))
    most = float(success_bound(advantage_bound_of_information(inside)))
    return 0.5 * (1 + inside / math.log(2)), most


@dataclass(frozen=True)
class Gain:
    """The divergence of a model's outputs for members and for others, and what follows from it.

    js: in nats with its interval, less what the number of records alone brings; 0 where that is
    more than was found. null: what shuffled membership shows.
    """

    js: Interval
    null: Null
    method: Method

    @property
    def gain(self) -> Interval:
        """The gain of the best adversary."""
        ends = (optimal_gain(one) for one in (self.js.value, self.js.low, self.js.high))
        return Interval(*ends)

    @property
    def accuracy(self) -> tuple[float, float]:
        """The least and the most that the best adversary's accuracy can be, at the value of js."""
        return accuracy_range(self.js.value)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        low, high = self.accuracy
        return {
            "method": self.method,
            "js": self.js.to_dict(),
            "gain": self.gain.to_dict(),
            "accuracy_least": low,
            "accuracy_most": high,
            "null": self.null.to_dict(),
        }


def output_gain(
    outputs: ArrayLike,
    membership: ArrayLike,
    method: Method = "histogram",
    *,
    bins: int | None = None,
    neighbours: int = 5,
    permutations: int = 49,
    confidence: float = 0.95,
    seed: int = 0,
) -> Gain:
    """Estimate the divergence from the outputs (n,) or (n, w) of one model for n records.

    "histogram": one number of each record, in bins of equally many records, less the bias of
    (bins − 1)/8·(1/members + 1/others). "neighbours": any width, by how many of all records are as
    near as the nearest of the same side (Ross 2014, which is the mutual information with a side
    chosen at random); of the larger side as many are drawn as the smaller has. The interval leaves
    out a twentieth of each side in turn, on the scale of square roots.
    """
    one_of("method", method, ("histogram", "neighbours"))
    values, members = _checked(outputs, membership, method)
    whole_number("permutations", permutations, 1)
    tail, rng = tail_of(confidence), np.random.default_rng(seed)
    if method == "neighbours":
        kept = _balanced(members, rng)
        values, members = values[kept], members[kept]
    measure = _prepared(values, method, bins, whole_number("neighbours", neighbours, 1), rng)
    everyone = np.ones(len(members), dtype=bool)
    value = measure(members, everyone)
    part = _parts(members, rng)
    left = np.array([measure(members, part != group) for group in range(GROUPS)])
    ends = root_ends(np.array(max(value, 0.0)), np.maximum(left, 0.0), tail)
    shuffled = np.array([measure(rng.permutation(members), everyone) for _ in range(permutations)])
    null = Null(
        max(float(shuffled.mean()), 0.0),
        max(float(np.quantile(shuffled, 0.95)), 0.0),
        (1 + int(np.count_nonzero(shuffled >= value))) / (1 + permutations),
        permutations,
    )
    low, found, high = (min(float(end), math.log(2)) for end in (ends[0], max(value, 0.0), ends[1]))
    return Gain(Interval(found, min(low, found), max(high, found)), null, method)


# The divergence for a membership (n,), of the records of a mask (n,).
Measure = Callable[[Bools, Bools], float]


def _checked(outputs: ArrayLike, membership: ArrayLike, method: Method) -> tuple[Floats, Bools]:
    values, members = np.asarray(outputs, dtype=np.float64), np.asarray(membership)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not np.isfinite(values).all():
        raise InputError(f"Outputs must be finite, a row per record, got shape {values.shape}")
    if members.shape != (len(values),) or members.dtype != np.bool_:
        raise InputError(
            f"The membership must be true or false for each of the {len(values)} records, got "
            f"{members.dtype} of shape {members.shape}"
        )
    fewest = min(np.count_nonzero(members), np.count_nonzero(~members))
    if fewest < 2 * GROUPS:
        raise InputError(
            f"A divergence needs at least {2 * GROUPS} members and as many others, and one side "
            f"has {fewest}"
        )
    if method == "histogram" and values.shape[1] != 1:
        raise InputError(
            f"A histogram is of one number of each record, and there are {values.shape[1]}; use "
            "method='neighbours', or give one of them"
        )
    return values, members


def _balanced(members: Bools, rng: np.random.Generator) -> Bools:
    """Which records (n,) to look at, so that both sides have equally many."""
    kept = np.zeros(len(members), dtype=bool)
    sides = [np.flatnonzero(side) for side in (members, ~members)]
    fewest = min(len(side) for side in sides)
    for side in sides:
        kept[rng.permutation(side)[:fewest]] = True
    return kept


def _parts(members: Bools, rng: np.random.Generator) -> Floats:
    """A number of a group for each record (n,), each with the same share of both sides."""
    part = np.empty(len(members))
    for side in (members, ~members):
        part[side] = rng.permutation(np.count_nonzero(side)) % GROUPS
    return part


def _prepared(
    values: Floats, method: Method, bins: int | None, neighbours: int, rng: np.random.Generator
) -> Measure:
    if method == "neighbours":
        spread = values.std(axis=0)
        scaled = values / np.where(spread > 0, spread, 1.0)
        return _by_neighbours(scaled + JITTER * rng.normal(size=values.shape), neighbours)
    number = bins or max(4, round(2 * len(values) ** (1 / 3)))
    return _by_histogram(values[:, 0], whole_number("bins", number, 2))


def _by_histogram(values: Floats, bins: int) -> Measure:
    edges = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1]))
    place = np.searchsorted(edges, values, side="right")

    def measure(members: Bools, kept: Bools) -> float:
        counts = [
            np.bincount(place[kept & side], minlength=len(edges) + 1)
            for side in (members, ~members)
        ]
        n1, n0 = (int(count.sum()) for count in counts)
        seen = np.count_nonzero(counts[0] + counts[1])
        return jensen_shannon(counts[0] / n1, counts[1] / n0) - (seen - 1) / 8 * (1 / n1 + 1 / n0)

    return measure


def _by_neighbours(values: Floats, k: int) -> Measure:
    def measure(members: Bools, kept: Bools) -> float:
        points = values[kept]
        side = members[kept]
        everyone = cKDTree(points)
        means = []
        for own in (points[side], points[~side]):
            farthest = np.asarray(cKDTree(own).query(own, [k + 1], p=np.inf)[0])[:, 0]
            inside = everyone.query_ball_point(
                own, np.nextafter(farthest, 0), p=np.inf, return_length=True
            )
            # Itself is among those inside.
            means.append(float(digamma(inside).mean()) + float(digamma(len(own))))
        return float(digamma(len(points)) + digamma(k)) - sum(means) / 2

    return measure
