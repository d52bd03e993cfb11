"""The verdict: what the outcomes of all attacks together allow us to conclude.

Each attack contributes a test of its advantage and exact tests of its highest scores, so that
neither a small leak of everyone nor a certain leak of a few is missed. Holm's correction covers all
of them. Decisions rest on interval bounds, never on point estimates. Where the records cannot
decide, the verdict states how many would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from leakscope.controls import Control
from leakscope.controls.target import ACCURACY
from leakscope.metrics.intervals import holm
from leakscope.metrics.outcome import Outcome
from leakscope.metrics.power import (
    records_to_bound_tpr,
    records_to_rule_out,
    records_to_show_leak,
)
from leakscope.metrics.tail_test import (
    LEVEL,
    TAIL_FPR,
    TAIL_FPRS,
    TailTest,
    beyond_limit,
)
from leakscope.metrics.tails import Rate
from leakscope.report import Verdict
from leakscope.report.threat_models import sees_predictions, threat_model
from leakscope.report.words import (
    CONSTANT,
    count,
    number,
    one_in,
    p_value,
    percent,
    records_in_words,
)


@dataclass(frozen=True)
class Limits:
    """What counts as no leak.

    advantage: the largest advantage of any attack. tail: the most members found at a false
    positive rate of 1 %, as a multiple of that rate.
    """

    advantage: float = 0.1
    tail: float = 5.0

    def tpr(self, fpr: float) -> float:
        """The largest share of members found at this rate."""
        return min(self.tail * fpr, 1.0)


def adjust(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes with Holm's correction over the tests of all attacks."""
    family = [
        p for outcome in outcomes for p in (outcome.p_value, *(t.p_value for t in outcome.tails))
    ]
    adjusted = iter(holm(family))
    return [
        replace(
            outcome,
            adjusted_p=next(adjusted),
            tails=tuple(replace(test, adjusted_p=next(adjusted)) for test in outcome.tails),
        )
        for outcome in outcomes
    ]


def decide(
    outcomes: Sequence[Outcome],
    controls: Sequence[Control],
    limits: Limits,
    not_run: Mapping[str, str] | None = None,
    persons_per_record: float = 1.0,
) -> Verdict:
    """leaks, no_leak_found, undecided or invalid; outcomes as ``adjust`` returns them.

    not_run: the reason for each attack that the user chose and that has no outcome.
    persons_per_record: below 1 where several rows belong to a person.
    """
    verdict = _decide(outcomes, controls, limits, not_run or {}, persons_per_record)
    return verdict if verdict.level == "invalid" else _qualified(verdict, controls)


def _decide(
    outcomes: Sequence[Outcome],
    controls: Sequence[Control],
    limits: Limits,
    not_run: Mapping[str, str],
    persons_per_record: float,
) -> Verdict:
    failed = [control for control in controls if control.voids]
    if failed:
        headline = f"This audit is invalid: its control of the {failed[0].name} failed."
        return _verdict("invalid", headline, failed[0].detail, limits)
    if not outcomes:
        return _nothing_ran(not_run, limits)
    if any(o.adjusted_p <= LEVEL or _significant(o) for o in outcomes):
        return _leaks(outcomes, limits)
    doubt = (
        _no_evidence(outcomes, controls, limits)
        or _turned(outcomes, limits)
        or _group_leak(outcomes, limits)
    )
    return doubt or _weigh(outcomes, limits, persons_per_record)


def _weigh(outcomes: Sequence[Outcome], limits: Limits, persons_per_record: float) -> Verdict:
    """No attack is significant: no leak found if every interval is within the limits."""
    strongest = max(outcomes, key=lambda o: max(o.advantage.high, -o.advantage.low))
    if _within(outcomes, limits) and strongest.advantage.low >= -limits.advantage:
        return _no_leak_found(strongest, outcomes, limits)
    return _undecided(strongest, outcomes, limits, persons_per_record)


def _verdict(
    level: str,
    headline: str,
    reason: str,
    limits: Limits,
    *,
    attack: Outcome | None = None,
    attack_at_low_fpr: Outcome | None = None,
    within_limit: bool = False,
    records_to_decide: int | None = None,
) -> Verdict:
    return Verdict(
        level=level,
        headline=headline,
        attack=None if attack is None else attack.attack,
        attack_at_low_fpr=None if attack_at_low_fpr is None else attack_at_low_fpr.attack,
        limit=limits.advantage,
        tail_limit=limits.tail,
        within_limit=within_limit,
        records_to_decide=records_to_decide,
        reason=reason,
    )


