"""What to make of a report: what its verdict and its controls mean, and what to do next.

Plain strings made of numbers and names; the page escapes them like everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leakscope.report.threat_models import LABELS_ONLY, is_explanation, threat_model
from leakscope.report.words import (
    count,
    headline_outcome,
    is_significant,
    low_fpr_outcome,
    number,
    persons_per_record,
    records_in_words,
)

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
        "leaks": _leak(report, attacks),
        "no_leak_found": f"{none_found}, and with these records every 95% interval of an advantage "
        f"stays within the agreed limit of {limit}. "
        "This is a statement about what was tried; a stronger attack may still succeed.",
        "undecided": "No attack is clearly better than guessing, but this audit cannot rule out a "
        f"leak above the agreed limits: {_undecided(report)} "
        "This is not a clean bill of health: the audit could not tell.",
        "invalid": "A check of the audit itself failed. Its figures say nothing about the model, "
        "neither that it leaks nor that it does not.",
    }[verdict["level"]]


def _leak(report: Json, attacks: str) -> str:
    verdict, leading = report["verdict"], headline_outcome(report)
    if verdict["within_limit"]:
        return (
            "The leak is real: chance does not explain it. It is small: every 95% interval stays "
            "within the limits agreed for this audit."
        )
    who = (
        "Someone who can query this model can learn who was in its training data better than by "
        "guessing."
        if leading is not None and is_significant(leading["adjusted_p"])
        else "Most members cannot be told from others, but someone who can query this model can "
        "identify a few of them almost without error."
    )
    return f"{who} Chance does not explain it, even after allowing for {attacks} tried."


def _undecided(report: Json) -> str:
    if report["verdict"]["records_to_decide"] is None:
        return "the reason is stated above."
    return "there are too few records."


def next_steps(report: Json) -> list[str]:
    """What a reader should do with this verdict, in order."""
    verdict, target = report["verdict"], report["target"]
    if verdict["level"] == "leaks":
        return [
            *_conditions(verdict),
            *_protection(verdict),
            "Reduce the leak: regularize more, stop training earlier, or train with differential "
            "privacy.",
            _return_less(report),
            *_few(report),
            *_explanations(report),
            "Audit the changed model again." + _who_is_found(report),
        ]
    if verdict["level"] == "no_leak_found":
        return [
            *_conditions(verdict),
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


def _who_is_found(report: Json) -> str:
    """Where the records are listed, if that file is written beside this page."""
    if not report.get("records_sha256"):
        return ""
    return " The file records.csv of this run says which records the attacks find."


def _conditions(verdict: Json) -> list[str]:
    """What has to be checked by hand, because no control could."""
    return [f"Check that {condition}." for condition in verdict["conditions"]]


def _protection(verdict: Json) -> list[str]:
    if verdict["within_limit"]:
        return [
            "Decide whether a leak of this size is acceptable, and record the decision with this "
            "page."
        ]
    return [
        "Until the leak is reduced, protect the model as you protect the records it was trained "
        "on: decide who may query it and what it returns."
    ]


def _return_less(report: Json) -> str:
    """Whether returning less would help, by the channels of the attacks that succeed."""
    leading = [
        outcome["channel"]
        for outcome in (headline_outcome(report), low_fpr_outcome(report))
        if outcome is not None and succeeds(outcome)
    ]
    if any(is_explanation(channel) for channel in leading):
        shown = ", ".join(dict.fromkeys(one for one in leading if is_explanation(one)))
        return (
            f"Withhold or coarsen the explanations that the leading attack uses ({shown}), then "
            "audit the predictions alone."
        )
    labels = [o for o in report["outcomes"] if succeeds(o) and o["channel"] in LABELS_ONLY]
    if labels:
        return (
            f"Returning labels without probabilities is not enough: the {labels[0]['attack']} "
            "attack succeeds with labels alone."
        )
    return (
        "Returning less, such as labels without probabilities, narrows this leak. Audit what is "
        "returned then: attacks on labels may still succeed."
    )


def succeeds(outcome: Json) -> bool:
    """Whether an attack is significant, on average or among its highest scores."""
    tests = (outcome["adjusted_p"], *(test["adjusted_p"] for test in outcome["tails"]))
    return any(is_significant(p) for p in tests)


def _few(report: Json) -> list[str]:
    if report["verdict"]["attack_at_low_fpr"] is None:
        return []
    return [
        "Look at the members that are singled out. Models often memorize outliers, mislabeled "
        "records and duplicates; train without them where you can."
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
    units = target["units"] or target
    sides = ("members", "nonmembers")
    persons = persons_per_record([units[side] for side in sides], [target[side] for side in sides])
    needed = records_in_words(verdict["records_to_decide"], persons)
    return [f"Audit again with about {needed} on each side; this audit had {have}."]


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
    sentences = [f"{start} {strongest['attack']}. {_attacker(strongest)}"]
    low = low_fpr_outcome(report) if report["verdict"]["attack_at_low_fpr"] else None
    if low is not None and low is not strongest:
        sentences.append(
            f"The attack {low['attack']} finds most members at a false positive rate of 1 %. "
            f"{_attacker(low)}"
        )
    return " ".join(sentences)


def _attacker(outcome: Json) -> str:
    needs = threat_model(outcome["channel"], outcome["knowledge"], outcome["models"])
    return f"Its attacker holds a record with its true label, and {needs}."


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
