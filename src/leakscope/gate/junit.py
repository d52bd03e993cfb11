"""JUnit XML, which every CI server reads: one test case for each limit.

The format has no word for "cannot tell". An undecided limit is a failure of the type "undecided",
beside those of the type "violated": a gate that cannot tell is not passed, and a case that was
skipped would count as passed.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from leakscope.gate.deciding import Decision
from leakscope.report.words import by_reason, clean, number

if TYPE_CHECKING:
    from leakscope.gate.deciding import Decided
    from leakscope.gate.result import Check

SUITE = "leakscope.check"


def junit(check: Check) -> str:
    """The text of the XML file; whatever the report holds is escaped."""
    counts = {
        "tests": str(len(check.limits)),
        "failures": str(sum(one.decision is not Decision.holds for one in check.limits)),
        "errors": "0",
        "time": "0",
    }
    suites = ElementTree.Element("testsuites", {"name": SUITE, **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": SUITE, **counts, "skipped": "0"})
    for one in check.limits:
        _add_case(suite, one)
    said = ElementTree.SubElement(suite, "system-out")
    lines = [check.sentence, *check.remarks]
    lines += [f"Not run: {names}: {reason}" for names, reason in by_reason(check.skipped)]
    said.text = clean("\n".join(lines))
    ElementTree.indent(suites)
    declaration = '<?xml version="1.0" encoding="utf-8"?>\n'
    return declaration + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _add_case(suite: ElementTree.Element, one: Decided) -> None:
    names = {"classname": SUITE, "name": clean(one.limit), "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", names)
    if one.decision is Decision.holds:
        return
    told = {"message": clean(one.reason), "type": one.decision.value}
    failure = ElementTree.SubElement(case, "failure", told)
    figures = (("value", one.value), ("at least", one.low), ("at most", one.high))
    shown = [f"{name} {number(figure)}" for name, figure in figures if isfinite(figure)]
    failure.text = clean("\n".join([one.reason, *shown]))
