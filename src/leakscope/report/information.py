"""What the report says of leakage: how much models made this way tell of a record.

Plain strings made of numbers and names; the page escapes them like everything else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from leakscope.report.words import number, p_value, span

Json = Mapping[str, Any]

# A measure's name in the report, as a reader knows it, and its unit.
MEASURES = {
    "output_mutual_information": ("Mutual information", "nats"),
    "output_divergence": ("Divergence", "nats"),
    "output_advantage": ("Advantage, record by record", ""),
    "parameter_rho_kl": ("Divergence of the parameters", "nats"),
}

CAUTION = (
    "These figures are about models made this way, on average, and not about this one model. What "
    "is seen of a record is a lower bound on what the parameters tell, and estimated, so that it "
    "promises nothing: an adversary who sees more, or an attack on this one model, can do better."
)


def name(entry: Json) -> str:
    """The measure as a reader knows it."""
    return MEASURES.get(entry["measure"], (str(entry["measure"]), ""))[0]


def amount(entry: Json, value: float | None) -> str:
    """A value of the measure with its unit."""
    unit = MEASURES.get(entry["measure"], ("", ""))[1]
    return f"{number(value)} {unit}".rstrip()


def bound(entry: Json) -> dict[str, Any]:
    """The advantage that the measure allows, as an interval."""
    return {"value": entry["bound"], "low": entry["bound_low"], "high": entry["bound_high"]}


def reached(entry: Json) -> bool:
    """Whether the measure is an advantage that a rule reaches, and no limit for others."""
    return bool(entry["measure"] == "output_advantage")


def in_words(leakage: Sequence[Json]) -> list[str]:
    """What the first measure says, what it allows, and what must not be read into it."""
    if not leakage:
        return []
    first = leakage[0]
    return [_told(first), _allowed(first), CAUTION]


def _told(entry: Json) -> str:
    p = entry["null"]["p_value"]
    most = (
        f" of the {number(math.log(2))} that would settle it, estimated from below"
        if entry["measure"] == "output_mutual_information"
        else ""
    )
    more = " no more than chance" if p is None or p > 0.05 else ""
    start = f"What models made this way show of a record tells{more} whether it was in their"
    if entry["value"] is None:
        return f"{start} training data."
    return (
        f"{start} training data: on average {amount(entry, entry['value'])}{most} (95% interval "
        f"{span(entry)}; p {p_value(p)} against shuffled membership)."
    )


def _allowed(entry: Json) -> str:
    best = entry["best_attack"]
    achieved = (
        f" The strongest attack on this model, {best['attack']}, achieved "
        f"{number(best['advantage']['value'])} ({span(best['advantage'])})."
        if best is not None
        else ""
    )
    if entry["bound"] is None:
        return f"So little cannot be turned into a bound on the advantage.{achieved}"
    return (
        "If that average, plus what the estimate lacks, were exactly right, no adversary who sees "
        f"the same of each record could have an advantage above {number(entry['bound'])} "
        f"({span(bound(entry))}).{achieved}"
    )


def in_a_line(leakage: Sequence[Json]) -> list[tuple[str, str]]:
    """The first measure, for a terminal."""
    return [
        (
            name(entry).lower(),
            f"{amount(entry, entry['value'])} ({span(entry)}), p "
            f"{p_value(entry['null']['p_value'])}; {_allows(entry)}{_beside(entry)}",
        )
        for entry in leakage[:1]
    ]


def _allows(entry: Json) -> str:
    if entry["bound"] is None:
        return "too little for a bound on the advantage"
    return f"allows an advantage of {number(entry['bound'])}"


def _beside(entry: Json) -> str:
    best = entry["best_attack"]
    if best is None:
        return ""
    return f", where {best['attack']} has {number(best['advantage']['value'])} on this model"
