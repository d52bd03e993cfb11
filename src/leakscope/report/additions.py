"""What the report says of explanations: how much they give away beyond the predictions.

Plain strings made of numbers and names; the page escapes them like everything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leakscope.report.words import number, span

Json = Mapping[str, Any]

# What all explanations together are called in a report.
ALL = "explanations"


def title(entry: Json) -> str:
    """Whose row this is."""
    return "all of these" if entry["explanation"] == ALL else str(entry["explanation"])


def in_words(additions: Sequence[Json]) -> str:
    """What explanations add, in a sentence or two; nothing where that was not measured."""
    if not additions:
        return ""
    first = additions[0]
    increase = first["increase"]
    what = ALL if first["explanation"] == ALL else f"the explanation {first['explanation']}"
    apart = f"{number(abs(increase['value']))} (95% interval of the difference {span(increase)})"
    seen = "any" if first["explanation"] == ALL else "it"
    way = "above" if increase["value"] >= 0 else "below"
    compared = (
        f"the strongest attack that sees {seen}, {first['attack']}, has an advantage that is "
        f"{apart} {way} that of the strongest on predictions alone, {first['beside']}."
    )
    if increase["low"] > 0:
        return f"Releasing {what} gives away more than releasing predictions does: {compared}"
    if increase["high"] <= 0:
        return (
            f"Releasing {what} beside predictions adds nothing for these attacks: {compared} "
            "An adversary who has both uses the predictions."
        )
    return f"Whether releasing {what} adds to what predictions give away is not shown: {compared}"


def in_a_line(additions: Sequence[Json]) -> list[tuple[str, str]]:
    """Each row for a terminal."""
    return [
        (
            title(one),
            f"{number(one['increase']['value'])} ({span(one['increase'])}) in advantage, "
            f"{one['attack']} against {one['beside']}",
        )
        for one in additions
    ]
