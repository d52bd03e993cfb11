"""The ROC curve, its area, and the front that summarizes membership scores.

Scores are higher for members. Every result is the same to the last bit however the records are
ordered: sums run over whole numbers, or over sorted ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope.errors import InputError
from leakscope.metrics.intervals import Interval, auc_interval
from leakscope.metrics.rates import Rates
from leakscope.metrics.samples import Codes, check_scores, unit_codes
from leakscope.metrics.tails import Rate, tpr_at_fpr
from leakscope.metrics.thresholds import (
    CHOSEN,
    GIVEN,
    Threshold,
    best_threshold,
    check_calibration,
    draw_calibration,
)
from leakscope.options import share
from leakscope.protocols import Bools, Floats

FPRS = (0.001, 0.01, 0.05)


@dataclass(frozen=True)
class Curve:
    """Points of a ROC curve, from (0, 0) to (1, 1); both (k,) and rising."""

    fpr: Floats
    tpr: Floats

    def to_dict(self) -> dict[str, list[float]]:
        """For JSON."""
        return {"fpr": self.fpr.tolist(), "tpr": self.tpr.tolist()}


@dataclass(frozen=True)
class Roc:
    """What membership scores achieve: area, advantage at a threshold, and the low-FPR end.

    The advantage, the balanced accuracy, the PPV and the p-value are those of one threshold, on
    the records that had no part in choosing it; ``judged`` (n,) says which.
    """

    auc: Interval
    advantage: Interval
    accuracy: Interval
    threshold: Threshold
    tpr_at_fpr: tuple[Rate, ...]
    ppv: Interval
    prior: float
    p_value: float
    rates: Rates
    curve: Curve
    judged: Bools

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with the keys of an outcome in a report."""
        return {
            "auc": self.auc.to_dict(),
            "advantage": self.advantage.to_dict(),
            "accuracy": self.accuracy.to_dict(),
            "threshold": self.threshold.to_dict(),
            "tpr_at_fpr": [rate.to_dict() for rate in self.tpr_at_fpr],
            "ppv": {"prior": self.prior, **self.ppv.to_dict()},
            "p_value": self.p_value,
            "curve": self.curve.to_dict(),
        }


def roc(
    scores: ArrayLike,
    membership: ArrayLike,
    *,
    unit: ArrayLike | None = None,
    threshold: float | None = None,
    calibration: ArrayLike | None = None,
    inflation: float = 1.0,
    prior: float = 0.5,
    fprs: Sequence[float] = FPRS,
    confidence: float = 0.95,
    seed: int = 0,
) -> Roc:
    """Summarize membership scores (n,), higher for members: AUC, advantage, TPR at FPR, PPV.

    A record is called a member from the threshold on. A threshold that is given is judged on all
    records. Otherwise it is chosen where ``calibration`` (n,) is true, by default on a random
    fifth of each side, and judged on the others only.

    ``unit`` (n,) says whose row it is; intervals then count persons, not rows. ``inflation``
    multiplies every variance: 2 for scores cross-fitted in two halves, which depend on each other.
    """
    values, members = check_scores(scores, membership)
    codes = unit_codes(unit, members)
    check_options(inflation, prior)
    if threshold is not None:
        if np.isnan(threshold):
            raise InputError("The threshold is not a number: leave it out to have one chosen")
        chosen, judged = Threshold(float(threshold), GIVEN), np.ones(len(values), dtype=bool)
    else:
        if calibration is None:
            inside = draw_calibration(values, members, codes, seed)
        else:
            inside = check_calibration(calibration, members, codes)
        chosen = Threshold(best_threshold(values[inside], members[inside]), CHOSEN)
        judged = ~inside
    rates = Rates.count(
        values[judged] >= chosen.value,
        members[judged],
        None if codes is None else codes[judged],
        inflation,
    )
    return Roc(
        auc=auc_delong(values, members, unit=codes, inflation=inflation, confidence=confidence),
        advantage=rates.advantage(confidence),
        accuracy=rates.accuracy(confidence),
        threshold=chosen,
        tpr_at_fpr=tuple(
            tpr_at_fpr(values, members, fpr, unit=codes, inflation=inflation, confidence=confidence)
            for fpr in fprs
        ),
        ppv=rates.ppv(prior, confidence),
        prior=prior,
        p_value=rates.p_value,
        rates=rates,
        curve=thin(*roc_curve_points(values, members)[:2]),
        judged=judged,
    )


def check_options(inflation: float, prior: float) -> None:
    """Refuse an inflation that would narrow intervals, and a prior that is no probability."""
    check_inflation(inflation)
    share("prior", prior)


def check_inflation(inflation: float) -> None:
    """Refuse an inflation that would narrow intervals."""
    if not 1 <= inflation < np.inf:
        raise InputError(f"The inflation of variances must be 1 or more, got {inflation!r}")


