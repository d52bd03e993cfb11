"""Numbers and strings as a reader wants them; shared by the page, the plots and the terminal."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

UNKNOWN = "unknown"
# Names in a line of a terminal; the report has all of them.
MOST_NAMES = 6

# The verdict in one or two words: the badge of the page and the title of the terminal's panel.
LEVELS = {
    "leaks": "Leaks",
    "no_leak_found": "No leak found",
    "undecided": "Undecided",
    "invalid": "Audit invalid",
}

# Why an attack whose scores do not vary counts as not run.
CONSTANT = "It gives every record the same score, which is no evidence for or against a leak."

# A leak whose intervals all stay within the limits is shown in a calmer tone.
SMALL_LEAK = "small_leak"

# Control characters would break XML and could drive a terminal; bidirectional overrides could make
# a label read as something it is not. Data may hold both.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
    "|[\ud800-\udfff]"
)


# At the beginning of a line of its log, GitHub takes ::error:: and the like for a command. Lines
# are broken where they are full, so such a word may come to begin one.
_COMMAND = re.compile(r"::(?=[a-z])", re.IGNORECASE)


def clean(text: object) -> str:
    """The text of anything, fit to be shown: each unprintable character becomes �.

    Two colons before a word get a space without width between them.
    """
    shown = _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", str(text))
    return _COMMAND.sub(":\N{ZERO WIDTH SPACE}:", shown)


def shorten(text: object, width: int) -> str:
    """The text on one line, with its middle left out where it is longer than the width."""
    line = " ".join(clean(text).split())
    if len(line) <= width:
        return line
    # Both ends are kept: values of one column often differ only in the last characters.
    tail = (width - 1) // 3
    return f"{line[: width - 1 - tail]}…{line[len(line) - tail :]}"


def count(value: float | None) -> str:
    """A whole number with its thousands marked: 1,985."""
    return UNKNOWN if value is None else f"{value:,.0f}".replace("-", "−")


def number(value: float | None, digits: int = 3) -> str:
    """A number with a fixed number of decimals and a true minus sign: −0.012."""
    if value is None:
        return UNKNOWN
    text = f"{value:.{digits}f}"
    return (text.removeprefix("-") if float(text) == 0 else text).replace("-", "−")


def figure(value: float | None) -> str:
    """A number of any size in four figures: 0.0003162, 12.35, 3.1e+07."""
    return UNKNOWN if value is None else f"{value:.4g}".replace("-", "−")


def small(value: float) -> str:
    """A tiny number as it is spoken of: 0.00001 is 10⁻⁵."""
    mantissa, _, exponent = f"{value:.3g}".partition("e")
    if not exponent:
        return mantissa
    power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if mantissa == "1" else f"{mantissa} × {power}"


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage: 3.1%."""
    return UNKNOWN if value is None else number(100 * value, digits) + "%"


def span(interval: Mapping[str, Any], digits: int = 3) -> str:
    """Both ends of an interval: 0.190 to 0.250."""
    if interval["low"] is None or interval["high"] is None:
        return "interval unknown"
    return f"{number(interval['low'], digits)} to {number(interval['high'], digits)}"


def percent_span(interval: Mapping[str, Any], digits: int = 1) -> str:
    """Both ends of an interval of shares: 1.9% to 4.4%."""
    if interval["low"] is None or interval["high"] is None:
        return "interval unknown"
    return f"{percent(interval['low'], digits)} to {percent(interval['high'], digits)}"


def p_value(value: float | None) -> str:
    """A p-value with three decimals, or that it is smaller."""
    if value is None:
        return UNKNOWN
    return "< 0.001" if value < 0.001 else number(value)


def of(value: float, total: int) -> str:
    """A share as a natural frequency: 0.031 of 100 is '3', 0.0004 of 100 is 'fewer than 1'."""
    whole = round(value * total)
    return "fewer than 1" if whole == 0 and value > 0 else count(whole)


def one_in(rate: float) -> str:
    """A small share in words: 0.001 is '1 in 1,000'."""
    if rate <= 0:
        return "none"
    inverse = 1 / rate
    if abs(inverse - round(inverse)) < 1e-6 * inverse:
        return f"1 in {count(inverse)}"
    return f"{count(1000 * rate)} in 1,000" if rate >= 0.001 else f"1 in {count(inverse)}"


