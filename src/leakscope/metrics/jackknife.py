"""Intervals from values without each group of draws in turn: the delete-group jackknife."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from leakscope.metrics.intervals import Interval
from leakscope.protocols import Floats


def root_ends(
    value: Floats, replicates: Floats, tail: float, spread: float = 0.0
) -> tuple[Floats, Floats]:
    """An interval (…) of a divergence from its replicates (…, G) without each group of draws.

    On the scale of square roots: a divergence is a squared distance, and the error of the distance
    hardly depends on how large it is. spread: a variance of the value to add, by its slope on that
    scale.
    """
    value = np.asarray(value)
    added = np.divide(spread, 4 * value, out=np.zeros_like(value), where=value > 0)
    low, high = ends(np.sqrt(value), np.sqrt(replicates), tail, added)
    return np.square(low), np.square(high)


def ends(
    value: Floats, replicates: Floats, tail: float, added: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """An interval (…) of what is never negative, from replicates (…, G).

    added: a variance beside that of the draws. Where a value or a replicate is infinite, the draws
    decide nothing: 0 to infinity.
    """
    decided = np.isfinite(value) & np.isfinite(replicates).all(axis=-1)
    half = half_width(np.where(decided[..., None], replicates, 0.0), tail, added)
    low, high = np.maximum(value - half, 0.0), value + half
    return np.where(decided, low, 0.0), np.where(decided, high, np.inf)


def half_width(replicates: Floats, tail: float, added: Floats | float = 0.0) -> Floats:
    """Half the width (…) of an interval by replicates (…, G), Student's for so many groups."""
    groups = replicates.shape[-1]
    variance = replicates.var(axis=-1) * (groups - 1) + added
    return np.asarray(-stdtrit(groups - 1, tail) * np.sqrt(variance))


def interval_of_largest(value: Floats, lows: Floats, highs: Floats) -> Interval:
    """The largest of r values, from their upper ends and their lower ends at the tail over r.

    No upper end needs correcting for their number, as the one of the truly largest is among them;
    any lower end may be too high by chance, so that these must hold all together.
    """
    return Interval(float(value.max()), float(lows.max()), float(highs.max()))
