"""Reading a training set by walking along its influence graph: asking about what was shown.

Shokri, Strobel & Zick 2021, sections 5.2.1 and 5.3.3 and Figure 10: whoever holds one record asks
about it, then about those that explain it, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from leakscope.errors import OracleBudgetError
from leakscope.extractions.disclosure import Disclosure
from leakscope.extractions.session import SPENT, Session, held_records
from leakscope.options import one_of
from leakscope.protocols import Extraction, Floats, Oracle
from leakscope.registry import register

Order = Literal["breadth", "depth", "walk"]


@register("extraction")
@dataclass(frozen=True, eq=False)
class Traversal(Extraction):
    """Asks about every record it was shown, from one or several it holds, until none is new.

    records (m, d): where it starts. order: ``breadth`` asks about the oldest it has not asked
    about, ``depth`` about the newest, ``walk`` about a random one of the last answer and, where all
    of those were asked about, of all. The order changes how soon records come, not which.
    """

    name: ClassVar[str] = "traversal"
    paper: ClassVar[str] = "Shokri, Strobel & Zick 2021, section 5.2.1"
    holds: ClassVar[bool] = True

    records: Floats
    order: Order = "breadth"
    seed: int = 0

    def run(self, oracle: Oracle) -> Disclosure:
        """Every record that can be reached, or as many as the budget gives."""
        one_of("order", self.order, get_args(Order))
        session = Session(oracle)
        starts = held_records(self.records, oracle)
        try:
            self._walk(session, starts)
            stopped = "every record that was shown had been asked about"
        except OracleBudgetError:
            stopped = SPENT
        details = {"order": self.order, "starts": len(starts)}
        return session.disclose(self, stopped=stopped, details=details)

    def _walk(self, session: Session, starts: Floats) -> None:
        rng = np.random.default_rng(self.seed)
        # Equal records have equal answers, so features and not numbers tell what was asked.
        found: dict[bytes, Floats] = {}
        for start in starts:
            if start.tobytes() in found:
                continue
            found[start.tobytes()] = start
            waiting: list[bytes] = []
            latest = self._ask(session, start, found)
            while latest or waiting:
                waiting += latest
                record = waiting.pop(self._choice(len(waiting), len(latest), rng))
                latest = self._ask(session, found[record], found)

    def _ask(self, session: Session, query: Floats, found: dict[bytes, Floats]) -> list[bytes]:
        """Those shown that had not been found before, the most influential first."""
        answers = session.ask(query[None])
        shown = answers.features[0, answers.shown[0] >= 0]
        new = {record.tobytes(): record for record in shown}
        fresh = [key for key in new if key not in found]
        found.update((key, new[key]) for key in fresh)
        return fresh

    def _choice(self, waiting: int, latest: int, rng: np.random.Generator) -> int:
        """Which of those waiting is next, the latest of them at the end."""
        if self.order == "breadth":
            return 0
        if self.order == "depth":
            return waiting - max(latest, 1)
        return int(rng.integers(waiting - latest if latest else 0, waiting))
