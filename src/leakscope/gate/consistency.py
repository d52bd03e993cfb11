"""Whether a report agrees with itself: one that contradicts itself is refused, not decided on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from leakscope.controls.target import ACCURACY, FEWEST
from leakscope.errors import InputError
from leakscope.metrics.intervals import fisher_p_value, holm
from leakscope.metrics.tail_test import LEVEL, TAIL_FPRS, beyond_limit
from leakscope.metrics.tails import ENOUGH, Rate

if TYPE_CHECKING:
    from leakscope.gate.reading import Attacked, Audited

NEEDED_CONTROLS = ("overlap", "number of records", "blind baseline", "constant model")
ROUNDING = 1e-6


def refuse_contradictions(audited: Audited) -> None:
    """Refuse a report that says two things of one figure; an invalid one answers nothing anyway.

    A figure that is missing contradicts none: no limit on it is decided then.
    """
    if audited.invalid:
        return
    for what in _contradictions(audited):
        raise InputError(f"The report {audited.name!r} contradicts itself: {what}; audit again")


def _contradictions(audited: Audited) -> Iterator[str]:
    yield from _of_names(audited)
    yield from _of_controls(audited)
    for one in audited.attacks:
        figures = (*_of_sizes(one, audited), *_of_figures(one), *_of_curve(one))
        for what in (*figures, *_of_tails(one, audited)):
            yield f"of the {one.attack} attack, {what}"
    yield from _of_correction(audited)
    yield from _of_verdict(audited)


def _of_names(audited: Audited) -> Iterator[str]:
    for name, times in Counter(one.attack for one in audited.attacks).items():
        if times > 1:
            yield f"the {name} attack ran {times} times"
        if name in audited.not_run:
            yield f"the {name} attack ran and did not run"
    if audited.strongest is not None and audited.strongest not in audited.ran:
        yield f"the verdict rests on the {audited.strongest} attack, which has no figures"


def _of_controls(audited: Audited) -> Iterator[str]:
    names = [one.name for one in audited.controls]
    for name in NEEDED_CONTROLS:
        if names.count(name) != 1:
            yield f"there are {names.count(name)} results of the control of the {name}"
    for one in audited.controls:
        if one.voids:
            yield f"the control of the {one.name} failed, but the verdict is {audited.level}"
    for have, rows in zip(audited.persons, audited.sides, strict=True):
        if have > rows:
            yield f"{rows} records belong to {have} persons"
        if have < FEWEST:
            yield f"a side of {have} is too small for the verdict {audited.level}"


def _of_sizes(one: Attacked, audited: Audited) -> Iterator[str]:
    sizes = ((one.rates.members, audited.sides[0]), (one.rates.nonmembers, audited.sides[1]))
    for effective, rows in sizes:
        if effective > rows + ROUNDING:
            yield f"{rows} records count as {effective:g}"
    for rate in one.tpr_at_fpr:
        rows, size = audited.sides[1], rate.effective_nonmembers
        if size > rows + ROUNDING:
            yield f"{rows} records count as {size:g}"
        expected = rate.fpr * (rows if math.isnan(size) else size)
        if rate.resolved and expected < ENOUGH - ROUNDING:
            yield f"a TPR at {rate.fpr:g} FPR is resolved by too few non-members"
        if not rate.resolved and not math.isnan(size) and expected > ENOUGH + ROUNDING:
            yield f"a TPR at {rate.fpr:g} FPR is not resolved by enough non-members"


def _of_figures(one: Attacked) -> Iterator[str]:
    if not one.complete:
        return
    again = one.rates.advantage()
    told = one.advantage
    pairs = [(told.value, again.value), (told.low, again.low), (told.high, again.high)]
    if any(abs(first - second) > ROUNDING for first, second in pairs):
        yield "the advantage does not follow from the rates"
    if abs(one.accuracy - (1 + told.value) / 2) > ROUNDING:
        yield "the accuracy does not follow from the advantage"
    if abs(one.p_value - one.rates.p_value) > ROUNDING:
        yield "the p-value does not follow from the rates"
    adjusted_ps = [(test.p_value, test.adjusted_p) for test in one.tails]
    for p, adjusted in ((one.p_value, one.adjusted_p), *adjusted_ps):
        if adjusted < p - ROUNDING:
            yield f"the adjusted p-value {adjusted:g} is smaller than the p-value {p:g}"


def _of_tails(one: Attacked, audited: Audited) -> Iterator[str]:
    if sorted(test.fpr for test in one.tails) != sorted(TAIL_FPRS):
        yield "a test of the highest scores is missing"
    for test in one.tails:
        if not (math.isfinite(test.p_value) and math.isfinite(test.adjusted_p)):
            yield "a test of the highest scores has no p-value"
            return
        sizes = zip((test.members, test.nonmembers), audited.persons, strict=True)
        if not all(0 < size <= most for size, most in sizes):
            yield f"a test of the highest scores counts {test.members} members"
            return
        if test.found > test.members or test.accused > test.fpr * test.nonmembers + ROUNDING:
            yield f"{test.found} members and {test.accused} non-members lie above a threshold"
            return
        # Halves that learned from each other were tested apart, and their counts are not here.
        again = fisher_p_value(test.found, test.members, test.accused, test.nonmembers)
        if not one.learned and abs(test.p_value - again) > ROUNDING:
            yield "the p-value of the highest scores does not follow from their counts"
        # Where each record counts for itself, the same members are above the same threshold.
        rows = (test.members, test.nonmembers) == audited.sides
        shares = [rate.value for rate in one.tpr_at_fpr if rate.fpr == test.fpr]
        if rows and not one.learned and shares and abs(shares[0] * test.members - test.found) > 0.5:
            found = f"{test.found} members are found at {test.fpr:g} FPR"
            yield f"{found}, and the TPR is {shares[0]:g}"


def _of_curve(one: Attacked) -> Iterator[str]:
    curve = one.curve
    if len(curve) < 2 or curve[0] != (0.0, 0.0) or curve[-1] != (1.0, 1.0):
        yield "the ROC curve does not go from (0, 0) to (1, 1)"
        return
    steps = list(pairwise(curve))
    if not all(start[0] <= end[0] and start[1] <= end[1] for start, end in steps):
        yield "the ROC curve falls"
        return
    least, most = (sum((b[0] - a[0]) * (a, b)[end][1] for a, b in steps) for end in (0, 1))
    if one.auc.value < least - ROUNDING or one.auc.value > most + ROUNDING:
        yield "the AUC is not the area under the ROC curve"
    for fpr, times in Counter(rate.fpr for rate in one.tpr_at_fpr).items():
        if times > 1:
            yield f"there are {times} TPRs at {fpr:g} FPR"
    for rate in one.tpr_at_fpr:
        if not _on_curve(rate, curve):
            yield f"the TPR at {rate.fpr:g} FPR is not on the ROC curve"


def _on_curve(rate: Rate, curve: tuple[tuple[float, float], ...]) -> bool:
    """Whether it may be the highest TPR up to its FPR; a curve may lack some of its points."""
    reach = rate.fpr * (1 + 1e-12)
    below = max(tpr for fpr, tpr in curve if fpr <= reach)
    above = min((tpr for fpr, tpr in curve if fpr > reach), default=1.0)
    return math.isnan(rate.value) or below - ROUNDING <= rate.value <= above + ROUNDING


def _of_correction(audited: Audited) -> Iterator[str]:
    """Whether the adjusted p-values are Holm's over the tests of all attacks."""
    family = [
        p
        for one in audited.attacks
        for p in ((one.p_value, one.adjusted_p), *((t.p_value, t.adjusted_p) for t in one.tails))
    ]
    again = holm([p for p, _ in family])
    for (p, adjusted), right in zip(family, again, strict=True):
        if math.isfinite(adjusted) and abs(adjusted - right) > ROUNDING:
            yield f"the adjusted p-value of {p:g} is {adjusted:g}, and Holm's is {right:g}"


