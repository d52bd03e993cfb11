"""Audits with figures of one's choice, as the gate reads them and as reports that it can read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leakscope.gate.reading import Attacked, Audited
from leakscope.metrics.intervals import Interval
from leakscope.metrics.rates import Rates
from leakscope.metrics.tails import Rate
from leakscope.report import Report

SIDES = (1000, 1000)
WHY = "The loss attack was strongest."


def attacked(
    attack: str = "loss",
    tpr: float = 0.5,
    fpr: float = 0.5,
    n: tuple[float, float] = SIDES,
    *,
    auc: tuple[float, float, float] | None = None,
    found: Mapping[float, tuple[float, float, float]] | None = None,
    resolved: bool = True,
    curve: Sequence[tuple[float, float]] = ((0.0, 1.0), (1.0, 1.0)),
    models: int = 1,
    p_value: float | None = None,
    adjusted_p: float | None = None,
) -> Attacked:
    """An attack that calls these shares of the effective records members; found: TPR by FPR."""
    rates = Rates(tpr, fpr, *n)
    middle = 0.5 + (tpr - fpr) / 2
    area = auc or (middle, max(middle - 0.02, 0.0), min(middle + 0.02, 1.0))
    p = rates.p_value if p_value is None else p_value
    return Attacked(
        attack=attack,
        auc=Interval(*area),
        advantage=rates.advantage(),
        rates=rates,
        tpr_at_fpr=tuple(Rate(at, *rate, resolved) for at, rate in (found or {}).items()),
        curve=tuple(curve),
        models=models,
        p_value=p,
        adjusted_p=p if adjusted_p is None else adjusted_p,
    )


def audited(*attacks: Attacked, **changes: Any) -> Audited:
    """An audit by these attacks."""
    given: dict[str, Any] = {
        "name": "run", "version": "0.1.0", "task": "classification", "dataset": None,
        "sides": SIDES, "persons": SIDES, "level": "undecided", "limit": 0.1, "reason": WHY,
        "attacks": attacks, "recovered": (), "not_run": {},
    }  # fmt: skip
    return Audited(**given | changes)


def report_of(audit: Audited) -> Report:
    """A report that follows the schema and tells the same."""
    half = {"value": 0.5, "low": 0.4, "high": 0.6}
    persons = dict(zip(("members", "nonmembers"), audit.persons, strict=True))
    return Report(
        {
            "schema_version": 2,
            "leakscope": audit.version,
            "created": "2026-11-16T12:00:00+00:00",
            "command": "leakscope audit",
            "seed": 0,
            "target": {
                "model": "Tree", "task": audit.task, "dataset": audit.dataset, "classes": [0, 1],
                "features": 2, "members": audit.sides[0], "nonmembers": audit.sides[1],
                "unit": None if audit.persons == audit.sides else "person",
                "units": None if audit.persons == audit.sides else persons,
                "member_accuracy": half, "nonmember_accuracy": half, "gap": half,
                "member_error": None, "nonmember_error": None, "missing_values": 0, "clipped": 0,
                "randomized": False, "prior": 0.5,
            },
            "trials": None,
            "controls": [],
            "outcomes": [_outcome(one) for one in audit.attacks],
            "additions": [],
            "disclosures": [_disclosure(*one) for one in audit.recovered],
            "leakage": [],
            "not_run": [{"attack": name, "reason": why} for name, why in audit.not_run.items()],
            "verdict": {
                "level": audit.level, "headline": "An answer.",
                "attack": audit.attacks[0].attack if audit.attacks else None,
                "limit": audit.limit, "records_to_decide": None, "reason": audit.reason,
                "attack_at_low_fpr": None, "tail_limit": 5.0, "within_limit": False,
                "conditions": [],
            },
            "cost": {"models": 1, "seconds": 1.0, "threads": 1},
        }
    )  # fmt: skip


def _outcome(one: Attacked) -> dict[str, Any]:
    accuracy = {
        key: None if value is None else (1 + value) / 2
        for key, value in one.advantage.to_dict().items()
    }
    return {
        "attack": one.attack, "channel": "loss", "paper": "", "summary": "", "knowledge": "none",
        "options": {}, "auc": one.auc.to_dict(), "advantage": one.advantage.to_dict(),
        "accuracy": accuracy, "threshold": {"value": 0.0, "source": "fixed by the attack"},
        "tpr_at_fpr": [rate.to_dict() for rate in one.tpr_at_fpr],
        "rates": one.rates.to_dict(), "ppv": {"prior": 0.5, **one.rates.ppv().to_dict()},
        "tails": [],
        "epsilon_lower": None, "epsilon_note": "", "models": one.models,
        "p_value": one.p_value, "adjusted_p": one.adjusted_p,
        "curve": {
            "fpr": [point[0] for point in one.curve], "tpr": [point[1] for point in one.curve],
        },
        "histogram": {"edges": [0.0, 1.0], "members": [1.0], "nonmembers": [1.0]}, "groups": [],
    }  # fmt: skip


def _disclosure(extraction: str, recovered: int) -> dict[str, Any]:
    return {
        "extraction": extraction, "paper": "", "k": 1, "show": "signed", "recovered": recovered,
        "bound": None, "queries": 10, "shown": recovered, "stopped": "", "groups": [],
        "curve": {"queries": [0], "shown": [0]}, "details": {},
    }  # fmt: skip
