"""What a report found, in sentences: what an attack achieves, on whom, and on which model.

Plain strings made of numbers and names; the page escapes them like everything else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from leakscope.metrics.tails import enough_nonmembers
from leakscope.report.words import (
    count,
    figure,
    headline_outcome,
    is_significant,
    low_fpr_outcome,
    nonmembers_in_words,
    number,
    of,
    one_in,
    percent,
    percent_span,
    small,
    span,
)

Json = Mapping[str, Any]

CANNOT_SAY = "cannot say"


def achievements(report: Json) -> list[tuple[str, str]]:
    """What attacks achieve, each as a figure and a sentence in natural frequencies.

    Accuracy is that of the leading attack; members found at low false positive rates are those of
    the attack that finds most of them.
    """
    leading, low = headline_outcome(report), low_fpr_outcome(report)
    if leading is None or low is None:
        return []
    singled_out = _singled_out(report, low)
    # What cannot be resolved is not repeated where a test has answered it.
    shown = [rate for rate in low["tpr_at_fpr"] if rate["resolved"] or not singled_out]
    rates = [_at_rate(low, rate, report["target"]) for rate in shown]
    return [
        *singled_out,
        _right(leading["attack"], leading["accuracy"]),
        *rates,
        _trusted(leading["attack"], leading["ppv"]),
        _epsilon(leading),
    ]


def _singled_out(report: Json, low: Json) -> list[tuple[str, str]]:
    """The members above the threshold of the most significant tail test, where one is."""
    if report["verdict"]["attack_at_low_fpr"] is None:
        return []
    test = min(low["tails"], key=lambda test: test["p_value"])
    chance = test["members"] * test["accused"] / test["nonmembers"]
    return [
        (
            f"{count(test['found'])} of {count(test['members'])}",
            f"members are singled out by {low['attack']} while at most {count(test['accused'])} of "
            f"{count(test['nonmembers'])} non-members are. Guessing would single out about "
            f"{count(chance)} members.",
        )
    ]


def _right(attack: str, accuracy: Json) -> tuple[str, str]:
    if accuracy["value"] is None:
        return CANNOT_SAY, "How often it is right is unknown."
    sure = (
        f" (with 95% confidence, {of(accuracy['low'], 200)} to {of(accuracy['high'], 200)})"
        if accuracy["low"] is not None and accuracy["high"] is not None
        else ""
    )
    return (
        f"{of(accuracy['value'], 200)} of 200",
        f"Of 100 members and 100 non-members, {attack} is right about "
        f"{of(accuracy['value'], 200)} of 200{sure}. Guessing would be right about 100.",
    )


def _at_rate(outcome: Json, rate: Json, target: Json) -> tuple[str, str]:
    attack = outcome["attack"]
    falsely = f"falsely accusing {one_in(rate['fpr'])} non-members"
    if not rate["resolved"] or rate["value"] is None:
        persons = (target["units"] or {}).get("nonmembers")
        have = nonmembers_in_words(
            target["nonmembers"], rate.get("effective_nonmembers"), persons
        ).rstrip(",")
        return (
            CANNOT_SAY,
            f"How many members {attack} finds while {falsely}: too few non-members to say ({have}; "
            f"about {count(enough_nonmembers(rate['fpr']))} needed).",
        )
    call = _only_call(outcome)
    if call is not None and rate["fpr"] < call:
        return (
            CANNOT_SAY,
            f"{attack} answers yes or no, and accuses {percent(call)} of non-members. It cannot be "
            f"so cautious as to accuse only {one_in(rate['fpr'])}.",
        )
    total = 1000 if rate["fpr"] < 0.01 else 100
    return (
        f"{of(rate['value'], total)} in {count(total)}",
        f"members are found by {attack} while {falsely} (with 95% confidence, "
        f"{percent_span(rate)}). Guessing would find {of(rate['fpr'], total)}.",
    )


def _only_call(outcome: Json) -> float | None:
    """The FPR of an attack that answers yes or no; None for others. Their curve has one corner."""
    fpr, tpr = outcome["curve"]["fpr"], outcome["curve"]["tpr"]
    if len(fpr) != 3 or not math.isclose(outcome["auc"]["value"] or 0.0, (1 + tpr[1] - fpr[1]) / 2):
        return None
    return float(fpr[1])


def _trusted(attack: str, ppv: Json) -> tuple[str, str]:
    share = "half" if ppv["prior"] == 0.5 else f"{of(ppv['prior'], 100)} in 100"
    if ppv["value"] is None:
        return (
            CANNOT_SAY,
            f"{attack} called no record a member, so there is no saying how often that is right.",
        )
    return (
        f"{of(ppv['value'], 100)} in 100",
        f"records that {attack} calls members are members (with 95% confidence, "
        f"{percent_span(ppv, 0)}), if {share} of the records asked about are.",
    )


def _epsilon(outcome: Json) -> tuple[str, str]:
    bound = outcome["epsilon_lower"]
    if bound is None:
        note = outcome["epsilon_note"] or "No lower bound on ε was computed."
        return "ε: " + CANNOT_SAY, note
    return (
        f"ε ≥ {number(bound['value'], 2)}",
        "The training was not differentially private with a smaller ε, "
        f"at δ = {small(bound['delta'])}, with {percent(bound['confidence'], 0)} confidence "
        f"(method: {bound['method']}).",
    )


def dots(report: Json, strongest: Json | None) -> dict[str, int] | None:
    """How many of 200 dots are right by guessing, right beyond guessing, and wrong.

    Only for a leak: elsewhere the dots beyond guessing would be drawn as if they were not chance.
    """
    if strongest is None or report["verdict"]["level"] != "leaks":
        return None
    if not is_significant(strongest["adjusted_p"]):
        return None  # only a few members leak: on average the attack is at chance
    accuracy = strongest["accuracy"]["value"]
    if accuracy is None:
        return None
    right = round(200 * accuracy)
    return {"guessed": min(right, 100), "gained": max(right - 100, 0), "wrong": 200 - right}


def is_hit_harder(group: Json) -> bool:
    """Whether the attack is surely stronger on a group than on everyone else."""
    low, p = group["excess"]["low"], group["excess_adjusted_p"]
    return low is not None and p is not None and low > 0 and p < 0.05


def hit_harder(outcome: Json) -> str:
    """Which groups an attack hits harder than everyone else, after Holm's correction."""
    groups = outcome["groups"]
    harder = sorted(
        (one for one in groups if is_hit_harder(one)), key=lambda one: -one["excess"]["value"]
    )
    if not harder:
        return (
            "After allowing for the number of groups, none is surely hit harder than everyone else."
        )
    named = "; ".join(
        f"{one['group']}: {one['value']}, by {number(one['excess']['value'], 2)} "
        f"({span(one['excess'], 2)})"
        for one in harder
    )
    return (
        "After allowing for the number of groups, the advantage is surely larger than on everyone "
        f"else for {named}."
    )


