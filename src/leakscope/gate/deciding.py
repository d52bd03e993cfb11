"""One limit decided: it holds, it is violated, or these records cannot tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from scipy.special import ndtri

from leakscope.gate.bounds import Z
from leakscope.metrics.intervals import finite
from leakscope.metrics.power import MOST
from leakscope.report.words import number, records_in_words

# How far chance may take an estimate the wrong way at a power of 80 %, in widths of its interval.
MARGIN = float(ndtri(0.8)) / Z


class Decision(StrEnum):
    """What can be said of a limit, or of all of them together."""

    holds = "holds"
    violated = "violated"
    undecided = "undecided"


@dataclass(frozen=True)
class Bounds:
    """One attack's figure: the estimate, surely at least ``low`` and at most ``high``.

    low: the lower end that holds for all attacks together. alone: that of this attack alone. doubt:
    why it cannot be called small whatever its ends are, or empty. needed: how many records would
    remove the doubt, None where no number would.
    """

    attack: str
    value: float
    low: float
    high: float
    alone: float
    doubt: str = ""
    needed: int | None = None


@dataclass(frozen=True)
class Question:
    """What is asked of the same figure of every attack.

    limit: as it is shown. figure: what is limited, such as "an advantage". It holds where the
    figure is surely at most ``most``, and is violated where it is surely above ``sure``. least:
    below this, somebody who turns the attack round exceeds the limit. records: how many there are
    on the larger side. persons: how many persons a record stands for. where: on which sides more
    records would decide.
    """

    limit: str
    figure: str
    most: float
    sure: float
    records: int
    persons: float = 1.0
    least: float = -math.inf
    where: str = "on each side"


@dataclass(frozen=True)
class Decided:
    """What became of one limit, by the attack that decides it.

    low: the figure is surely at least this, with all attacks tried; high: at most this.
    records_to_decide: about how many are needed on each side, None where it is decided or where no
    number would decide it. reason: a sentence.
    """

    limit: str
    decision: Decision
    reason: str
    attack: str | None = None
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    records_to_decide: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON, an entry of "limits"."""
        return {
            "limit": self.limit,
            "decision": self.decision.value,
            "attack": self.attack,
            "value": finite(self.value),
            "low": finite(self.low),
            "high": finite(self.high),
            "records_to_decide": self.records_to_decide,
            "reason": self.reason,
        }


def decide(asked: Question, attacks: Sequence[Bounds]) -> Decided:
    """Violated where some attack is surely above the limit, holds where all surely are not."""
    above = [one for one in attacks if one.low > asked.sure]
    if above:
        first = max(above, key=lambda one: one.low)
        tried = f" after correction for {len(attacks)} attacks" if len(attacks) > 1 else ""
        why = f"{_has(asked, first)}, surely above {number(first.low)}{tried}"
        return _decided(asked, Decision.violated, first, why)
    doubtful = [one for one in attacks if one.doubt]
    if doubtful:
        # Where more records help, those of the attack that needs most.
        first = max(doubtful, key=lambda one: math.inf if one.needed is None else one.needed)
        why = f"of the {first.attack} attack nothing can be said: {first.doubt}"
        return _decided(asked, Decision.undecided, first, why, first.needed)
    nearest = max(attacks, key=lambda one: max(one.high - asked.most, asked.least - one.alone))
    if nearest.high <= asked.most and nearest.alone >= asked.least:
        why = f"{_has(asked, nearest)}, surely below {number(nearest.high)}; no attack comes nearer"
        return _decided(asked, Decision.holds, nearest, why)
    needed = _needed(asked, attacks)
    more = ""
    if needed is not None:
        more = f"; about {records_in_words(needed, asked.persons)} {asked.where} would decide"
    why = f"{_has(asked, nearest)}, and may have {number(nearest.low)} to {number(nearest.high)}"
    return _decided(asked, Decision.undecided, nearest, why + more, needed)


def _has(asked: Question, one: Bounds) -> str:
    return f"the {one.attack} attack has {asked.figure} of {number(one.value)}"


def _decided(
    asked: Question, decision: Decision, one: Bounds, why: str, needed: int | None = None
) -> Decided:
    reason = f"{why[0].upper()}{why[1:]}."
    return Decided(asked.limit, decision, reason, one.attack, one.value, one.low, one.high, needed)


def _needed(asked: Question, attacks: Sequence[Bounds]) -> int | None:
    """Records on each side that would decide with a power of 80 %, if the figures stay.

    All distances from an estimate shrink with the square root of the number of records. Either
    some attack is then above the limit, or all are below it.
    """
    most, least, sure = asked.most, asked.least, asked.sure
    roots = [
        (one.value - one.low + MARGIN * (one.value - one.alone)) / (one.value - sure)
        for one in attacks
        if one.value > sure
    ]
    if all(least < one.value < most for one in attacks):
        up = [(one.high - one.value) / (most - one.value) for one in attacks]
        down = [(one.value - one.alone) / (one.value - least) for one in attacks]
        roots.append((1 + MARGIN) * max(*up, *down))
    needed = min(roots, default=math.inf) ** 2 * asked.records
    return math.ceil(needed) if needed <= MOST else None
