"""What to make of a report: what its verdict and its controls mean, and what to do next.

Plain strings made of numbers and names; the page escapes them like everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leakscope.report.words import count, number

Json = Mapping[str, Any]

# What each control of the audit is there to find out, under the name it has in the report.
CHECKS = {
    "overlap": "Is a record on both sides? Then no attack could be right about it.",
    "number of records": "Are there enough records on each side to say anything?",
    "blind baseline": "Can members be told from non-members without asking the model? "
    "Then the two sides differ by themselves, and an attack would be credited with that.",
    "constant model": "Do the attacks find nothing in a model that says the same of everyone?",
    "constant scores": "Does each attack tell records apart at all?",
    "accuracy of the target": "Does the model do better on the records it was trained on?",
    "error of the target": "Does the model do better on the records it was trained on?",
}

SAVED = "saved predictions"  # the name of a target that nobody can train again

STATES = {True: "passed", False: "failed", None: "not run"}


def meaning(report: Json) -> str:
    """What the verdict says and what it does not, in a few sentences."""
    verdict, tried = report["verdict"], len(report["outcomes"])
    attacks = f"the {tried} attacks" if tried != 1 else "the one attack"
    none_found = (
        f"None of the {tried} attacks tried found a leak"
        if tried != 1
        else "The one attack tried found no leak"
    )
    limit = number(verdict["limit"], 2)
    return {
        "leaks": "Someone who can query this model can learn who was in its training data better "
        f"than by guessing. Chance does not explain it, even after allowing for {attacks} tried. "
        "How much can be learned is said below.",
        "no_leak_found": f"{none_found}, and there are enough records to say that no advantage is "
        f"above the agreed limit of {limit}. "
        "This is a statement about what was tried; a stronger attack may still succeed.",
        "undecided": "No attack is clearly better than guessing, but there are too few records to "
        f"rule out an advantage above the agreed limit of {limit}. "
        "This is not a clean bill of health: the audit could not tell.",
        "invalid": "A check of the audit itself failed. Its figures say nothing about the model, "
        "neither that it leaks nor that it does not.",
    }[verdict["level"]]


def next_steps(report: Json) -> list[str]:
    """What a reader should do with this verdict, in order."""
    verdict, target = report["verdict"], report["target"]
    if verdict["level"] == "leaks":
        return [
            "Until the leak is reduced, protect the model as you protect the records it was "
            "trained on: decide who may query it and what it returns.",
            "Reduce the leak: regularize more, stop training earlier, or train with differential "
            "privacy. Returning less, such as labels without probabilities, narrows it.",
            *_explanations(report),
            "Audit the changed model again. The file records.csv of this run says which records "
            "the attacks find.",
        ]
    if verdict["level"] == "no_leak_found":
        return [
            "Keep this page with the model’s documentation: it holds for this model, these "
            "records and these attacks.",
            *_explanations(report),
            "Audit again when the model is retrained or begins to return more.",
            *_stronger(report),
        ]
    if verdict["level"] == "undecided":
        return [
            *_more_records(verdict, target),
            *_explanations(report),
            "Do not report this audit as passed.",
        ]
    return [
        "Mend what the failed control names; all controls are listed further down.",
        "Run the audit again. Quote no figure of this one.",
    ]


def _explanations(report: Json) -> list[str]:
    if not report["disclosures"]:
        return []
    return [
        "Explain predictions by something else than training records, or to nobody who may not "
        "read those records: each one that is shown is given away, whatever the verdict."
    ]


def _stronger(report: Json) -> list[str]:
    if any(one["models"] > 1 for one in report["outcomes"]):
        return []
    if report["target"]["model"] == SAVED:
        return [
            "For a sensitive model, audit the model itself: adversaries who train models of their "
            "own to compare with are stronger, and saved predictions cannot be attacked that way."
        ]
    return [
        "For a sensitive model, go further: adversaries who train models of their own to compare "
        "with are stronger than those tried here; audit again with shadow models (--shadows 64)."
    ]


def _more_records(verdict: Json, target: Json) -> list[str]:
    if verdict["records_to_decide"] is None:
        return [
            "More records would not decide it. Check that members and non-members are not "
            "swapped, then audit again; if they are not, decide as if the model leaked."
        ]
    have = f"{count(target['members'])} members and {count(target['nonmembers'])} non-members"
    needed = count(verdict["records_to_decide"])
    return [f"Audit again with about {needed} records on each side; this audit had {have}."]


def opening(report: Json, strongest: Json | None) -> str:
    """Who the adversary of the figures is."""
    if strongest is None:
        return "No attack was scored, so there is nothing to say about what an adversary can do."
    start = {
        "leaks": "The verdict rests on the attack",
        "invalid": "A control failed: do not rely on these figures. They are those of the attack",
    }.get(
        report["verdict"]["level"],
        "No attack is shown to work. These figures are those of the one that came closest,",
    )
    knows = strongest["knowledge"]
    also = (
        "nothing about the members but what its threshold took"
        if knows == "none"
        else f"of the members: {knows}"
    )
    trained = strongest["models"] - 1
    if trained:
        also = (
            f"how it was trained: this adversary made {count(trained)} shadow models in the same "
            "way, from records of the same source with the members among them, to compare it with"
        )
    return (
        f"{start} {strongest['attack']}. Its adversary holds a record with its true label, sees "
        f"what the model says of it (channel: {strongest['channel']}), and knows {also}."
    )


def control(one: Json) -> dict[str, Any]:
    """A control with what it checks and its state in a word."""
    return {
        "name": one["name"],
        "checks": CHECKS.get(one["name"], ""),
        "state": STATES[one["passed"]],
        "fatal": one["fatal"],
        "detail": one["detail"],
    }


def other_failures(report: Json) -> list[str]:
    """What the decisive controls that failed found, apart from what the verdict says itself."""
    return [
        one["detail"]
        for one in report["controls"]
        if one["fatal"] and one["passed"] is False and one["detail"] != report["verdict"]["reason"]
    ]
