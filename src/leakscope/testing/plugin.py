"""The pytest plugin: the fixture ``assert_private``, and what was audited at the end of a run.

It is loaded with every run of pytest where leakscope is installed, so it imports nothing heavy and
does nothing until a model is audited; ``-p no:leakscope`` leaves it out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from leakscope import testing

if TYPE_CHECKING:
    from leakscope.gate import Check
    from leakscope.report import Report

NAME = "leakscope"
LONGEST = 100


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --leakscope-out."""
    parser.getgroup(NAME, "leakscope: audits of trained models").addoption(
        "--leakscope-out",
        metavar="DIR",
        default=None,
        help="keep report.json and report.html of every model that assert_private audits, in a "
        "folder for each test",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Listen to assert_private from here on."""
    config.addinivalue_line("markers", f"{NAME}: audits a model; set where assert_private is used")
    out = config.getoption("--leakscope-out")
    keeper = Keeper(None if out is None else Path(out))
    config.pluginmanager.register(keeper, f"{NAME}-keeper")
    testing.listeners.append(keeper.keep)
    config.add_cleanup(lambda: testing.listeners.remove(keeper.keep))


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Mark the tests that use the fixture, so that -m "not leakscope" leaves audits out."""
    for item in items:
        if "assert_private" in getattr(item, "fixturenames", ()):
            item.add_marker(NAME)


@pytest.fixture(scope="session")
def assert_private() -> Callable[..., Any]:
    """Fail unless a model keeps to privacy limits; see ``leakscope.testing.assert_private``."""
    return testing.assert_private


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List every model that was audited, and what was decided."""
    told: dict[str, list[str]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            said = [text for name, text in getattr(report, "user_properties", ()) if name == NAME]
            # A test has a report for each of its phases, and the last knows most.
            if len(said) > len(told.get(report.nodeid, [])):
                told[report.nodeid] = said
    if told:
        terminalreporter.section(NAME)
    for nodeid, said in sorted(told.items()):
        for text in said:
            terminalreporter.write_line(f"{nodeid}: {text}")


class Keeper:
    """Notes down what is audited with the test that runs; the notes travel with its report.

    That way they also come back from the workers of pytest-xdist, and pytest's own JUnit XML has
    them as properties of the test case.
    """

    def __init__(self, out: Path | None) -> None:
        self.out = out
        self.item: pytest.Item | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Remember which test runs."""
        self.item = item

    def keep(self, report: Report, check: Check) -> None:
        """Note down one audit, and save its report where that was asked for."""
        if self.item is None:
            return
        from leakscope.report import Report
        from leakscope.report.words import clean

        model = report.data["target"]["model"]
        said = clean(f"{model}: {check.sentence}")
        notes = self.item.user_properties
        notes.append((NAME, said))
        if self.out is not None:
            number = sum(name == NAME for name, _ in notes)
            # Without records.csv, which says who was a member: builds publish what they keep.
            Report(report.data).save(self.out / folder_name(self.item.nodeid, number))


def folder_name(nodeid: str, number: int) -> str:
    """A folder for the audit of this number in a test: readable, short and its own."""
    name = re.sub(r"[^\w.-]+", "-", nodeid, flags=re.ASCII).strip("-.")
    if len(name) > LONGEST or name != nodeid.replace("/", "-").replace("::", "-"):
        # What was cut or replaced must not make two tests one.
        name = f"{name[:LONGEST]}-{hashlib.sha256(nodeid.encode()).hexdigest()[:8]}"
    return name if number == 1 else f"{name}-{number}"
