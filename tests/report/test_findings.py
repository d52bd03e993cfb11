from __future__ import annotations

from typing import Any

import pytest

from leakscope.report import findings


def told(leak: dict[str, Any]) -> dict[int, tuple[str, str]]:
    """What the first attack achieves, without those it singles out."""
    leak["outcomes"] = leak["outcomes"][:1]
    leak["verdict"]["attack_at_low_fpr"] = None
    return dict(enumerate(findings.achievements(leak)))


def test_low_rates_are_those_of_the_attack_that_finds_most_there(leak: dict[str, Any]) -> None:
    """label-gap leads on average, and finds nobody at low rates."""
    leak["verdict"] |= {"attack": "label-gap", "attack_at_low_fpr": "loss"}
    by_name = {outcome["attack"]: outcome for outcome in leak["outcomes"]}
    for rate in by_name["label-gap"]["tpr_at_fpr"]:
        rate |= {"value": 0.0, "low": 0.0, "high": 0.01}
    test = min(by_name["loss"]["tails"], key=lambda test: test["p_value"])
    achieved = findings.achievements(leak)
    assert achieved[0][0] == f"{test['found']:,} of 2,000"
    assert "singled out by loss" in achieved[0][1]
    assert "label-gap is right about" in achieved[1][1]
    # At 0.1 % FPR there are too few non-members for an interval; the test has answered.
    assert [" loss " in sentence for _, sentence in achieved[2:5]] == [True, True, False]
    # Without a significant tail, the largest estimate is shown.
    leak["verdict"]["attack_at_low_fpr"] = None
    assert any("found by gradient-boosting" in text for _, text in findings.achievements(leak))


def test_groups_with_a_few_exposed_members_are_named(leak: dict[str, Any]) -> None:
    outcome = leak["outcomes"][0]
    for group in outcome["groups"]:
        group["tails"] = []
    assert findings.exposed_few(outcome) == ""
    outcome["groups"][0]["tails"] = [
        {"fpr": 0.001, "found": 12, "members": 600, "accused": 0, "nonmembers": 600,
         "p_value": 1e-4, "adjusted_p": 0.002},
    ]  # fmt: skip
    assert findings.exposed_few(outcome) == (
        "gradient-boosting singles out members of sex: Female (12 of 600 members above all but 0 "
        "of 600 non-members)."
    )
    outcome["groups"][0]["tails"][0]["adjusted_p"] = 0.03
    assert findings.exposed_few(outcome) == ""


def test_a_leak_of_a_few_has_no_dots(leak: dict[str, Any]) -> None:
    assert findings.dots(leak, leak["outcomes"][0]) is not None
    leak["outcomes"][0]["adjusted_p"] = 0.3
    assert findings.dots(leak, leak["outcomes"][0]) is None


def test_rates_are_told_as_natural_frequencies(leak: dict[str, Any]) -> None:
    outcome = leak["outcomes"][0]
    outcome["tpr_at_fpr"][0] |= {"value": 0.0124, "low": 0.005, "high": 0.02, "resolved": True}
    found = told(leak)
    assert found[0][0] == "138 of 200"
    assert found[1] == (
        "12 in 1,000",
        "members are found by gradient-boosting while falsely accusing 1 in 1,000 non-members "
        "(with 95% confidence, 0.5% to 2.0%). Guessing would find 1.",
    )
    assert found[2][0] == "9 in 100"
    assert found[4][1].endswith("if half of the records asked about are.")


def test_what_is_unknown_is_not_made_up(leak: dict[str, Any]) -> None:
    outcome = leak["outcomes"][0]
    nothing = {"value": None, "low": None, "high": None}
    outcome["accuracy"] = nothing
    outcome["tpr_at_fpr"][1] |= nothing
    outcome["ppv"] = {"prior": 0.5, **nothing}
    outcome["epsilon_lower"], outcome["epsilon_note"] = None, ""
    found = told(leak)
    for at in (0, 1, 2, 4):
        assert found[at][0] == "cannot say"
    assert found[5] == ("ε: cannot say", "No lower bound on ε was computed.")
    assert findings.dots(leak, outcome) is None


