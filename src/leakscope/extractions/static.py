"""Queries chosen beforehand: how much of a training set a batch of explanations shows.

Shokri, Strobel & Zick 2021, section 5.3.1 and Figure 9: an adversary who knows the range of each
feature, its distribution, or people like those in the training set, and learns nothing as it asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from leakscope.errors import OracleBudgetError
from leakscope.extractions.disclosure import Disclosure
from leakscope.extractions.session import SPENT, Session, held_records
from leakscope.options import one_of, whole_number
from leakscope.protocols import Extraction, Floats, Oracle
from leakscope.registry import register

Distribution = Literal["uniform", "marginal", "actual"]


@register("extraction")
@dataclass(frozen=True, eq=False)
class StaticQueries(Extraction):
    """Asks a batch of queries that does not depend on the answers.

    records (m, d): people of the same population, not of the training set. distribution:
    ``uniform`` draws each feature between its least and its greatest value among them, either value
    where there are two; ``marginal`` draws each feature from theirs, apart from the others;
    ``actual`` asks about them, each once, so that there are at most m queries.
    """

    name: ClassVar[str] = "static"
    paper: ClassVar[str] = "Shokri, Strobel & Zick 2021, section 5.3.1"
    holds: ClassVar[bool] = True

    records: Floats
    distribution: Distribution = "actual"
    queries: int = 1000
    seed: int = 0

    def run(self, oracle: Oracle) -> Disclosure:
        """The records shown; ``shown_after`` of the disclosure is the curve of Figure 9."""
        one_of("distribution", self.distribution, get_args(Distribution))
        whole_number("queries", self.queries, 1)
        held = held_records(self.records, oracle)
        session = Session(oracle)
        stopped = "every query had been asked"
        try:
            for _ in session.ask_in_parts(self._drawn(held)):
                pass
        except OracleBudgetError:
            stopped = SPENT
        return session.disclose(self, stopped=stopped, details={"distribution": self.distribution})

    def _drawn(self, held: Floats) -> Floats:
        """The queries (q, d)."""
        rng = np.random.default_rng(self.seed)
        if self.distribution == "actual":
            drawn: Floats = held[rng.permutation(len(held))[: self.queries]]
            return drawn
        shape = (self.queries, held.shape[1])
        if self.distribution == "marginal":
            donors = rng.integers(len(held), size=shape)
            return np.take_along_axis(held, donors, axis=0)
        low, high = held.min(axis=0), held.max(axis=0)
        share = rng.random(shape)
        two_valued = ((held == low) | (held == high)).all(axis=0)
        share[:, two_valued] = share[:, two_valued] < 0.5
        uniform: Floats = low + share * (high - low)
        return uniform
