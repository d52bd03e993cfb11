"""For the tests of those who train models: ``assert_private``.

With pytest, the fixture of the same name needs no import; see ``leakscope.testing.plugin``. Nothing
heavy is imported before a model is audited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakscope.gate import Check
    from leakscope.report import Report

    Listener = Callable[[Report, Check], None]

__all__ = ["assert_private"]

# Who is told of every model that was audited here: the plugin, while pytest runs.
listeners: list[Listener] = []


def assert_private(
    model: Any,
    members: Any,
    nonmembers: Any,
    *,
    max_advantage: float | None = 0.1,
    max_auc: float | None = None,
    max_tpr: str | Sequence[str] | None = None,
    label: str | None = None,
    seed: int = 0,
    allow_undecided: bool = False,
    **options: Any,
) -> Report:
    """Fail unless every attack on the model surely stays within the limits; the report.

    model, members, nonmembers, label, seed and the options are those of ``leakscope.audit``, the
    limits those of ``leakscope.check``. allow_undecided: pass also where a valid audit has too few
    records to tell, which is no evidence of privacy.
    """
    __tracebackhide__ = True
    import leakscope

    # The verdict in the report is then about the same limit.
    if max_advantage is not None and 0 < max_advantage < 1:
        options = {"limit": max_advantage, **options}
    report = leakscope.audit(model, members, nonmembers, label=label, seed=seed, **options)
    found = leakscope.check(report, max_advantage=max_advantage, max_auc=max_auc, max_tpr=max_tpr)
    for listener in listeners:
        listener(report, found)
    # An audit whose controls failed is not one that had too few records: it says nothing at all.
    unknown = found.decision == "undecided" and report.verdict.level != "invalid"
    if found.decision != "holds" and not (allow_undecided and unknown):
        raise AssertionError(_told(report, found))
    return report


def _told(report: Report, found: Check) -> str:
    """The decision, and the strongest attack, of which the sentence may not speak."""
    from leakscope.report.words import headline_outcome, number, span

    lines = [found.sentence]
    strongest = headline_outcome(report.data)
    if strongest is not None:
        advantage = strongest["advantage"]
        lines += [
            f"The strongest attack is {strongest['attack']}, with an advantage of "
            f"{number(advantage['value'])} (95% interval {span(advantage)})."
        ]
    return "\n".join(lines)