def _qualified(verdict: Verdict, controls: Sequence[Control]) -> Verdict:
    """The verdict with the assumptions that no control could check, and what controls doubt."""
    assumed = [c.assumption for c in controls if c.fatal and c.passed is None and c.assumption]
    doubts = [c.detail for c in controls if c.name == ACCURACY and c.passed is False]
    reason = " ".join([verdict.reason, *(doubt for doubt in doubts if doubt != verdict.reason)])
    if not assumed:
        return replace(verdict, reason=reason)
    unchecked = f"This holds only if {' and '.join(assumed)}; the audit could not check that."
    return replace(
        verdict,
        headline=f"{verdict.headline} {unchecked}",
        reason=reason,
        conditions=tuple(assumed),
    )


def _nothing_ran(not_run: Mapping[str, str], limits: Limits) -> Verdict:
    """Constant scores leave the question open; an audit in which no attack could run is invalid."""
    reasons = dict.fromkeys(not_run.values())
    if CONSTANT in reasons:
        headline = "Undecided: no attack can tell any two records apart."
        names = ", ".join(name for name, reason in not_run.items() if reason == CONSTANT)
        reason = f"Constant scores from {names}. {CONSTANT} Audit with other attacks."
        return _verdict("undecided", headline, reason, limits)
    headline = "This audit is invalid: no attack could run."
    why = " ".join(f"{name}: {reason}" for name, reason in [*not_run.items()][:3])
    return _verdict("invalid", headline, why or "No attack was selected.", limits)


def _significant(outcome: Outcome) -> list[TailTest]:
    return [test for test in outcome.tails if test.adjusted_p <= LEVEL]


def leading_test(outcome: Outcome) -> TailTest:
    """The most significant test of an attack's highest scores."""
    return min(_significant(outcome), key=lambda test: test.p_value)


def _rate(outcome: Outcome, fpr: float) -> Rate | None:
    return next((rate for rate in outcome.tpr_at_fpr if rate.fpr == fpr), None)


def _within(outcomes: Sequence[Outcome], limits: Limits) -> bool:
    """Whether every advantage, and every share of members found at a low FPR, is within limits."""
    return not any(
        outcome.advantage.high > limits.advantage
        or beyond_limit(outcome.tpr_at_fpr, outcome.tails, limits.tail)
        for outcome in outcomes
    )


def _leaks(outcomes: Sequence[Outcome], limits: Limits) -> Verdict:
    """Led by the largest significant advantage and by the attack that finds most at a low FPR."""
    on_average = [o for o in outcomes if o.adjusted_p <= LEVEL]
    in_the_tail = [o for o in outcomes if _significant(o)]
    largest = max(on_average, key=lambda o: o.advantage.value, default=None)
    lowest = max(
        in_the_tail,
        key=lambda o: (o.tails[0].found / o.tails[0].members, o.auc.value),
        default=None,
    )
    within = _within(outcomes, limits)
    sentences, reasons = [], []
    start = "A small leak, within the limits" if within else "This model leaks membership"
    if largest is not None:
        sentences.append(
            f"{start}: the {largest.attack} attack, which {_threat(largest)}, is right about "
            f"{round(100 * largest.accuracy.value)} of 100 records; guessing is right about 50."
        )
        reasons.append(
            f"The {largest.attack} attack has an advantage of {_advantage(largest)}, above 0 "
            f"{_corrected(outcomes)} (adjusted p {_equals(largest.adjusted_p)})."
        )
    if lowest is not None:
        test = leading_test(lowest)
        start = "It also" if lowest is largest else f"The {lowest.attack} attack"
        if largest is None:
            small = "A small leak of a few training records, within the limits"
            few = small if within else "This model leaks a few training records"
            start = f"{few}: the {lowest.attack} attack"
        known = largest is not None and _threat(largest) == _threat(lowest)
        who = "" if known else f", which {_threat(lowest)},"
        sentences.append(
            f"{start}{who} finds {count(test.found)} of {count(test.members)} members while "
            f"accusing at most {count(test.accused)} of {count(test.nonmembers)} non-members."
        )
        reasons.append(
            f"Among the highest scores of {lowest.attack}, at a false positive rate of at most "
            f"{percent(test.fpr)}, there are more members than chance explains "
            f"(adjusted p {_equals(test.adjusted_p)})."
        )
        for fpr, share in beyond_limit(lowest.tpr_at_fpr, lowest.tails, limits.tail):
            reasons.append(
                f"Up to {percent(share)} of members may be found at {percent(fpr)} FPR; the limit "
                f"is {percent(limits.tpr(fpr))}."
            )
    if within:
        reasons.append(
            f"Every 95% interval stays within the limits: an advantage of {limits.advantage:g}, "
            f"and {percent(limits.tpr(TAIL_FPR))} of members found at {percent(TAIL_FPR, 0)} FPR."
        )
    leading = largest if largest is not None else lowest
    return _verdict(
        "leaks",
        " ".join(sentences),
        " ".join(reasons),
        limits,
        attack=leading,
        attack_at_low_fpr=lowest,
        within_limit=within,
    )


