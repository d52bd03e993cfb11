"""One sentence of advice, no stronger than the intervals allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leakscope.comparing.contest import Contest
from leakscope.comparing.defending import NONE
from leakscope.metrics.intervals import Interval

Summaries = Mapping[str, Mapping[str, Any]]


def advise(contest: Contest, summaries: Summaries, limit: float) -> str:
    """What to do, in one sentence.

    limit: the advantage that counts as none; two defenses are as private as each other where the
    accuracy of attacks on them surely differs by less than half of it.
    """
    plain = summaries[NONE]["attack_accuracy"]
    others = [name for name in contest.names if name != NONE]
    safer = [name for name in others if contest.leaking(name, NONE).high < 0]
    if safer:
        return _take(_choice(contest, summaries, safer), contest, summaries, limit)
    if 2 * plain["high"] - 1 <= limit:
        return (
            f"No defense is needed at the limit of {limit:g}: without any, the strongest attack is "
            f"right about {_of_100(plain['value'])} of 100 records (at most "
            f"{_of_100(plain['high'])}), where guessing is right about 50."
        )
    nearest = min(others, key=lambda name: summaries[name]["attack_accuracy"]["value"])
    gain = contest.leaking(nearest, NONE)
    return (
        f"No defense is surely more private than none: with {_called(nearest, summaries)}, the "
        f"most private of them, the strongest attack is right about "
        f"{_of_100(summaries[nearest]['attack_accuracy']['value'])} of 100 records instead of "
        f"{_of_100(plain['value'])}, a difference of {_points(gain)}."
    )


def _choice(contest: Contest, summaries: Summaries, safer: list[str]) -> str:
    """The most private of those without a sure loss of accuracy; else that of the least loss."""
    free = [name for name in safer if contest.accuracy(name, NONE).high >= 0]
    if free:
        return min(free, key=lambda name: summaries[name]["attack_accuracy"]["value"])
    return max(safer, key=lambda name: summaries[name]["test_accuracy"]["value"])


def _take(name: str, contest: Contest, summaries: Summaries, limit: float) -> str:
    own, plain = (summaries[one]["attack_accuracy"]["value"] for one in (name, NONE))
    loss = contest.accuracy(name, NONE)
    if loss.high < 0:
        price = f"for a loss of {_points(_turned(loss))} in test accuracy"
    elif loss.low > 0:
        price = f"and test accuracy gains {_points(loss)}"
    else:
        price = f"without a sure loss of test accuracy ({_points(loss)})"
    rival = _rival(name, contest, limit)
    beside = ""
    if rival is not None:
        more = contest.accuracy(name, rival)
        beside = (
            f"; it is as private as {_called(rival, summaries)} and {_points(more)} more accurate"
        )
    return (
        f"{_called(name, summaries)} is surely more private than none: the strongest attack is "
        f"right about {_of_100(own)} of 100 records instead of {_of_100(plain)}, {price}{beside}."
    )


def _rival(name: str, contest: Contest, limit: float) -> str | None:
    """The defense that is surely less accurate and surely not more private by what matters.

    Of several the one that is least accurate.
    """
    found = {}
    for other in contest.names:
        if other in (name, NONE):
            continue
        more, leaking = contest.accuracy(name, other), contest.leaking(name, other)
        if more.low > 0 and leaking.high < limit / 2 and leaking.low > -limit / 2:
            found[other] = more.value
    return max(found, key=lambda one: found[one], default=None)


def _called(name: str, summaries: Summaries) -> str:
    """The defense, with when it stopped where its name does not say so."""
    epochs = summaries[name]["epochs"]
    stopped = name.startswith("early-stop") and "accuracy" in name and epochs is not None
    return f"{name}, about epoch {epochs:.0f}," if stopped else name


def _turned(interval: Interval) -> Interval:
    return Interval(-interval.value, -interval.high, -interval.low)


def _points(interval: Interval) -> str:
    value, low, high = (
        f"{100 * number:.1f}".replace("-", "−")
        for number in (interval.value, interval.low, interval.high)
    )
    return f"{value} points ({low} to {high})"


def _of_100(share: float) -> str:
    return f"{100 * share:.0f}"
