"""How often verdicts are right where the truth is known, and how often intervals hold the truth.

usage: python benchmarks/validity.py [--only NAME,NAME] [--audits 200] [--repetitions 1000]
                                     [--workers 2] [--verbose]

The first table counts the verdicts of whole audits, with every attack and control (_audits.py).
Leak-free, since the model was trained on a third set or there is none:
- simulated: saved predictions drawn from one distribution for both sides;
- real: a random forest of Adult records, 500 a side;
- shadowed: a tree of Adult records, by every attack on 16 shadow models;
- regression: a regression forest of Adult records or of Friedman's function, 500 a side;
- ten-classes: a forest of digits, 300 records against 1,200;
- persons: a forest of persons with 1 to 5 similar rows, 250 persons a side;
- rare: a forest of Adult records with 3 % positives, 500 a side.
Planted leaks:
- nearest: one nearest neighbour trained on the members, 500 a side;
- memorized-N: a logistic regression trained on a third set, which gives 1 % of the N members
  probability 1 for their label; memorized-N-subgroup confines them to one value of a group column.

The verdict `leaks` may come in at most 2.5 % of all leak-free audits together, and in no kind
significantly more often. It must come in every audit of nearest and in 95 % of memorized-4000;
the power at other sizes is reported. The other tables (name: coverage) are the coverage of
intervals on scores of known truth (_coverage.py). The exit code is 1 if anything is out of range.
All of it takes about 50 minutes on two cores; --only NAME runs a part.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from joblib import Parallel, delayed
from scipy.stats import binomtest

from _audits import KINDS
from _coverage import coverage_tables

FALSE_ALARMS = 0.025
COVERAGE = "coverage"
LEVELS = ("leaks", "no_leak_found", "undecided", "invalid", "failed")


@dataclass(frozen=True)
class Result:
    """The verdict of one audit; ``failed`` if it raised an error or warned."""

    seed: int
    level: str
    detail: str


def significant(entry: object, path: str) -> Iterator[str]:
    """Every adjusted p-value of at most 2.5 % in an outcome of a report, with where it stands."""
    if isinstance(entry, Mapping):
        for key, value in entry.items():
            if "adjusted_p" in key and isinstance(value, float) and value <= FALSE_ALARMS:
                yield f"{path} {key} {value:.2g}"
            yield from significant(value, f"{path} {key}")
    elif isinstance(entry, Sequence) and not isinstance(entry, str):
        for place, value in enumerate(entry):
            yield from significant(value, f"{path}[{place}]")


def run(name: str, seed: int) -> Result:
    """One audit; a warning is an error, as in the tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            report = KINDS[name].run(seed)
        except Exception as error:  # one bad seed must not cost the others
            return Result(seed, "failed", f"{type(error).__name__}: {error}")
    tests = "; ".join(
        test for outcome in report.outcomes for test in significant(outcome, outcome["attack"])
    )
    verdict = report.verdict
    return Result(seed, verdict.level, f"{verdict.reason} Significant tests: {tests or 'none'}.")


def in_range(name: str, leaks: int, number: int) -> bool:
    """Whether a kind has the power it must have, or not significantly too many false alarms."""
    kind = KINDS[name]
    if kind.planted:
        return leaks >= kind.power * number
    return bool(binomtest(leaks, number).proportion_ci(method="exact").low <= FALSE_ALARMS)


def row(name: str, levels: Counter[str], seconds: float | None = None) -> str:
    """One line of the table."""
    number = levels.total()
    share = binomtest(levels["leaks"], number)
    ends = share.proportion_ci(method="wilson")
    counts = " | ".join(str(levels[level]) for level in LEVELS[1:])
    each = "" if seconds is None else f"{seconds / number:.1f}"
    return (
        f"| {name} | {number} | {levels['leaks']} | {share.statistic:.2%} "
        f"({ends.low:.2%} to {ends.high:.2%}) | {counts} | {each} |"
    )


def surprising(name: str, result: Result) -> bool:
    """Whether a verdict is a false alarm, a miss or a failure."""
    return result.level == "failed" or (result.level == "leaks") != KINDS[name].planted


def verdict_table(names: Sequence[str], audits: int, workers: int, verbose: bool) -> bool:
    """Print one row per kind as it finishes; whether all are in range."""
    titles = ["leaks", "share (95 % interval)", "no leak found", "undecided", "invalid", "failed"]
    print(f"| audits | number | {' | '.join(titles)} | s each |\n|---|{'---:|' * 8}", flush=True)
    good = True
    leak_free: Counter[str] = Counter()
    surprises = []
    for name in names:
        start = time.perf_counter()
        results = Parallel(n_jobs=workers)(delayed(run)(name, seed) for seed in range(audits))
        levels = Counter(result.level for result in results)
        print(row(name, levels, (time.perf_counter() - start) * workers), flush=True)
        surprises += [(name, result) for result in results if surprising(name, result)]
        good &= in_range(name, levels["leaks"], audits) and not levels["failed"]
        if not KINDS[name].planted:
            leak_free += levels
    if leak_free:
        print(row("all leak-free", leak_free))
        good &= leak_free["leaks"] <= FALSE_ALARMS * leak_free.total()
    for name, result in surprises:
        if verbose or result.level == "failed":
            print(f"{name}, seed {result.seed}: {result.level}. {result.detail}")
    return good


def parse() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [*KINDS, COVERAGE]
    parser.add_argument("--only", default=",".join(names), help="comma-separated names")
    parser.add_argument("--audits", type=int, default=200, help="audits of each kind")
    parser.add_argument("--repetitions", type=int, default=1000, help="score sets per cell")
    parser.add_argument("--workers", type=int, default=2, help="processes; changes no number")
    parser.add_argument("--verbose", action="store_true", help="print false alarms and misses")
    options = parser.parse_args()
    options.only = options.only.split(",")
    unknown = [name for name in options.only if name not in names]
    if unknown:
        parser.error(f"unknown name {unknown[0]!r}; names: {', '.join(names)}")
    return options


def main() -> int:
    """Print the tables; 0 if everything is in its range."""
    options = parse()
    names = [name for name in options.only if name != COVERAGE]
    good = True
    if names and options.audits:
        good = verdict_table(names, options.audits, options.workers, options.verbose)
    if COVERAGE in options.only and options.repetitions:
        text, covered = coverage_tables(options.repetitions, options.workers)
        print(f"\n{text}")
        good &= covered
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
