from __future__ import annotations

import math

import pytest

from leakscope.gate.deciding import Decided, Decision
from leakscope.gate.result import Check
from leakscope.gate.words import HEADINGS, cells


def made(*decisions: str) -> Check:
    limits = [
        Decided(f"limit {i}", Decision(one), f"Reason {i}.") for i, one in enumerate(decisions)
    ]
    return Check("run", tuple(limits), {})


@pytest.mark.parametrize(
    ("decisions", "decision", "code", "sentence"),
    [
        (["holds"], "holds", 0, "Holds: limit 0: reason 0."),
        (["holds", "holds"], "holds", 0, "Holds: all 2 limits."),
        (["holds", "undecided"], "undecided", 3, "Cannot decide: limit 1: reason 1."),
        (["undecided", "violated"], "violated", 1, "Violated: limit 1: reason 1."),
        (["violated"] * 2, "violated", 1, "Violated: limit 0 and 1 more: reason 0."),
        (["undecided"] * 3, "undecided", 3, "Cannot decide: limit 0 and 2 more: reason 0."),
    ],
)  # fmt: skip
def test_all_limits_together(decisions, decision, code, sentence) -> None:
    found = made(*decisions)
    assert (found.decision, found.exit_code, found.sentence) == (decision, code, sentence)


def test_a_row_of_any_table() -> None:
    full = Decided("a", Decision.undecided, "b", "c", 0.1234, -0.05, 0.3, 12345)
    assert cells(full) == ("a", "cannot decide", "c", "0.123", "−0.050", "0.300", "about 12,345")
    assert cells(Decided("a", Decision.holds, "b")) == ("a", "holds", "", "", "", "", "")
    counted = Decided("a", Decision.violated, "b", "static", 1200, 1200, 1200)
    assert cells(counted)[3:6] == ("1,200",) * 3
    assert len(HEADINGS) == len(cells(full))
    assert math.isnan(Decided("a", Decision.holds, "b").value)
