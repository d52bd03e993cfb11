"""The audit from end to end."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

import leakscope
from leakscope.errors import InputError, RecordsError
from leakscope.records import Records
from leakscope.registry import entries
from leakscope.report import load_schema
from leakscope.report.words import CONSTANT

CHEAP = ["loss", "label-gap", "confidence", "entropy", "modified-entropy"]


def by_name(rows, key="attack"):
    return {row[key]: row for row in rows}


def controls(report):
    return by_name(report.to_dict()["controls"], "name")


def valid(report):
    jsonschema.validate(report.to_dict(), load_schema())
    return report


def test_a_forest_that_knows_its_members_leaks(forest, sides, tmp_path):
    report = valid(leakscope.audit(forest, *sides, out=tmp_path))
    assert report.verdict.level == "leaks"
    assert report.verdict.attack in by_name(report.outcomes)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "records.csv",
        "report.html",
        "report.json",
    ]
    saved = json.loads((tmp_path / "report.json").read_text())
    assert saved.pop("records_sha256")  # of the file beside it
    assert saved == report.to_dict()
    assert saved["target"]["members"] == 400
    assert saved["target"]["nonmembers"] == 300
    assert all(control["passed"] for control in saved["controls"])
    assert by_name(saved["not_run"])["gaussian-error"]["reason"].startswith("It attacks regression")


def test_every_attack_is_reported_or_named_with_a_reason(forest, sides):
    from leakscope.registry import entries

    report = leakscope.audit(forest, *sides, attacks=["loss"])
    named = [row["attack"] for row in report.outcomes + report.to_dict()["not_run"]]
    every = [entry.name for entry in entries("attack")]
    assert sorted(named) == sorted([*every, "output leakage", "parameter leakage"])


def test_the_numbers_are_those_of_scikit_learn(forest, sides):
    report = leakscope.audit(forest, *sides, attacks=["loss", "label-gap"])
    members, others = sides
    membership = np.r_[np.ones(400), np.zeros(300)]
    X, y = np.concatenate([members.X, others.X]), np.concatenate([members.y, others.y])
    p = np.clip(forest.predict_proba(X)[np.arange(700), y], 1e-7, 1)
    found = by_name(report.outcomes)
    assert found["loss"]["auc"]["value"] == pytest.approx(
        roc_auc_score(membership, np.log(p)), abs=1e-12
    )
    threshold = np.log(p[:400]).mean()
    called = np.log(p) >= threshold
    expected = called[:400].mean() - called[400:].mean()
    assert found["loss"]["advantage"]["value"] == pytest.approx(expected, abs=1e-12)
    right = forest.predict(X) == y
    gap = right[:400].mean() - right[400:].mean()
    assert found["label-gap"]["advantage"]["value"] == pytest.approx(gap, abs=1e-12)
    assert report.to_dict()["target"]["gap"]["value"] == pytest.approx(gap, abs=1e-12)


def test_a_forest_of_strangers_does_not_leak(stranger, sides):
    report = valid(leakscope.audit(stranger, *sides))
    assert report.verdict.level in {"undecided", "no_leak_found"}


def test_a_constant_model_is_at_chance_and_warned_about(sides):
    def constant(X):
        return np.tile([0.3, 0.7], (len(X), 1))

    report = valid(leakscope.audit(constant, *sides))
    for outcome in report.outcomes:
        assert outcome["auc"]["low"] <= 0.5 <= outcome["auc"]["high"]
        assert outcome["advantage"]["low"] <= 0 <= outcome["advantage"]["high"]
    assert report.verdict.level != "leaks"
    # The entropy is the same for every record; the loss still depends on the label.
    constant_scores = controls(report)["constant scores"]
    assert "entropy" in constant_scores["detail"]
    assert constant_scores["passed"] is True
    assert constant_scores["fatal"] is False
    reasons = {entry["attack"]: entry["reason"] for entry in report.to_dict()["not_run"]}
    assert reasons["entropy"] == CONSTANT
    assert "loss" in {outcome["attack"] for outcome in report.outcomes}


def test_the_order_of_the_input_changes_nothing(forest, sides):
    members, others = sides
    rng = np.random.default_rng(0)
    shuffled = members.take(rng.permutation(400)), others.take(rng.permutation(300))
    one, two = (leakscope.audit(forest, *pair).to_dict() for pair in (sides, shuffled))
    for data in (one, two):
        del data["created"], data["cost"]
    assert one == two


@pytest.mark.slow
def test_swapped_sides_give_one_minus_auc_and_never_pass(forest, sides):
    plain = by_name(leakscope.audit(forest, *sides).outcomes)
    report = leakscope.audit(forest, sides[1], sides[0])
    for name, outcome in by_name(report.outcomes).items():
        assert outcome["auc"]["value"] == pytest.approx(1 - plain[name]["auc"]["value"], abs=1e-12)
    assert report.verdict.level == "undecided"
    assert "swapped" in controls(report)["accuracy of the target"]["detail"]


def test_classes_in_another_order_are_noticed(forest, sides):
    asked = lambda X: forest.predict_proba(X)[:, ::-1]  # noqa: E731
    control = controls(leakscope.audit(asked, *sides, attacks=["loss"]))["accuracy of the target"]
    assert control["passed"] is False
    assert "by guessing among 2 classes" in control["detail"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers(forest, sides):
    one, two = (leakscope.audit(forest, *sides, seed=7).outcomes for _ in range(2))
    assert one == two
    assert leakscope.audit(forest, *sides, seed=8).outcomes != one


def test_records_csv_follows_the_input(forest, sides, tmp_path):
    leakscope.audit(forest, *sides, attacks=["loss"], out=tmp_path)
    table = pd.read_csv(tmp_path / "records.csv")
    assert table["row"].tolist() == [*range(400), *range(300)]
    assert table["side"].tolist() == ["member"] * 400 + ["nonmember"] * 300
    members = sides[0]
    assert table["sex"][:400].tolist() == members.groups["sex"].tolist()
    p = np.clip(forest.predict_proba(members.X)[np.arange(400), members.y], 1e-7, 1)
    np.testing.assert_allclose(table["score_loss"][:400], np.log(p), rtol=1e-12)
    assert set(table["vulnerable"]) <= {"yes", "no"}
    assert (table["vulnerable"][400:] == "no").all()


def test_groups_are_those_asked_for(forest, sides):
    report = leakscope.audit(forest, *sides, attacks=["loss"], groups=["sex"])
    rows = report.outcomes[0]["groups"]
    assert [(row["group"], row["value"]) for row in rows] == [("sex", "f"), ("sex", "m")]
    assert sum(row["n"] for row in rows) == 700
    assert not leakscope.audit(forest, *sides, attacks=["loss"], groups=[]).outcomes[0]["groups"]


def test_records_that_are_on_both_sides_are_taken_out(forest, sides):
    members, others = sides
    X = np.concatenate([others.X, members.X[:5]])
    y = np.concatenate([others.y, members.y[:5]])
    report = leakscope.audit(forest, (members.X, members.y), (X, y), attacks=["loss"])
    assert report.to_dict()["target"]["nonmembers"] == 300
    assert report.to_dict()["target"]["members"] == 395
    assert "5 of 305" in controls(report)["overlap"]["detail"]
    rest = (members.X[5:], members.y[5:])
    plain = leakscope.audit(forest, rest, (others.X, others.y), attacks=["loss"])
    assert report.outcomes[0]["auc"] == plain.outcomes[0]["auc"]


def test_a_split_of_the_training_set_is_refused(forest, sides):
    members = sides[0]
    half = members.take(np.arange(200))
    report = valid(leakscope.audit(forest, members, half))
    assert report.verdict.level == "invalid"
    assert report.outcomes == []
    named = {one["attack"] for one in report.to_dict()["not_run"]}
    every = {entry.name for entry in entries("attack")}
    assert named == every | {"output leakage", "parameter leakage"}
    assert "200 of 200 non-members" in report.verdict.reason


def test_two_rows_of_one_patient_on_two_sides_are_found():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 3)), columns=["a", "b", "c"])
    frame["sick"] = (frame["a"] + rng.normal(size=600) > 0).astype(int)
    frame["patient"] = [f"p{number // 2}" for number in range(600)]
    members, others = frame[:301], frame[301:]  # patient 150 has a row on each side
    model = LogisticRegression().fit(members[["a", "b", "c"]], members["sick"])
    report = valid(leakscope.audit(model, members, others, label="sick", unit="patient"))
    assert "1 of a person who is also a member" in controls(report)["overlap"]["detail"]
    assert report.to_dict()["target"]["units"] == {"members": 150, "nonmembers": 149}
    assert report.to_dict()["target"]["unit"] == "patient"


def test_time_shifted_sides_are_invalid():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(800, 3))
    X[400:, 1] += 1.0  # the non-members came later
    y = (X[:, 0] > 0).astype(int)
    model = LogisticRegression().fit(X[:400], y[:400])
    report = leakscope.audit(model, (X[:400], y[:400]), (X[400:], y[400:]))
    assert report.verdict.level == "invalid"
    assert controls(report)["blind baseline"]["passed"] is False
    assert report.outcomes


def test_epsilon_is_given_only_where_membership_was_randomized(forest, sides):
    told = leakscope.audit(forest, *sides, randomized=True)
    for outcome in told.outcomes:
        taught = outcome["knowledge"] == "members of the other half"
        assert (outcome["epsilon_lower"] is None) == taught
        assert bool(outcome["epsilon_note"]) == taught
    assert by_name(told.outcomes)["confidence"]["epsilon_lower"]["value"] > 0
    plain = leakscope.audit(forest, *sides, attacks=["loss"])
    assert plain.outcomes[0]["epsilon_lower"] is None
    assert "coin" in plain.outcomes[0]["epsilon_note"]


def test_epsilon_is_not_given_by_unit(forest, sides):
    members, others = (
        Records(side.X, side.y, unit=[f"{name}{row // 2}" for row in range(len(side))])
        for name, side in zip("mn", sides, strict=True)
    )
    report = leakscope.audit(forest, members, others, attacks=["loss"], randomized=True)
    assert "persons" in report.outcomes[0]["epsilon_note"]


def test_units_widen_the_intervals(forest, sides):
    def copied(side, name):
        index = np.repeat(np.arange(len(side)), 3)
        rows = side.take(index)
        jitter = np.random.default_rng(0).normal(scale=1e-4, size=np.shape(rows.X))
        return Records(rows.X + jitter, rows.y, unit=[f"{name}{row}" for row in index])

    members, others = copied(sides[0], "m"), copied(sides[1], "n")
    by_unit = leakscope.audit(forest, members, others, attacks=["loss"]).outcomes[0]["auc"]
    naive = leakscope.audit(
        forest, (members.X, members.y), (others.X, others.y), attacks=["loss"]
    ).outcomes[0]["auc"]
    assert by_unit["value"] == pytest.approx(naive["value"], abs=1e-12)
    ratio = (by_unit["high"] - by_unit["low"]) / (naive["high"] - naive["low"])
    assert ratio == pytest.approx(np.sqrt(3), rel=0.1)


def test_a_rate_tells_how_many_non_members_it_rests_on(forest, sides):
    members, others = (
        Records(side.X, side.y, unit=[f"{name}{row // 4}" for row in range(len(side))])
        for side, name in zip(sides, "mn", strict=True)
    )
    names = ["loss", "gradient-boosting"]
    alone = leakscope.audit(forest, *sides, attacks=names)
    grouped = leakscope.audit(forest, members, others, attacks=names)
    size = {
        (kind, one["attack"]): [rate["effective_nonmembers"] for rate in one["tpr_at_fpr"]]
        for kind, report in (("rows", alone), ("persons", grouped))
        for one in report.outcomes
    }
    rows = len(sides[1])
    assert size["rows", "loss"] == pytest.approx([rows] * 3)
    assert size["rows", "gradient-boosting"] == pytest.approx([rows / 2] * 3)
    assert all(0 < one <= rows for one in size["persons", "loss"])
    assert min(size["persons", "loss"]) < rows
    for report in (alone, grouped):
        for one in report.outcomes:
            for rate in one["tpr_at_fpr"]:
                enough = rate["fpr"] * rate["effective_nonmembers"] >= 5 - 1e-9
                assert rate["resolved"] == enough


def test_the_table_of_records_pairs_them_with_another_audit(forest, sides):
    first = leakscope.audit(forest, *sides, attacks=["loss"]).records.columns
    again = leakscope.audit(
        forest, *(side.take(np.arange(len(side))[::-1]) for side in sides), attacks=["loss"]
    ).records.columns
    assert set(first["calibration"]) == {"yes", "no"}
    assert len(set(first["content_key"])) == len(first["content_key"])
    facts = [
        set(zip(*(one[name] for name in names), strict=True))
        for one in (first, again)
        for names in [("content_key", "side", "calibration", "score_loss")]
    ]
    assert facts[0] == facts[1]


def test_a_regression_is_audited():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 4))
    y = X[:, 0] + rng.normal(size=800)
    model = RandomForestRegressor(20, random_state=0).fit(X[:400], y[:400])
    report = valid(leakscope.audit(model, (X[:400], y[:400]), (X[400:], y[400:])))
    assert report.verdict.level == "leaks"
    assert sorted(by_name(report.outcomes)) == ["gaussian-error", "loss"]
    target = report.to_dict()["target"]
    assert target["member_accuracy"] is None
    assert target["member_error"] < target["nonmember_error"]
    reasons = by_name(report.to_dict()["not_run"])
    assert "classification, not regression" in reasons["confidence"]["reason"]


def test_a_model_without_probabilities_is_attacked_through_its_labels(sides):
    members = sides[0]
    model = LinearSVC().fit(members.X, members.y)
    report = valid(leakscope.audit(model, *sides))
    assert sorted(by_name(report.outcomes)) == ["label-gap", "robustness"]
    reason = by_name(report.to_dict()["not_run"])["loss"]["reason"]
    assert "LinearSVC" in reason


def test_channels_choose_attacks(forest, sides):
    report = leakscope.audit(forest, *sides, channels=["label"])
    assert list(by_name(report.outcomes)) == ["label-gap"]
    assert (
        by_name(report.to_dict()["not_run"])["loss"]["reason"]
        == "Its channel 'loss' was not asked for."
    )


def test_missing_values_pass_where_the_model_takes_them_and_are_said():
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = (X[:, 0] > 0).astype(int)
    X[::10, 1] = np.nan
    model = HistGradientBoostingClassifier(max_iter=10).fit(X[:300], y[:300])
    report = valid(leakscope.audit(model, (X[:300], y[:300]), (X[300:], y[300:])))
    assert report.to_dict()["target"]["missing_values"] == 60
    refusing = LogisticRegression().fit(X[1:10], y[1:10])
    with pytest.raises(RecordsError, match=r"Column 1 of the members is missing in row 0"):
        leakscope.audit(refusing, (X[:300], y[:300]), (X[300:], y[300:]))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("limit", 0.0),
        ("limit", "0.1"),
        ("max_overlap", None),
        ("seed", 1.5),
        ("seed", None),
        ("limit", 1.5),
        ("prior", 0.0),
        ("delta", 1.0),
        ("max_overlap", -0.1),
        ("seed", -1),
    ],
)
def test_settings_out_of_range_are_named(forest, sides, option, value):
    with pytest.raises(InputError, match=rf"The {option} is {value!r}; choose"):
        leakscope.audit(forest, *sides, **{option: value})


def test_unknown_names_suggest_the_nearest(forest, sides):
    with pytest.raises(InputError, match=r"no attack named 'los'; did you mean 'loss'\?"):
        leakscope.audit(forest, *sides, attacks=["los"])
    with pytest.raises(InputError, match=r"no channel named 'margn'; did you mean 'margin'\?"):
        leakscope.audit(forest, *sides, channels=["margn"])


def test_too_few_records_are_invalid(forest, sides):
    members, others = sides
    report = valid(
        leakscope.audit(forest, members.take(np.arange(10)), others.take(np.arange(300)))
    )
    assert report.verdict.level == "invalid"
    assert "10 members" in report.verdict.reason


def test_few_records_are_warned_about(forest, sides):
    members, others = sides
    pair = members.take(np.arange(0, 400, 8)), others.take(np.arange(0, 300, 6))
    report = valid(leakscope.audit(forest, *pair, attacks=CHEAP))
    assert controls(report)["number of records"]["passed"] is False
    assert report.verdict.level != "invalid"


def test_an_attack_of_ones_own_runs_without_registration(forest, sides):
    from dataclasses import dataclass
    from typing import ClassVar

    from leakscope.protocols import CLASSIFICATION, Attack

    @dataclass(frozen=True)
    class Surest(Attack):
        """A member where any class is sure."""

        name: ClassVar[str] = "surest"
        paper: ClassVar[str] = "mine"
        channel: ClassVar[str] = "probabilities"
        tasks: ClassVar = CLASSIFICATION

        def score(self, evidence):
            return evidence.observations.max(axis=1)

    report = valid(leakscope.audit(forest, *sides, attacks=[Surest()]))
    assert report.outcomes[0]["attack"] == "surest"
    assert report.outcomes[0]["summary"] == "A member where any class is sure."


@pytest.mark.slow
def test_a_planted_leak_is_found_in_every_one_of_some_seeds(sides):
    for seed in range(3):
        members, others = sides
        model = KNeighborsClassifier(1).fit(members.X, members.y)
        assert leakscope.audit(model, members, others, seed=seed).verdict.level == "leaks"


def test_progress_is_told(forest, sides):
    told = []
    leakscope.audit(forest, *sides, attacks=["loss"], progress=lambda *step: told.append(step))
    assert told[0] == ("running loss", 0, 1)
    assert ("running the blind baseline", 0, 2) in told


def test_pipelines_with_data_frames(sides):
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"job": rng.choice(["a", "b", "c"], 600), "pay": rng.normal(size=600)},
    )
    frame["rich"] = np.where(frame["pay"] + rng.normal(size=600) > 0, "yes", "no")
    encode = make_column_transformer(
        (OneHotEncoder(), ["job"]), remainder="passthrough", verbose_feature_names_out=False
    )
    members, others = frame[:300], frame[300:]
    model = make_pipeline(encode, RandomForestClassifier(20, random_state=0))
    model.fit(members[["job", "pay"]], members["rich"])
    report = valid(leakscope.audit(model, members, others, label="rich", groups=["job"]))
    assert report.verdict.level == "leaks"
    assert report.to_dict()["target"]["model"] == "RandomForestClassifier"
    assert {row["value"] for row in report.outcomes[0]["groups"]} == {"a", "b", "c"}


def test_a_bad_folder_is_refused_before_the_work(forest, sides, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a file is in the way"):
        leakscope.audit(forest, *sides, out=tmp_path / "file" / "run")


def test_the_command_repeats_the_audit(forest, sides, tmp_path):
    frames = [
        pd.DataFrame(side.X, columns=list("abcde")).assign(y=side.y, sex=side.groups["sex"])
        for side in sides
    ]
    model = LogisticRegression().fit(frames[0][list("abcde")], frames[0]["y"])
    report = leakscope.audit(
        model, *frames, label="y", groups=["sex"], attacks=["loss"], limit=0.2, seed=3
    )
    assert report.to_dict()["command"] == (
        "leakscope.audit(model, members, nonmembers, label='y', groups=['sex'], attacks=['loss'], "
        "limit=0.2, seed=3)"
    )

    def function(X):
        return forest.predict_proba(X)

    told = leakscope.audit(function, *sides, classes=np.array([0, 1]), attacks=["loss"])
    assert "classes=[0, 1], attacks=['loss'], seed=0)" in told.to_dict()["command"]


def test_the_options_of_an_attack_are_in_its_outcome(forest, sides):
    from leakscope.attacks.learned import GradientBoosting

    report = valid(leakscope.audit(forest, *sides, attacks=[GradientBoosting(rounds=5), "loss"]))
    found = by_name(report.outcomes)
    assert found["gradient-boosting"]["options"] == {"rounds": 5, "leaves": 8}
    assert found["loss"]["options"] == {}


@pytest.mark.slow
def test_nobody_is_called_vulnerable_where_no_leak_was_found(stranger, sides, tmp_path):
    report = leakscope.audit(stranger, *sides, out=tmp_path)
    assert report.verdict.level != "leaks"
    assert set(pd.read_csv(tmp_path / "records.csv")["vulnerable"]) == {"no"}


def test_few_persons_are_refused_whatever_their_rows(forest, sides):
    members, others = (
        Records(side.X, side.y, unit=[f"{name}{row % 6}" for row in range(len(side))])
        for name, side in zip("mn", sides, strict=True)
    )
    report = valid(leakscope.audit(forest, members, others))
    assert report.verdict.level == "invalid"
    assert "6 members and 6 non-members, counted by person" in report.verdict.reason


def test_an_attack_that_cannot_be_judged_is_named(forest, sides, monkeypatch):
    from leakscope.auditing import judging

    def refuse(*args, **options):
        raise InputError("There is a reason.")

    monkeypatch.setattr(judging, "judge", refuse)
    report = valid(leakscope.audit(forest, *sides, attacks=["loss"]))
    assert by_name(report.to_dict()["not_run"])["loss"]["reason"] == "There is a reason."
    assert report.verdict.level == "invalid"


def test_groups_are_a_list_of_columns_with_few_values(forest, sides):
    with pytest.raises(InputError, match=r"The groups are 'sex'; give a list"):
        leakscope.audit(forest, *sides, groups="sex")
    many = [
        Records(side.X, side.y, {"age": np.arange(len(side))}, name=name)
        for side, name in zip(sides, ("members", "nonmembers"), strict=True)
    ]
    with pytest.raises(InputError, match=r"The group 'age' has 400 different values"):
        leakscope.audit(forest, *many)


def test_a_column_the_model_needs_is_named_as_such(sides):
    frames = [pd.DataFrame(side.X, columns=list("abcde")).assign(y=side.y) for side in sides]
    model = LogisticRegression().fit(frames[0][list("abcde")], frames[0]["y"])
    short = [frame.drop(columns="c") for frame in frames]
    with pytest.raises(InputError, match=r"no column 'c', which the model was trained on"):
        leakscope.audit(model, *short, label="y")


def test_a_leak_within_the_limit_is_said_to_be_small(forest, sides):
    report = leakscope.audit(forest, *sides, attacks=["label-gap"], limit=0.9)
    assert report.verdict.level == "leaks"
    assert report.verdict.within_limit
    assert "within the limits: an advantage of 0.9" in report.verdict.reason


def test_equal_rows_of_one_side_count_together():
    """Each record five times: the intervals are those of the distinct records."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)

    def model(Z):
        return 1 / (1 + np.exp(-Z[:, 0]))

    def sides_of(times):
        rows = Records(np.repeat(X, times, axis=0), np.repeat(y, times))
        return rows.coin_split(0)

    once, often = (
        leakscope.audit(model, *sides_of(times), attacks=["loss"]).outcomes[0]["auc"]
        for times in (1, 5)
    )
    assert often["value"] == pytest.approx(once["value"], abs=1e-12)
    assert often["high"] - often["low"] == pytest.approx(once["high"] - once["low"], rel=0.05)


