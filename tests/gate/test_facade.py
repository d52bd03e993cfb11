from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import leakscope
from gated import attacked, audited, controls, report_of
from leakscope.controls import Control
from leakscope.controls.blind import ONE_POPULATION
from leakscope.errors import InputError, UnknownNameError
from leakscope.gate import Check, check
from leakscope.gate.deciding import Decision
from leakscope.gate.facade import UNTESTED
from leakscope.report import Report

FOUND = {0.01: (0.02, 0.01, 0.03)}
STRONG = report_of(audited(attacked("loss", 0.9, 0.1, found=FOUND), attacked("lira", 0.6, 0.5)))
SAFE = report_of(audited(attacked("loss", 0.51, 0.5, found=FOUND)))
OPEN = report_of(audited(attacked("loss", 0.58, 0.5, found=FOUND), not_run={"lira": "No."}))


def test_it_is_public() -> None:
    assert leakscope.check is check


@pytest.mark.parametrize(
    ("report", "decision", "code"),
    [(SAFE, "holds", 0), (STRONG, "violated", 1), (OPEN, "undecided", 3)],
)
def test_the_three_answers(report, decision, code) -> None:
    found = check(report, max_advantage=0.1)
    assert (found.decision, found.exit_code) == (decision, code)
    assert found.notes == ()


def test_without_a_limit_it_is_that_of_the_report_and_says_so() -> None:
    report = report_of(audited(attacked("loss", 0.6, 0.5), limit=0.3))
    found = check(report)
    assert [one.limit for one in found.limits] == ["advantage ≤ 0.3"]
    assert found.decision == "holds"
    assert found.notes[0] == (
        "No limit was given: the advantage is held to 0.3, with which the report was made."
    )
    assert found.notes[1].startswith("The verdict of the report is leaks.")
    assert [one.limit for one in check(report, require=["loss"]).limits] == [
        "advantage ≤ 0.3", "loss must run",
    ]  # fmt: skip
    assert len(check(report, baseline=report).limits) == 1  # a baseline is a limit


def test_every_limit_is_decided_for_itself_and_the_worst_decides_for_all() -> None:
    found = check(
        OPEN, max_advantage=0.01, max_auc=0.9, max_tpr=["0.05@0.01", "0.02@0.01"],
        max_disclosed=0, baseline=OPEN, tolerance=0.5, require=["lira", "loss"],
    )  # fmt: skip
    assert [(one.limit, str(one.decision)) for one in found.limits] == [
        ("advantage ≤ 0.01", "violated"),
        ("AUC ≤ 0.9", "holds"),
        ("TPR at 0.01 FPR ≤ 0.05", "holds"),
        ("TPR at 0.01 FPR ≤ 0.02", "undecided"),
        ("records recovered ≤ 0", "undecided"),
        ("advantage ≤ baseline", "holds"),
        ("lira must run", "undecided"),
        ("loss must run", "holds"),
    ]
    assert (found.decision, found.exit_code) == ("violated", 1)
    assert found.not_run == {"lira": "No."}


@pytest.mark.parametrize("level", ["invalid", "leaks"])
def test_an_invalid_audit_is_never_an_answer(level) -> None:
    attacks = [attacked("loss", 0.9, 0.1)] if level == "invalid" else []
    report = report_of(audited(*attacks, level=level, reason="The sides overlap."))
    found = check(report, max_advantage=0.99, max_tpr="0.9@0.42", max_disclosed=9, require=["loss"])
    assert {str(one.decision) for one in found.limits} == {"undecided"}
    assert len(found.limits) == 4
    assert found.exit_code == 3
    told = "The audit is invalid: The sides overlap." if level == "invalid" else UNTESTED
    assert found.limits[0].reason == told


def test_a_required_name_that_nobody_knows_is_a_slip() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'loss'"):
        check(SAFE, require=["los"])
    assert check(SAFE, require=["rmia"]).exit_code == 3  # known, and not in this report
    assert check(OPEN, max_advantage=0.5, require=["lira"]).exit_code == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_disclosed": -1}, "max_disclosed must be a whole number of at least 0, got -1"),
        ({"max_disclosed": 1.5}, "max_disclosed"),
        ({"tolerance": -0.1}, "The tolerance is -0.1"),
        ({"max_advantage": 2}, "The max_advantage is 2"),
        ({"max_tpr": "1"}, "such as 0.02@0.01"),
        ({"baseline": "nowhere.json"}, "'nowhere.json' cannot be read"),
    ],
)
def test_what_cannot_be_is_refused(options, message) -> None:
    with pytest.raises(InputError, match=message):
        check(SAFE, **options)


