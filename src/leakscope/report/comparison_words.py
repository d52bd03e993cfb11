"""How a comparison is told: sizes and times as people say them, and what was set up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leakscope.report.words import UNKNOWN, by_reason, count, number

UNITS = ("bytes", "kB", "MB", "GB")
ON, UNDECIDED, DOMINATED = "on the frontier", "undecided", "dominated"


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
    return _hundredfold(interval["value"])


def points_span(interval: Mapping[str, Any]) -> str:
    """Both ends of such a difference: −8.0 to 3.6; as many digits as show that an end is not 0."""
    return " to ".join(_end(interval[end]) for end in ("low", "high"))


def standing(summary: Mapping[str, Any]) -> str:
    """Where a defense is: on the frontier, dominated, or undecided by these seeds."""
    if not summary["frontier"]:
        return DOMINATED
    return UNDECIDED if summary.get("undecided_against") else ON


def on_frontier(comparison: Mapping[str, Any]) -> list[str]:
    """The defenses that are shown to be on the frontier."""
    return [one["defense"] for one in comparison["summary"] if standing(one) == ON]


def first_sentence(text: str) -> tuple[str, str]:
    """The first sentence, and the others."""
    first, stop, others = text.partition(". ")
    return first + stop.rstrip(), others


def resolution(comparison: Mapping[str, Any]) -> str:
    """That the seeds do not tell what is on the frontier; nothing where they do."""
    return str(comparison.get("frontier_resolution", {}).get("text", ""))


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


def _hundredfold(share: float | None, digits: int = 1) -> str:
    return number(None if share is None else 100 * share, digits)


def _end(share: float | None) -> str:
    texts = [_hundredfold(share, digits) for digits in (1, 2, 3, 4)]
    return next((text for text in texts if text.strip("0.")), texts[0])


def _range(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    each = count(low) if low == high else f"{count(low)} to {count(high)}"
    return f"{each} for each seed"