def roc_curve_points(scores: ArrayLike, membership: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """False and true positive rates at each distinct threshold, falling from +inf: three (k,)."""
    values, members = check_scores(scores, membership)
    distinct, where = np.unique(values, return_inverse=True)
    true = np.bincount(where[members], minlength=len(distinct))[::-1].cumsum()
    false = np.bincount(where[~members], minlength=len(distinct))[::-1].cumsum()
    return (
        np.concatenate([[0.0], false / false[-1]]),
        np.concatenate([[0.0], true / true[-1]]),
        np.concatenate([[np.inf], distinct[::-1]]),
    )


def thin(fpr: Floats, tpr: Floats, limit: int = 512) -> Curve:
    """At most ``limit`` points of a curve, dense where the false positive rate is low.

    Points inside straight runs go first, which changes no picture. Then half of the points are
    taken at FPRs that rise by a constant factor, and half at TPRs that rise by a constant step.
    """
    straight = (np.diff(fpr[:-1]) == 0) & (np.diff(fpr[1:]) == 0)
    straight |= (np.diff(tpr[:-1]) == 0) & (np.diff(tpr[1:]) == 0)
    keep = np.concatenate([[True], ~straight, [True]])
    fpr, tpr = fpr[keep], tpr[keep]
    if len(fpr) > limit:
        half = limit // 2 - 1
        low = fpr[np.searchsorted(fpr, 0.0, side="right")]
        at_fpr = np.searchsorted(fpr, np.geomspace(low, 1.0, half), side="right") - 1
        at_tpr = np.searchsorted(tpr, np.linspace(0.0, 1.0, half))
        last = len(fpr) - 1
        index = np.unique(np.clip(np.concatenate([[0, last], at_fpr, at_tpr]), 0, last))
        fpr, tpr = fpr[index], tpr[index]
    return Curve(fpr, tpr)


def auc_delong(
    scores: ArrayLike,
    membership: ArrayLike,
    *,
    unit: ArrayLike | None = None,
    inflation: float = 1.0,
    confidence: float = 0.95,
) -> Interval:
    """The area under the ROC curve with DeLong's interval on the logit scale.

    The variance comes from how often each record wins against the other side (DeLong, DeLong &
    Clarke-Pearson 1988), with rows summed by unit (Obuchowski 1997); O(n log n). Where all scores
    are equal nothing is told apart, whatever the sample: 0.5 with no width.
    """
    values, members = check_scores(scores, membership)
    codes = unit_codes(unit, members)
    if values.min() == values.max():
        return Interval(0.5, 0.5, 0.5)
    ours, theirs = (_sorted_side(values, side, codes) for side in (members, ~members))
    wins, losses = doubled_wins(ours[0], theirs[0]), doubled_wins(theirs[0], ours[0])
    n1, n0 = len(wins), len(losses)
    auc = int(wins.sum()) / (2 * n1 * n0)
    parts = [
        _side_variance(wins / (2 * n0), ours[1]),
        _side_variance(1 - losses / (2 * n1), theirs[1]),
    ]
    variance = sum(part[0] for part in parts)
    # Satterthwaite: few units on the side that carries the variance widen the interval.
    freedom = variance**2 / sum(part[0] ** 2 / part[1] for part in parts) if variance > 0 else 1.0
    sizes = [part[2] / inflation for part in parts]
    return auc_interval(auc, variance * inflation, sizes[0], sizes[1], freedom, confidence)


def _sorted_side(scores: Floats, side: Bools, unit: Codes | None) -> tuple[Floats, Codes | None]:
    """The scores of a side, rising, with their units: sums over them then run in one order."""
    if unit is None:
        return np.sort(scores[side]), None
    order = np.lexsort((unit[side], scores[side]))
    return scores[side][order], unit[side][order]


def doubled_wins(scores: Floats, others: Floats) -> Codes:
    """Twice the number of the others that each score beats, ties counting half; both sorted."""
    below = np.searchsorted(others, scores, side="left")
    return below + np.searchsorted(others, scores, side="right")


def _side_variance(components: Floats, unit: Codes | None) -> tuple[float, float, float]:
    """One side's part in the variance of the area, its degrees of freedom and effective size."""
    n = len(components)
    residuals = components - components.mean()
    if unit is None:
        size, sums = float(n), residuals
    else:
        rows = np.bincount(unit)
        size = n * n / float(rows @ rows)
        sums = np.bincount(unit, weights=residuals)[rows > 0]
    freedom = len(sums) - 1
    if freedom == 0:
        return 0.0, 1.0, size
    variance = len(sums) / freedom * float(sums @ sums) / n**2
    return variance, float(freedom), size