def _of_verdict(audited: Audited) -> Iterator[str]:
    level, limit = audited.level, audited.limit
    accuracy = [one for one in audited.controls if one.name == ACCURACY and one.passed is False]
    if level == "no_leak_found" and accuracy:
        yield f"the verdict is {level}, but the control of the {ACCURACY} failed"
    smallest = min(
        (
            p
            for one in audited.attacks
            for p in (one.adjusted_p, *(test.adjusted_p for test in one.tails))
        ),
        default=math.nan,
    )
    if level != "leaks" and smallest <= LEVEL:
        yield f"the verdict is {level}, but an adjusted p-value is {smallest:g}"
    if level == "leaks" and smallest > LEVEL:
        yield f"the verdict is {level}, but no adjusted p-value is below {smallest:g}"
    beyond = [what for one in audited.attacks for what in _beyond(one, audited)]
    if beyond and (level == "no_leak_found" or (level == "leaks" and audited.within_limit)):
        yield f"the verdict is {level} within the limits, but {beyond[0]}"
    if level == "no_leak_found" and any(one.advantage.low < -limit for one in audited.attacks):
        yield f"the verdict is {level}, but an advantage may be below −{limit:g}"


def _beyond(one: Attacked, audited: Audited) -> Iterator[str]:
    """What may be beyond the limits of the verdict."""
    if one.advantage.high > audited.limit:
        yield f"the advantage of {one.attack} may be above {audited.limit:g}"
    for fpr, share in beyond_limit(one.tpr_at_fpr, one.tails, audited.tail_limit):
        yield f"the TPR of {one.attack} at {fpr:g} FPR may be {share:g}"