def _turned(outcomes: Sequence[Outcome], limits: Limits) -> Verdict | None:
    """Undecided where non-members look more like members; more records would not help.

    An attack that is wrong too often is right when reversed. Its threshold may have retreated to
    where nobody is called a member; the area still shows the reversal. Of many attacks one is below
    0 by chance.
    """
    below = [o for o in outcomes if o.rates.reversed_p_value <= LEVEL / len(outcomes)]
    below += [o for o in outcomes if 1 - 2 * o.auc.high > limits.advantage]
    if not below:
        return None
    worst = min(below, key=lambda o: o.auc.high)
    return _verdict(
        "undecided",
        "Undecided: non-members look more like members than the members do. Check that the sides "
        "are not swapped.",
        f"The {worst.attack} attack has an advantage of {_advantage(worst)} and an AUC of "
        f"{number(worst.auc.value)}. If the sides are not swapped, the model hides its members "
        "too well: an attacker who reverses the attack finds them.",
        limits,
        attack=worst,
    )


def _no_evidence(
    outcomes: Sequence[Outcome], controls: Sequence[Control], limits: Limits
) -> Verdict | None:
    """Undecided where quiet attacks do not show that the model is safe."""
    if not any(sees_predictions(outcome.channel) for outcome in outcomes):
        names = ", ".join(outcome.attack for outcome in outcomes)
        return _verdict(
            "undecided",
            "Undecided: no attack on labels or confidence gave a result.",
            f"Only {names} ran, without the model's own predictions on the records. Every attack "
            "on these was left out, could not run, or gave constant scores.",
            limits,
        )
    doubts = [control for control in controls if control.name == ACCURACY and not control.passed]
    if not doubts:
        return None
    headline = "Undecided: the model's accuracy suggests wrong labels or swapped sides."
    return _verdict("undecided", headline, doubts[0].detail, limits)


def _group_leak(outcomes: Sequence[Outcome], limits: Limits) -> Verdict | None:
    """Undecided where members of some group are singled out, though nothing shows overall."""
    tests = [
        (outcome, group, test)
        for outcome in outcomes
        for group in outcome.groups
        for test in group.tails
    ]
    adjusted = holm([test.p_value for _, _, test in tests])
    if min(adjusted, default=1.0) > LEVEL:
        return None
    p, outcome, group, test = min(
        ((p, *parts) for p, parts in zip(adjusted, tests, strict=True)), key=lambda row: row[0]
    )
    return _verdict(
        "undecided",
        f"Undecided: no leak shows overall, but members of one group are singled out "
        f"({group.group}: {group.value}).",
        f"The {outcome.attack} attack finds {count(test.found)} of {count(test.members)} members "
        f"of this group while accusing at most {count(test.accused)} of {count(test.nonmembers)} "
        f"non-members (adjusted p {_equals(p)}). Treat it as a leak, or audit this group alone.",
        limits,
    )


