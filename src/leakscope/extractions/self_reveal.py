"""Who is shown by the explanation of their own record.

Shokri, Strobel & Zick 2021, section 5.1, Figure 6 and Table 2: a record is influential for its own
prediction, so its explanation often shows it, and rare kinds of people are shown more often. It
tells of membership only by how much more seldom those are shown who were not trained on, for they
may have equals among the members. A service that will not explain a query which is a training
record is asked beside it.
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
from leakscope.options import magnitude, whole_number
from leakscope.protocols import Answers, Bools, Extraction, Floats, Oracle
from leakscope.registry import register

# By so many standard deviations of a feature two results of the same preparation may differ.
ROUNDING = 1e-9


@register("extraction")
@dataclass(frozen=True, eq=False)
class SelfReveal(Extraction):
    """Asks about each member and looks whether the explanation shows a record equal to it.

    records (m, d): the members asked about; a record is found by its features, as a stranger would
    find it, labels apart, so that one of two equal records is found by the other. ``recovered``
    counts the distinct records shown in this way, the shares count those asked about, and ``twins``
    in the details is how many of these equal another of them. ks: by how many records an
    explanation is judged, those above the oracle's k left out. groups {name: (m,)}: columns by
    which the share is told; unit (m,): whose row it is, rows of one person counting together.

    Against an oracle that is on its guard: outward moves each query away from the mean of the
    records held, by so many times the record's way from there, which raises the record's influence
    with it; beside adds Gaussian noise of so many times the spread of each feature among them.
    copies: how often each record is asked about, found if any answer shows it. ``refused`` in the
    details is how many records had no answer with any record: that may tell of them, too.
    """

    name: ClassVar[str] = "self-reveal"
    paper: ClassVar[str] = "Shokri, Strobel & Zick 2021, section 5.1"
    holds: ClassVar[bool] = True

    records: Floats
    ks: tuple[int, ...] = (1, 5, 10)
    groups: Mapping[str, ArrayLike] = field(default_factory=dict)
    unit: ArrayLike | None = None
    outward: float = 0.0
    beside: float = 0.0
    copies: int = 1
    seed: int = 0

    def run(self, oracle: Oracle) -> Disclosure:
        """The share of members that are shown at each k, of everyone and by group."""
        ks = sorted({whole_number("ks", k, 1) for k in self.ks} & set(range(1, oracle.k + 1)))
        if not ks:
            raise InputError(
                f"The option ks is {self.ks}, and the oracle shows {oracle.k} records; "
                f"give a k of at most that"
            )
        copies = whole_number("copies", self.copies, 1)
        held = held_records(self.records, oracle)
        session = Session(oracle)
        seen = _Places.none(copies * len(held))
        spread = held.std(axis=0)
        stopped = "every member had been asked about"
        try:
            for answers in session.ask_in_parts(self._queries(held)):
                rows = np.arange(session.queries - len(answers.shown), session.queries)
                seen.write(rows, held[rows // copies], answers, ROUNDING * spread)
        except OracleBudgetError:
            stopped = SPENT
        # All copies of a record, or it counts as not asked about.
        asked = np.arange(len(held)) < session.queries // copies
        ranks = seen.ranks(copies)
        return session.disclose(
            self,
            recovered=seen.numbers[(seen.places > 0) & (seen.places <= ks[-1])].tolist(),
            bound=len(held),
            groups=self._shares(ranks, asked, ks),
            stopped=stopped,
            details={
                "members": len(held),
                "asked": int(asked.sum()),
                "refused": int((seen.empty.reshape(-1, copies).all(axis=1) & asked).sum()),
                "twins": _with_a_twin(held, spread),
            },
        )

    def _queries(self, held: Floats) -> Floats:
        """The copies of each record after one another, (m · copies, d)."""
        outward, centre = magnitude("outward", self.outward), held.mean(axis=0)
        # At 0 the queries are the records to the last digit.
        moved = held + outward * (held - centre)
        queries = np.repeat(moved, self.copies, axis=0)
        if magnitude("beside", self.beside):
            noise = np.random.default_rng(self.seed).normal(size=queries.shape)
            queries += self.beside * held.std(axis=0) * noise
        return queries

    def _shares(self, ranks: NDArray[np.intp], asked: Bools, ks: list[int]) -> tuple[Share, ...]:
        """Shares among those asked about, at each k."""
        if not asked.any():
            return ()
        columns = {name: np.asarray(column)[asked] for name, column in self.groups.items()}
        unit = None if self.unit is None else np.asarray(self.unit)[asked]
        mine = ranks[asked]
        return tuple(one for k in ks for one in shares((mine > 0) & (mine <= k), k, columns, unit))


@dataclass(frozen=True, eq=False)
class _Places:
    """What the answer to each of q queries showed of the record that was asked about.

    places (q,): at which place, from 1, it is shown, 0 for nowhere; numbers (q,): its number;
    empty (q,): whether no record at all is shown.
    """

    places: NDArray[np.intp]
    numbers: NDArray[np.int64]
    empty: Bools

    @classmethod
    def none(cls, q: int) -> _Places:
        """Of queries that were not answered."""
        return cls(np.zeros(q, dtype=np.intp), np.full(q, -1, dtype=np.int64), np.zeros(q, bool))

    def write(
        self, rows: NDArray[np.intp], records: Floats, answers: Answers, tolerance: Floats
    ) -> None:
        """Enter the answers to the queries of these numbers (r,) about these records (r, d).

        tolerance (d,): by how much a feature of equal records may differ.
        """
        there = answers.shown >= 0
        own = there & (np.abs(answers.features - records[:, None, :]) <= tolerance).all(axis=2)
        place, at = own.argmax(axis=1), np.arange(len(rows))
        found = own[at, place]
        self.places[rows] = np.where(found, place + 1, 0)
        self.numbers[rows] = np.where(found, answers.shown[at, place], -1)
        self.empty[rows] = ~there.any(axis=1)

    def ranks(self, copies: int) -> NDArray[np.intp]:
        """The best place of each record over its copies, (q / copies,), 0 for nowhere."""
        last = np.iinfo(np.intp).max
        best = np.where(self.places > 0, self.places, last).reshape(-1, copies).min(axis=1)
        return np.where(best < last, best, 0)


def _with_a_twin(held: Floats, spread: Floats) -> int:
    """How many of the records (m, d) equal another of them in every feature, but for rounding."""
    # Adding 0 makes the zeros of both signs one.
    steps = np.round(held / np.where(spread > 0, spread, 1.0), 8) + 0.0
    _, sizes = np.unique(steps, axis=0, return_counts=True)
    return int(sizes[sizes > 1].sum())
