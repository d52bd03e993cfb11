"""Which of two attacks on the same records is better: differences with paired intervals.

One attack beats another where the interval of the difference excludes 0. Both differences are the
same to the last bit in any order of the records, and mirrored when the two attacks are swapped.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from leakscope.errors import InputError
from leakscope.metrics.curves import check_inflation, doubled_wins
from leakscope.metrics.intervals import (
    Interval,
    auc_interval,
    quantile_of,
    tail_of,
    tango_ends,
)
from leakscope.metrics.rates import effective_size
from leakscope.metrics.samples import Codes, check_booleans, check_mask, check_scores, unit_codes
from leakscope.metrics.tails import cut_at, tpr_at_fpr
from leakscope.protocols import Bools, Floats

EQUAL = Interval(0.0, 0.0, 0.0)

# Jeffreys' prior: half a record that one attack alone accuses, and half that the other alone does.
# Without it, a single record on which they differ would decide which is better.
HALF = 0.5

# Random numbers held at once: 16 MB.
AT_ONCE = 2_000_000


def auc_difference(
    scores: ArrayLike,
    other: ArrayLike,
    membership: ArrayLike,
    *,
    unit: ArrayLike | None = None,
    inflation: float = 1.0,
    confidence: float = 0.95,
) -> Interval:
    """The area under the ROC curve of the scores (n,), minus that of the other scores (n,).

    The variance is DeLong's of two correlated areas (DeLong, DeLong & Clarke-Pearson 1988), with
    rows summed by unit: it comes from how much more often each record wins with one score than
    with the other. Where there is none to see, the interval is made of those of the two areas as
    if they were independent (MOVER: Zou & Donner 2008), which is wide. Scores that order all
    records alike differ by exactly 0.
    """
    first, second, members = _check_pair(scores, other, membership)
    codes = unit_codes(unit, members)
    check_inflation(inflation)
    tail = tail_of(confidence)
    if np.array_equal(first, second):
        return EQUAL
    pairs = 2 * int(members.sum()) * int((~members).sum())
    won, parts = [], []
    for side in (members, ~members):
        wins = [doubled_wins(ranks[side], np.sort(ranks[~side])) for ranks in (first, second)]
        won.append([int(count.sum()) for count in wins])
        parts.append(_spread(wins[0] - wins[1], None if codes is None else codes[side]))
    difference = (won[0][0] - won[0][1]) / pairs
    spread = sum(part[0] for part in parts)
    if min(part[1] for part in parts) == 0 or spread == 0:
        n1, n0 = (part[2] / inflation for part in parts)
        areas = [auc_interval(w / pairs, 0.0, n1, n0, confidence=confidence) for w in won[0]]
        return _mover(difference, *areas)
    # Satterthwaite, as for one area.
    freedom = spread**2 / sum(part[0] ** 2 / part[1] for part in parts)
    width = -float(stdtrit(freedom, tail)) * math.sqrt(spread * inflation) / pairs
    return Interval(difference, max(difference - width, -1.0), min(difference + width, 1.0))


def advantage_difference(
    called: ArrayLike,
    other: ArrayLike,
    membership: ArrayLike,
    *,
    unit: ArrayLike | None = None,
    inflation: float = 1.0,
    confidence: float = 0.95,
) -> Interval:
    """The advantage, TPR − FPR, of the decisions called (n,), minus that of the other ones (n,).

    On each side only the records that one of the two alone calls members tell them apart; the
    interval of that paired difference is Tango's (1998), from a score test, which holds where such
    records are few. The two sides are independent, and their ends are combined by MOVER (Zou &
    Donner 2008). Rows of one unit, and the inflation, reduce the effective numbers of records.
    Decisions that agree on every record differ by 0, and the interval then says how often they
    may still disagree on others.
    """
    first = check_booleans(called, "decisions")
    _, members = check_scores(first.astype(np.float64), membership)
    second = check_mask(other, len(members), "other decisions")
    codes = unit_codes(unit, members)
    check_inflation(inflation)
    z = quantile_of(confidence)
    ours, theirs = (
        _alone(first[side], second[side], None if codes is None else codes[side], inflation, z)
        for side in (members, ~members)
    )
    return _mover(ours.value - theirs.value, ours, theirs)


def _alone(first: Bools, second: Bools, unit: Codes | None, inflation: float, z: float) -> Interval:
    """How many more records of one side (k,) the first decisions call members than the second."""
    one, other = first & ~second, second & ~first
    apart = [hits for hits in (one, other) if hits.any()] or [one]
    share = min(effective_size(hits, unit, inflation) for hits in apart) / len(first)
    b, c, n = (share * number for number in (one.sum(), other.sum(), len(first)))
    return Interval((b - c) / n, *tango_ends(b, c, n, z))


def tpr_difference(
    scores: ArrayLike,
    other: ArrayLike,
    membership: ArrayLike,
    fpr: float,
    *,
    unit: ArrayLike | None = None,
    inflation: float = 1.0,
    confidence: float = 0.95,
    draws: int = 4000,
    seed: int = 0,
) -> Interval:
    """The TPR at a false positive rate of the scores (n,), minus that of the other scores (n,).

    Neither of the two thresholds that truly have this FPR is known. As for one rate in
    ``tpr_at_fpr``, and jointly for both, they are drawn by giving the non-members random weights
    (the Bayesian bootstrap of the ROC curve: Gu, Ghosal & Roy 2008), and then the shares of
    members that one attack alone finds, from a Dirichlet distribution with Jeffreys' prior. The
    ends are quantiles of the differences drawn. Rows of one unit, and the inflation, reduce the
    effective numbers of records.

    Where either rate is unresolved, nothing is known of the thresholds but that they are high:
    the interval then always holds 0. Scores that order all records alike differ by exactly 0.
    """
    first, second, members = _check_pair(scores, other, membership)
    codes = unit_codes(unit, members)
    check_inflation(inflation)
    if draws < 2:
        raise InputError(f"An interval needs some draws, at least 2, got {draws!r}")
    rates = [
        tpr_at_fpr(ranks, members, fpr, unit=codes, inflation=inflation, confidence=confidence)
        for ranks in (first, second)
    ]
    if np.array_equal(first, second):
        return EQUAL
    value = rates[0].value - rates[1].value
    if not (rates[0].resolved and rates[1].resolved):
        return Interval(value, -rates[1].high, rates[0].high)
    called = np.array([ranks > cut_at(np.sort(ranks[~members]), fpr) for ranks in (first, second)])
    middle = np.array([_above_median(ranks, members) for ranks in (first, second)])
    sizes = [
        _effective_size(called[:, side], middle[:, side], codes, side, inflation)
        for side in (members, ~members)
    ]
    # Half of the draws with the two swapped: swapping them then mirrors the result exactly.
    half = [
        _draw(one, two, members, sizes, fpr, -(-draws // 2), seed)
        for one, two in ((first, second), (second, first))
    ]
    drawn = np.concatenate([half[0], -half[1]])
    tail = tail_of(confidence)
    low, high = np.quantile(drawn, tail), -np.quantile(-drawn, tail)
    return Interval(value, min(float(low), value), max(float(high), value))


def _check_pair(
    scores: ArrayLike, other: ArrayLike, membership: ArrayLike
) -> tuple[Floats, Floats, Bools]:
    """The ranks of both scores from 0, equal where they tie, and the membership: three (n,)."""
    first, members = check_scores(scores, membership)
    shape = np.shape(other)
    if shape != first.shape:
        raise InputError(f"The other scores have shape {shape}, but there are {len(first)} scores")
    second, _ = check_scores(other, members)
    one, two = (np.unique(values, return_inverse=True)[1] for values in (first, second))
    return one.astype(np.float64), two.astype(np.float64), members


def _spread(gains: Codes, unit: Codes | None) -> tuple[float, float, float]:
    """The variance of the sum of one side's gains, its degrees of freedom and effective size.

    The gains (n,) are whole numbers, so that their sums are exact in any order. Few records, or
    units, may carry all of the difference between similar attacks; the degrees of freedom count
    as many as would carry it in equal parts, (Σ r²)² / Σ r⁴ of their residuals r.
    """
    n = len(gains)
    own = np.arange(n) if unit is None else np.unique(unit, return_inverse=True)[1]
    rows, sums = np.bincount(own), np.bincount(own, weights=gains)
    size, k = n * n / float(rows @ rows), len(rows)
    squares = np.sort(np.square(sums - int(gains.sum()) / n * rows))
    total = float(squares.sum())
    if k == 1 or total == 0:
        return 0.0, float(k - 1), size
    carriers = total**2 / float(np.square(squares).sum())
    return total * k / (k - 1), max(min(carriers, k) - 1, 1.0), size


def _mover(difference: float, one: Interval, other: Interval) -> Interval:
    """A difference with the interval of two independent estimates (Zou & Donner 2008)."""
    low = difference - math.hypot(one.value - one.low, other.high - other.value)
    high = difference + math.hypot(one.high - one.value, other.value - other.low)
    return Interval(difference, low, high)


def _above_median(ranks: Floats, membership: Bools) -> Bools:
    """Which records (n,) are above the median of their own side."""
    above = np.empty(len(ranks), dtype=bool)
    for side in (membership, ~membership):
        own = ranks[side]
        above[side] = own > np.sort(own)[len(own) // 2]
    return above


def _effective_size(
    called: Bools, middle: Bools, unit: Codes | None, side: Bools, inflation: float
) -> float:
    """The effective number of records of a side, the smallest that any of its rates shows.

    Those are of being called a member (2, n) by either attack and by one alone, and, as for one
    rate, of being above the median (2, n), where a design effect is steady.
    """
    if unit is None:
        return int(side.sum()) / inflation
    alone = [hits for hits in (called[0] & ~called[1], called[1] & ~called[0]) if hits.any()]
    return min(effective_size(hits, unit[side], inflation) for hits in (*called, *middle, *alone))


def _draw(
    first: Floats,
    second: Floats,
    members: Bools,
    sizes: list[float],
    fpr: float,
    draws: int,
    seed: int,
) -> Floats:
    """Differences of the two rates (draws,), each with its own thresholds and shares of members."""
    rng = np.random.default_rng(seed)
    cuts = _draw_cuts(first[~members], second[~members], sizes[1], fpr, draws, rng)
    one, other = _found_alone(first[members], second[members], *cuts)
    n = np.count_nonzero(members)
    counts = np.stack([one, other, n - one - other])
    shares = rng.standard_gamma(counts * (sizes[0] / n) + HALF)
    return np.asarray((shares[0] - shares[1]) / shares.sum(axis=0))


def _draw_cuts(
    first: Floats, second: Floats, size: float, fpr: float, draws: int, rng: np.random.Generator
) -> Floats:
    """Ranks (2, draws) above which non-members of random weights weigh the share ``fpr``.

    Only the highest can be near a threshold: those of either score get weights of their own, and
    all others one together.
    """
    n = len(first)
    order = np.lexsort((second, first))
    ranks = np.stack([first[order], second[order]])
    reach = fpr * size + 6 * math.sqrt(size * fpr * (1 - fpr)) + 6
    top = min(n, math.ceil(reach * n / size))
    falling = np.argsort(-ranks, axis=1, kind="stable")
    high, place = np.unique(falling[:, :top], return_inverse=True)
    place = place.reshape(2, top)
    levels = np.append(np.take_along_axis(ranks, falling, axis=1), [[-1.0], [-1.0]], axis=1)
    cuts = np.empty((2, draws))
    step = max(AT_ONCE // len(high), 1)
    for start in range(0, draws, step):
        part = slice(start, min(start + step, draws))
        rows = part.stop - start
        weight = rng.standard_gamma(size / n, (rows, len(high)))
        prior = rng.standard_gamma(HALF, (2, rows))
        rest = rng.standard_gamma(size * (n - len(high)) / n, rows)
        allowed = fpr * (weight.sum(axis=1) + prior.sum(axis=0) + rest)
        for i in range(2):
            mass = np.cumsum(weight[:, place[i]], axis=1) + prior[i][:, None]
            cuts[i, part] = levels[i, np.count_nonzero(mass <= allowed[:, None], axis=1)]
    return cuts


def _found_alone(
    first: Floats, second: Floats, cuts: Floats, others: Floats
) -> tuple[Codes, Codes]:
    """How many members are above the cut of one score alone, for each pair of cuts (d,): two (d,).

    A table of how many distinct cuts each member is above answers for all pairs at once.
    """
    (levels, row), (other_levels, column) = (
        np.unique(values, return_inverse=True) for values in (cuts, others)
    )
    above, above_other = np.searchsorted(levels, first), np.searchsorted(other_levels, second)
    shape = (len(levels) + 1, len(other_levels) + 1)
    table = np.bincount(above * shape[1] + above_other, minlength=shape[0] * shape[1])
    both = table.reshape(shape)[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
    found = both[row + 1, column + 1]
    return both[row + 1, 0] - found, both[0, column + 1] - found
