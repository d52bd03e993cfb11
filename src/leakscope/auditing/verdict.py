"""The verdict: what the outcomes of all attacks together allow to be said.

It accounts for how many attacks were tried (Holm), decides on interval bounds and never on point
estimates, and says how many records would decide where these do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from leakscope.controls import Control
from leakscope.metrics.intervals import holm
from leakscope.metrics.outcome import Outcome
from leakscope.metrics.power import records_to_rule_out, records_to_show_leak
from leakscope.report import Verdict

# One-sided: the lower bound of a two-sided 95 % interval.
LEVEL = 0.025


def adjust(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes with Holm's correction for how many attacks were tried."""
    adjusted = holm([outcome.p_value for outcome in outcomes])
    return [
        replace(outcome, adjusted_p=float(p)) for outcome, p in zip(outcomes, adjusted, strict=True)
    ]


def decide(outcomes: Sequence[Outcome], controls: Sequence[Control], limit: float) -> Verdict:
    """leaks, no_leak_found, undecided or invalid; outcomes as adjust() returns them."""
    failed = [control for control in controls if control.voids]
    if failed or not outcomes:
        reason = failed[0].detail if failed else "No attack could run on this model."
        what = failed[0].name if failed else "attacks"
        return Verdict(
            level="invalid",
            headline=f"This audit cannot tell: its control of the {what} failed."
            if failed
            else "This audit cannot tell: no attack could run.",
            attack=None,
            limit=limit,
            records_to_decide=None,
            reason=reason,
        )
    leaking = [outcome for outcome in outcomes if outcome.adjusted_p <= LEVEL]
    if leaking:
        return _leaks(max(leaking, key=lambda one: one.advantage.low), len(outcomes), limit)
    # An attack that is wrong too often is right when turned round: no leak is two-sided. Its
    # threshold may have retreated to where nobody is called a member, which the area still sees.
    turned = [outcome for outcome in outcomes if 1 - 2 * outcome.auc.high > limit]
    if turned:
        return _turned(min(turned, key=lambda one: one.auc.high), limit)
    strongest = max(outcomes, key=lambda one: max(one.advantage.high, -one.advantage.low))
    if strongest.advantage.high <= limit and strongest.advantage.low >= -limit:
        return _no_leak_found(strongest, len(outcomes), limit)
    return _undecided(strongest, outcomes, limit)


def _leaks(best: Outcome, tried: int, limit: float) -> Verdict:
    right = round(100 * best.accuracy.value)
    within = best.advantage.high <= limit
    small = f"; it is real, and within the limit of {limit:g}" if within else ""
    return Verdict(
        level="leaks",
        headline=f"This model gives its training records away: the {best.attack} attack is right "
        f"about {right} of 100 records, where guessing is right about 50.",
        attack=best.attack,
        limit=limit,
        records_to_decide=None,
        reason=f"The {best.attack} attack has an advantage of {_told(best)}, above 0 after "
        f"correction for {_attacks(tried)} (adjusted p {_at_least(best.adjusted_p)}){small}.",
    )


def _no_leak_found(strongest: Outcome, tried: int, limit: float) -> Verdict:
    return Verdict(
        level="no_leak_found",
        headline=f"No leak found: none of {_attacks(tried)} can have an advantage above {limit:g}.",
        attack=strongest.attack,
        limit=limit,
        records_to_decide=None,
        reason=f"The {strongest.attack} attack comes nearest to the limit, with an advantage of "
        f"{_told(strongest)}; stronger attacks than these may exist.",
    )


def _undecided(strongest: Outcome, outcomes: Sequence[Outcome], limit: float) -> Verdict:
    # Of many attacks one is below 0 by chance.
    if 1 - strongest.p_value <= LEVEL / len(outcomes):
        return _turned(strongest, limit)
    needed = _needed(outcomes, limit)
    more = "" if needed is None else f"; about {needed:,} records on each side would decide"
    return Verdict(
        level="undecided",
        headline="Undecided: these records show no leak, and cannot rule out an advantage above "
        f"{limit:g}{more}.",
        attack=strongest.attack,
        limit=limit,
        records_to_decide=needed,
        reason=f"The {strongest.attack} attack has an advantage of {_told(strongest)}: not above 0 "
        f"after correction for {_attacks(len(outcomes))}, and not within the limit of {limit:g}.",
    )


def _turned(strongest: Outcome, limit: float) -> Verdict:
    """Members look less like members than the others do: more records would not mend that."""
    return Verdict(
        level="undecided",
        headline="Undecided: non-members look more like members than the members do; check that "
        "the sides are not swapped.",
        attack=strongest.attack,
        limit=limit,
        records_to_decide=None,
        reason=f"The {strongest.attack} attack has an advantage of {_told(strongest)}: if the "
        "sides are not swapped, the model hides its members too well, and an adversary who turns "
        "the attack round finds them.",
    )


def _needed(outcomes: Sequence[Outcome], limit: float) -> int | None:
    """Records per side with which some attack would be above 0, or all within the limit."""
    leak = [
        records_to_show_leak(
            one.rates.tpr, one.rates.fpr, alpha=LEVEL / len(outcomes), overhead=one.overhead
        )
        for one in outcomes
    ]
    safe = [
        records_to_rule_out(one.rates.tpr, one.rates.fpr, limit, overhead=one.overhead)
        for one in outcomes
    ]
    enough = [number for number in leak if number is not None]
    if None not in safe:
        enough.append(max(number for number in safe if number is not None))
    return min(enough, default=None)


def _attacks(tried: int) -> str:
    return "1 attack" if tried == 1 else f"{tried} attacks"


def _told(outcome: Outcome) -> str:
    value, low, high = (
        f"{number:.3f}".replace("-", "−")
        for number in (outcome.advantage.value, outcome.advantage.low, outcome.advantage.high)
    )
    return f"{value} (95% interval {low} to {high})"


def _at_least(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"
