"""Audits with figures of one's choice, as the gate reads them and as reports that it can read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from leakscope.controls import Control
from leakscope.gate.consistency import NEEDED_CONTROLS
from leakscope.gate.reading import Attacked, Audited
from leakscope.metrics.intervals import Interval, holm
from leakscope.metrics.rates import Rates
from leakscope.metrics.tail_test import TAIL_FPRS, TailTest
from leakscope.metrics.tails import Rate
from leakscope.report import Report

SIDES = (1000, 1000)
FINGERPRINT = {"columns": "c0", "members": "m0", "nonmembers": "n0"}
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
    curve: Sequence[tuple[float, float]] | None = None,
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
        channel="loss",
        auc=Interval(*area),
        advantage=rates.advantage(),
        accuracy=rates.accuracy().value,
        rates=rates,
        tpr_at_fpr=tuple(Rate(at, *rate, resolved) for at, rate in (found or {}).items()),
        curve=_curve(found or {}) if curve is None else tuple(curve),
        models=models,
        p_value=p,
        adjusted_p=p if adjusted_p is None else adjusted_p,
        tails=tuple(TailTest(at, 0, 1, 0, 1, 1.0, 1.0) for at in TAIL_FPRS),
        threshold=0.0,
    )


def _curve(found: Mapping[float, tuple[float, float, float]]) -> tuple[tuple[float, float], ...]:
    """A curve with these TPRs at these FPRs, each reached right after the FPR before."""
    points = [(0.0, 0.0)]
    for fpr in sorted(found):
        start = points[-1][0] + (1e-6 if len(points) > 1 else 0.0)
        points += [(start, found[fpr][0]), (fpr, found[fpr][0])]
    return (*points, (1.0, 1.0))


def controls(**passed: bool | None) -> tuple[Control, ...]:
    """The decisive controls, which passed unless something else is said of them."""
    results = dict.fromkeys(NEEDED_CONTROLS, True) | {
        name.replace("_", " "): result for name, result in passed.items()
    }
    return tuple(Control(name, one, True, f"About {name}.") for name, one in results.items())


def audited(*attacks: Attacked, **changes: Any) -> Audited:
    """An audit by these attacks."""
    given: dict[str, Any] = {
        "name": "run", "version": "0.1.0", "task": "classification", "dataset": None,
        "classes": ("0", "1"), "features": 2, "unit": None, "fingerprint": FINGERPRINT,
        "redacted": False, "sides": SIDES, "persons": SIDES,
        "level": "leaks" if any(one.adjusted_p <= 0.025 for one in attacks) else "undecided",
        "limit": 0.1, "reason": WHY, "leading": None,
        "strongest": attacks[0].attack if attacks else None,
        "tail_limit": 100.0, "controls": controls(), "attacks": attacks, "recovered": (),
        "not_run": {},
    }  # fmt: skip
    limit = (given | changes)["limit"]
    given["within_limit"] = all(one.advantage.high <= limit for one in attacks)
    if (given | changes)["persons"] != (given | changes)["sides"]:
        given["unit"] = "person"
    given |= changes
    return Audited(**given | {"attacks": _corrected(given["attacks"])})


def _corrected(attacks: Sequence[Attacked]) -> tuple[Attacked, ...]:
    """The attacks with Holm's correction over their tests, where none is given."""
    adjusted = iter(holm([p for one in attacks for p in (one.p_value, *(1.0,) * len(one.tails))]))
    found = []
    for one in attacks:
        right, *tails = (next(adjusted) for _ in range(1 + len(one.tails)))
        kept = one.adjusted_p if one.adjusted_p != one.p_value else right
        tests = [replace(test, adjusted_p=p) for test, p in zip(one.tails, tails, strict=True)]
        found.append(replace(one, adjusted_p=kept, tails=tuple(tests)))
    return tuple(found)


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
                "model": "Tree", "task": audit.task, "dataset": audit.dataset,
                "classes": None if audit.classes is None else list(audit.classes),
                "features": audit.features, "members": audit.sides[0],
                "nonmembers": audit.sides[1], "unit": audit.unit,
                "units": None if audit.unit is None else persons,
                "fingerprint": audit.fingerprint,
                "member_accuracy": half, "nonmember_accuracy": half, "gap": half,
                "member_error": None, "nonmember_error": None, "missing_values": 0, "clipped": 0,
                "randomized": False, "prior": 0.5,
            },
            "trials": None,
            "controls": [one.to_dict() for one in audit.controls],
            "outcomes": [_outcome(one) for one in audit.attacks],
            "additions": [],
            "disclosures": [_disclosure(*one) for one in audit.recovered],
            "leakage": [],
            "not_run": [{"attack": name, "reason": why} for name, why in audit.not_run.items()],
            "verdict": {
                "level": audit.level, "headline": "An answer.",
                "attack": audit.strongest,
                "limit": audit.limit, "records_to_decide": None, "reason": audit.reason,
                "attack_at_low_fpr": None, "tail_limit": audit.tail_limit,
                "within_limit": audit.within_limit,
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
        "accuracy": accuracy,
        "threshold": {"value": one.threshold, "source": "fixed by the attack"},
        "tpr_at_fpr": [rate.to_dict() for rate in one.tpr_at_fpr],
        "rates": one.rates.to_dict(), "ppv": {"prior": 0.5, **one.rates.ppv().to_dict()},
        "tails": [test.to_dict() for test in one.tails],
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