def moment(created: str) -> str:
    """An ISO time as a reader writes it: 15 November 2026, 20:00 UTC; anything else as it is."""
    try:
        time = datetime.fromisoformat(created)
    except ValueError:
        return created
    if time.tzinfo is None:
        return f"{time.day} {time:%B %Y, %H:%M}"
    time = time.astimezone(UTC)
    return f"{time.day} {time:%B %Y, %H:%M} UTC"


def nonmembers_in_words(rows: int, effective: float | None, persons: int | None = None) -> str:
    """How many non-members there are, of how many persons, and what they count as."""
    text = f"{count(rows)} non-members"
    if persons is not None and persons < rows:
        text += f" of {count(persons)} persons"
    # Rounded down: 499.6 are not enough where 500 are needed.
    if effective is not None and not math.isnan(effective) and math.floor(effective) < rows:
        text += f", which count as {count(math.floor(effective))},"
    return text


def persons_per_record(persons: Sequence[float], records: Sequence[float]) -> float:
    """Persons for each record, on the side where there are more; 1 where rows are persons."""
    return max(people / (rows or 1) for people, rows in zip(persons, records, strict=True))


def records_in_words(needed: int, persons_per_record: float) -> str:
    """A number of records that are needed on each side, and of how many persons."""
    persons = math.ceil(needed * persons_per_record)
    of_persons = f" of {count(persons)} persons" if persons < needed else ""
    return f"{count(needed)} records{of_persons}"


def headline_outcome(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """The attack the report is about: the verdict's, else the one with the largest advantage."""
    outcomes: list[dict[str, Any]] = report["outcomes"]
    named = [one for one in outcomes if one["attack"] == report["verdict"]["attack"]]
    if named:
        return named[0]

    def advantage(outcome: dict[str, Any]) -> float:
        value = outcome["advantage"]["value"]
        return -2.0 if value is None else float(value)

    return max(outcomes, key=advantage, default=None)


def low_fpr_outcome(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """The attack that finds most members at 1 % FPR: the verdict's, or the largest estimate."""
    outcomes: list[dict[str, Any]] = report["outcomes"]
    named = [o for o in outcomes if o["attack"] == report["verdict"]["attack_at_low_fpr"]]
    return named[0] if named else max(outcomes, key=_share_found, default=None)


def _share_found(outcome: Mapping[str, Any]) -> float:
    shares = [rate["value"] for rate in outcome["tpr_at_fpr"] if rate["fpr"] == 0.01]
    return -1.0 if not shares or shares[0] is None else float(shares[0])


def is_significant(adjusted_p: float | None) -> bool:
    """Whether a one-sided test is significant after Holm's correction."""
    from leakscope.metrics.tail_test import LEVEL

    return adjusted_p is not None and adjusted_p <= LEVEL


def tone(verdict: Mapping[str, Any]) -> str:
    """The style of the verdict: its level, or that of a leak within the limits."""
    return SMALL_LEAK if verdict["within_limit"] else str(verdict["level"])


def badge(verdict: Mapping[str, Any]) -> str:
    """The verdict in a few words."""
    level = LEVELS.get(verdict["level"], str(verdict["level"]))
    return f"{level}, within the limits" if verdict["within_limit"] else level


def by_reason(
    not_run: Sequence[Mapping[str, str]], most: int | None = None
) -> list[tuple[str, str]]:
    """The names of what was not run for the same reason in one line, with the reason.

    most: how many names a line may have, for a terminal; the others are counted.
    """
    names: dict[str, list[str]] = {}
    for one in not_run:
        names.setdefault(one["reason"], []).append(one["attack"])
    return [(_first(alike, most or len(alike)), reason) for reason, alike in names.items()]


def _first(names: list[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def framed(page: str, title: str) -> str:
    """A page for a notebook, in a frame of its own so that neither styles the other."""
    return (
        f'<iframe title="{title}" sandbox="" srcdoc="{html.escape(page, quote=True)}" '
        'style="width: 100%; height: 48rem; border: 1px solid #8888;"></iframe>'
    )
