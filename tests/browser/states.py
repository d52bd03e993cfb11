"""The pages that the browser opens: reports of every state, and a comparison."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from leakscope.registry import entries
from leakscope.report import comparison_page, html
from leakscope.report.redaction import redact
from report.conftest import (
    HOSTILE,
    interval,
    make_full_report,
    make_regression,
    make_report,
    poison,
)

# What labels, groups and file names may hold, and what sets window.hacked where it is not text.
HARMFUL = ("<script>window.hacked=1</script>", '"><img src=x onerror=window.hacked=1>')


def make_comparison() -> dict[str, Any]:
    """Three defenses: two on the frontier, and one that another surely beats."""
    figures = {"none": (0.81, 0.74), "prune:16+minmax:0.3": (0.57, 0.71), "dpsgd:6.28": (0.62, 0.6)}
    return {
        "schema_version": 1,
        "leakscope": "0.1.0",
        "created": "2026-11-16T14:00:00+00:00",
        "command": "leakscope compare --dataset adult --recipe network --seeds 3",
        "setup": {
            "dataset": "adult", "recipe": "network", "records": 3000, "features": 104,
            "classes": ["<=50K", ">50K"], "persons": None,
            "members": [1000] * 3, "reference": [1000] * 3, "nonmembers": [999] * 3,
            "seeds": 3, "seed": 0, "defenses": [*figures], "attacks": ["loss", "label-gap"],
            "shadows": 0, "limit": 0.1,
            "baselines": [
                {"kind": "early", "beside": ["dpsgd:6.28"], "defense": "early-stop:3",
                 "reason": "As accurate on the records it was trained on."},
            ],
            "not_run": [
                {"attack": "lira", "reason": "It needs shadow models.", "defenses": [*figures]},
            ],
            "how": {"division": "Members, non-members and a reference set are drawn anew."},
        },
        "rows": [],
        "summary": [_defended(name, *given) for name, given in figures.items()],
        "frontier": ["none", "prune:16+minmax:0.3"],
        "advice": "Take prune:16+minmax:0.3: the strongest attack is right about 57 of 100 "
        "records, where without a defense it is right about 81.",
        "cost": {"models": 9, "seconds": 312.5},
    }  # fmt: skip


def _defended(defense: str, leaking: float, right: float) -> dict[str, Any]:
    changes = {"test_accuracy": interval(right - 0.74, 0.02, -1, 1),
               "attack_accuracy": interval(leaking - 0.81, 0.03, -1, 1)}  # fmt: skip
    beaten = defense.startswith("dpsgd")
    return {
        "defense": defense, "seeds": 3, "attack": "loss",
        "test_accuracy": interval(right, 0.02), "attack_accuracy": interval(leaking, 0.03),
        "train_accuracy": 0.93, "advantage": 2 * leaking - 1, "auc": leaking,
        "bytes": 123_456.0, "train_seconds": 34.5, "predict_seconds": 0.012, "epochs": 12.0,
        "js": 0.1, "epsilon": 6.28 if beaten else None, "delta": 1e-5 if beaten else None,
        "guarantee": "(6.28, 10⁻⁵)-differentially private" if beaten else "no formal guarantee",
        "frontier": not beaten, "beaten_by": ["prune:16+minmax:0.3"] if beaten else [],
        "against_none": None if defense == "none" else changes,
    }  # fmt: skip


def make_ungrouped(level: str) -> dict[str, Any]:
    """A report of an audit for which no groups were named, with as much left out as there is."""
    report = make_report(level)
    for one in report["outcomes"]:
        one["groups"] = []
    report["not_run"] += [
        {"attack": one.name, "reason": "It runs on request."} for one in entries("attack")
    ]
    return report


def make_redacted() -> dict[str, Any]:
    """A report of which two groups were taken out: one of four members, and the next smallest."""
    report = make_report("leaks")
    for one in report["outcomes"]:
        one["groups"][-1] |= {"members": 4, "nonmembers": 30, "n": 34}
    return redact(report)


# What readers meet; the pages are made when they are asked for, since drawing takes a while.
STATES: dict[str, Callable[[], str]] = {
    "leaks": lambda: html.render(make_full_report()),
    "no_leak_found": lambda: html.render(make_ungrouped("no_leak_found")),
    "undecided": lambda: html.render(make_regression()),
    "invalid": lambda: html.render(make_report("invalid")),
    "redacted": lambda: html.render(make_redacted()),
    "comparison": lambda: comparison_page.render(make_comparison()),
}

# What they meet where the data mean them harm.
HOSTILE_STATES: dict[str, Callable[[], str]] = {
    "hostile": lambda: html.render(
        poison(make_full_report(), itertools.cycle((*HARMFUL, *HOSTILE)))
    ),
    "hostile_comparison": lambda: comparison_page.render(
        poison(make_comparison(), itertools.cycle(HARMFUL))
    ),
}
EVERY_STATE = STATES | HOSTILE_STATES
