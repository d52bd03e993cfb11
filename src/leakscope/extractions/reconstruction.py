"""Algorithm 1: reading a training set record by record, by leaving the sight of those found.

Shokri, Strobel & Zick 2021, section 5.2, Algorithm 1 and Table 3. A query shows the record of the
largest influence. Its influence is measured as a function of the query; where it is 0, an affine
subspace, the next query shows another record; and so on until no direction is left. For logistic
regression with a free intercept every such function has its gradient in the span of the centred
features, so a pass that sees one record at a time finds at most rank(X − mean) + 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.special import logit
from threadpoolctl import threadpool_limits

from leakscope.errors import OracleBudgetError
from leakscope.extractions.disclosure import Disclosure
from leakscope.extractions.forms import Form, measure, probability_of_one
from leakscope.extractions.session import SPENT, Session
from leakscope.extractions.subspace import Subspace
from leakscope.options import whole_number
from leakscope.protocols import Answers, Extraction, Floats, Oracle
from leakscope.registry import register

# How far around the centre points are drawn, in units of what is usual for a feature.
SPREAD = 3.0
# So many points are drawn where an answer shows several records, to take the best of.
DRAWS = 4
# A form whose zero lies farther away, in the same units, is constant as far as one can tell.
FAR = 1e7
# So many draws without a record that can be measured end a pass.
PATIENCE = 10
# Draws without anything new that end a search without values.
STALE = 200

EXHAUSTED = "no record was shown whose influence was not removed"
CONSTANT = "the influence that was left is the same everywhere"
UNMEASURED = "the records that were shown could not be measured"
NOTHING_NEW = f"the last {STALE} points showed nothing new; without values nothing can be removed"


@register("extraction")
@dataclass(frozen=True)
class Reconstruction(Extraction):
    """Finds records by removing the influence of those it has found, with queries alone.

    restarts: how many more passes, each from another random point. ``recovered`` counts the records
    shown at the points it drew, as the paper does; its measurements show others besides. Where the
    oracle shows no values, or only zeros, there is nothing to measure, and it draws points for as
    long as that helps.
    """

    name: ClassVar[str] = "reconstruction"
    paper: ClassVar[str] = "Shokri, Strobel & Zick 2021, section 5.2, Algorithm 1"
    holds: ClassVar[bool] = False

    restarts: int = 0
    seed: int = 0

    def run(self, oracle: Oracle) -> Disclosure:
        """The records found, pass by pass."""
        whole_number("restarts", self.restarts, 0)
        session = Session(oracle)
        passes = list[_Pass]()
        try:
            # Products with one vector after another: threads would wait for one another.
            with threadpool_limits(limits=1, user_api="blas"):
                for rng in np.random.default_rng(self.seed).spawn(1 + self.restarts):
                    passes.append(_Pass(session, rng))
                    passes[-1].run()
        except OracleBudgetError:
            passes[-1].finish(SPENT)
        told = oracle.show != "records" and all(one.measures for one in passes)
        return session.disclose(
            self,
            recovered=set[int]().union(*(one.found for one in passes)),
            # Each point drawn takes a direction with it, but for the last.
            bound=(oracle.width + 1) * oracle.k * len(passes) if told else None,
            stopped=passes[-1].stopped,
            details={
                "passes": [
                    {"found": len(one.found), "removed": len(one.removed), "stopped": one.stopped}
                    for one in passes
                ],
            },
        )


@dataclass(eq=False)
class _Pass:
    """One pass of Algorithm 1, in coordinates in which a usual feature is about 1.

    ``found``: the records shown at the points drawn; ``removed``: those whose influence is 0 in
    what is left; ``measures``: whether it is told values. The rest is the current point (d,), what
    it showed, and the logit around it.
    """

    session: Session
    rng: np.random.Generator
    found: set[int] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)
    measures: bool = True
    stopped: str = ""
    _scale: Floats = field(init=False)
    _gradient: Floats = field(init=False)
    _features_found: Floats = field(init=False)
    _point: Floats = field(init=False)
    _answers: Answers = field(init=False)
    _logit: float = 0.0
    _shown: list[int] = field(default_factory=list)

    def run(self) -> None:
        """Draw, measure and cut until nothing is left."""
        self._begin()
        values = self._answers.values
        # An oracle that tells 0 of every record, as a defended one may, tells no values either.
        self.measures = values is not None and bool(values[self._answers.shown >= 0].any())
        if not self.measures:
            self._search()
            return
        space, step, failures = Subspace.whole(self._scale), 1.0, 0
        why = ""
        while failures < PATIENCE:
            record = next((one for one in self._shown if one not in self.removed), None)
            form = None if record is None else self._measured(space, record, step)
            if record is None or form is None:
                failures += 1
                why = EXHAUSTED if record is None else UNMEASURED
            else:
                failures, step = 0, form.step
                self._keep()
                if not self._gradient.any():
                    self._gradient = form.logit_slope @ space.basis
                if abs(form.value) >= FAR * float(np.linalg.norm(form.slope)):
                    self.stopped = CONSTANT
                    return
                self.removed.add(record)
                space.cut(self._point, form.slope, form.value)
            # Far out a record moves the logit by so much that only a sure model shows all of it.
            self._draw(space, 1.0 + failures)
        self.finish(why)

    def finish(self, why: str) -> None:
        """Count what the last point showed, and say why it was the last."""
        self._keep()
        self.stopped = why

    def _begin(self) -> None:
        """Ask a first point at which the model is not sure, on a line through a record it shows."""
        d = self.session.oracle.width
        self._scale, self._gradient, self._features_found = np.ones(d), np.zeros(d), np.zeros(d)
        first = self._ask(np.zeros((1, d)))
        shown = first.features[0, first.shown[0] >= 0]
        self._scale = _usual_sizes(shown)
        base = self.rng.normal(size=d)
        way = shown[0] / self._scale if shown[:1].any() else np.ones(d)
        stops = np.concatenate([[0.0], 2.0 ** np.arange(-2, 6), -(2.0 ** np.arange(-2, 6))])
        logits = _logits(self._ask(base + stops[:, None] * way))
        near, other = np.argsort(np.abs(logits), kind="stable")[:2]
        rise = (logits[other] - logits[near]) / (stops[other] - stops[near])
        stop = stops[near] - (logits[near] / rise if rise else 0.0)
        point = base + stop * way
        self._settle(point, self._ask(point[None]))

    def _draw(self, space: Subspace, largest: float = 1.0) -> None:
        """Ask a random point of the subspace, near the records found, of at most this |logit|."""
        centre = self._features_found / max(len(self.found), 1) / self._scale
        # One answer of k > 1 records shows more that is new than another.
        draws = 1 if self.session.oracle.k == 1 else DRAWS
        noise = SPREAD * self.rng.normal(size=(draws, space.dimension))
        aims = largest * self.rng.uniform(-1, 1, size=draws)
        values = aims - self._logit + self._point @ self._gradient
        coordinates = space.towards(space.nearest(centre) + noise, self._gradient, values)
        points = space.points(coordinates)
        answers = self._ask(points)
        new = [len(set(shown) - self.found - {-1}) for shown in answers.shown.tolist()]
        best = int(np.argmax(new))
        self._settle(points[best], answers.only(best))

    def _measured(self, space: Subspace, record: int, step: float) -> Form | None:
        signed = self.session.oracle.show == "signed"
        return measure(self.session.ask, space, self._point, self._answers, record, signed, step)

    def _search(self) -> None:
        """Without values: points are drawn from all there are, until they show nothing new."""
        self._learn_gradient()
        space, stale = Subspace.whole(self._scale), 0
        while stale < STALE:
            before = len(self.found)
            self._keep()
            stale = 0 if len(self.found) > before else stale + 1
            self._draw(space)
        self.finish(NOTHING_NEW)

    def _learn_gradient(self) -> None:
        """The gradient of the model's logit, from predictions one step away in each direction."""
        steps = np.ones(len(self._scale))
        left = np.arange(len(steps))
        while len(left):
            ways = np.zeros((len(left), len(steps)))
            ways[np.arange(len(left)), left] = steps[left]
            logits = _logits(self._ask(self._point + ways))
            self._gradient[left] = (logits - self._logit) / steps[left]
            # A step far into certainty has lost its digits; a shorter one has not.
            left = left[(np.abs(logits) > 9) & (steps[left] > 1e-6)]
            steps[left] /= 8

    def _keep(self) -> None:
        """Count the records shown at the last point as found."""
        for one in self._shown:
            if one not in self.found:
                self.found.add(one)
                self._features_found += self.session.features[one]

    def _settle(self, point: Floats, answers: Answers) -> None:
        """Make this the current point, and these the answers to it."""
        self._point, self._answers = point, answers
        self._logit = float(_logits(answers)[0])
        self._shown = [one for one in answers.shown[0].tolist() if one >= 0]

    def _ask(self, points: Floats) -> Answers:
        return self.session.ask(points * self._scale)


def _usual_sizes(features: Floats) -> Floats:
    """The size of each feature (d,) among these records (k, d); the usual one where all are 0.

    1 where all sizes are 0, or there is no record.
    """
    sizes = np.abs(features).max(axis=0, initial=0.0)
    usual = float(np.median(sizes[sizes > 0])) if sizes.any() else 1.0
    return np.where(sizes > 0, sizes, usual)


def _logits(answers: Answers) -> Floats:
    """The logit of each prediction (q,), finite."""
    return logit(np.clip(probability_of_one(answers), 1e-15, 1 - 1e-15))
