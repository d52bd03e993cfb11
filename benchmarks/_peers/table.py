"""The figures as Markdown, and what they say about who is slower."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

MARKS = ("<!-- benchmarks/peers.py begins -->", "<!-- benchmarks/peers.py ends -->")
RUNS = (
    "tool", "seconds", "of the processor", "times ours", "peak MB", "{compared}", "lines",
    "what it computes",
)  # fmt: skip
COMPARED = {
    "auc": "AUC (95 %)",
    "difference": "largest difference",
    "correlation": "correlation",
}
TOOLS = ("environment", "version", "MB", "packages", "with")
OURS = "Leakscope"
UNKNOWN = "the reason is not known"

Row = dict[str, Any]


def markdown(results: dict[str, Any]) -> str:
    """Every task with its table, and the tools."""
    parts = []
    for task in results["tasks"].values():
        head = [one.format(compared=COMPARED[task["compared"]]) for one in RUNS]
        rows = [_run(row, _ours(task["rows"])) for row in task["rows"]]
        repeats = f"{task['repeats']} run{'s' if task['repeats'] > 1 else ''} each"
        parts += [f"**{task['title']}** ({task['machine']}; {repeats})", _table(head, rows)]
        behind = slower({"tasks": {"here": task}})
        parts += [f"Leakscope takes {one.removeprefix('here: ')}." for one in behind]
    tools = [_tool(name, one) for name, one in results["environments"].items()]
    parts += ["**What was installed**", _table(TOOLS, tools)]
    return "\n\n".join(parts)


def slower(results: dict[str, Any]) -> list[str]:
    """Where Leakscope takes longer than a tool that it should not take longer than, and why.

    Judged by the processor's seconds: on one core they are those of an idle machine's clock, which
    other work disturbs less.
    """
    found = []
    for name, task in results["tasks"].items():
        ours = _ours(task["rows"])
        for row in task["rows"]:
            if row["rival"] and row is not ours and not row["problem"] and not ours["problem"]:
                ratio = ours["processor"] / row["processor"]
                if ratio > 1:
                    why = ours["reason"] or UNKNOWN
                    found.append(f"{name}: {ratio:.2f} times as long as {row['tool']}: {why}")
    return found


def write(text: str, page: Path) -> None:
    """Put the tables between their marks in the page."""
    before, found, rest = page.read_text("utf-8").partition(MARKS[0])
    _, ended, after = rest.partition(MARKS[1])
    if not found or not ended:
        raise SystemExit(f"{page} has no place for the tables; give it the lines {MARKS}")
    page.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{after}", "utf-8")


def machine() -> str:
    """The processor, the system and Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        name = next(one.partition(":")[2] for one in lines if one.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    cores = f"one of {os.cpu_count()} cores"
    return f"{name.strip()}, {cores}, {platform.system()}, Python {platform.python_version()}"


def _ours(rows: list[Row]) -> Row:
    """Leakscope's first row, to which others are compared."""
    return next(row for row in rows if row["tool"] == OURS)


def _run(row: Row, ours: Row) -> list[str]:
    if row["problem"]:
        return [row["tool"], "–", "", "", "", "", str(row["lines"]), f"failed: {row['problem']}"]
    times = "" if ours["problem"] else f"{row['processor'] / ours['processor']:.2f}"
    return [
        row["tool"],
        f"{row['seconds']:.2f}",
        f"{row['processor']:.2f}",
        times,
        f"{row['megabytes']:.0f}",
        _compared(row),
        str(row["lines"]),
        row["shows"],
    ]


def _compared(row: Row) -> str:
    if "auc" in row:
        return "{value:.3f} ({low:.3f} to {high:.3f})".format(**row["auc"])
    if "correlation" in row:
        return f"{row['correlation']:.4f}"
    return f"{row['difference']:.1e}" if "difference" in row else ""


def _tool(name: str, one: dict[str, Any]) -> list[str]:
    if one["problem"]:
        return [name, "–", "–", "–", f"does not install: {one['problem']}"]
    beside = ", ".join(f"{key} {value}" for key, value in one["shared"].items())
    note = f"{beside}; {one['note']}" if one["note"] else beside
    return [name, one["version"], f"{one['megabytes']:.0f}", str(one["packages"]), note]


def _table(head: Any, rows: list[list[str]]) -> str:
    lines = [list(head), ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
