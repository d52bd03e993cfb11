"""How a comparison is told: sizes and times as people say them, and what was set up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leakscope.report.words import UNKNOWN, by_reason, count, number

UNITS = ("bytes", "kB", "MB", "GB")


def size(value: float | None) -> str:
    """A number of bytes: 24.3 kB."""
    if value is None:
        return UNKNOWN
    step = 0
    while value >= 1000 and step < len(UNITS) - 1:
        value, step = value / 1000, step + 1
    return f"{value:.0f} {UNITS[0]}" if step == 0 else f"{value:.3g} {UNITS[step]}"


def duration(value: float | None) -> str:
    """A time in seconds, or in milliseconds below a tenth of one."""
    if value is None:
        return UNKNOWN
    return f"{1000 * value:.3g} ms" if value < 0.1 else f"{value:.3g} s"


def points(interval: Mapping[str, Any]) -> str:
    """A difference of shares in percentage points: −2.2."""
    return number(100 * interval["value"], 1)


def points_span(interval: Mapping[str, Any]) -> str:
    """Both ends of such a difference: −8.0 to 3.6."""
    return f"{number(100 * interval['low'], 1)} to {number(100 * interval['high'], 1)}"


def facts(setup: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was compared on what, as pairs of a name and a value."""
    told = [("Recipe", setup["recipe"])]
    if setup["dataset"] is not None:
        told.append(("Data set", setup["dataset"]))
    told += [
        ("Records", f"{count(setup['records'])}, of {len(setup['classes'])} classes"),
        ("Members", _range(setup["members"])),
        ("Reference records (D′)", _range(setup["reference"])),
        ("Evaluation non-members", _range(setup["nonmembers"])),
        ("Seeds", f"{setup['seeds']}, from {setup['seed']}"),
        ("Attacks", ", ".join(setup["attacks"])),
        ("Shadow models for each", count(setup["shadows"])),
    ]
    if setup["persons"] is not None:
        told.insert(-6, ("Persons", count(setup["persons"])))
    return told


def added(setup: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The baselines, and why one is missing."""
    return [
        (
            one["defense"] or f"no {one['kind']}",
            f"beside {', '.join(one['beside'])}: {one['reason']}",
        )
        for one in setup["baselines"]
    ]


def not_run(comparison: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Attacks that were asked for and not run, those of one reason together."""
    everywhere = [one["defense"] for one in comparison["summary"]]
    return by_reason(
        [
            {"attack": one["attack"], "reason": _reason(one, everywhere)}
            for one in comparison["setup"]["not_run"]
            if one["defenses"]
        ]
    )


def _reason(one: Mapping[str, Any], everywhere: Sequence[str]) -> str:
    reason = str(one["reason"])
    if list(one["defenses"]) == list(everywhere):
        return reason
    return f"on {', '.join(one['defenses'])}: {reason}"


def _range(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    each = count(low) if low == high else f"{count(low)} to {count(high)}"
    return f"{each} for each seed"
