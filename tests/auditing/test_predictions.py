"""Audits of saved predictions, with no model at hand."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest

import leakscope
from leakscope.errors import InputError, ModelError, RecordsError
from leakscope.report import load_schema
from leakscope.report.advice import next_steps


@pytest.fixture(scope="module")
def saved(forest, sides):
    members, others = sides
    return (
        forest.predict_proba(members.X),
        members.y,
        forest.predict_proba(others.X),
        others.y,
    )


@pytest.mark.slow
def test_predictions_give_what_the_model_gives(saved, forest, sides):
    report = leakscope.audit_predictions(*saved)
    jsonschema.validate(report.to_dict(), load_schema())
    assert report.verdict.level == "leaks"
    model = {row["attack"]: row for row in leakscope.audit(forest, *sides).outcomes}
    for outcome in report.outcomes:
        if outcome["knowledge"] == "none":
            assert outcome["auc"] == model[outcome["attack"]]["auc"]


def test_what_needs_features_is_said_not_to_have_run(saved):
    data = leakscope.audit_predictions(*saved).to_dict()
    found = {control["name"]: control["passed"] for control in data["controls"]}
    assert found["overlap"] is None
    assert found["blind baseline"] is None
    reasons = {row["attack"]: row["reason"] for row in data["not_run"]}
    assert "answers to new queries" in reasons["robustness"]


def test_one_column_is_the_probability_of_the_second_class(saved):
    p1, y1, p0, y0 = saved
    one = leakscope.audit_predictions(p1[:, 1], y1, p0[:, 1], y0, attacks=["loss"])
    two = leakscope.audit_predictions(p1, y1, p0, y0, attacks=["loss"])
    assert one.outcomes[0]["auc"]["value"] == pytest.approx(
        two.outcomes[0]["auc"]["value"], abs=0.002
    )


def test_text_labels_stand_for_the_columns_in_sorted_order(saved):
    p1, y1, p0, y0 = saved
    names = np.array(["bad", "good"])
    text = leakscope.audit_predictions(p1, names[y1], p0, names[y0], attacks=["loss"])
    plain = leakscope.audit_predictions(p1, y1, p0, y0, attacks=["loss"])
    assert text.outcomes[0]["auc"] == plain.outcomes[0]["auc"]
    assert text.to_dict()["target"]["classes"] == ["bad", "good"]


def test_groups_and_units_are_taken(saved):
    n1, n0 = len(saved[1]), len(saved[3])
    report = leakscope.audit_predictions(
        *saved,
        member_groups={"sex": ["f", "m"] * (n1 // 2)},
        nonmember_groups={"sex": ["f", "m"] * (n0 // 2)},
        member_units=np.arange(n1) // 2,
        nonmember_units=1000 + np.arange(n0) // 2,
        attacks=["loss"],
    )
    assert report.to_dict()["target"]["units"] == {"members": n1 // 2, "nonmembers": n0 // 2}
    assert len(report.outcomes[0]["groups"]) == 2


def test_a_person_on_both_sides_is_taken_out(saved):
    n1, n0 = len(saved[1]), len(saved[3])
    report = leakscope.audit_predictions(
        *saved,
        member_units=np.arange(n1),
        nonmember_units=np.arange(n0) + n1 - 3,
        attacks=["loss"],
    )
    assert report.to_dict()["target"]["nonmembers"] == n0 - 3


def test_persons_on_both_sides_are_refused(saved):
    n1, n0 = len(saved[1]), len(saved[3])
    units = {"member_units": np.arange(n1), "nonmember_units": np.arange(n0)}
    report = leakscope.audit_predictions(*saved, **units)
    jsonschema.validate(report.to_dict(), load_schema())
    assert report.verdict.level == "invalid"
    assert "300 of a person who is also a member" in report.verdict.reason


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (lambda p, y: (p * 3, y), ModelError, "not probabilities"),
        (lambda p, y: (p[:-1], y), RecordsError, "399 rows of features and 400 of label"),
        (lambda p, y: (np.where(p > 0.99, np.nan, p), y), (ModelError, RecordsError), "finite"),
        (lambda p, y: (p, np.full(len(y), 7)), InputError, "3 different labels; pass classes="),
        (lambda p, y: (p.astype(str).astype(object) + "x", y), InputError, "not numeric"),
        (lambda p, y: (p, np.zeros(len(y), int)), RecordsError, "two classes"),
    ],
)
def test_wrong_predictions_are_one_sentence(saved, change, error, match):
    p1, y1, p0, y0 = saved
    with pytest.raises(error, match=match):
        leakscope.audit_predictions(*change(p1, y1), p0, y0)


def test_171_nonmembers_cannot_carry_a_rate_of_one_in_a_thousand():
    rng = np.random.default_rng(0)
    p1, p0 = rng.random(200), rng.random(171)
    y1, y0 = np.arange(200) % 2, np.arange(171) % 2
    report = leakscope.audit_predictions(p1, y1, p0, y0, attacks=["loss"])
    lowest = report.outcomes[0]["tpr_at_fpr"][0]
    assert lowest["fpr"] == 0.001
    assert lowest["resolved"] is False


def test_predictions_are_saved_where_asked_and_a_bad_folder_is_refused_first(saved, tmp_path):
    leakscope.audit_predictions(*saved, attacks=["loss"], out=tmp_path / "run")
    assert (tmp_path / "run" / "report.html").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a file is in the way"):
        leakscope.audit_predictions(*saved, out=tmp_path / "file" / "run")


@pytest.fixture(scope="module")
def of_a_tree(sides):
    """The predictions of a tree grown to the end: 0 and 1 only, so that many rows are equal."""
    from sklearn.tree import DecisionTreeClassifier

    members, others = sides
    tree = DecisionTreeClassifier(random_state=0).fit(members.X, members.y)
    saved = [tree.predict_proba(members.X), members.y, tree.predict_proba(others.X), others.y]
    right = (tree.predict(others.X) == others.y).mean()
    return saved, 1 - right


@pytest.mark.parametrize("seed", range(5))
def test_equal_predictions_are_not_equal_records(of_a_tree, seed):
    """A tree shows only right or wrong: the gap in accuracy is all there is to be had."""
    saved, gap = of_a_tree
    report = leakscope.audit_predictions(*saved, seed=seed)
    assert report.verdict.level == "leaks"
    assert not {row["attack"] for row in report.to_dict()["not_run"]} & {
        "gradient-boosting",
        "loss",
    }
    for outcome in report.outcomes:
        assert outcome["advantage"]["value"] < gap + 0.05
    assert max(one["advantage"]["value"] for one in report.outcomes) == pytest.approx(gap, abs=0.05)


def test_units_of_equal_predictions_stay_apart(of_a_tree):
    saved, _ = of_a_tree
    units = {"member_units": np.arange(400) // 2, "nonmember_units": 1000 + np.arange(300) // 2}
    report = leakscope.audit_predictions(*saved, **units)
    assert report.verdict.level == "leaks"


def test_the_order_of_equal_predictions_and_swapped_sides(of_a_tree):
    saved, _ = of_a_tree
    p1, y1, p0, y0 = saved
    first = {one["attack"]: one for one in leakscope.audit_predictions(*saved).outcomes}
    rng = np.random.default_rng(0)
    one, two = rng.permutation(400), rng.permutation(300)
    shuffled = leakscope.audit_predictions(p1[one], y1[one], p0[two], y0[two])
    assert {row["attack"]: row for row in shuffled.outcomes} == first
    for outcome in leakscope.audit_predictions(p0, y0, p1, y1).outcomes:
        expected = 1 - first[outcome["attack"]]["auc"]["value"]
        assert outcome["auc"]["value"] == pytest.approx(expected, abs=1e-12)


def test_nothing_is_advised_that_saved_predictions_cannot_do(saved):
    """Not in the reasons of what did not run, and not in the next steps of any verdict."""
    data = leakscope.audit_predictions(*saved).to_dict()
    shadowed = [one["reason"] for one in data["not_run"] if "shadow" in one["reason"]]
    assert len(shadowed) > 3
    assert all("saved predictions do not tell how to train any" in reason for reason in shadowed)
    for level in ("leaks", "no_leak_found", "undecided", "invalid"):
        verdict = {**data["verdict"], "level": level}
        for step in next_steps({**data, "verdict": verdict}):
            assert "--shadows" not in step
    steps = next_steps({**data, "verdict": {**data["verdict"], "level": "no_leak_found"}})
    assert any(step.startswith("For a sensitive model, audit the model itself") for step in steps)
    assert "--shadows" not in json.dumps(data)
