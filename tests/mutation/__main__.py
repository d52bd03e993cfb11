"""Mutation testing: does a test notice when an operator or a number of the source is changed?

    pip install cosmic-ray                                   # its operators make the mutants
    python tests/mutation map metrics leakage exact attacks
    python tests/mutation run --sample 300 --seed 0
    python tests/mutation report --sample 300 --seed 0

``map`` runs the tests of these folders once and notes which of them reach which line, and how long
each takes. ``run`` draws a sample of the mutants and runs for each the tests that reach it, until
one fails. What is judged already is skipped, so a run may be stopped and begun again, and several
may share the work. ``run --again`` gives the survivors another chance: with more time, or with new
tests. Everything is kept in the folder ``mutants/``, and the source is mutated in a copy there.

A mutant that runs out of time is killed: it loops.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from running import WORK, Map, Watch, file_of, fresh_copy, make_map, run_pytest
from sampling import PACKAGES, Mutant, sampled

# Imported once, before each mutant gets a process of its own by a fork.
HEAVY = (
    "numpy", "scipy.linalg", "scipy.optimize", "scipy.stats", "pandas", "joblib", "torch",
    "sklearn.datasets", "sklearn.ensemble", "sklearn.linear_model", "sklearn.neural_network",
    "sklearn.pipeline", "sklearn.svm", "sklearn.tree",
)  # fmt: skip

# By the exit code of pytest: 2 is an error of importing the tests, 4 of importing a conftest.py.
OUTCOMES = {None: "timeout", 0: "survived", 1: "killed", 2: "killed", 4: "killed"}


@dataclass(frozen=True)
class Result:
    """What became of a mutant, by which test, of how many, and in what time."""

    key: str
    outcome: str  # one of OUTCOMES, or "error": pytest itself failed
    by: str
    tests: int
    seconds: float


def judged(mutant: Mutant, copy: Path, known: Map, args: argparse.Namespace) -> Result:
    """Run the tests of a mutant in a process of its own, which is ended when it takes too long."""
    tests = known.tests_of(mutant, args.budget)
    if not tests:
        raise SystemExit(f"No test that is mapped reaches {mutant.key}; map its tests first")
    path = copy / "src/leakscope" / mutant.file
    note = copy / "failed.txt"
    note.unlink(missing_ok=True)
    began = time.monotonic()
    try:
        path.write_text(mutant.source(), "utf-8")
        child = os.fork()
        if child == 0:
            run_child(copy, tests, known, args.marks)
        code = waited(child, began + 60 + 5 * sum(known.seconds[test] for test in tests))
    finally:
        path.write_text(mutant.original(), "utf-8")
    by = note.read_text("utf-8") if note.exists() else ""
    took = round(time.monotonic() - began, 1)
    return Result(mutant.key, OUTCOMES.get(code, "error"), by, len(tests), took)


def run_child(copy: Path, tests: list[str], known: Map, marks: str) -> None:
    """What the forked process does: run pytest, note the first failure, and end."""
    code = 3
    try:
        os.setsid()
        with (copy / "output.txt").open("w", encoding="utf-8") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        watch = Watch(tests, known.out | known.seconds.keys())
        code = run_pytest(copy, ["-x", "-m", marks, *sorted(set(map(file_of, tests)))], watch)
        if watch.failed:
            (copy / "failed.txt").write_text(watch.failed[0], "utf-8")
    finally:
        os._exit(code)


def waited(child: int, until: float) -> int | None:
    """The exit code of a process; None if it had to be ended."""
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def results(path: Path) -> dict[str, Result]:
    """The last result of each mutant in a file of results."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return {one["key"]: Result(**one) for one in map(json.loads, lines)}


def run(args: argparse.Namespace) -> None:
    """Judge what is left of a sample, in an order of this process's own, for so many minutes."""
    until = time.monotonic() + 60 * args.minutes
    mutants, _, _ = sampled(args.sample, args.seed)
    random.Random(os.getpid()).shuffle(mutants)
    known = Map.read()
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    copy = fresh_copy()
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for mutant in mutants:
        seen = results(args.results).get(mutant.key)
        if seen is None or (args.again and seen.outcome == "survived"):
            result = judged(mutant, copy, known, args)
            with args.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(result)) + "\n")
            print(*asdict(result).values(), flush=True)
        if time.monotonic() > until:
            break
    shutil.rmtree(copy)


def report(args: argparse.Namespace) -> None:
    """Print how many were killed, by package, and each survivor with its change."""
    mutants, total, passed = sampled(args.sample, args.seed)
    seen = results(args.results)
    mutants = sorted((one for one in mutants if one.key in seen), key=lambda one: one.key)
    print(f"{len(mutants)} of a sample of {args.sample} judged, of {total}; {passed} do not count")
    for package in (*PACKAGES, ""):
        count = Counter(seen[one.key].outcome for one in mutants if one.file.startswith(package))
        killed = (count["killed"] + count["timeout"]) / max(1, count.total())
        print(f"{package or 'all':8} {count.total():4} {killed:6.1%} killed: {dict(count)}")
    for mutant in mutants:
        if seen[mutant.key].outcome in ("survived", "error"):
            print(f"\n{mutant.key}: {seen[mutant.key].outcome}, {seen[mutant.key].tests} tests")
            both = zip(mutant.original().splitlines(), mutant.source().splitlines(), strict=False)
            old, new = next(pair for pair in both if pair[0] != pair[1])
            print(f"  - {old.strip()}\n  + {new.strip()}")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python tests/mutation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("map", "run", "report"):
        commands.add_parser(name).add_argument("--marks", default="not slow", help="pytest's -m")
    commands.choices["map"].add_argument("tests", nargs="+", help="folders or files in tests/")
    for name in ("run", "report"):
        commands.choices[name].add_argument("--sample", type=int, default=300, help="how many")
        commands.choices[name].add_argument("--seed", type=int, default=0, help="of the sample")
    add = commands.choices["run"].add_argument
    add("--budget", type=float, default=60, help="seconds of tests for each mutant")
    add("--minutes", type=float, default=1e6, help="when to stop")
    add("--again", action="store_true", help="judge the survivors again")
    args = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    if args.command == "map":
        for tests in args.tests:
            if os.fork() == 0:
                make_map(tests, args.marks)
                os._exit(0)
            os.wait()
    else:
        args.results = WORK / f"results-{args.seed}.jsonl"
        (run if args.command == "run" else report)(args)


if __name__ == "__main__":
    main()
