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
    scale. Where a replicate is infinite, the draws decide nothing: 0 to infinity.
    """
    decided = np.asarray(np.isfinite(replicates).all(axis=-1))
    finite = np.where(decided, value, 0.0)
    added = np.divide(spread, 4 * finite, out=np.zeros_like(finite), where=finite > 0)
    low, high = ends(
        np.sqrt(finite), np.sqrt(np.where(decided[..., None], replicates, 0.0)), tail, added
    )
    return (
        np.where(decided, np.square(low), 0.0),
        np.where(decided, np.square(high), np.inf),
    )


def ends(
    value: Floats, replicates: Floats, tail: float, added: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """An interval (…) of what is never negative, Student's for as many groups as there are.

    added: a variance beside that of the draws.
    """
    groups = replicates.shape[-1]
    variance = replicates.var(axis=-1) * (groups - 1) + added
    half = -stdtrit(groups - 1, tail) * np.sqrt(variance)
    return np.maximum(value - half, 0.0), value + half


def interval_of_largest(value: Floats, lows: Floats, highs: Floats) -> Interval:
    """The largest of r values, from their upper ends and their lower ends at the tail over r.

    No upper end needs correcting for their number, as the one of the truly largest is among them;
    any lower end may be too high by chance, so that these must hold all together.
    """
    return Interval(float(value.max()), float(lows.max()), float(highs.max()))
