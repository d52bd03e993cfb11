"""The models without each record, many at a time, from the curvature of the model of all.

Leaving out record j takes a term of rank K out of the curvature: H_j = H − U A Uᵀ, with U the
record's features for each of the K free outputs and A (K, K) the curvature of its loss. Woodbury's
identity, Sherman and Morrison's for K = 1, turns H⁻¹ into H_j⁻¹.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from leakscope.exact.newton import Minimum, least_sharpness
from leakscope.exact.penalized import Number, Regression
from leakscope.exact.remainders import Remainders
from leakscope.protocols import Bools, Floats, Indices

_ROUNDS = 100
_SLOW, _PATIENCE = 0.7, 2  # a column whose decrement shrinks less than this, twice, is given up
_CAUTION = 10.0  # times what a decrement is expected to be
_NEAR = 20.0  # a round in single precision costs half of the exact one that it may save
_SINGLE = 1e-6  # of the first remainder, below which single precision knows nothing of the others
_DETERMINED = 1e-10  # a record whose removal leaves less of the curvature has a direction alone


@dataclass(frozen=True, eq=False)
class Curvatures(Generic[Number]):
    """H_j⁻¹ for each of m records.

    inverse (D·K, D·K): H⁻¹; solved (D, K, K, m): H⁻¹U; inner (K, K, m): what Woodbury's identity
    multiplies.
    """

    inverse: NDArray[Number]
    solved: NDArray[Number]
    inner: NDArray[Number]

    def of(self, columns: Indices) -> Curvatures[Number]:
        """Those of some of the records."""
        return Curvatures(self.inverse, self.solved[..., columns], self.inner[..., columns])

    def single(self) -> Curvatures[np.float32]:
        """The same in single precision."""
        parts = (self.inverse, self.solved, self.inner)
        return Curvatures(*(part.astype(np.float32) for part in parts))

    def steps(self, gradients: NDArray[Number]) -> tuple[NDArray[Number], NDArray[Number]]:
        """H_j⁻¹ times the gradient of each column (D, K, m), and the decrements (m,)."""
        flat = gradients.reshape(len(self.inverse), -1)
        steps = self.corrected((self.inverse @ flat).reshape(gradients.shape), gradients)
        return steps, np.sqrt(np.maximum(np.einsum("dkm,dkm->m", gradients, steps), 0))

    def corrected(self, steps: NDArray[Number], gradients: NDArray[Number]) -> NDArray[Number]:
        """H_j⁻¹ times the gradients from H⁻¹ times them, over it."""
        along = np.einsum("dklm,dkm->lm", self.solved, gradients)
        along = np.einsum("klm,lm->km", self.inner, along)
        steps += np.einsum("dklm,lm->dkm", self.solved, along)
        return steps


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The curvature at the optimum of all records without each of m of them.

    records (m,); kept (m,): the share of the curvature that is left in the direction that loses
    most.
    """

    regression: Regression
    full: Minimum
    records: Indices
    curvatures: Curvatures[np.float64]
    kept: Floats

    @classmethod
    def of(cls, regression: Regression, full: Minimum, records: Indices) -> LeftOut:
        """Prepare to leave out these records, one each."""
        rows = np.ascontiguousarray(regression.design[records].T)
        unit = np.eye(regression.basis.shape[1])
        solved = full.solve(np.einsum("dm,kl->dklm", rows, unit))
        own = regression.own_curvatures(full.model, records)
        leverages = own @ np.einsum("dm,dklm->mkl", rows, solved)
        kept = 1.0 - np.linalg.eigvals(leverages).real.max(axis=1)
        # Where nothing is left there is nothing to correct: such a column is not solved this way.
        safe = np.where((kept > _DETERMINED)[:, None, None], leverages, 0.0)
        inner = np.ascontiguousarray(np.linalg.solve(unit - safe, own).transpose(1, 2, 0))
        return cls(regression, full, records, Curvatures(full.inverse, solved, inner), kept)

    @property
    def determined(self) -> Bools:
        """Which records have a direction of the parameters to themselves, (m,)."""
        return self.kept <= _DETERMINED

    def first_order(self) -> Floats:
        """H⁻¹ times the gradients of the records' losses, (D, K, m): Koh & Liang's change."""
        return self.full.solve(self.own_gradients)

    def one_step(self) -> Floats:
        """H_j⁻¹ times the same: the change of one Newton step, exact for squared errors."""
        return self.curvatures.corrected(self.first_order(), self.own_gradients)

    @property
    def own_gradients(self) -> Floats:
        """The gradients of the records' losses at the optimum of all, (D, K, m)."""
        models = np.repeat(self.full.model[..., None], len(self.records), axis=2)
        return self.regression.own_gradients(models, self.records)

    def solve_frozen(self) -> tuple[Floats, Bools]:
        """The models without each record (D, K, m), and which of them are found (m,).

        Newton's steps with the curvature of the optimum of all, from where single precision leads.
        They shrink by about the same factor each time, so that a column is found when the next one,
        were it to shrink ten times less than any before, is below the tolerance. A column that is
        not found holds the optimum of all.
        """
        start = self.full.model[..., None]
        changes, rates = self._nearly()
        models = start + changes
        found = np.zeros(len(self.records), dtype=np.bool_)
        active = np.flatnonzero(~self.determined)
        rates, slow = rates[active], np.zeros(len(active), dtype=np.intp)
        last = np.full(len(active), np.inf)
        for _ in range(_ROUNDS):
            if len(active) == 0:
                break
            gradients = self.regression.gradients(
                models[..., active], self.regression.weights, self.records[active]
            )
            steps, decrements = self.curvatures.of(active).steps(gradients)
            models[..., active] -= steps
            rates = np.maximum(rates, decrements / last)
            done = np.minimum(1.0, _CAUTION * rates) * decrements <= self.full.tolerance
            found[active[done]] = True
            slow += ~(decrements <= _SLOW * last)  # not a number is slow as well
            going = ~done & (slow < _PATIENCE)
            active, slow = active[going], slow[going]
            last, rates = decrements[going], rates[going]
        found[found] = self._certain(models[..., found], found)
        models[..., ~found] = start
        return models, found

    def _nearly(self) -> tuple[Floats, Floats]:
        """Changes of the model of all (D, K, m) that lead near each optimum, and their rates (m,).

        The same steps, in terms of the change δ: the gradient without record j is H_j δ, less the
        gradient of its loss, and a remainder of second order. So the first step is exact but for
        the remainder, and each other is the change of the remainder, of which single precision
        knows enough for as long as it shrinks. It is left to the next, exact step to find the
        column. Its rate is the largest factor by which a decrement shrank, 1 where it did not.
        """
        remainders = Remainders.around(self.regression, self.full.model)
        changes, last = self.curvatures.steps(self.own_gradients)
        curvatures = self.curvatures.single()
        rates = np.ones(len(self.records))
        active = np.flatnonzero(~self.determined)
        here, last = changes[..., active], last[active]
        before = np.zeros(here.shape, dtype=np.float32)
        slowest = least = np.zeros(len(active))
        for _ in range(_ROUNDS):
            if len(active) == 0:
                break
            now = remainders.of(here, self.records[active])
            steps, sizes = curvatures.of(active).steps(now - before)
            decrements = sizes.astype(np.float64)
            ahead = here - steps
            ratios = np.divide(decrements, last, out=np.ones(len(last)), where=last > 0)
            slowest = np.maximum(slowest, ratios)
            least = np.maximum(least, _SINGLE * decrements)
            going = decrements <= _SLOW * last
            rates[active[going]] = slowest[going]
            # Near enough if the next step, an exact one, is expected to be the last.
            near = _NEAR * slowest**2 * decrements <= self.full.tolerance
            stays = going & ~near & (decrements > least)
            left, kept = np.flatnonzero(~stays), np.flatnonzero(stays)
            ends = np.where(going[left], ahead[..., left], here[..., left])
            changes[..., active[left]] = ends
            active, here, before = active[kept], ahead[..., kept], now[..., kept]
            last, slowest, least = decrements[kept], slowest[kept], least[kept]
        return changes, rates

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
