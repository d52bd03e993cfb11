"""Whole audits that a wrong decision would call safe, or would call leaking."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import leakscope
from leakscope.report.words import CONSTANT

ATTACKS = ["loss", "label-gap", "confidence", "entropy"]


def made_up(n, seed=0, noise=1.0):
    """Two sides of n records of one population."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, 6))
    y = (X[:, 0] + noise * rng.normal(size=2 * n) > 0).astype(int)
    return (X[:n], y[:n]), (X[n:], y[n:])


def memorizing(members, few):
    """An honest logistic regression, but for the first few members: probability 1 on the label."""
    model = LogisticRegression().fit(*members)
    known = {row.tobytes(): label for row, label in zip(members[0][:few], members[1], strict=False)}

    def predict(X):
        answers = model.predict_proba(X)
        for at, row in enumerate(np.ascontiguousarray(X)):
            label = known.get(row.tobytes())
            if label is not None:
                answers[at] = np.eye(2)[label]
        return answers

    return predict


@pytest.mark.parametrize("subgroup", [False, True])
def test_forty_memorized_members_of_four_thousand_leak(subgroup):
    members, nonmembers = made_up(4000)
    order = np.argsort(-members[0][:, 1], kind="stable") if subgroup else np.arange(4000)
    members = members[0][order], members[1][order]
    groups = {"high": np.where(members[0][:, 1] > 1, "yes", "no")}
    sides = [
        leakscope.records.Records(*side, {"high": np.where(side[0][:, 1] > 1, "yes", "no")})
        for side in (members, nonmembers)
    ]
    report = leakscope.audit(memorizing(members, 40), *sides, attacks=ATTACKS, classes=[0, 1])
    assert report.verdict.level == "leaks"
    assert not report.verdict.within_limit
    flagged = report.records.columns["vulnerable"] == "yes"
    rows = report.records.columns["row"][flagged]
    assert set(range(40)) <= set(rows.tolist())
    assert set(report.records.columns["side"][flagged]) == {"member"}
    # Flagged are exactly those that the headline counts.
    assert f"finds {flagged.sum()} of 4,000 members" in report.verdict.headline
    assert flagged.sum() < 50
    low = next(o for o in report.outcomes if o["attack"] == report.verdict.attack_at_low_fpr)
    tests = {group["value"]: group["tails"] for group in low["groups"]}
    if subgroup:
        assert set(groups["high"][:40]) == {"yes"}
        assert min(test["adjusted_p"] for test in tests["yes"]) < 1e-3
        assert min(test["adjusted_p"] for test in tests["no"]) > 0.025
    quiet = leakscope.audit(memorizing(members, 0), *sides, attacks=ATTACKS, classes=[0, 1])
    assert quiet.verdict.level == "no_leak_found"


def test_an_attack_with_constant_scores_is_no_evidence():
    """The entropy of a fully grown tree is 0 for everyone."""
    members, nonmembers = made_up(400)
    tree = DecisionTreeClassifier(random_state=0).fit(*members)
    report = leakscope.audit(tree, members, nonmembers, attacks=["entropy"])
    assert report.verdict.level == "undecided"
    assert report.outcomes == []
    assert {"attack": "entropy", "reason": CONSTANT} in report.to_dict()["not_run"]
    assert leakscope.audit(tree, members, nonmembers).verdict.level == "leaks"


@pytest.mark.parametrize("n", [400, 2000])
def test_a_model_that_memorized_both_sides_is_undecided(n):
    """A learned attack gives each half of the records a constant of its own: no evidence either."""
    members, nonmembers = made_up(n)
    both = np.concatenate([members[0], nonmembers[0]]), np.concatenate([members[1], nonmembers[1]])
    tree = DecisionTreeClassifier(random_state=0).fit(*both)
    report = leakscope.audit(tree, members, nonmembers)
    constant = [one["attack"] for one in report.to_dict()["not_run"] if one["reason"] == CONSTANT]
    assert {"loss", "label-gap", "entropy", "neural-network"} <= set(constant)
    assert report.verdict.level == "undecided"
    assert leakscope.check(report, max_advantage=0.2, max_tpr="0.2@0.05").exit_code == 3
    assert not {f"score_{name}" for name in constant} & set(report.records.columns)


def test_saved_predictions_qualify_the_headline():
    """A model that saw neither side, on sides that differ: the figures alone would accuse it."""
    members, nonmembers = made_up(2000)
    third, _ = made_up(500, seed=1)
    model = LogisticRegression().fit(*third)
    easy = np.abs(members[0][:, 0]) > 0.4  # the members are the easier records
    report = leakscope.audit_predictions(
        model.predict_proba(members[0][easy]),
        members[1][easy],
        model.predict_proba(nonmembers[0]),
        nonmembers[1],
    )
    assert report.verdict.level == "leaks"
    assert "only if no record is on both sides and members and non-members were drawn from one" in (
        report.verdict.headline
    )
    assert len(report.verdict.conditions) == 2


def test_reversed_classes_are_named():
    members, nonmembers = made_up(1500, noise=0.3)
    model = LogisticRegression().fit(*members)
    report = leakscope.audit_predictions(
        model.predict_proba(members[0])[:, ::-1],
        members[1],
        model.predict_proba(nonmembers[0])[:, ::-1],
        nonmembers[1],
    )
    assert report.verdict.level == "undecided"
    assert "fewer members than by guessing among 2 classes" in report.verdict.reason


def test_shadow_attacks_without_shadow_models_say_why_nothing_ran():
    members, nonmembers = made_up(300)
    model = LogisticRegression().fit(*members)
    report = leakscope.audit(model, members, nonmembers, attacks=["lira"])
    assert report.verdict.level == "invalid"
    assert "lira: It needs shadow models" in report.verdict.reason
