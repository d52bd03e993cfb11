"""Worse than before? The advantage of each attack, beside that in an older report."""

from __future__ import annotations

import math
from dataclasses import dataclass

from leakscope.errors import InputError
from leakscope.gate.bounds import advantage_together
from leakscope.gate.deciding import Bounds, Decided, Decision, Question, decide
from leakscope.gate.limits import UNKNOWN
from leakscope.gate.reading import Attacked, Audited


@dataclass(frozen=True)
class BaselineLimit:
    """No attack may have a surely larger advantage than in an older report.

    The two audits are taken as independent; where they share records the difference is known
    better than that, and the interval is too wide rather than too narrow. Its ends combine those
    of the two advantages (MOVER: Zou & Donner 2008). It holds where no attack can have become
    better by more than the tolerance.
    """

    before: Audited
    tolerance: float

    @property
    def name(self) -> str:
        """As it is shown."""
        return "advantage ≤ baseline"

    def decide(self, audited: Audited) -> Decided:
        before = {one.attack: one for one in self.before.attacks}
        shared = [one for one in audited.attacks if one.attack in before]
        missing = [name for name in before if name not in {one.attack for one in shared}]
        if self.before.invalid:
            return self._cannot(f"The baseline is not a valid audit: {self.before.reason}")
        if not shared:
            return self._cannot(f"The attacks of the baseline did not run: {', '.join(missing)}.")
        asked = Question(
            self.name,
            "a change of advantage",
            most=self.tolerance,
            sure=0.0,
            records=max(*audited.sides, *self.before.sides),
            where="records on each side of both audits",
        )
        pairs = [(one, before[one.attack]) for one in shared]
        found = decide(asked, [self._change(*pair, len(pairs)) for pair in pairs])
        if missing and found.decision is not Decision.violated:
            return self._cannot(f"Some attacks of the baseline did not run: {', '.join(missing)}.")
        return found

    def _cannot(self, reason: str) -> Decided:
        return Decided(self.name, Decision.undecided, reason)

    def _change(self, now: Attacked, before: Attacked, tries: int) -> Bounds:
        """By how much the advantage has grown."""
        new, old = now.advantage, before.advantage
        ends = (new.value, new.low, new.high, old.value, old.low, old.high)
        if not all(map(math.isfinite, ends)):
            return Bounds(now.attack, math.nan, math.nan, math.nan, math.nan, UNKNOWN)
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


def check_comparable(now: Audited, before: Audited) -> list[str]:
    """Refuse a baseline that is about something else; what else differs, in sentences."""
    for what in ("task", "dataset"):
        ours, theirs = getattr(now, what), getattr(before, what)
        if ours is not None and theirs is not None and ours != theirs:
            raise InputError(
                f"The baseline {before.name!r} has the {what} {theirs!r} and the report "
                f"{now.name!r} has {ours!r}; compare audits of the same {what}"
            )
    notes = []
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
