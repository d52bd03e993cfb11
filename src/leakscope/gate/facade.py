"""The third front door: a report and limits in, a decision out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from leakscope.errors import UnknownNameError
from leakscope.gate.baseline import BaselineLimit, check_comparable, same_audit
from leakscope.gate.deciding import Decided, Decision
from leakscope.gate.limits import (
    AdvantageLimit,
    AucLimit,
    DisclosureLimit,
    Limit,
    ReportLimit,
    Required,
    TprLimit,
    figure_limits,
    within,
)
from leakscope.gate.reading import INVALID, Audited, read_report
from leakscope.gate.result import Check
from leakscope.options import whole_number
from leakscope.report import Report
from leakscope.report.words import percent

TOLERANCE = 0.05
UNTESTED = (
    "No attack on the model's confidence or labels has scores that vary; audit with --attacks "
    "loss,label-gap and others."
)


def check(
    report: Report | str | Path,
    *,
    max_advantage: float | None = None,
    max_auc: float | None = None,
    max_tpr: str | Iterable[str] | None = None,
    max_disclosed: int | None = None,
    baseline: Report | str | Path | None = None,
    tolerance: float = TOLERANCE,
    allow_other_records: bool = False,
    require: Sequence[str] = (),
) -> Check:
    """Whether a report keeps to limits: holds, violated, or undecided, from intervals alone.

    report: a Report, its report.json, or the folder that holds it. max_tpr: such as "0.02@0.01",
    at most 2 % of members found at a false positive rate of 1 %, or several of them.
    max_disclosed: how many training records any extraction may bring back. baseline: an older
    report of the same records; no attack may have a significantly larger advantage than there, nor
    possibly one larger by more than the tolerance. allow_other_records: compare also with a
    baseline of other records with the same columns. require: attacks that must have run. Without
    any limit it is the advantage that the report was made with.
    """
    limits = figure_limits(max_advantage, max_auc, max_tpr)
    if max_disclosed is not None:
        limits.append(DisclosureLimit(whole_number("max_disclosed", max_disclosed, 0)))
    tolerance = within("tolerance", tolerance, 0.0)
    audited = read_report(report, records=baseline is not None)
    notes: list[str] = []
    reports = [audited]
    if baseline is not None:
        before = read_report(baseline, records=True)
        reports.append(before)
        notes += check_comparable(audited, before, other_records=allow_other_records)
        most = audited.limit if max_advantage is None else max_advantage
        limits.append(BaselineLimit(before, tolerance, most))
    if not limits:
        limits.append(ReportLimit(within("limit of the report", audited.limit, 0.0)))
        notes.append(
            f"No limit was given: the advantage is held to {audited.limit:g}, with which the "
            "report was made."
        )
    limits += [_required(name, audited) for name in require]
    decided = [_decide(limit, audited) for limit in limits]
    covered = min((limit.fpr for limit in limits if isinstance(limit, TprLimit)), default=1.0)
    decided = [
        _few(limit, one, audited, covered) for limit, one in zip(limits, decided, strict=True)
    ]
    held = all(one.decision is Decision.holds for one in decided)
    if held and audited.level == "leaks":
        notes.append(f"The verdict of the report is leaks. {audited.reason}")
    return Check(
        audited.name,
        tuple(decided),
        audited.not_run,
        tuple(notes),
        conditions=tuple(_conditions(reports)),
        failed_controls={one.name: one.detail for one in audited.controls if one.passed is False},
    )


def _conditions(reports: Sequence[Audited]) -> list[str]:
    """What the answer takes for granted, because decisive controls could not run."""
    return [
        where + (one.assumption or f"what the control of the {one.name} would show is no obstacle")
        for report, where in zip(reports, ("", "in the baseline, "), strict=False)
        for one in report.controls
        if one.fatal and one.passed is None
    ]


def _decide(limit: Limit, audited: Audited) -> Decided:
    if audited.invalid:
        failed = audited.level == INVALID
        reason = f"The audit is invalid: {audited.reason}" if failed else UNTESTED
        return Decided(limit.name, Decision.undecided, reason)
    if isinstance(limit, DisclosureLimit | Required):
        return limit.decide(audited)
    if audited.untested:
        return Decided(limit.name, Decision.undecided, UNTESTED)
    decided = limit.decide(audited)
    if decided.decision is Decision.holds and audited.no_evidence:
        reason = f"Quiet attacks are no evidence here. {audited.reason}"
        return replace(decided, decision=Decision.undecided, reason=reason)
    return decided


def _few(limit: Limit, decided: Decided, audited: Audited, covered: float) -> Decided:
    """A limit does not hold where a few members are exposed at a lower FPR than it covers.

    covered: the smallest FPR at which the user limits the TPR. The same audit as in the baseline is
    no worse.
    """
    figures = isinstance(limit, AdvantageLimit | AucLimit | TprLimit | BaselineLimit)
    same = isinstance(limit, BaselineLimit) and same_audit(audited, limit.before)
    exposed = audited.few_exposed
    if decided.decision is not Decision.holds or not figures or same or exposed is None:
        return decided
    attack, fpr = exposed
    if covered <= fpr:
        return decided
    reason = (
        f"The limit holds, but the {attack} attack singles out a few members at {percent(fpr)} "
        f"FPR, beyond the limit of the report. Reduce the leak, or set --max-tpr at {fpr:g} FPR."
    )
    return replace(decided, decision=Decision.undecided, reason=reason)


def _required(name: str, audited: Audited) -> Required:
    """An attack that must have run; a name that nobody knows is a slip, not an attack."""
    told = audited.ran | set(audited.not_run)
    if name not in told:
        # Only here, because it imports every attack.
        from leakscope.registry import entries

        known = {entry.name for kind in ("attack", "extraction") for entry in entries(kind)}
        if name not in known:
            raise UnknownNameError("attack", name, told | known)
    return Required(name)