def test_the_order_of_columns_hides_no_overlap():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    y = np.arange(300) % 2

    def model(Z):
        return 1 / (1 + np.exp(-Z["a"].to_numpy()))

    report = leakscope.audit(model, (X, y), (X[["c", "a", "b"]], y))
    assert report.verdict.level == "invalid"


def test_members_that_are_less_sure_are_no_reassurance():
    rng = np.random.default_rng(1)

    def side(mean):
        y = rng.integers(0, 2, 500)
        sure = rng.beta(20 * mean, 20 * (1 - mean), 500)
        return np.where(y[:, None] == np.arange(2), sure[:, None], 1 - sure[:, None]), y

    report = leakscope.audit_predictions(
        *side(0.75), *side(0.9), attacks=["confidence", "entropy", "modified-entropy"]
    )
    assert report.verdict.level == "undecided"
    assert "swapped" in report.verdict.headline


def test_a_bound_on_epsilon_needs_records_that_stand_alone(forest, sides):
    twice = [
        Records(np.repeat(side.X, 2, axis=0), np.repeat(side.y, 2), name=side.name)
        for side in sides
    ]
    report = valid(leakscope.audit(forest, *twice, attacks=["loss"], randomized=True))
    assert report.outcomes[0]["epsilon_lower"] is None
    assert "more than once" in report.outcomes[0]["epsilon_note"]
