"""What an audit says of one record, in sentences for whom it is of.

Plain strings made of numbers and names; whoever shows them makes them fit to be shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from leakscope.report.words import count, figure, number, one_in, percent, percent_span, span

if TYPE_CHECKING:
    from leakscope.report.person import OneRecord, Standing

NAMES = {"members": "members", "nonmembers": "non-members"}


def in_words(record: OneRecord) -> list[str]:
    """Who it is, what each attack makes of it, its leakage, its groups, and whether it is found."""
    if record.verdict["level"] == "invalid":
        return [opening(record), str(record.verdict["reason"])]
    return [
        opening(record),
        *(about(one, record) for one in record.standings),
        *beyond_attacks(record),
    ]


def opening(record: OneRecord) -> str:
    """Which record it is, and how far the figures can be trusted."""
    small = " The leak is within the limits." if record.verdict["within_limit"] else ""
    unchecked = record.verdict["conditions"]
    only_if = f" This holds only if {' and '.join(unchecked)}." if unchecked else ""
    told = {
        "leaks": "The model leaks: attacks tell its members from others better than chance."
        f"{small}{only_if}",
        "invalid": "The audit is invalid, because a check of itself failed: it says nothing about "
        "this record.",
    }.get(
        record.verdict["level"],
        "No attack was shown to tell members from others, so that a high score may be chance.",
    )
    return (
        f"This is record {record.row} of the {NAMES[record.side]}, counting from 0, with the label "
        f"{record.label}. {told}"
    )


def about(one: Standing, record: OneRecord) -> str:
    """What one attack makes of the record."""
    if one.score is None:
        return f"The attack {one.attack} has no score for it."
    # A record is compared with others, not with itself.
    other = {side: " other" if record.side == side else "" for side in NAMES}
    lower = {
        "value": 1 - one.false_alarms.value,
        "low": 1 - one.false_alarms.high,
        "high": 1 - one.false_alarms.low,
    }
    if math.isnan(one.false_alarms.value):
        return f"The attack {one.attack} gives it {figure(one.score)}, and nobody else a score."
    strangers = f"{count(one.nonmembers)}{other['nonmembers']} non-members"
    among = (
        ""
        if math.isnan(one.above_members.value)
        else f" and than {percent(one.above_members.value)} of the{other['members']} members"
    )
    return (
        f"The attack {one.attack} gives it {figure(one.score)}, higher than "
        f"{percent(lower['value'])} of the {strangers} (95% interval {percent_span(lower)})"
        f"{among}: {_named(one, record)}."
    )


def _named(one: Standing, record: OneRecord) -> str:
    """Whether those who accept few false alarms name it a member, and whether they are right."""
    known = sorted((fpr, called) for fpr, called in one.called.items() if called is not None)
    if not known:
        return "there are too few non-members to say whether that is enough to name it a member"
    right = record.side == "members"
    for fpr, called in known:
        if called:
            return (
                f"whoever accepts a false alarm about {one_in(fpr)} non-members names it a member, "
                f"{'rightly' if right else 'wrongly'}"
            )
    return (
        f"whoever accepts no more false alarms than {one_in(known[-1][0])} does not name it a "
        f"member{'' if right else ', rightly'}"
    )


def beyond_attacks(record: OneRecord) -> Iterator[str]:
    """How to read several attacks, and what there is beside their scores."""
    scored = sum(one.score is not None for one in record.standings)
    if scored > 1:
        yield (
            f"Among {scored} attacks some place any record high by chance. The verdict is about "
            f"{record.attack}, and an adversary does not know which attack is right about this "
            "record."
        )
    if not math.isnan(record.leakage):
        yield (
            f"What models made this way show of it tells {number(record.leakage)} nats of whether "
            f"it was in their training data, of the {number(math.log(2))} that would settle it: "
            f"more than they tell of {percent(record.leakage_rank)} of all records. For a single "
            "record that is a rough estimate, and below 0 it is none."
        )
    for one in record.groups:
        if one["advantage"]["value"] is None:
            yield f"It belongs to {one['group']} = {one['value']}, too small a group to say more."
            continue
        yield (
            f"It belongs to {one['group']} = {one['value']}, on which {record.attack} has an "
            f"advantage of {number(one['advantage']['value'])} (95% interval "
            f"{span(one['advantage'])})."
        )
    if record.vulnerable or (record.side == "members" and record.singled_out):
        found = f"{count(record.singled_out)} of {count(record.members)} members"
        yield (
            f"{record.singled_out_by} singles out {found} while it accuses hardly any non-member, "
            f"and this record is {'' if record.vulnerable else 'not '}among them."
        )
