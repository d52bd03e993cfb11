"""Tests run on a copy of the project; which of them reach which line, and how long they take."""

from __future__ import annotations

import ast
import compileall
import json
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

import coverage
import pytest
from hypothesis import Phase, settings
from sampling import PACKAGES, ROOT, Mutant

WORK = ROOT / "mutants"


class Watch:
    """A plugin of pytest: runs the tests wanted, in order, and notes what each came to.

    Tests that are not known yet are new, and come first.
    """

    def __init__(self, order: Iterable[str] = (), known: Iterable[str] | None = None) -> None:
        self.order = {name: place for place, name in enumerate(order)}
        self.known = known
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.skipped: list[str] = []
        self.coverage: coverage.Coverage | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """A failure is enough: hypothesis need not look for the smallest one."""
        settings.register_profile("mutants", settings(), phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutants")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.known is not None:
            new = [item for item in items if item.nodeid not in set(self.known)]
            old = [item for item in items if item.nodeid in self.order]
            items[:] = new + sorted(old, key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self.coverage is not None:
            self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)
        if report.skipped:
            self.skipped.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def fresh_copy() -> Path:
    """A copy of the project, whose compiled files are checked against the text of the source."""
    copy = WORK / f"copy-{os.getpid()}"
    unwanted = shutil.ignore_patterns(".*", "__pycache__", "mutants", "site", "build", "dist")
    shutil.copytree(ROOT, copy, ignore=unwanted)
    mode = PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(copy / "src", quiet=2, invalidation_mode=mode)
    return copy


def run_pytest(copy: Path, args: list[str], watch: Watch) -> int:
    """Run pytest on a copy, in this process, which is of no use for anything else afterwards."""
    os.chdir(copy)
    os.environ |= {"PYTHONPATH": str(copy / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    sys.path.insert(0, str(copy / "src"))
    return int(pytest.main(["-q", "-p", "no:cacheprovider", *args], plugins=[watch]))


def make_map(tests: str, marks: str) -> None:
    """Note which tests reach which line, and how long they take. Those that do not pass are out."""
    copy = fresh_copy()
    source = copy / "src/leakscope"
    watch = Watch()
    watch.coverage = coverage.Coverage(
        data_file=None, config_file=False, include=[f"{source}/{package}/*" for package in PACKAGES]
    )
    watch.coverage.start()
    run_pytest(copy, [f"tests/{tests}", "-m", marks], watch)
    watch.coverage.stop()
    data = watch.coverage.get_data()
    out = {*watch.failed, *watch.skipped}
    good = {name: seconds for name, seconds in watch.seconds.items() if name not in out}
    lines = {
        str(Path(file).relative_to(source)): {
            line: sorted(good.keys() & reached)
            for line, reached in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
    found = {"seconds": good, "lines": lines, "out": sorted(out)}
    (WORK / f"map-{tests.replace('/', '-')}.json").write_text(json.dumps(found), "utf-8")
    print(f"{tests}: {len(good)} tests, {sum(good.values()):.0f} s; not passed: {sorted(out)}")
    shutil.rmtree(copy)


@dataclass(frozen=True)
class Map:
    """The seconds of each test, the tests that reach each line of each file, and those left out."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, set[str]]]
    out: set[str]

    @classmethod
    def read(cls) -> Map:
        """All that was mapped."""
        whole = cls({}, defaultdict(lambda: defaultdict(set)), set())
        for path in sorted(WORK.glob("map-*.json")):
            part = json.loads(path.read_text("utf-8"))
            whole.seconds.update(part["seconds"])
            whole.out.update(part["out"])
            for file, lines in part["lines"].items():
                for line, tests in lines.items():
                    whole.lines[file][int(line)].update(tests)
        return whole

    def tests_of(self, mutant: Mutant, budget: float) -> list[str]:
        """The tests that reach a mutant, within so many seconds, the closest and quickest first.

        A line that runs on import belongs to no test: then those of the smallest block around it.
        Last come the others of its own test file, as what a fixture runs is one test's alone.
        """
        reached = self.lines[mutant.file]
        hits: set[str] = set()
        for first, last in blocks_around(mutant):
            hits = {test for line in range(first, last + 1) for test in reached.get(line, ())}
            if hits:
                break
        own = f"tests/{mutant.file.replace('/', '/test_')}"
        beside = {test for test in self.seconds if file_of(test) == own}
        cost: defaultdict[str, float] = defaultdict(float)
        for test in hits:
            cost[file_of(test)] += self.seconds[test]

        def order(test: str) -> tuple[bool, bool, float, str, float]:
            file = file_of(test)
            return test not in hits, file != own, cost[file], file, self.seconds[test]

        chosen: list[str] = []
        for test in sorted(hits | beside, key=order):
            if self.seconds[test] <= budget or not chosen:
                chosen.append(test)
                budget -= self.seconds[test]
        return chosen


def file_of(test: str) -> str:
    """The file of a test, by its name."""
    return test.split("::", 1)[0]


def blocks_around(mutant: Mutant) -> Iterator[tuple[int, int]]:
    """The first and last lines of the statements around a mutant, from the innermost."""
    spans = []
    for node in ast.walk(ast.parse(mutant.original())):
        if isinstance(node, ast.stmt):
            marks = [one.lineno for one in getattr(node, "decorator_list", [])]
            first, last = min([node.lineno, *marks]), node.end_lineno or node.lineno
            spans.append((first, last))
            if body := getattr(node, "body", None):
                spans.append((first, max(first, body[0].lineno - 1)))  # its head alone
    around = [span for span in spans if span[0] <= mutant.line <= span[1]]
    yield from sorted(around, key=lambda span: span[1] - span[0])
    yield 1, 10**6
