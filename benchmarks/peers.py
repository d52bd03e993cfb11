"""Leakscope beside other tools, at the same data, the same models and as many shadow models.

usage: python benchmarks/peers.py [--tasks NAME,…] [--repeats 3] [--folder DIR] [--write PAGE]
                                  [--json FILE] [--install-only]

Each tool is installed from the package index into an environment of its own in the folder, by
default peers in the user's cache; that takes some 10 GB the first time, and is not repeated. A
data set and a fitted model are prepared once for each task. Each tool then runs its own user code
(benchmarks/peer_code/, written as its documentation has it) in a process of its own, on one core
with one thread, with nothing but its tool and that data. Seconds are those of the whole process,
from the start of the interpreter to its end, by the clock and of the processor; repetitions are
taken in turns, and the one counts that took least of the processor. Who is slower is judged by the
processor too, which other work on the machine disturbs less. The peak is of the resident memory.
AUC and its interval come from the scores, by one function for all. Lines are those of the user
code but for reading the data and taking out the scores.

The figures are kept in the JSON file; --tasks measures some tasks again and keeps the others.
--write puts the tables into the page. Ends with 1 where Leakscope takes longer than another tool
and no reason is known.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from _peers.environments import ENVIRONMENTS, SHARED, Environment, Installed, install
from _peers.runs import Run, lines_of, run
from _peers.table import UNKNOWN, machine, markdown, slower, write
from _peers.tasks import TASKS, Entry, Task, save
from leakscope.metrics import roc

RESULTS = Path(__file__).with_suffix(".json")


def measure(task: Task, installed: dict[str, Installed], repeats: int) -> dict[str, Any]:
    """Prepare a task, let everybody run it in turns, and compare what they found."""
    print(f"\n{task.title}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save(task.prepare(folder), folder)
        best: dict[Entry, Run] = {}
        for _ in range(repeats):
            for entry in task.entries:
                place = installed[entry.environment]
                if entry in best and best[entry].problem:
                    continue
                missing = Run(problem=f"does not install: {place.problem}")
                done = missing if place.problem else run(entry, place.python, folder)
                told = f"{done.seconds:.2f} s ({done.processor:.2f}), {done.megabytes:.0f} MB"
                told = done.problem or told
                print(f"  {entry.tool}, {entry.code}: {told}", flush=True)
                if entry not in best or done.problem or done.processor < best[entry].processor:
                    best[entry] = done
    return {
        "title": task.title,
        "machine": machine(),
        "repeats": repeats,
        "compared": task.compared,
        "rows": [_row(entry, done, task, best) for entry, done in best.items()],
    }


def _row(entry: Entry, done: Run, task: Task, every: dict[Entry, Run]) -> dict[str, Any]:
    """What is kept of the fastest run of an entry."""
    row: dict[str, Any] = {
        "tool": entry.tool,
        "environment": entry.environment,
        "shows": entry.shows,
        "code": entry.code,
        "lines": lines_of(entry),
        "rival": entry.rival,
        "reason": entry.reason,
        "problem": done.problem,
    }
    if done.found is None:
        return row
    row |= {
        "seconds": done.seconds,
        "processor": done.processor,
        "imports": done.imports,
        "megabytes": done.megabytes,
    }
    if task.compared == "auc":
        found = roc(done.found["scores"], done.found["membership"].astype(bool)).auc
        row["auc"] = {"value": found.value, "low": found.low, "high": found.high}
        return row
    [reference] = [one for other, one in every.items() if other.tool == task.reference]
    if reference.found is not None:
        row[task.compared] = compare(task.compared, done.found["values"], reference.found["values"])
    return row


def compare(how: str, values: np.ndarray, reference: np.ndarray) -> float:
    """The largest difference of two arrays of one shape, or their correlation."""
    if values.shape != reference.shape:
        raise SystemExit(f"Values of shape {values.shape} stand beside {reference.shape}")
    if how == "correlation":
        return float(np.corrcoef(values.ravel(), reference.ravel())[0, 1])
    return float(np.abs(values - reference).max())


def described(environment: Environment, found: Installed) -> dict[str, Any]:
    """What is kept of an environment."""
    shared = {name: found.versions[name] for name in SHARED if name in found.versions}
    return {
        "tool": environment.tool,
        "version": found.versions.get(environment.tool.lower(), ""),
        "megabytes": found.megabytes,
        "packages": len(found.versions),
        "shared": {key: value for key, value in shared.items() if key != "joblib"},
        "note": environment.note,
        "problem": found.problem,
    }


def cache() -> Path:
    """The user's cache, in which environments are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "leakscope" / "peers"


def chosen(names: str | None) -> list[Task]:
    """The tasks of these names, or all."""
    known = {task.name: task for task in TASKS}
    asked = known if names is None else names.split(",")
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise SystemExit(f"There is no task {unknown[0]!r}; give some of {', '.join(known)}")
    return [known[name] for name in asked]


def in_order(measured: dict[str, Any]) -> dict[str, Any]:
    """What was measured, in the order of the tasks; a task that is no more is left out."""
    return {task.name: measured[task.name] for task in TASKS if task.name in measured}


def main() -> int:
    """Install, measure, write; 1 if somebody is faster and it is not known why, else 0."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", help=f"some of {', '.join(task.name for task in TASKS)}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=cache(), help="where environments are kept")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where figures are kept")
    parser.add_argument("--write", type=Path, help="page to put the tables into")
    parser.add_argument("--install-only", action="store_true", help="measure nothing")
    asked = parser.parse_args()
    tasks = chosen(asked.tasks)
    needed = [*dict.fromkeys(entry.environment for task in tasks for entry in task.entries)]
    print(f"Environments are in {asked.folder}; what is missing is downloaded.", flush=True)
    installed = {name: install(ENVIRONMENTS[name], asked.folder) for name in needed}
    if asked.install_only:
        return int(any(one.problem for one in installed.values()))
    if hasattr(os, "sched_setaffinity"):  # one core for every process that is started from here on
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    results = {"environments": {}, "tasks": {}}
    if asked.json.exists():
        results = json.loads(asked.json.read_text("utf-8"))
    for name, found in installed.items():
        results["environments"][name] = described(ENVIRONMENTS[name], found)
    for task in tasks:
        results["tasks"][task.name] = measure(task, installed, asked.repeats)
        results["tasks"] = in_order(results["tasks"])
        asked.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    text = markdown(results)
    print(f"\n{text}\n")
    if asked.write is not None:
        write(text, asked.write)
    behind = slower({"tasks": {task.name: results["tasks"][task.name] for task in tasks}})
    print("\n".join(f"slower: {one}" for one in behind) or "Nobody was faster.")
    return int(any(one.endswith(UNKNOWN) for one in behind))


if __name__ == "__main__":
    sys.exit(main())
