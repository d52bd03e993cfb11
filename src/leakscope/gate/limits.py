"""The limits a model may be held to: each says what it asks, and decides it from a report."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Protocol

from leakscope.errors import InputError
from leakscope.gate.bounds import (
    TAIL,
    advantage_together,
    auc_low,
    tpr_low,
    tpr_of_call,
)
from leakscope.gate.deciding import Bounds, Decided, Decision, Question, decide
from leakscope.gate.reading import Attacked, Audited
from leakscope.metrics.intervals import Interval
from leakscope.metrics.tails import Rate, enough_nonmembers
from leakscope.report.words import nonmembers_in_words

UNKNOWN = "the report gives no figure for it"
TURNED = (
    "non-members look more like members than the members do; check that the sides are not swapped"
)


class Limit(Protocol):
    """Something a report must keep to."""

    @property
    def name(self) -> str:
        """The limit as it is shown: advantage ≤ 0.1."""
        ...

    def decide(self, audited: Audited) -> Decided:
        """Whether an audit that is valid keeps to it."""
        ...


@dataclass(frozen=True)
class AdvantageLimit:
    """The most that the signed advantage of any attack may be."""

    most: float

    @property
    def name(self) -> str:
        """As it is shown."""
        return f"advantage ≤ {self.most:g}"

    def decide(self, audited: Audited) -> Decided:
        tries = len(audited.attacks)
        sizes = (audited.largest, audited.persons_per_record)
        asked = Question(self.name, "an advantage", self.most, self.most, *sizes, least=-self.most)
        return decide(asked, [self._bounds(one, tries) for one in audited.attacks])

    def _bounds(self, one: Attacked, tries: int) -> Bounds:
        if not one.complete:
            return unknown(one.attack)
        low = advantage_together(one, tries).low
        # Where few are called members the interval alone is not trusted: the p-value has the last
        # word in the verdict, and so it has here.
        if not one.adjusted_p <= TAIL:
            low = min(low, 0.0)
        # As in the verdict: the threshold may have retreated to where only the area shows it.
        reversed_ = one.rates.reversed_p_value <= TAIL / tries
        below = one.advantage.low < -self.most and reversed_
        turned = below or 1 - 2 * one.auc.high > self.most
        return _bounds(one.attack, one.advantage, low, TURNED if turned else "")


@dataclass(frozen=True)
class ReportLimit(AdvantageLimit):
    """The limit that the report was made with, on which its own verdict has the last word.

    The verdict may see what an advantage does not: a few members that are found for certain.
    """

    def decide(self, audited: Audited) -> Decided:
        decided = super().decide(audited)
        beyond = audited.level == "leaks" and audited.within_limit is False
        if decided.decision is Decision.holds and (beyond or audited.level == "undecided"):
            reason = f"The advantage is within the limit; the verdict is not. {audited.reason}"
            return replace(decided, decision=Decision.undecided, reason=reason)
        return decided


@dataclass(frozen=True)
class AucLimit:
    """The most that the area under the ROC curve of any attack may be."""

    most: float

    @property
    def name(self) -> str:
        """As it is shown."""
        return f"AUC ≤ {self.most:g}"

    def decide(self, audited: Audited) -> Decided:
        tries = len(audited.attacks)
        sizes = (audited.largest, audited.persons_per_record)
        asked = Question(self.name, "an AUC", self.most, self.most, *sizes, least=1 - self.most)
        return decide(asked, [self._bounds(one, tries, audited) for one in audited.attacks])

    def _bounds(self, one: Attacked, tries: int, audited: Audited) -> Bounds:
        if not one.complete:
            return unknown(one.attack)
        low = auc_low(one.auc, tries, audited.persons)
        reversed_ = one.rates.reversed_p_value <= TAIL / tries
        turned = reversed_ or one.auc.high < 1 - self.most
        return _bounds(one.attack, one.auc, low, TURNED if turned else "")


@dataclass(frozen=True)
class TprLimit:
    """The most members that any attack may find at a false positive rate, as a share."""

    most: float
    fpr: float

    @property
    def name(self) -> str:
        """As it is shown."""
        return f"TPR at {self.fpr:g} FPR ≤ {self.most:g}"

    def decide(self, audited: Audited) -> Decided:
        known = sorted({rate.fpr for one in audited.attacks for rate in one.tpr_at_fpr})
        if not any(math.isclose(fpr, self.fpr) for fpr in known):
            told = ", ".join(f"{fpr:g}" for fpr in known) or "no false positive rate"
            raise InputError(
                f"The report {audited.name!r} has no TPR at a false positive rate of "
                f"{self.fpr:g}, only at {told}; choose one it has"
            )
        sizes = (audited.largest, audited.persons_per_record)
        asked = Question(self.name, "a TPR", self.most, self.most, *sizes)
        return decide(asked, [self._bounds(one, audited) for one in audited.attacks])

    def _bounds(self, one: Attacked, audited: Audited) -> Bounds:
        found = [rate for rate in one.tpr_at_fpr if math.isclose(rate.fpr, self.fpr)]
        if not found or not one.complete:
            return unknown(one.attack)
        rate, tries = found[0], len(audited.attacks)
        if one.call is not None:
            figure, low = tpr_of_call(one, one.call, self.fpr, tries)
        elif rate.resolved:
            figure = Interval(rate.value, rate.low, rate.high)
            low = tpr_low(one, rate, tries, audited.persons[1])
        else:
            return self._unresolved(one.attack, rate, audited)
        mirrored = Interval(1 - one.auc.value, 1 - one.auc.high, 1 - one.auc.low)
        by_area = auc_low(mirrored, tries, audited.persons) > 0.5
        turned = by_area or one.rates.reversed_p_value <= TAIL / tries
        return _bounds(one.attack, figure, low, TURNED if turned else "")

    def _unresolved(self, attack: str, rate: Rate, audited: Audited) -> Bounds:
        """Too few non-members: the number with which the report would resolve the rate."""
        rows, size = audited.sides[1], rate.effective_nonmembers
        enough = enough_nonmembers(self.fpr)
        if size > 0:
            needed: int | None = math.ceil(rows * enough / size)
        else:
            # An earlier version did not say what they count as: attacks that learn, for half.
            needed = next((number for number in (enough, 2 * enough) if number > rows), None)
        have = nonmembers_in_words(rows, size, audited.persons[1])
        doubt = f"{have} are too few for a false positive rate of {self.fpr:g}"
        doubt += f"; about {enough:,} are needed"
        return Bounds(attack, rate.value, 0.0, rate.high, 0.0, doubt, needed)


@dataclass(frozen=True)
class DisclosureLimit:
    """The most training records that any extraction may bring back."""

    most: int

    @property
    def name(self) -> str:
        """As it is shown."""
        return f"records recovered ≤ {self.most}"

    def decide(self, audited: Audited) -> Decided:
        if not audited.recovered:
            return Decided(
                self.name,
                Decision.undecided,
                "No extraction ran; audit with --channels records to have records read out.",
            )
        first, found = max(audited.recovered, key=lambda one: one[1])
        # A count of what was done is certain.
        decision = Decision.violated if found > self.most else Decision.holds
        reason = f"The extraction {first} brought {found:,} training records back, the most of all."
        return Decided(self.name, decision, reason, first, found, found, found)


@dataclass(frozen=True)
class Required:
    """An attack or extraction that must have run."""

    attack: str

    @property
    def name(self) -> str:
        """As it is shown."""
        return f"{self.attack} must run"

    def decide(self, audited: Audited) -> Decided:
        if self.attack in audited.ran:
            return Decided(self.name, Decision.holds, f"{self.attack} ran.", self.attack)
        why = audited.not_run.get(self.attack, "It is not in the report.")
        reason = f"{self.attack} did not run. {why}"
        return Decided(self.name, Decision.undecided, reason, self.attack)


def unknown(attack: str) -> Bounds:
    """Nothing can be said of an attack of which the report lacks a figure."""
    return Bounds(attack, math.nan, math.nan, math.nan, math.nan, UNKNOWN)


def _bounds(attack: str, figure: Interval, low: float, doubt: str) -> Bounds:
    if not all(map(math.isfinite, (figure.value, figure.low, figure.high))):
        return unknown(attack)
    return Bounds(attack, figure.value, low, figure.high, figure.low, doubt)


def figure_limits(
    max_advantage: float | None, max_auc: float | None, max_tpr: str | Iterable[str] | None
) -> list[Limit]:
    """The limits that were given, checked."""
    limits: list[Limit] = []
    if max_advantage is not None:
        limits.append(AdvantageLimit(within("max_advantage", max_advantage, 0.0)))
    if max_auc is not None:
        limits.append(AucLimit(within("max_auc", max_auc, 0.5)))
    texts = [max_tpr] if isinstance(max_tpr, str) else max_tpr or ()
    return limits + [_tpr_limit(text) for text in texts]


def _tpr_limit(text: str) -> TprLimit:
    """The limit that is written 0.02@0.01: this TPR at that FPR."""
    try:
        most, fpr = (float(part) for part in str(text).split("@"))
    except ValueError as error:
        raise InputError(
            f"The max_tpr is {text!r}; write the TPR, @ and the FPR, such as 0.02@0.01"
        ) from error
    # Guessing finds as many members as it accuses others.
    if not 0 < fpr <= most < 1:
        raise InputError(
            f"The max_tpr is {text!r}; choose an FPR above 0 and a TPR of at least that and below 1"
        )
    return TprLimit(most, fpr)


def within(name: str, value: Any, least: float) -> float:
    """A number from the least to 1, and not 1 itself, or one sentence."""
    # A boolean is a number to Python, and no limit to anybody.
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not (is_number and least <= value < 1):
        raise InputError(f"The {name} is {value!r}; choose a number from {least:g} to below 1")
    return float(value)
