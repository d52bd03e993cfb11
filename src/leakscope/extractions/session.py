"""One run of an extraction against an oracle: what it asked, and what it was shown."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError
from leakscope.extractions.disclosure import Disclosure, Share
from leakscope.protocols import Answers, Extraction, Floats, Oracle

# Queries asked at once: what an answer holds in memory is so many times k times d numbers.
PART = 1024

SPENT = "the budget of queries was spent"


class Session:
    """Asks an oracle, remembers the features of every record shown and counts the queries."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.queries = 0
        self.features: dict[int, Floats] = {}
        self._first: dict[int, int] = {}

    def ask(self, X: Floats) -> Answers:
        """The answers to the queries (q, d), all of them or an OracleBudgetError."""
        answers = self.oracle.ask(X)
        numbers, at = np.unique(answers.shown, return_index=True)
        k = answers.shown.shape[1]
        for place, number in sorted(zip(at.tolist(), numbers.tolist(), strict=True)):
            if number >= 0 and number not in self.features:
                self.features[number] = answers.features[place // k, place % k].copy()
                self._first[number] = self.queries + place // k + 1
        self.queries += len(X)
        return answers

    def ask_in_parts(self, X: Floats) -> Iterator[Answers]:
        """The answers part by part; where the budget ends an OracleBudgetError, after the last."""
        start = 0
        while start < len(X):
            left = self.oracle.remaining
            size = PART if left is None else min(PART, max(left, 1))
            yield self.ask(X[start : start + size])
            start += size

    def disclose(
        self,
        extraction: Extraction,
        *,
        recovered: Collection[int] | None = None,
        bound: int | None = None,
        groups: tuple[Share, ...] = (),
        stopped: str,
        details: Mapping[str, Any] | None = None,
    ) -> Disclosure:
        """The disclosure of this run: the records it saw that are in the oracle's own log.

        recovered: the numbers of those the extraction counts as its own, all of them if not given.
        """
        seen = np.fromiter(self._first, dtype=np.int64, count=len(self._first))
        first = np.fromiter(self._first.values(), dtype=np.int64, count=len(self._first))
        logged = np.isin(seen, self.oracle.log.shown)
        own = seen[logged].tolist() if recovered is None else set(recovered)
        return Disclosure(
            extraction=extraction.name,
            paper=extraction.paper,
            k=self.oracle.k,
            show=self.oracle.show,
            recovered=int(np.isin(seen[logged], list(own)).sum()),
            bound=bound,
            queries=self.queries,
            records=seen[logged],
            first=first[logged],
            stopped=stopped,
            groups=groups,
            details=dict(details or {}),
        )


def held_records(records: Any, oracle: Oracle) -> NDArray[np.float64]:
    """The records an adversary holds, (m, d) with m >= 1, checked against the oracle."""
    held = np.asarray(records, dtype=np.float64)
    if held.ndim != 2 or held.shape[1] != oracle.width or not len(held):
        raise InputError(
            f"The records held must have shape (m, {oracle.width}) with m of at least 1, "
            f"got {held.shape}"
        )
    return held
