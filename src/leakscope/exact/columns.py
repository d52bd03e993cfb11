"""The models without each record, many at a time, from the curvature of the model of all.

Leaving out record j takes a term of rank K out of the curvature: H_j = H − U A Uᵀ, with U the
record's features for each of the K free outputs and A (K, K) the curvature of its loss. Woodbury's
identity, Sherman and Morrison's for K = 1, turns H⁻¹ into H_j⁻¹.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.exact.newton import Minimum, least_sharpness
from leakscope.exact.penalized import Regression
from leakscope.protocols import Bools, Floats, Indices

_ROUNDS = 100
_SLOW, _PATIENCE = 0.7, 2  # a column whose decrement shrinks less than this, twice, is given up
_CAUTION = 10.0  # times what a decrement is expected to be
_SINGLE = 1e-6  # of the first step, below which steps in single precision lead nowhere
_DETERMINED = 1e-10  # a record whose removal leaves less of the curvature has a direction alone


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The curvature at the optimum of all records without each of m of them.

    records (m,); rows (m, D): their features; solved (D, K, m, K): H⁻¹U; inner (m, K, K): what
    Woodbury's identity multiplies; kept (m,): the share of the curvature that is left in the
    direction that loses most.
    """

    regression: Regression
    full: Minimum
    records: Indices
    rows: Floats
    solved: Floats
    inner: Floats
    kept: Floats

    @classmethod
    def of(cls, regression: Regression, full: Minimum, records: Indices) -> LeftOut:
        """Prepare to leave out these records, one each."""
        rows = regression.design[records]
        unit = np.eye(regression.basis.shape[1])
        solved = full.solve(np.einsum("md,kl->dkml", rows, unit))
        curvatures = regression.own_curvatures(full.model, records)
        leverages = curvatures @ np.einsum("md,dkml->mkl", rows, solved)
        kept = 1.0 - np.linalg.eigvals(leverages).real.max(axis=1)
        # Where nothing is left there is nothing to correct: such a column is not solved this way.
        safe = np.where((kept > _DETERMINED)[:, None, None], leverages, 0.0)
        inner = np.asarray(np.linalg.solve(unit - safe, curvatures), dtype=np.float64)
        return cls(regression, full, records, rows, solved, inner, kept)

    @property
    def determined(self) -> Bools:
        """Which records have a direction of the parameters to themselves, (m,)."""
        return self.kept <= _DETERMINED

    def first_order(self) -> Floats:
        """H⁻¹ times the gradients of the records' losses, (D, K, m): Koh & Liang's change."""
        return self.full.solve(self.own_gradients)

    def one_step(self) -> Floats:
        """H_j⁻¹ times the same: the change of one Newton step, exact for squared errors."""
        return self._corrected(self.first_order(), slice(None))

    @property
    def own_gradients(self) -> Floats:
        """The gradients of the records' losses at the optimum of all, (D, K, m)."""
        models = np.repeat(self.full.model[..., None], len(self.records), axis=2)
        return self.regression.own_gradients(models, self.records)

    def solve_frozen(self) -> tuple[Floats, Bools]:
        """The models without each record (D, K, m), and which of them are found (m,).

        Newton's steps with the curvature of the optimum of all, from where single precision leads.
        They shrink by about the same factor each time, so that a column is found when the next one,
        were it to shrink ten times less, is below the tolerance. A column that is not found holds
        the optimum of all.
        """
        start = self.full.model[..., None]
        changes, last = self._nearly()
        models = start + changes
        found = np.zeros(len(self.records), dtype=np.bool_)
        active = np.flatnonzero(~self.determined)
        last, slow = last[active], np.zeros(len(active), dtype=np.intp)
        for _ in range(_ROUNDS):
            if len(active) == 0:
                break
            steps, decrements = self._steps(self._gradients(models[..., active], active), active)
            models[..., active] -= steps
            done = self._below(decrements * np.minimum(last, _CAUTION * decrements), last)
            found[active[done]] = True
            slow += ~(decrements <= _SLOW * last)  # not a number is slow as well
            going = ~done & (slow < _PATIENCE)
            active, last, slow = active[going], decrements[going], slow[going]
        found[found] = self._certain(models[..., found], found)
        models[..., ~found] = start
        return models, found

    def _nearly(self) -> tuple[Floats, Floats]:
        """Changes of the model of all (D, K, m) that lead near each optimum, and their last size.

        The same steps, in terms of the change δ: the gradient without record j is H_j δ, less the
        gradient of its loss, and a remainder of second order. So the first step is exact but for
        the remainder, and each other is the change of the remainder, of which single precision
        knows enough for as long as it shrinks. It is left to the next, exact step to find the
        column; sizes (m,) are decrements.
        """
        logits = self.regression.design @ (self.full.model @ self.regression.basis.T)
        active = np.arange(len(self.records))
        changes, first = self._steps(self.own_gradients, active)
        sizes, active = first.copy(), active[~self.determined]
        here, last = changes[..., active], first[active]
        before = np.zeros_like(here)
        for _ in range(_ROUNDS):
            if len(active) == 0:
                break
            now = self.regression.remainders(logits, here, self.records[active])
            steps, decrements = self._steps(now - before, active)
            going = decrements <= _SLOW * last
            steps[..., ~going] = 0.0
            here -= steps
            changes[..., active] = here
            sizes[active[going]] = decrements[going]
            # Near enough if the next step, an exact one, is expected to be the last: the first two
            # may shrink twice as much as others do.
            near = self._below(_CAUTION * decrements * (2 * decrements) ** 2, last**2)
            near |= decrements <= _SINGLE * first[active]
            kept = np.flatnonzero(going & ~near)
            active, last = active[kept], decrements[kept]
            here, before = here[..., kept], now[..., kept]
        return changes, sizes

    def _below(self, numerator: Floats, denominator: Floats) -> Bools:
        """Whether the ratio is at most the tolerance, (m,)."""
        below: Bools = numerator <= self.full.tolerance * denominator
        return below

    def _gradients(self, models: Floats, columns: Indices) -> Floats:
        every = self.regression.gradients(models, self.regression.weights)
        return every - self.regression.own_gradients(models, self.records[columns])

    def _steps(self, gradients: Floats, columns: Indices) -> tuple[Floats, Floats]:
        """H_j⁻¹ times one gradient (D, K) for each of these columns, and their decrements."""
        flat = gradients.reshape(len(self.full.inverse), -1)
        steps = self._corrected((self.full.inverse @ flat).reshape(gradients.shape), columns)
        return steps, np.sqrt(np.maximum(np.einsum("dkm,dkm->m", gradients, steps), 0.0))

    def _corrected(self, steps: Floats, columns: Indices | slice) -> Floats:
        """H_j⁻¹ times a vector for each of these columns, from H⁻¹ times it (D, K, m), over it."""
        along = np.einsum("md,dkm->mk", self.rows[columns], steps)
        along = np.einsum("mkl,ml->mk", self.inner[columns], along)
        steps += np.einsum("dkml,ml->dkm", self.solved[:, :, columns], along)
        return steps

    def _certain(self, models: Floats, columns: Bools) -> Bools:
        """Whether the curvature is sure not to have vanished on the way to these models, (m,).

        Logits that change by δ at the most (in the differences between classes) leave at least
        e^−2δ of a record's curvature, and e^−δ where there are two classes.
        """
        if self.regression.family.name == "gaussian":
            return np.ones(models.shape[2], dtype=np.bool_)
        changes = models - self.full.model[..., None]
        lengths = np.sqrt(np.einsum("dkm,dkm->m", changes, changes))
        # No logit changes by more than this; where that says too little, each is looked at.
        certain = self._sharp(np.sqrt(2.0) * self.regression.reach * lengths, columns)
        unsure = np.flatnonzero(~certain)
        largest = self.regression.largest_changes(changes[..., unsure])
        certain[unsure] = self._sharp(largest, np.flatnonzero(columns)[unsure])
        return certain

    def _sharp(self, changes: Floats, columns: Bools | Indices) -> Bools:
        """Whether logits that change by so much leave these columns a curvature, (m,)."""
        power = 1.0 if self.regression.family.name == "binomial" else 2.0
        left = self.full.sharpness * self.kept[columns] * np.exp(-power * changes)
        sharp: Bools = left >= least_sharpness(self.regression.l2)
        return sharp
