"""Audits that train shadow models."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import leakscope
from leakscope.auditing.battery import choose_attacks
from leakscope.auditing.shadows import Dealing, Shadowing, train_shadows
from leakscope.errors import InputError
from leakscope.models import as_model
from leakscope.protocols import silent
from leakscope.recipes import as_recipe, recipe_of
from leakscope.records import Records, pool
from leakscope.registry import entries
from leakscope.report import load_schema
from leakscope.trials import expand, fixed_size, run_trials

ON_SHADOWS = {
    entry.name for entry in entries("attack") if entry.thing.shadows and not entry.thing.on_request
}
QUICK = ["loss", "lira", "rmia"]


@pytest.fixture(scope="module")
def audited(forest, sides, tmp_path_factory):
    """One audit with everything, and its folder."""
    folder = tmp_path_factory.mktemp("run")
    report = leakscope.audit(forest, *sides, shadows=16, workers=2, out=folder)
    return report, folder


def outcomes(report):
    return {one["attack"]: one for one in report.outcomes}


@pytest.mark.slow
def test_the_attacks_on_shadow_models_run_and_say_how_many_models_they_rest_on(audited):
    report, folder = audited
    data = report.to_dict()
    jsonschema.validate(data, load_schema())
    found = outcomes(report)
    assert set(found) >= ON_SHADOWS
    for name, one in found.items():
        assert one["models"] == (17 if name in ON_SHADOWS else 1)
    assert data["cost"]["models"] == 17
    assert data["trials"]["models"] == 16
    assert data["trials"]["recipe"] == "RandomForestClassifier"
    assert data["trials"]["threads"] == data["cost"]["threads"] == 1
    assert data["trials"]["members"] == 400
    assert json.loads((folder / "trials" / "manifest.json").read_text())["models"][3]["number"] == 3
    for name in ON_SHADOWS:
        assert found[name]["auc"]["low"] > 0.6


@pytest.mark.slow
def test_the_report_tells_of_them(audited):
    report, _ = audited
    page = report.to_html()
    assert "16 of the recipe RandomForestClassifier, each trained on 400 records" in page
    assert "Compares with 16 shadow models." in page
    assert "Other models made this way" in page


def test_the_experiment_is_that_of_the_loss_attack_on_each_shadow_model(audited):
    experiment = audited[0].to_dict()["trials"]["experiment"]
    assert len(experiment["advantages"]) == experiment["models"] == 16
    assert (
        experiment["mean"]["low"] < np.mean(experiment["advantages"]) < experiment["mean"]["high"]
    )
    # The target is one more model of the same recipe and size.
    loss = outcomes(audited[0])["loss"]["advantage"]
    assert loss["low"] < experiment["mean"]["value"] < loss["high"]


def test_a_second_audit_trains_nothing_and_gives_the_same_numbers(
    audited, forest, sides, monkeypatch
):
    def refuse(*_, **__):
        raise AssertionError("a model was trained again")

    monkeypatch.setattr("leakscope.recipes.sklearn.SklearnRecipe.fit_many", refuse)
    report, folder = audited
    again = leakscope.audit(forest, *sides, shadows=16, store=folder / "trials")
    assert again.outcomes == report.outcomes


@pytest.mark.slow
@pytest.mark.parametrize("turned", ["order", "types"])
def test_the_order_of_records_changes_nothing(audited, forest, sides, turned):
    report, _ = audited
    shuffled = [side.take(np.random.default_rng(3).permutation(len(side))) for side in sides]
    if turned == "types":
        shuffled = [Records(side.X, side.y.astype(np.int32), side.groups) for side in sides]
    again = leakscope.audit(forest, *shuffled, shadows=16, workers=1, attacks=["lira"])
    ours, theirs = outcomes(report)["lira"], outcomes(again)["lira"]
    assert theirs["auc"] == ours["auc"]
    assert theirs["curve"] == ours["curve"]


@pytest.mark.slow
def test_a_stranger_to_both_sides_is_at_chance_for_every_attack_on_shadow_models(stranger, sides):
    report = leakscope.audit(stranger, *sides, shadows=16, attacks=sorted(ON_SHADOWS))
    assert report.verdict.level != "leaks"
    for one in report.outcomes:
        assert one["auc"]["low"] <= 0.5 <= one["auc"]["high"]


def test_without_shadow_models_their_attacks_say_what_they_need(forest, sides):
    report = leakscope.audit(forest, *sides, attacks=QUICK)
    reasons = {one["attack"]: one["reason"] for one in report.to_dict()["not_run"]}
    assert reasons["lira"].startswith("It needs shadow models; give --shadows 32 (shadows=32)")
    assert report.to_dict()["trials"] is None
    saved = leakscope.audit_predictions(
        forest.predict_proba(sides[0].X), sides[0].y, forest.predict_proba(sides[1].X), sides[1].y
    )
    reasons = {one["attack"]: one["reason"] for one in saved.to_dict()["not_run"]}
    assert reasons["rmia"] == (
        "It needs shadow models; and saved predictions do not tell how to train any."
    )


def test_too_few_shadow_models_are_named(forest, sides):
    report = leakscope.audit(forest, *sides, attacks=QUICK, shadows=2, workers=1)
    reasons = {one["attack"]: one["reason"] for one in report.to_dict()["not_run"]}
    assert "shadow models" in reasons["lira"]


def test_attacks_that_need_none_train_none(forest, sides, tmp_path):
    with pytest.warns(UserWarning, match="None of the attacks asked for can use shadow models"):
        report = leakscope.audit(forest, *sides, attacks=["loss"], shadows=8, out=tmp_path)
    assert report.to_dict()["trials"] is None
    assert report.to_dict()["cost"]["models"] == 1
    assert not (tmp_path / "trials").exists()


def test_a_refused_audit_trains_none(forest, sides, tmp_path):
    half = sides[0].take(np.arange(200))
    report = leakscope.audit(forest, sides[0], half, shadows=8, out=tmp_path)
    assert report.verdict.level == "invalid"
    assert not (tmp_path / "trials").exists()


def test_a_model_that_cannot_be_cloned_needs_a_recipe(sides):
    model = KNeighborsClassifier(1).fit(sides[0].X, sides[0].y)
    with pytest.raises(InputError, match="is not known, and shadow models are trained like it"):
        leakscope.audit(model.predict_proba, *sides, shadows=8)
    report = leakscope.audit(
        model.predict_proba, *sides, recipe=KNeighborsClassifier(1), shadows=8, attacks=QUICK
    )
    assert report.to_dict()["trials"]["recipe"] == "KNeighborsClassifier"
    assert outcomes(report)["lira"]["auc"]["low"] > 0.5


def test_a_recipe_may_be_a_name(sides):
    model = as_recipe("tree").fit(sides[0], 0)
    report = leakscope.audit(model, *sides, recipe="tree", shadows=8, attacks=["lira-offline"])
    assert report.to_dict()["trials"]["recipe"] == "tree"


@pytest.mark.parametrize("shadows", [-1, 1.5, "many", True])
def test_a_number_of_shadows_that_is_none_is_refused(forest, sides, shadows):
    with pytest.raises(InputError, match="The number of shadow models is"):
        leakscope.audit(forest, *sides, shadows=shadows)


def test_a_recipe_without_a_number_is_refused(forest, sides):
    for idle in ({"recipe": "forest"}, {"workers": 2}, {"backend": "dask"}, {"fresh": True}):
        with pytest.raises(InputError, match=f"{next(iter(idle))}= is about shadow models, of"):
            leakscope.audit(forest, *sides, **idle)


def test_a_backend_is_checked_before_anything_is_trained(sides):
    with pytest.raises(InputError, match="There is no backend named 'dusk'"):
        leakscope.audit(None, *sides, shadows=8, backend="dusk")


def test_a_recipe_of_another_task_is_refused(forest, sides):
    with pytest.raises(InputError, match="The recipe 'ridge' is for regression, and RandomForestC"):
        leakscope.audit(forest, *sides, shadows=8, recipe="ridge")


def test_rows_of_one_person_stay_together_in_every_shadow_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    X[1] = X[0]  # equal rows of two persons tie these persons
    y[1] = y[0]
    person = np.array([f"p{number // 3}" for number in range(600)])
    person[1] = "p199"
    records, membership = pool(
        Records(X[:300], y[:300], unit=person[:300]), Records(X[300:], y[300:], unit=person[300:])
    )
    model = as_model(DecisionTreeClassifier().fit(X[:300], y[:300]))
    blocks = records.blocks()
    trials = train_shadows(
        Shadowing(as_recipe(DecisionTreeClassifier()), 6, workers=1),
        model,
        records,
        Dealing(blocks, membership, 6),
        choose_attacks(["lira"], None)[0],
        seed=0,
        progress=silent,
    )
    for block in np.unique(blocks):
        rows = trials.roles[:, blocks == block]
        assert (rows == rows[:, :1]).all()
    share = trials.membership.mean(axis=0)
    assert share.min() >= 2 / 6
    assert share.max() <= 4 / 6


@pytest.mark.slow
def test_a_rare_class_missing_in_some_shadow_models(sides):
    X = np.concatenate([side.X for side in sides])
    y = np.concatenate([side.y for side in sides])
    y[[3, 450]] = 2  # one on either side: many shadow models never see it
    members, others = Records(X[:400], y[:400]), Records(X[400:], y[400:])
    model = RandomForestClassifier(20, random_state=0).fit(members.X, members.y)
    report = leakscope.audit(model, members, others, shadows=8, attacks=[*QUICK, "shadow"])
    assert set(outcomes(report)) == {*QUICK, "shadow"}


def test_a_table_with_texts_in_a_pipeline():
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"a": rng.normal(size=500), "town": rng.choice(list("uvwxyz"), 500)})
    frame["y"] = np.where(frame["a"] + rng.normal(size=500) > 0, "yes", "no")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="passthrough"
    )
    members, others = frame[:250], frame[250:]
    model = make_pipeline(columns, DecisionTreeClassifier(random_state=0))
    model.fit(members[["a", "town"]], members["y"])
    report = leakscope.audit(model, members, others, label="y", shadows=8, attacks=QUICK)
    assert outcomes(report)["lira"]["auc"]["low"] > 0.5


def test_regression_has_the_calibrated_loss(sides):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] + rng.normal(size=400)
    model = RandomForestRegressor(20, random_state=0).fit(X[:200], y[:200])
    report = leakscope.audit(model, (X[:200], y[:200]), (X[200:], y[200:]), shadows=8)
    found = outcomes(report)
    assert found["calibrated-loss"]["models"] == 9
    assert "lira" not in found
    assert report.to_dict()["trials"]["experiment"]["models"] == 8


def test_a_model_that_gives_labels_only_trains_none(sides):
    model = LinearSVC().fit(sides[0].X, sides[0].y)
    with pytest.warns(UserWarning, match="None of the attacks asked for can use shadow models"):
        report = leakscope.audit(model, *sides, shadows=8)
    assert report.to_dict()["trials"] is None
    reasons = {one["attack"]: one["reason"] for one in report.to_dict()["not_run"]}
    assert "class probabilities" in reasons["lira"]


@pytest.mark.slow
def test_several_queries_a_record_run_on_request(forest, sides):
    report = leakscope.audit(forest, *sides, shadows=8, attacks=["lira-queries"])
    assert outcomes(report)["lira-queries"]["auc"]["low"] > 0.5


@pytest.mark.slow
def test_unequal_sides(sides):
    """Members are 5 of 6: few shadow models lack a record, and still enough."""
    X = np.concatenate([side.X for side in sides])
    y = np.concatenate([side.y for side in sides])
    model = LogisticRegression().fit(X[:600], y[:600])
    report = leakscope.audit(model, (X[:600], y[:600]), (X[600:], y[600:]), shadows=24)
    assert set(outcomes(report)) >= ON_SHADOWS
    assert report.to_dict()["trials"]["members"] == 600


@pytest.mark.slow
def test_persons_count_once_in_the_experiment():
    from leakscope.metrics import membership_experiment

    rng = np.random.default_rng(4)
    X = np.repeat(rng.normal(size=(60, 3)), 8, axis=0) + rng.normal(scale=0.01, size=(480, 3))
    y = np.repeat((rng.random(60) < 0.5).astype(int), 8)
    person = np.repeat(np.arange(60), 8)
    members, others = (
        Records(X[side], y[side], unit=person[side]) for side in (slice(240), slice(240, 480))
    )
    model = DecisionTreeClassifier(random_state=0).fit(members.X, members.y)
    report = leakscope.audit(
        model, members, others, shadows=16, attacks=["calibrated-loss"], workers=1
    )
    told = report.to_dict()["trials"]["experiment"]["mean"]
    records, membership = pool(members, others)
    records = records.take(records.canonical_order(membership))
    trials = run_trials(
        recipe_of(as_model(model)),
        records,
        expand(fixed_size(60, 30, 16, 0), records.blocks()),
        ["loss"],
        workers=1,
        classes=model.classes_,
    )
    losses = trials.observations["loss"]
    expected = membership_experiment(losses, trials.membership, unit=records.blocks()).mean
    assert told == expected.to_dict()
    alone = membership_experiment(losses, trials.membership).mean
    assert told["high"] - told["low"] > 1.2 * (alone.high - alone.low)
