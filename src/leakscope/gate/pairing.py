"""Two audits of the same records, compared record by record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.gate.bounds import TAIL
from leakscope.gate.deciding import Bounds
from leakscope.gate.reading import ROUNDING, Attacked, Audited
from leakscope.metrics.intervals import Interval
from leakscope.metrics.paired import advantage_difference
from leakscope.metrics.rates import effective_size
from leakscope.protocols import Bools
from leakscope.records.content import side_digest

Columns = dict[str, NDArray[Any]]
Units = NDArray[np.intp] | None
NEEDED = ("row", "side", "content_key", "calibration")


@dataclass(frozen=True)
class Calls:
    """Whom an attack calls members, and on which records that is judged: both (n,).

    inflation: by how much the report divided the number of records, as for cross-fitted scores.
    """

    called: Bools
    judged: Bools
    inflation: float


@dataclass(frozen=True)
class Paired:
    """The tables of records of two audits, row beside row; unit (n,): equal records, if any."""

    now: Columns
    before: Columns
    members: Bools
    unit: Units

    @classmethod
    def align(cls, now: Audited, before: Audited) -> Paired | None:
        """Both tables in the order of their content keys; None where that cannot be done.

        That is where a report has no table or one of other records, and where rows belong to
        persons, whom the keys do not tell.
        """
        ours, theirs = _in_order(now), _in_order(before)
        if ours is None or theirs is None or now.unit is not None:
            return None
        distinct, unit = np.unique(ours["content_key"], return_inverse=True)
        alone = len(distinct) == len(unit)
        return cls(ours, theirs, ours["side"] == "member", None if alone else unit)

    def change(self, now: Attacked, before: Attacked, tries: int) -> Bounds | None:
        """By how much the advantage has grown; None where the tables do not tell."""
        ours, theirs = self._calls(now, self.now), self._calls(before, self.before)
        if ours is None or theirs is None:
            return None
        judged = ours.judged & theirs.judged

        def difference(tail: float) -> Interval:
            return advantage_difference(
                ours.called[judged],
                theirs.called[judged],
                self.members[judged],
                unit=None if self.unit is None else self.unit[judged],
                inflation=max(ours.inflation, theirs.inflation),
                confidence=1 - 2 * tail,
            )

        alone = difference(TAIL)
        return Bounds(now.attack, alone.value, difference(TAIL / tries).low, alone.high, alone.low)

    def _calls(self, attack: Attacked, table: Columns) -> Calls | None:
        """The calls of an attack; None where they do not give the rates in its report."""
        scores = table.get(f"score_{attack.attack}")
        if scores is None or not attack.complete or np.isnan(attack.threshold):
            return None
        called = scores.astype(np.float64) >= attack.threshold
        judged = table["calibration"] == "no" if attack.calibrated else np.full(len(called), True)
        rates, inflation = attack.rates, 1.0
        sides = (
            (self.members, rates.tpr, rates.members),
            (~self.members, rates.fpr, rates.nonmembers),
        )
        for side, rate, size in sides:
            here = side & judged
            if not here.any() or abs(called[here].mean() - rate) > ROUNDING:
                return None
            codes = None if self.unit is None else self.unit[here]
            inflation = max(inflation, effective_size(called[here], codes) / size)
        return Calls(called, judged, inflation)


def _in_order(audited: Audited) -> Columns | None:
    """The table of an audit by side, key and row, if it is of the records of the report."""
    if audited.records is None or audited.fingerprint is None:
        return None
    columns = {name: np.asarray(values) for name, values in audited.records.columns.items()}
    if not all(name in columns for name in NEEDED):
        return None
    try:
        keys = np.array([int(key, 16) for key in columns["content_key"].tolist()], dtype=np.uint64)
    except (OverflowError, ValueError):
        return None
    members = columns["side"] == "member"
    digests = {"members": side_digest(keys[members]), "nonmembers": side_digest(keys[~members])}
    if any(audited.fingerprint[side] != digest for side, digest in digests.items()):
        return None
    order = np.lexsort((columns["row"], keys, ~members))
    return {name: values[order] for name, values in columns.items()}
