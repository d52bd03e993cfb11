"""Worse than before? The advantage of each attack, beside that in an older report."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from leakscope.errors import InputError
from leakscope.gate.bounds import advantage_together
from leakscope.gate.deciding import Bounds, Decided, Decision, Question, decide
from leakscope.gate.limits import AdvantageLimit, unknown
from leakscope.gate.pairing import Paired
from leakscope.gate.reading import Attacked, Audited

OPT_IN = "--allow-other-records (allow_other_records=True)"
UNPAIRED = (
    "Both audits are of the same records, but not every comparison was made record by record: "
    "that takes a records.csv beside both reports, and rows that do not belong to persons. The "
    "others take the two audits as independent, which widens the bounds."
)


@dataclass(frozen=True)
class BaselineLimit:
    """No attack may have a surely larger advantage than in an older report.

    Audits of the same records are compared record by record, where both tables of records are at
    hand. Others are taken as independent; where they share records the difference is known better
    than that, and the interval is too wide rather than too narrow. Its ends combine those of the
    two advantages (MOVER: Zou & Donner 2008). It holds where no attack can have become better by
    more than the tolerance, and every attack that the baseline lacks is within ``most``.
    """

    before: Audited
    tolerance: float
    most: float

    @property
    def name(self) -> str:
        """As it is shown."""
        return "advantage ≤ baseline"

    def decide(self, audited: Audited) -> Decided:
        before = {one.attack: one for one in self.before.attacks}
        shared = [one for one in audited.attacks if one.attack in before]
        reason = self._why_not(audited, shared)
        if reason:
            return Decided(self.name, Decision.undecided, reason)
        asked = Question(
            self.name,
            "a change of advantage",
            most=self.tolerance,
            sure=0.0,
            records=max(audited.largest, self.before.largest),
            persons=audited.persons_per_record,
            where="on each side of both audits",
        )
        changes = self._changes(audited, [(one, before[one.attack]) for one in shared])
        found = decide(asked, changes)
        if found.decision is Decision.violated:
            return found
        return self._missing(audited, shared) or self._added(audited, shared) or found

    def _why_not(self, audited: Audited, shared: list[Attacked]) -> str:
        """Why nothing can be compared, in a sentence; empty where something can."""
        if self.before.invalid:
            return f"The baseline is not a valid audit: {self.before.reason}"
        for what, report in (("baseline", self.before), ("report", audited)):
            if report.fingerprint is None:
                return (
                    f"The {what} does not say which records it is of, being made by an earlier "
                    "version; audit again."
                )
        if not shared:
            names = ", ".join(one.attack for one in self.before.attacks)
            return f"The attacks of the baseline did not run: {names}."
        return ""

    def _missing(self, audited: Audited, shared: list[Attacked]) -> Decided | None:
        """An attack of the baseline that did not run keeps the limit open."""
        ran = {one.attack for one in shared}
        missing = [one.attack for one in self.before.attacks if one.attack not in ran]
        if not missing:
            return None
        why = audited.not_run.get(missing[0], "")
        reason = f"Some attacks of the baseline did not run: {', '.join(missing)}. {why}".strip()
        return Decided(self.name, Decision.undecided, reason, missing[0])

    def _added(self, audited: Audited, shared: list[Attacked]) -> Decided | None:
        """Attacks that the baseline lacks must be within an absolute limit."""
        added = tuple(one for one in audited.attacks if one not in shared)
        if not added:
            return None
        alone = AdvantageLimit(self.most).decide(replace(audited, attacks=added))
        if alone.decision is Decision.holds:
            return None
        reason = (
            f"The baseline lacks some attacks ({', '.join(one.attack for one in added)}), which "
            f"must then have an advantage of at most {self.most:g}. {alone.reason}"
        )
        return replace(alone, limit=self.name, decision=Decision.undecided, reason=reason)

    def _changes(self, now: Audited, pairs: list[tuple[Attacked, Attacked]]) -> list[Bounds]:
        """By how much each advantage has grown."""
        if same_audit(now, self.before):
            return [Bounds(one.attack, 0.0, 0.0, 0.0, 0.0) for one, _ in pairs]
        paired = Paired.align(now, self.before) if same_records(now, self.before) else None
        tries = len(pairs)
        changes = []
        for new, old in pairs:
            by_record = None if paired is None else paired.change(new, old, tries)
            changes.append(by_record or _change(new, old, tries))
        return changes


def _change(now: Attacked, before: Attacked, tries: int) -> Bounds:
    """By how much an advantage has grown, from two independent audits."""
    if not (now.complete and before.complete):
        return unknown(now.attack)
    new, old = now.advantage, before.advantage
    value = new.value - old.value
    least = new.value - advantage_together(now, tries).low
    most = advantage_together(before, tries).high - old.value
    return Bounds(
        now.attack,
        value,
        low=value - math.hypot(least, most),
        high=value + math.hypot(new.high - new.value, old.value - old.low),
        alone=value - math.hypot(new.value - new.low, old.high - old.value),
    )


def same_records(now: Audited, before: Audited) -> bool:
    """Whether both reports are of the same members and the same non-members."""
    ours, theirs = now.fingerprint, before.fingerprint
    if ours is None or theirs is None:
        return False
    sides = ("members", "nonmembers")
    return all(ours[side] is not None and ours[side] == theirs[side] for side in sides)


def same_audit(now: Audited, before: Audited) -> bool:
    """Whether every figure of every attack is the same to the last digit, on the same data."""
    known = now.fingerprint is not None and now.fingerprint == before.fingerprint
    # Figures that are missing are not equal, but look alike.
    return known and now.sides == before.sides and repr(now.attacks) == repr(before.attacks)


def check_comparable(now: Audited, before: Audited, *, other_records: bool = False) -> list[str]:
    """Refuse a baseline that is about something else; what else differs, in sentences.

    other_records: whether audits of other records of the same columns may be compared.
    """
    _refuse_other_data(now, before)
    notes = _about_records(now, before, other_records)
    if now.dataset != before.dataset:
        notes.append(
            "Only one of the two reports names its data set; they may be of different ones."
        )
    if now.version != before.version:
        notes.append(
            f"The baseline was made by leakscope {before.version} and the report by "
            f"{now.version}: attacks may have changed."
        )
    if now.limit != before.limit:
        notes.append(
            f"The baseline was made with a limit of {before.limit:g} and the report with "
            f"{now.limit:g}; the comparison depends on neither."
        )
    models = {one.attack: one.models for one in before.attacks}
    changed = [
        one.attack for one in now.attacks if models.get(one.attack, one.models) != one.models
    ]
    if changed:
        notes.append(f"Not with as many shadow models as in the baseline: {', '.join(changed)}.")
    return notes


def _refuse_other_data(now: Audited, before: Audited) -> None:
    facts = ["task", "dataset", "features"]
    if not (now.redacted or before.redacted):  # which may withhold some
        facts.append("classes")
    for what in facts:
        ours, theirs = getattr(now, what), getattr(before, what)
        if ours is not None and theirs is not None and ours != theirs:
            raise InputError(
                f"The baseline {before.name!r} has the {what} {theirs!r:.100} and the report "
                f"{now.name!r} has {ours!r:.100}; compare audits of the same {what}"
            )
    ours, theirs = now.fingerprint, before.fingerprint
    if ours is None or theirs is None:
        return
    if same_records(now, before) and now.sides != before.sides:
        raise InputError(
            f"The baseline {before.name!r} and the report {now.name!r} have the same digests of "
            f"{before.sides} and of {now.sides} records; audit again"
        )
    if ours["columns"] != theirs["columns"] and not same_records(now, before):
        raise InputError(
            f"The baseline {before.name!r} has other columns than the report {now.name!r}, by "
            "name or kind; compare audits of the same data"
        )
    for side, other in (("members", "nonmembers"), ("nonmembers", "members")):
        if ours[side] is not None and ours[side] == theirs[other]:
            raise InputError(
                f"The {side} of the report {now.name!r} are the {other} of the baseline "
                f"{before.name!r}; check that the sides are not swapped"
            )


def _about_records(now: Audited, before: Audited, other_records: bool) -> list[str]:
    """Refuse other records, unless they are of one named data set or the user allows it."""
    ours, theirs = now.fingerprint, before.fingerprint
    if ours is None or theirs is None:
        return []
    if same_audit(now, before):
        return ["Every figure of the two reports is the same, on the same data."]
    if same_records(now, before):
        aligned = Paired.align(now, before) is not None
        return [] if aligned else [UNPAIRED]
    withheld = [one.name for one in (now, before) if (one.fingerprint or {}).get("members") is None]
    known = (
        f"The report {withheld[0]!r} does not say which records it is of, being redacted"
        if withheld
        else f"The baseline {before.name!r} is of other records than the report {now.name!r}"
    )
    if not (other_records or (now.dataset is not None and now.dataset == before.dataset)):
        raise InputError(
            f"{known}; audit both models on the same records, or pass {OPT_IN} if both are random "
            "samples of the same population"
        )
    return [f"{known}: the two audits are compared as independent samples of one population."]
