"""What the names of attacks and channels ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leakscope.attacks.taught import BEHIND, ByShadows, TaughtAttack
from leakscope.channels.explanations import Explanation
from leakscope.channels.influence import RecordExplanations
from leakscope.channels.joined import PLUS
from leakscope.channels.summaries import Summary, SurrogateSummary
from leakscope.channels.surrogates import Surrogate
from leakscope.protocols import Attack
from leakscope.registry import entries, lookup
from leakscope.report.threat_models import PREDICTIONS

# The word for all channels of explanations, and what is seen beside them: it is released anyway,
# and an audit tells what explanations add to it.
EXPLANATIONS = "explanations"
SUMMARY = "-summary"
EXPLAINING = (Explanation, Summary, Surrogate, RecordExplanations)


def attack_of(name: str) -> Attack:
    """The attack of this name; one that is taught, by shadow models if -shadow is behind it."""
    names = {entry.name for entry in entries("attack")}
    taught = name.removesuffix(BEHIND)
    if name not in names and taught in names:
        attack = lookup("attack", taught).thing()
        if isinstance(attack, TaughtAttack):
            return ByShadows(attack)
    found: Attack = lookup("attack", name).thing()
    return found


def parts_of(attack: Attack) -> set[str]:
    """The names of the channels that an attack sees side by side."""
    return set(attack.channel.split(PLUS))


def explanations_of(attack: Attack) -> set[str]:
    """The names of the explanations that an attack sees, or a summary of them."""
    return {
        part.removesuffix(SUMMARY)
        for part in parts_of(attack)
        if issubclass(lookup("channel", part).thing, EXPLAINING)
    }


def shown_through(channels: Sequence[str]) -> set[str]:
    """All that those are shown who see these channels, by the names of channels.

    Who sees an explanation sees its summary. ``explanations`` are all that follow a model back to
    its features, beside its predictions and what follows from them; those that only ask cost
    hundreds of queries for each record, and are asked for by their own names.
    """
    kinds = {entry.name: entry.thing for entry in entries("channel")}
    seen: set[str] = set()
    for name in channels:
        if name == EXPLANATIONS:
            seen |= {one for one, kind in kinds.items() if _follows_back(kind)} | PREDICTIONS
        else:
            seen |= {lookup("channel", part).name for part in name.split(PLUS)}
    return seen | {f"{name}{SUMMARY}" for name in seen if f"{name}{SUMMARY}" in kinds}


def requested(attack: Attack, channels: Sequence[str] | None) -> bool:
    """Whether these channels ask for an attack that runs on request.

    Those that other attacks see by default do not: who asks for probabilities means the usual.
    """
    if channels is None or not parts_of(attack) <= shown_through(channels):
        return False
    usual = {entry.thing.channel for entry in entries("attack") if not entry.thing.on_request}
    return EXPLANATIONS in channels or not parts_of(attack) <= usual


def how_to_ask(attack: Attack) -> str:
    """The channels by which an attack on request is asked for."""
    parts = parts_of(attack)
    if parts <= shown_through([EXPLANATIONS]):
        return EXPLANATIONS
    return ",".join(sorted(part.removesuffix(SUMMARY) for part in parts))


def _follows_back(kind: Any) -> bool:
    return issubclass(kind, Explanation | Summary) and not issubclass(kind, SurrogateSummary)