def exposed_few(outcome: Json) -> str:
    """The groups in which a few members are found almost without false positives."""
    named = []
    for group in outcome["groups"]:
        tests = [test for test in group["tails"] if is_significant(test["adjusted_p"])]
        if tests:
            test = min(tests, key=lambda test: test["p_value"])
            named.append(
                f"{group['group']}: {group['value']} ({count(test['found'])} of "
                f"{count(test['members'])} members above all but {count(test['accused'])} of "
                f"{count(test['nonmembers'])} non-members)"
            )
    if not named:
        return ""
    return f"{outcome['attack']} singles out members of {'; '.join(named)}."


def facts(report: Json) -> list[tuple[str, str]]:
    """What was audited, as pairs of a name and a value."""
    target = report["target"]
    found = [
        ("Model", target["model"]),
        ("Data", target["dataset"] or "records handed in by the user"),
        ("Task", _task(target)),
        ("Members audited", count(target["members"]) + _persons(target, "members")),
        ("Non-members audited", count(target["nonmembers"]) + _persons(target, "nonmembers")),
    ]
    if target["features"] is not None:
        found.append(("Features", count(target["features"])))
    if target.get("preparation"):
        found.append(("Columns", " ".join(target["preparation"])))
    found += _quality(target)
    if target["missing_values"]:
        found.append(("Missing values", f"{count(target['missing_values'])}, left to the model"))
    if target["clipped"]:
        found.append(
            (
                "Clipped",
                f"{count(target['clipped'])} records with a probability nearer than 1e-7 to 0 or 1",
            )
        )
    found += _asked(report["cost"])
    chance = "decided by chance" if target["randomized"] else "not known to be decided by chance"
    return [*found, ("Membership", chance), *_trials(report)]


def _asked(cost: Json) -> list[tuple[str, str]]:
    """What a model behind HTTP was asked, and how long that took."""
    if "queries" not in cost:
        return []
    again = f" and {count(cost['retries'])} attempts more" if cost["retries"] else ""
    told = (
        f"about {count(cost['queries'])} records in {count(cost['requests'])} requests{again}, "
        f"with {number(cost['seconds_waiting'], 1)} seconds of waiting"
    )
    return [("Asked over HTTP", told)]


def _trials(report: Json) -> list[tuple[str, str]]:
    """What the shadow models are, and what the loss attack achieves on models made this way."""
    trials = report["trials"]
    if trials is None:
        return []
    made = (
        f"{count(trials['models'])} of the recipe {trials['recipe']}, each trained on "
        f"{count(trials['members'])} records drawn from members and non-members together"
    )
    found = [("Shadow models", made)]
    if (experiment := trials["experiment"]) is not None:
        achieved = (
            f"an advantage of {number(experiment['mean']['value'])} "
            f"({span(experiment['mean'])}) for the loss attack on average; half of the "
            f"{count(experiment['models'])} models are between {number(experiment['q1'])} and "
            f"{number(experiment['q3'])}{_beside(report)}"
        )
        found.append(("Other models made this way", achieved))
    return found


def _beside(report: Json) -> str:
    """What the loss attack has on the audited model, where it was tried."""
    own = [one["advantage"] for one in report["outcomes"] if one["attack"] == "loss"]
    return f"; on this model {number(own[0]['value'])} ({span(own[0])})" if own else ""


def _task(target: Json) -> str:
    if target["classes"] is None:
        return str(target["task"])
    shown = ", ".join(str(one) for one in target["classes"][:8])
    more = ", …" if len(target["classes"]) > 8 else ""
    return f"{target['task']} into {count(len(target['classes']))} classes ({shown}{more})"


def _persons(target: Json, side: str) -> str:
    if target["units"] is None:
        return ""
    return f" records of {count(target['units'][side])} units ({target['unit']})"


def _quality(target: Json) -> list[tuple[str, str]]:
    if target["task"] == "regression":
        return [
            ("Error on members", f"{figure(target['member_error'])} (root mean square)"),
            ("Error on non-members", f"{figure(target['nonmember_error'])} (root mean square)"),
        ]
    named = (
        ("Accuracy on members", target["member_accuracy"]),
        ("Accuracy on non-members", target["nonmember_accuracy"]),
        ("Gap between the two", target["gap"]),
    )
    return [
        (name, f"{percent(one['value'])} ({percent_span(one)})")
        for name, one in named
        if one is not None
    ]