def test_an_estimate_without_an_interval_is_told_alone(leak: dict[str, Any]) -> None:
    leak["outcomes"][0]["accuracy"] = {"value": 0.5, "low": None, "high": None}
    assert "95%" not in told(leak)[0][1]


def test_another_prior_is_named(leak: dict[str, Any]) -> None:
    leak["outcomes"][0]["ppv"]["prior"] = 0.02
    assert told(leak)[4][1].endswith("if 2 in 100 of the records asked about are.")


@pytest.mark.parametrize(
    ("accuracy", "expected"),
    [(0.69, (100, 38, 62)), (0.5, (100, 0, 100)), (0.4, (80, 0, 120)), (1.0, (100, 100, 0))],
)
def test_dots_add_up_to_two_hundred(
    leak: dict[str, Any], accuracy: float, expected: tuple[int, int, int]
) -> None:
    leak["outcomes"][0]["accuracy"]["value"] = accuracy
    found = findings.dots(leak, leak["outcomes"][0])
    assert found is not None
    assert (found["guessed"], found["gained"], found["wrong"]) == expected


def group(low: float | None, p: float | None) -> dict[str, Any]:
    return {
        "group": "age",
        "value": "60+",
        "excess": {"value": 0.2, "low": low, "high": 0.3},
        "excess_adjusted_p": p,
    }


@pytest.mark.parametrize(
    ("low", "p", "harder"),
    [
        (0.1, 0.01, True),
        (0.1, 0.06, False),
        (-0.1, 0.01, False),
        (None, 0.01, False),
        (0.1, None, False),
    ],
)
def test_a_group_is_hit_harder_only_after_correction(
    low: float | None, p: float | None, harder: bool
) -> None:
    assert findings.is_hit_harder(group(low, p)) is harder
    sentence = findings.hit_harder({"groups": [group(low, p)]})
    assert ("age: 60+, by 0.20 (0.10 to 0.30)" in sentence) is harder
    assert ("none is surely hit harder" in sentence) is not harder


def test_the_hardest_hit_comes_first() -> None:
    mild, hard = group(0.1, 0.01), group(0.1, 0.01)
    hard |= {"value": "80+", "excess": {"value": 0.4, "low": 0.3, "high": 0.5}}
    sentence = findings.hit_harder({"groups": [mild, hard]})
    assert sentence.index("80+") < sentence.index("60+")


def test_many_classes_are_not_all_listed(leak: dict[str, Any]) -> None:
    leak["target"]["classes"] = list(range(100))
    facts = dict(findings.facts(leak))
    assert facts["Task"] == "classification into 100 classes (0, 1, 2, 3, 4, 5, 6, 7, …)"
    leak["target"]["classes"] = None
    assert dict(findings.facts(leak))["Task"] == "classification"


def test_an_accuracy_that_is_missing_is_left_out(leak: dict[str, Any]) -> None:
    leak["target"]["gap"] = None
    assert "Gap between the two" not in dict(findings.facts(leak))


def test_what_a_model_behind_http_was_asked_is_a_fact(leak: dict[str, Any]) -> None:
    assert "Asked over HTTP" not in dict(findings.facts(leak))
    asked = {"queries": 1200, "requests": 5, "retries": 0, "seconds_waiting": 2.04}
    leak["cost"] |= asked
    assert dict(findings.facts(leak))["Asked over HTTP"] == (
        "about 1,200 records in 5 requests, with 2.0 seconds of waiting"
    )
    leak["cost"]["retries"] = 3
    assert (
        "in 5 requests and 3 attempts more, with" in dict(findings.facts(leak))["Asked over HTTP"]
    )


def test_too_few_non_members_are_told_by_what_they_count_as(leak):
    rate = leak["outcomes"][0]["tpr_at_fpr"][0]
    rate.update(fpr=0.01, resolved=False, effective_nonmembers=273.9)
    leak["target"] |= {"nonmembers": 2073, "unit": "patient"}
    leak["target"]["units"] = {"members": 300, "nonmembers": 310}
    sentence = told(leak)[1][1]
    assert sentence.endswith(
        "too few non-members to say (2,073 non-members of 310 persons, which count as 273; about "
        "500 needed)."
    )
