"""What a decision is called, and a limit's row in any table."""

from __future__ import annotations

import math

from leakscope.gate.deciding import Decided, Decision
from leakscope.report.words import count, number

WORDS = {
    Decision.holds: "Holds",
    Decision.violated: "Violated",
    Decision.undecided: "Cannot decide",
}
# Signs beside the words, so that neither colour nor position has to tell them apart.
SIGNS = {Decision.holds: "✓", Decision.violated: "!", Decision.undecided: "?"}
MARKS = {Decision.holds: "✅", Decision.violated: "❌", Decision.undecided: "❔"}
HEADINGS = ("limit", "decision", "attack", "value", "at least", "at most", "records to decide")


def cells(one: Decided) -> tuple[str, ...]:
    """A limit as the cells of a row, under HEADINGS; empty where there is nothing to say."""
    needed = "" if one.records_to_decide is None else f"about {count(one.records_to_decide)}"
    figures = [_figure(one, value) for value in (one.value, one.low, one.high)]
    return (one.limit, WORDS[one.decision].lower(), one.attack or "", *figures, needed)


def _figure(one: Decided, value: float) -> str:
    if math.isnan(value):
        return ""
    # A number of records is whole, and a count of them certain.
    return count(value) if isinstance(one.value, int) else number(value)
