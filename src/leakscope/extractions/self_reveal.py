"""Who is shown by the explanation of their own record: membership without any inference.

Shokri, Strobel & Zick 2021, section 5.1, Figure 6 and Table 2: a record is influential for its own
prediction, so its explanation often shows it, and rare kinds of people are shown more often.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope.errors import InputError, OracleBudgetError
from leakscope.extractions.disclosure import Disclosure, Share, shares
from leakscope.extractions.session import SPENT, Session, held_records
from leakscope.options import whole_number
from leakscope.protocols import Bools, Extraction, Floats, Oracle
from leakscope.registry import register


@register("extraction")
@dataclass(frozen=True, eq=False)
class SelfReveal(Extraction):
    """Asks about each member and looks whether the explanation shows that very record.

    records (m, d): the members asked about; a record is found by its features, as a stranger would
    find it, so that one of two equal records is found by the other. ks: by how many records an
    explanation is judged, those above the oracle's k left out. groups {name: (m,)}: columns by
    which the share is told; unit (m,): whose row it is, rows of one person counting together.
    """

    name: ClassVar[str] = "self-reveal"
    paper: ClassVar[str] = "Shokri, Strobel & Zick 2021, section 5.1"
    holds: ClassVar[bool] = True

    records: Floats
    ks: tuple[int, ...] = (1, 5, 10)
    groups: Mapping[str, ArrayLike] = field(default_factory=dict)
    unit: ArrayLike | None = None

    def run(self, oracle: Oracle) -> Disclosure:
        """The share of members that are shown at each k, of everyone and by group."""
        ks = sorted({whole_number("ks", k, 1) for k in self.ks} & set(range(1, oracle.k + 1)))
        if not ks:
            raise InputError(
                f"The option ks is {self.ks}, and the oracle shows {oracle.k} records; "
                f"give a k of at most that"
            )
        held = held_records(self.records, oracle)
        session = Session(oracle)
        ranks, numbers = np.zeros(len(held), dtype=np.intp), np.full(len(held), -1, dtype=np.int64)
        stopped = "every member had been asked about"
        try:
            for answers in session.ask_in_parts(held):
                rows = slice(session.queries - len(answers.shown), session.queries)
                ranks[rows], numbers[rows] = _own_places(
                    held[rows], answers.features, answers.shown
                )
        except OracleBudgetError:
            stopped = SPENT
        asked = np.arange(len(held)) < session.queries
        found = (ranks > 0) & (ranks <= ks[-1])
        return session.disclose(
            self,
            recovered=numbers[found].tolist(),
            bound=len(held),
            groups=self._shares(ranks, asked, ks),
            stopped=stopped,
            details={"members": len(held), "asked": int(asked.sum())},
        )

    def _shares(self, ranks: NDArray[np.intp], asked: Bools, ks: list[int]) -> tuple[Share, ...]:
        """Shares among those asked about, at each k."""
        if not asked.any():
            return ()
        columns = {name: np.asarray(column)[asked] for name, column in self.groups.items()}
        unit = None if self.unit is None else np.asarray(self.unit)[asked]
        mine = ranks[asked]
        return tuple(one for k in ks for one in shares((mine > 0) & (mine <= k), k, columns, unit))


def _own_places(
    queries: Floats, features: Floats, shown: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """At which place, from 1, each query's own record is shown (q,), 0 for nowhere; its number."""
    same = (features == queries[:, None, :]).all(axis=2)
    place = np.argmax(same, axis=1)
    rows = np.arange(len(queries))
    there = same[rows, place]
    return np.where(there, place + 1, 0), np.where(there, shown[rows, place], -1)