def test_options_are_checked_before_a_report_is_read() -> None:
    with pytest.raises(InputError, match=r"The max_auc is 0\.3"):
        check("nowhere.json", max_auc=0.3)


def test_a_report_without_a_limit_of_its_own_needs_one() -> None:
    data = SAFE.to_dict()
    data["verdict"]["limit"] = None
    with pytest.raises(InputError, match="a limit is null"):
        check(leakscope.Report(data))
    data["verdict"]["limit"] = 1
    with pytest.raises(InputError, match=r"The limit of the report is 1\.0"):
        check(leakscope.Report(data))


def test_the_gate_agrees_with_the_verdict() -> None:
    """With the report's own limit: what is not found to leak holds, and what is violated leaks."""
    rng = np.random.default_rng(11)
    seen = set()
    for n, sharp in [(1500, 0.0), (1500, 0.02), (150, 0.0), (400, 0.5), (2000, 0.12), (400, -0.5)]:
        sides = []
        for extra in (sharp, 0.0):
            truth = rng.integers(0, 2, n)
            right = np.clip(rng.beta(3, 2, n) + extra, 0.001, 0.999)
            sides += [np.where(truth == 1, right, 1 - right), truth]
        report = leakscope.audit_predictions(*sides, attacks=["loss", "label-gap", "entropy"])
        found, level = check(report), report.verdict.level
        seen.add((level, str(found.decision)))
        assert found.decision == "holds" or level != "no_leak_found"
        assert found.decision != "violated" or level == "leaks"
    assert {("no_leak_found", "holds"), ("leaks", "violated")} <= seen
    assert any(decision == "undecided" for _, decision in seen)