def _no_leak_found(strongest: Outcome, outcomes: Sequence[Outcome], limits: Limits) -> Verdict:
    rates = [rate for o in outcomes if (rate := _rate(o, TAIL_FPR)) is not None]
    tail = (
        f" At {percent(TAIL_FPR, 0)} FPR no attack finds more than "
        f"{percent(max(rate.high for rate in rates))} of members."
        if rates
        else ""
    )
    return _verdict(
        "no_leak_found",
        f"No leak found: {_attacks(len(outcomes))} tried, each with a 95% interval of the "
        f"advantage within ±{limits.advantage:g}.",
        f"The {strongest.attack} attack comes nearest to the limit, with an advantage of "
        f"{_advantage(strongest)}.{tail} Chance exceeds each of these bounds in about 1 of 40 "
        "audits. Stronger attacks than these may exist.",
        limits,
        attack=strongest,
    )


def _undecided(
    strongest: Outcome, outcomes: Sequence[Outcome], limits: Limits, persons_per_record: float
) -> Verdict:
    open_tail = _open_tail(outcomes, limits)
    open_average = max(strongest.advantage.high, -strongest.advantage.low) > limits.advantage
    cannot, reasons = [], []
    if open_average:
        above = strongest.advantage.high > limits.advantage
        cannot.append(f"an advantage {'above ' if above else 'below −'}{limits.advantage:g}")
        reasons.append(
            f"The {strongest.attack} attack has an advantage of {_advantage(strongest)}: not above "
            f"0 {_corrected(outcomes)}, and not within the limit of {limits.advantage:g}."
        )
    if open_tail is not None:
        strongest = strongest if open_average else open_tail
        rate = _rate(open_tail, TAIL_FPR)
        assert rate is not None
        cannot.append(
            f"that more than {percent(limits.tpr(TAIL_FPR), 0)} of members are found at "
            f"{percent(TAIL_FPR, 0)} FPR"
        )
        reasons.append(
            f"The {open_tail.attack} attack may find up to {percent(rate.high)} of members while "
            f"accusing {one_in(TAIL_FPR)} non-members (95% interval)."
        )
    needed = _needed(outcomes, limits)
    more = ""
    if needed is not None:
        size = records_in_words(needed, persons_per_record)
        more = f"; about {size} on each side would decide"
    return _verdict(
        "undecided",
        f"Undecided: these records show no leak, and cannot rule out {' or '.join(cannot)}{more}.",
        " ".join(reasons),
        limits,
        attack=strongest,
        records_to_decide=needed,
    )


def _open_tail(outcomes: Sequence[Outcome], limits: Limits) -> Outcome | None:
    """The attack with the largest share of members it may find at a low FPR, if above the limit."""
    known = [(rate.high, o) for o in outcomes if (rate := _rate(o, TAIL_FPR)) is not None]
    high, worst = max(known, key=lambda pair: pair[0], default=(0.0, None))
    return worst if high > limits.tpr(TAIL_FPR) else None


def _needed(outcomes: Sequence[Outcome], limits: Limits) -> int | None:
    """Records per side with which some attack would be significant, or all within the limits."""
    tests = len(outcomes) * (1 + len(TAIL_FPRS))
    leak = [
        records_to_show_leak(o.rates.tpr, o.rates.fpr, alpha=LEVEL / tests, overhead=o.overhead)
        for o in outcomes
    ]
    safe = [
        records_to_rule_out(o.rates.tpr, o.rates.fpr, limits.advantage, overhead=o.overhead)
        for o in outcomes
    ]
    for outcome in outcomes:
        rate = _rate(outcome, TAIL_FPR)
        if rate is not None and rate.high > limits.tpr(TAIL_FPR):
            few = records_to_bound_tpr(rate.value, TAIL_FPR, limits.tpr(TAIL_FPR))
            safe.append(None if few is None else round(few * outcome.overhead))
    enough = [number for number in leak if number is not None]
    if None not in safe:
        enough.append(max(number for number in safe if number is not None))
    return min(enough, default=None)


def _threat(outcome: Outcome) -> str:
    return threat_model(outcome.channel, outcome.knowledge, outcome.models)


def _attacks(tried: int) -> str:
    return "1 attack" if tried == 1 else f"{tried} attacks"


def _corrected(outcomes: Sequence[Outcome]) -> str:
    tests = sum(1 + len(outcome.tails) for outcome in outcomes)
    return f"after correction for {tests} tests"


def _advantage(outcome: Outcome) -> str:
    figures = outcome.advantage
    return f"{number(figures.value)} (95% interval {number(figures.low)} to {number(figures.high)})"


def _equals(p: float) -> str:
    return p_value(p) if p < 0.001 else f"= {p_value(p)}"
