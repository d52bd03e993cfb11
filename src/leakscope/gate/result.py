"""Check: what became of every limit, and of all of them together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from leakscope.gate.deciding import Decided, Decision
from leakscope.gate.words import WORDS

EXIT_CODES = {Decision.holds: 0, Decision.violated: 1, Decision.undecided: 3}


@dataclass(frozen=True)
class Check:
    """What a gate says of a report: holds, violated or undecided, limit by limit.

    report: the report's file. limits: at least one. not_run: reasons by attack. notes: what a
    reader should know beside, in sentences. conditions: what must be true for the answer, because
    a decisive control could not run. failed_controls: what they found, by name.
    """

    report: str
    limits: tuple[Decided, ...]
    not_run: dict[str, str]
    notes: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    failed_controls: dict[str, str] = field(default_factory=dict)

    @property
    def decision(self) -> Decision:
        """Violated where any limit is; else undecided where any limit is; else it holds."""
        found = {one.decision for one in self.limits}
        order = (Decision.violated, Decision.undecided, Decision.holds)
        return next(decision for decision in order if decision in found)

    @property
    def exit_code(self) -> int:
        """0 holds, 1 violated, 3 undecided; 2 is for errors."""
        return EXIT_CODES[self.decision]

    @property
    def sentence(self) -> str:
        """The decision in one sentence, by the first limit that made it."""
        made = [one for one in self.limits if one.decision is self.decision]
        first, others = made[0], len(made) - 1
        word = WORDS[self.decision] + self._proviso
        if others and self.decision is Decision.holds:
            return f"{word}: all {len(made)} limits."
        more = f" and {others} more" if others else ""
        why = first.reason[0].lower() + first.reason[1:]
        return f"{word}: {first.limit}{more}: {why}"

    @property
    def _proviso(self) -> str:
        """That the answer depends on what controls could not see; nothing where there is none."""
        if not self.conditions or self.decision is Decision.undecided:
            return ""
        return f", provided that {' and '.join(self.conditions)}"

    @property
    def remarks(self) -> list[str]:
        """Conditions, failed controls and notes, each as a sentence."""
        conditions = [f"Condition, which was not checked: {one}." for one in self.conditions]
        failed = [f"Failed control: {name}: {why}" for name, why in self.failed_controls.items()]
        return [*conditions, *failed, *self.notes]

    @property
    def skipped(self) -> list[dict[str, str]]:
        """What was not run and why, as a report has it."""
        return [{"attack": name, "reason": reason} for name, reason in self.not_run.items()]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "report": self.report,
            "decision": self.decision.value,
            "exit_code": self.exit_code,
            "sentence": self.sentence,
            "limits": [one.to_dict() for one in self.limits],
            "not_run": self.skipped,
            "notes": list(self.notes),
            "conditions": list(self.conditions),
            "failed_controls": [
                {"control": name, "detail": detail} for name, detail in self.failed_controls.items()
            ],
        }

    def to_junit(self) -> str:
        """The text of a JUnit XML file: a test case for each limit."""
        from leakscope.gate.junit import junit

        return junit(self)

    def to_markdown(self) -> str:
        """The text of a summary in GitHub's Markdown."""
        from leakscope.gate.markdown import markdown

        return markdown(self)
