"""How leaving a record out changes the logit, as a function of the query: measured by queries.

For logistic regression that change is affine in the query (Shokri, Strobel & Zick 2021, section
5.2). An answer gives the probability f of class 1 and the influence I, by which that of the
predicted class falls. So the model without the record says f + I, or f − I where class 1 is
predicted, and the change is the difference of the logits. Where only |I| is told there are two
candidates, and a second query on the way to the first tells them apart: one of them is affine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from leakscope.errors import NotApplicableError
from leakscope.extractions.session import PART
from leakscope.extractions.subspace import Subspace
from leakscope.protocols import Answers, Floats

# Predictions nearer to 0 or 1 have lost the digits that the change is read from.
SURE = 1e-4
# Steps are tried from the longest: what is read from a long step is more exact.
LADDER = 4.0 * 0.5 ** np.arange(8)
# Where there are more directions than so many, no step is longer than a part of what is usual for a
# feature: the record stays in view in nearly all of them, which saves more queries than digits.
MANY = 256
LONGEST = 0.25
# A step is taken for all directions if it keeps the record in view for so many of a few.
SCOUTS = 6
KEPT = 0.9
# How often directions that lost the record are asked again, with the step turned or shortened.
TRIES = 40

# Answers to queries (q, d).
Ask = Callable[[Floats], Answers]


@dataclass(frozen=True, eq=False)
class Form:
    """The change of the logit around a point: value + slope · t within a subspace, slope (r,).

    ``logit_slope`` (r,) is that of the model itself, ``step`` the usual length of a step.
    """

    value: float
    slope: Floats
    logit_slope: Floats
    step: float


def probability_of_one(answers: Answers) -> Floats:
    """The probability of class 1, (q,)."""
    predictions = answers.predictions
    if predictions.ndim == 1:
        return predictions
    if predictions.shape[1] != 2:
        raise NotApplicableError(
            f"The reconstruction needs a model of two classes, and this one has "
            f"{predictions.shape[1]}; use another extraction"
        )
    return predictions[:, 1]


def logit_changes(answers: Answers, record: int, signed: bool) -> Floats:
    """The change of the logit without the record at each query, (1, q), or both candidates (2, q).

    NaN where the record is not shown, or where a prediction is too near to 0 or 1 to be exact; a
    candidate that would need a probability beyond 0 or 1 is infinite.
    """
    assert answers.values is not None
    f = probability_of_one(answers)
    here = answers.shown == record
    influence = answers.values[np.arange(len(f)), here.argmax(axis=1)]
    by = np.where(f > 0.5, -influence, influence) * (
        np.array([[1.0]]) if signed else np.array([[1.0], [-1.0]])
    )
    margin = np.minimum(f + by, 1 - f - by)
    possible = margin > 0
    exact = (np.minimum(f, 1 - f) > SURE) & (margin > SURE)
    usable = here.any(axis=1) & exact.any(axis=0) & (exact | ~possible).all(axis=0)
    change = np.full(by.shape, np.nan)
    change[:, usable] = np.inf
    read = usable & exact
    f = np.broadcast_to(f, by.shape)[read]
    # Both terms keep their digits where the influence is small.
    change[read] = np.log1p(by[read] / f) - np.log1p(-by[read] / (1 - f))
    return change


def measure(
    ask: Ask, space: Subspace, point: Floats, first: Answers, record: int, signed: bool, step: float
) -> Form | None:
    """The form of a record that the first answer, to the point (d,), shows; None: not measurable.

    One query for each direction of the subspace, two where signs are not told, and some more where
    a step loses sight of the record.
    """
    value = logit_changes(first, record, signed)[:, 0]
    if np.isnan(value).any():
        return None
    if not space.dimension:
        return Form(float(value[0]), np.empty(0), np.empty(0), step)
    seen = _Seen(ask, space, point, record, signed)
    steps = np.full(space.dimension, _scouted(seen, space.dimension, step))
    changes = np.full((len(value), 1 if signed else 2, space.dimension), np.nan)
    logits = np.empty(space.dimension)
    lost = np.arange(space.dimension)
    for attempt in range(TRIES):
        changes[:, :, lost], logits[lost] = seen.along(lost, steps[lost])
        lost = lost[np.isnan(changes[0, :, lost]).any(axis=1)]
        if not len(lost):
            break
        steps[lost] *= -1.0 if attempt % 2 == 0 else 0.25
    else:
        return None
    own, ends = (value[0], changes[0, 0]) if signed else _affine_signs(value, changes)
    slope = (ends - own) / steps
    start = float(logit(probability_of_one(first)[0]))
    return Form(float(own), slope, (logits - start) / steps, float(np.median(np.abs(steps))))


@dataclass(frozen=True, eq=False)
class _Seen:
    """What is seen of one record from steps away from a point."""

    ask: Ask
    space: Subspace
    point: Floats
    record: int
    signed: bool

    def along(self, directions: NDArray[np.intp], steps: Floats) -> tuple[Floats, Floats]:
        """The changes (signs, points on the way, directions), and the logit at the end of each.

        The ends come first, then, where signs are not told, the points half-way.
        """
        parts = np.array_split(np.arange(len(steps)), -(-len(steps) // PART))
        changes, logits = [], []
        for part in parts:
            answers = self._at(directions[part], steps[part])
            ends = logit_changes(answers, self.record, self.signed)
            f = probability_of_one(answers)
            logits.append(logit(np.clip(f, SURE, 1 - SURE)))
            if self.signed:
                changes.append(ends[:, None])
                continue
            halfway = self._at(directions[part], steps[part] / 2)
            half = logit_changes(halfway, self.record, self.signed)
            changes.append(np.stack([ends, half], axis=1))
        return np.concatenate(changes, axis=2), np.concatenate(logits)

    def _at(self, directions: NDArray[np.intp], steps: Floats) -> Answers:
        return self.ask(self.space.queries_along(self.point, directions, steps))


def _scouted(seen: _Seen, dimension: int, step: float) -> float:
    """The longest step of the ladder at which nearly all of a few directions show the record."""
    few = np.linspace(0, dimension - 1, min(SCOUTS, dimension)).round().astype(np.intp)
    ladder = step * LADDER
    if dimension <= 4 * SCOUTS:
        return float(ladder[0])
    if dimension > MANY:
        ladder = ladder[ladder <= max(LONGEST, ladder[-1])]
    directions, lengths = np.tile(few, len(ladder)), np.repeat(ladder, len(few))
    changes, _ = seen.along(directions, lengths)
    kept = np.isfinite(changes[:, 0]).any(axis=0).reshape(len(ladder), len(few))
    share = kept.mean(axis=1)
    good = np.flatnonzero(share >= KEPT)
    return float(ladder[good[0] if len(good) else -1])


def _affine_signs(value: Floats, changes: Floats) -> tuple[float, Floats]:
    """The change at the point and at the ends, by the signs under which all of it is affine.

    value (2,): the candidates at the point; changes (2, 2, r): at the ends and half-way.
    """
    ends, halves = changes[:, 0], changes[:, 1]
    with np.errstate(invalid="ignore"):
        # (sign at the point, sign at the end, sign half-way, direction)
        bend = halves[None, None] - (value[:, None, None, None] + ends[None, :, None]) / 2
    bend = np.where(np.isfinite(bend), np.abs(bend), np.inf)
    straightest = bend.min(axis=2)
    sign = int(np.argmin((straightest.min(axis=1) ** 2).sum(axis=1)))
    end = straightest[sign].argmin(axis=0)
    return float(value[sign]), ends[end, np.arange(ends.shape[1])]
