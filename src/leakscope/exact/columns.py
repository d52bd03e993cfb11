"""The models without each record, many at a time, by steps with the curvature of all records."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leakscope.exact.curvatures import Curvatures, joined, taken
from leakscope.exact.families import EXPANDED
from leakscope.exact.nearing import Neared, nearly
from leakscope.exact.newton import Minimum, least_sharpness
from leakscope.exact.penalized import Regression
from leakscope.exact.remainders import Remainders
from leakscope.protocols import Bools, Floats, Indices

_ROUNDS = 100
_SLOW, _PATIENCE = 0.7, 2  # a column whose decrement shrinks less than this, twice, is given up
_CAUTION = 10.0  # times what a decrement is expected to be
_DETERMINED = 1e-10  # a record whose removal leaves less of the curvature has a direction alone


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The curvature at the optimum of all records without each of m of them.

    records (m,); kept (m,): the share of the curvature that is left in the direction that loses
    most; remainders: of the regression around this optimum, where they are known.
    """

    regression: Regression
    full: Minimum
    records: Indices
    curvatures: Curvatures[np.float64]
    kept: Floats
    remainders: Remainders | None = None

    @classmethod
    def of(
        cls,
        regression: Regression,
        full: Minimum,
        records: Indices,
        remainders: Remainders | None = None,
    ) -> LeftOut:
        """Prepare to leave out these records, one each."""
        rows = np.ascontiguousarray(regression.design[records].T)
        unit = np.eye(regression.basis.shape[1])
        solved = np.ascontiguousarray(full.solve(np.einsum("dm,kl->dklm", rows, unit)))
        own = regression.own_curvatures(full.model, records)
        leverages = own @ np.einsum("dm,dklm->mkl", rows, solved)
        # A matrix of one number is its own eigenvalue; to find them all would take longer.
        single = len(unit) == 1
        most = leverages[:, 0, 0] if single else np.linalg.eigvals(leverages).real.max(axis=1)
        kept = 1.0 - most
        # Where nothing is left there is nothing to correct: such a column is not solved this way.
        safe = np.where((kept > _DETERMINED)[:, None, None], leverages, 0.0)
        inner = np.ascontiguousarray(np.linalg.solve(unit - safe, own).transpose(1, 2, 0))
        curvatures = Curvatures(full.inverse, solved, inner)
        return cls(regression, full, records, curvatures, kept, remainders)

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
        model = self.full.model
        models = np.broadcast_to(model[..., None], (*model.shape, len(self.records)))
        return self.regression.own_gradients(models, self.records)

    def solve_frozen(self) -> tuple[Floats, Bools]:
        """The models without each record (D, K, m), and which of them are found (m,).

        Newton's steps with the curvature of the optimum of all, from where single precision leads;
        what it finds itself is left there. They shrink by about the same factor each time, so that
        a column is found when the next one, were it to shrink ten times less than any before, is
        below the tolerance. A column that is not found holds the optimum of all.
        """
        active = np.flatnonzero(~self.determined)
        curvatures = self.curvatures.of(active)
        changes, near = self._nearly(curvatures, active)
        here = self.full.model[..., None] + changes
        found = np.zeros(len(self.records), dtype=np.bool_)
        found[active[near.sure]] = True
        left, kept = np.flatnonzero(near.sure), np.flatnonzero(~near.sure)
        ended = [(active[left], taken(here, left))]
        active, rates, last = active[kept], near.rates[kept], near.last[kept]
        here, curvatures = taken(here, kept), curvatures.of(kept)
        slow = np.zeros(len(active), dtype=np.intp)
        for _ in range(_ROUNDS):
            if len(active) == 0:
                break
            gradients = self.regression.gradients(
                here, self.regression.weights, self.records[active]
            )
            steps, decrements = curvatures.steps(gradients)
            here -= steps
            rates = np.maximum(rates, decrements / last)
            done = np.minimum(1.0, _CAUTION * rates) * decrements <= self.full.tolerance
            slow += ~(decrements <= _SLOW * last)  # not a number is slow as well
            left, kept = np.flatnonzero(done), np.flatnonzero(~done & (slow < _PATIENCE))
            ended.append((active[left], taken(here, left)))
            found[active[left]] = True
            active, slow, last, rates = active[kept], slow[kept], decrements[kept], rates[kept]
            here, curvatures = taken(here, kept), curvatures.of(kept)
        models = joined(ended)
        certain = self._certain(models, found)
        found[found] = certain
        if found.all():
            return models, found
        everyone = np.repeat(self.full.model[..., None], len(found), axis=2)
        everyone[..., found] = models[..., certain]
        return everyone, found

    def _nearly(
        self, curvatures: Curvatures[np.float64], columns: Indices
    ) -> tuple[Floats, Neared]:
        """Changes (D, K, c) that lead near the optima of some columns, and what is known of it."""
        remainders = self.remainders or Remainders.around(self.regression, self.full.model)
        first = curvatures.steps(taken(self.own_gradients, columns))
        near = nearly(
            remainders,
            curvatures.single(),
            first,
            self.records[columns],
            self.full.tolerance,
            self.full.condition,
        )
        changes = first[0] - curvatures.steps(near.remainders.astype(np.float64))[0]
        # The first step is as exact as the curvature: an exact step would tell what is missing.
        exact = first[1] <= self.full.tolerance / self.full.doubt
        return changes, replace(near, sure=near.sure & exact & self._expanded(changes, near.sure))

    def _expanded(self, changes: Floats, asked: Bools) -> Bools:
        """Whether changes (D, K, c) move no logit beyond where remainders are right, (c,).

        Only those that are asked about are looked at.
        """
        lengths = np.sqrt(np.einsum("dkm,dkm->m", changes, changes))
        within: Bools = np.sqrt(2.0) * self.regression.reach * lengths <= EXPANDED
        unclear = np.flatnonzero(asked & ~within)
        within[unclear] = self.regression.largest_changes(changes[..., unclear]) <= EXPANDED
        return within

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