def test_the_answer_for_json(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(OPEN.to_json(), "utf-8")
    found = check(tmp_path, max_advantage=0.1)
    assert isinstance(found, Check)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["report"] == str(tmp_path)
    assert (told["decision"], told["exit_code"]) == ("undecided", 3)
    assert told["not_run"] == [{"attack": "lira", "reason": "No."}]
    (limit,) = told["limits"]
    assert set(limit) == {
        "limit", "decision", "attack", "value", "low", "high", "records_to_decide", "reason",
    }  # fmt: skip
    assert (limit["attack"], limit["value"]) == ("loss", pytest.approx(0.08))
    assert told["sentence"].startswith("Cannot decide: advantage ≤ 0.1: the loss attack has")


@pytest.fixture(scope="module")
def saved():
    """The audit of saved predictions, of which the decisive controls cannot run."""
    rng = np.random.default_rng(1)
    sides = []
    for _ in range(2):
        truth = rng.integers(0, 2, 2500)
        right = np.clip(rng.beta(3, 2, 2500), 0.001, 0.999)
        sides += [np.where(truth == 1, right, 1 - right), truth]
    return leakscope.audit_predictions(*sides, attacks=["loss", "label-gap"])


def test_a_decisive_control_that_could_not_run_is_a_condition(saved) -> None:
    found = check(saved, max_advantage=0.1)
    assert found.exit_code == 0
    assert found.conditions == (
        "no record is on both sides",
        ONE_POPULATION,
    )
    assert found.sentence.startswith(
        f"Holds, provided that no record is on both sides and {ONE_POPULATION}: advantage ≤ 0.1: "
    )
    assert list(found.conditions) == saved.to_dict()["verdict"]["conditions"]
    assert found.to_dict()["conditions"] == list(found.conditions)
    violated = check(saved, max_advantage=0.0, max_auc=0.5)
    assert violated.conditions == found.conditions
    against = check(saved, baseline=saved)
    assert against.conditions[2] == "in the baseline, no record is on both sides"
    assert check(SAFE, max_advantage=0.1).conditions == ()


def test_one_condition_qualifies_a_violation_and_not_an_open_answer() -> None:
    open_control = controls(blind_baseline=None)
    leaking = report_of(audited(attacked("loss", 0.9, 0.1), controls=open_control))
    found = check(leaking, max_advantage=0.1)
    assert found.sentence.startswith("Violated, provided that what the control of the blind bas")
    few = report_of(audited(attacked("loss", 0.58, 0.5), controls=open_control))
    assert check(few, max_advantage=0.1).sentence.startswith("Cannot decide: advantage")
    assert len(check(few, max_advantage=0.1).conditions) == 1


def test_failed_controls_are_told() -> None:
    failed = Control("accuracy of the target", passed=False, fatal=False, detail="Swapped?")
    report = report_of(audited(attacked("loss", 0.51, 0.5), controls=(*controls(), failed)))
    found = check(report, max_advantage=0.1)
    assert found.failed_controls == {"accuracy of the target": "Swapped?"}
    assert found.to_dict()["failed_controls"] == [
        {"control": "accuracy of the target", "detail": "Swapped?"}
    ]
    broken = report_of(
        audited(attacked(), level="invalid", controls=controls(overlap=False), reason="Overlap.")
    )
    assert check(broken).failed_controls == {"overlap": "About overlap."}


def test_a_tree_that_memorizes_both_sides_is_not_called_safe() -> None:
    """All it answers is the same; what is left is no attack on confidence or labels."""
    X, y = make_classification(2000, 6, random_state=0)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    sides = (X[::2], y[::2]), (X[1::2], y[1::2])
    for attacks in (["entropy"], None):
        report = leakscope.audit(tree, *sides, attacks=attacks)
        assert check(report).exit_code == 3
        assert check(report, max_advantage=0.1, max_tpr="0.05@0.05").exit_code == 3


def test_a_verdict_that_rests_on_no_attack_is_not_overruled() -> None:
    """The audit doubts its own labels or sides: small figures are then no evidence."""
    doubtful = report_of(
        audited(attacked("loss", 0.51, 0.5), strongest=None, reason="Labels may be wrong.")
    )
    found = check(doubtful, max_advantage=0.1, max_auc=0.6)
    assert [str(one.decision) for one in found.limits] == ["undecided", "undecided"]
    assert "Labels may be wrong." in found.limits[0].reason
    assert check(doubtful, max_advantage=0.001).exit_code == 3


def test_averages_do_not_vouch_for_a_few_members():
    """40 of 4,000 members are memorized: the advantage is .01, and the gate does not hold."""
    rng = np.random.default_rng(0)
    n = 4000
    X = rng.normal(size=(2 * n, 5))
    y = (X[:, 0] + rng.normal(size=2 * n) > 0).astype(int)
    honest = LogisticRegression().fit(X[:n], y[:n]).predict_proba(X)
    leaky = honest.copy()
    leaky[:40] = np.eye(2)[y[:40]]
    quiet, few = (
        leakscope.audit_predictions(P[:n], y[:n], P[n:], y[n:], attacks=["loss", "confidence"])
        for P in (honest, leaky)
    )
    # Saved predictions of two models have no record in common.
    quiet_baseline = {"baseline": quiet, "allow_other_records": True}
    for limits in ({}, {"max_advantage": 0.1}, {"max_auc": 0.6}, quiet_baseline):
        decided = check(few, **limits)
        assert decided.decision is Decision.undecided, limits
        assert check(quiet, **limits).decision is Decision.holds, limits
    reason = check(few, max_advantage=0.1).limits[0].reason
    assert f"the {few.verdict.attack_at_low_fpr} attack singles out a few members at 0.1% FPR" in (
        reason
    )
    # A limit on the TPR at a higher rate does not cover them.
    for covered in ("0.05@0.01", "0.2@0.05"):
        both = check(few, max_advantage=0.1, max_tpr=covered)
        assert both.decision is Decision.undecided
    # The same audit is no worse than itself, and the output names its verdict.
    itself = check(few, baseline=few)
    assert itself.decision is Decision.holds
    assert any("The verdict of the report is leaks." in note for note in itself.notes)
    # A baseline that exposes fewer members does not excuse more.
    leaky[:120] = np.eye(2)[y[:120]]
    more = leakscope.audit_predictions(
        leaky[:n], y[:n], leaky[n:], y[n:], attacks=["loss", "confidence"]
    )
    worse = check(more, baseline=few, allow_other_records=True)
    assert worse.decision is Decision.undecided
    # Counts that hide them contradict the TPR.
    forged = few.to_dict()
    for outcome in forged["outcomes"]:
        for test in outcome["tails"]:
            test |= {"found": 0, "p_value": 1.0, "adjusted_p": 1.0}
        outcome["adjusted_p"] = 1.0
    forged["verdict"] |= {"level": "no_leak_found", "attack_at_low_fpr": None}
    with pytest.raises(InputError, match=r"0 members are found at 0\.01 FPR, and the TPR is"):
        check(Report(forged))
