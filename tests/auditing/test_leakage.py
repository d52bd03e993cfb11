"""Leakage in the report: what the shadow models tell, beside the attacks."""

from __future__ import annotations

from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import leakscope
from leakscope.auditing.leakage import OUTPUTS, WEIGHTS, measure_leakage
from leakscope.auditing.shadows import Dealing, why_no_parameters
from leakscope.exact import ridge_leakage
from leakscope.models import as_model
from leakscope.protocols import silent
from leakscope.records import Records
from leakscope.report import load_schema
from leakscope.trials import Trials

QUICK = ["loss", "lira"]
OF_OUTPUTS = ["output_mutual_information", "output_divergence", "output_advantage"]


def draw(n, seed, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    return Records(X, y, {"sex": np.where(np.arange(n) % 3 == 0, "f", "m")})


@pytest.fixture(scope="module")
def halves():
    return draw(150, 0), draw(150, 1)


def audit(model, sides, shadows=32, **options):
    fitted = model.fit(sides[0].X, sides[0].y)
    options = {"attacks": QUICK, "workers": 1} | options
    report = leakscope.audit(fitted, *sides, shadows=shadows, **options)
    jsonschema.validate(report.to_dict(), load_schema())
    return report


def leakage(report):
    return {one["measure"]: one for one in report.to_dict()["leakage"]}


def reasons(report):
    return {one["attack"]: one["reason"] for one in report.to_dict()["not_run"]}


@pytest.fixture(scope="module")
def tree(halves):
    return audit(DecisionTreeClassifier(random_state=0), halves)


def test_an_overfitted_tree_leaks_far_above_chance(tree):
    found = leakage(tree)
    assert list(found) == OF_OUTPUTS
    best = {one["attack"]: one for one in tree.outcomes}[tree.verdict.attack]
    for one in found.values():
        assert one["low"] > one["null"]["high"]
        if one["measure"] != "output_advantage":  # which is reached, and limits nobody
            assert one["bound_low"] > one["null_bound"]
        assert one["null"]["p_value"] == 1 / 50
        assert one["models"] == 32
        assert one["channel"] == "margin"
        assert "lower bound" in one["note"]
        assert one["best_attack"] == {"attack": best["attack"], "advantage": best["advantage"]}
        assert [(group["value"], group["n"]) for group in one["groups"]] == [("f", 100), ("m", 200)]
    # Always right of members and of about three in four others: the advantage is one in four.
    assert found["output_advantage"]["value"] == pytest.approx(
        tree.to_dict()["target"]["gap"]["value"], abs=0.1
    )


def test_each_record_has_its_nats_in_the_order_of_the_input(tree, halves):
    columns = tree.records.columns
    nats = columns["leakage_nats"]
    assert nats.shape == (300,)
    assert (nats >= 0).all()
    # Estimates below 0 are shown as 0: the column averages to more than the estimates do.
    one = leakage(tree)["output_mutual_information"]
    assert one["value"] <= nats.mean() <= one["value"] + one["underestimate"]
    group = one["groups"][0]["mean"]["value"]
    mine = nats[columns["sex"] == "f"].mean()
    assert group <= mine <= group + one["underestimate"]
    np.testing.assert_array_equal(columns["label"][:150].astype(int), halves[0].y)


@pytest.mark.slow
@pytest.mark.parametrize("model", [DummyClassifier(), LogisticRegression(C=1e-4)], ids=repr)
def test_what_hardly_learns_is_at_chance(model, halves):
    report = audit(model, halves)
    # p ≤ .02 for all three of them at once, were they independent, has a chance of 8e-6.
    assert max(one["null"]["p_value"] for one in leakage(report).values()) > 0.02
    for one in leakage(report).values():
        assert one["low"] <= one["null"]["high"]


@pytest.mark.slow
def test_leakage_rises_with_what_attacks_achieve(halves, tree):
    recipes = [
        LogisticRegression(),
        RandomForestClassifier(10, min_samples_leaf=5, random_state=0),
        RandomForestClassifier(10, random_state=0),
    ]
    reports = [audit(model, halves) for model in recipes]
    for measure in OF_OUTPUTS:
        values = [leakage(report)[measure]["value"] for report in reports]
        assert values == sorted(values)
    lira = [{one["attack"]: one for one in report.outcomes}["lira"] for report in reports]
    advantages = [one["advantage"]["value"] for one in lira]
    assert advantages == sorted(advantages)


def test_the_same_seed_gives_the_same_leakage_in_any_order(halves, tree):
    shuffled = [side.take(np.random.default_rng(3).permutation(len(side))) for side in halves]
    fitted = DecisionTreeClassifier(random_state=0).fit(halves[0].X, halves[0].y)
    again = leakscope.audit(fitted, *shuffled, shadows=32, workers=1, attacks=QUICK)
    assert again.to_dict()["leakage"] == tree.to_dict()["leakage"]


def test_few_shadow_models_say_how_many_it_takes(halves):
    sides = halves[0], halves[1].take(np.arange(100))
    report = audit(DecisionTreeClassifier(), sides, shadows=8)
    assert report.to_dict()["leakage"] == []
    assert "leakage_nats" not in report.records.columns
    # 100 of 250 are left out of each model: two in five.
    assert reasons(report)[OUTPUTS] == (
        "It takes 8 shadow models with each record and 8 without; give --shadows 20 (shadows=20)."
    )
    assert reasons(report)[WEIGHTS] == "DecisionTreeClassifier shows no vector of parameters."


def test_without_shadow_models_the_report_says_why_leakage_is_missing(halves):
    report = audit(DecisionTreeClassifier(), halves, shadows=0, workers=None)
    assert report.to_dict()["leakage"] == []
    assert "give --shadows 16" in reasons(report)[OUTPUTS]
    assert reasons(report)[WEIGHTS] == reasons(report)[OUTPUTS]


@pytest.mark.slow
def test_few_parameters_are_measured_too(halves):
    report = audit(LogisticRegression(), halves, shadows=48)
    assert list(leakage(report)) == [*OF_OUTPUTS, "parameter_rho_kl"]
    one = leakage(report)["parameter_rho_kl"]
    assert one["channel"] == "parameters"
    # What models in pairs show by chance is taken off.
    assert one["null"]["mean"] == pytest.approx(0, abs=1e-9)
    fewer = reasons(audit(LogisticRegression(), halves, shadows=46))[WEIGHTS]
    assert fewer == (
        "LogisticRegression has 4 parameters, which takes 24 shadow models with each record and "
        "24 without; give --shadows 48 (shadows=48)."
    )


@pytest.mark.slow
def test_parameters_of_few_records_leak_what_exact_algebra_says():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = X[:, 0] + rng.normal(size=80)
    report = audit(
        LinearRegression(fit_intercept=False),
        [Records(X[:40], y[:40]), Records(X[40:], y[40:])],
        shadows=160,
        attacks=["loss", "calibrated-loss"],
    )
    one = leakage(report)["parameter_rho_kl"]
    assert one["value"] == pytest.approx(ridge_leakage(X, y, 40, draws=2000).mean.value, rel=0.1)
    assert one["low"] > one["null"]["high"] > 0
    assert one["null"]["p_value"] == 0.02  # as large as that by chance in none of 49


@pytest.mark.slow
def test_parameters_that_depend_on_each_other_are_named(halves):
    twice = [Records(np.repeat(side.X, 2, axis=1)[:, :4], side.y) for side in halves]
    report = audit(LogisticRegression(), twice, shadows=60)
    assert list(leakage(report)) == OF_OUTPUTS
    assert "depend on each other" in reasons(report)[WEIGHTS]


def test_a_class_that_some_model_never_sees_leaves_out_the_parameters(halves):
    members, others = halves
    rare = members.y.copy()
    rare[0] = 2
    records = Records(np.concatenate([members.X, others.X]), np.concatenate([rare, others.y]))
    dealing = Dealing(np.arange(300), np.arange(300) < 150, 200)
    model = as_model(LogisticRegression().fit(members.X, rare))
    assert why_no_parameters(model, records, dealing, 0).startswith("Some shadow model never sees")
    model = as_model(LogisticRegression().fit(others.X, others.y))
    assert why_no_parameters(model, records, dealing, 0) == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "measures"),
    [
        (RandomForestRegressor(5, random_state=0), OF_OUTPUTS),
        (LinearRegression(), [*OF_OUTPUTS, "parameter_rho_kl"]),
    ],
    ids=["forest", "linear"],
)
def test_a_regression_leaks_through_its_loss(halves, model, measures):
    sides = [Records(side.X, side.X[:, 0] + side.y) for side in halves]
    report = audit(model, sides, shadows=48, attacks=["loss", "calibrated-loss"])
    assert list(leakage(report)) == measures
    assert leakage(report)["output_advantage"]["channel"] == "loss"
    if len(measures) == 3:
        assert leakage(report)["output_advantage"]["low"] > 0.2


@pytest.mark.slow
def test_equal_records_count_together():
    members, others = draw(60, 2), draw(60, 3)
    alone = audit(DecisionTreeClassifier(random_state=0), (members, others))
    again = [side.take(np.repeat(np.arange(60), 3)) for side in (members, others)]
    thrice = audit(DecisionTreeClassifier(random_state=0), again)
    widths = [
        one["high"] - one["low"]
        for one in (leakage(report)["output_advantage"] for report in (alone, thrice))
    ]
    assert widths[1] > 0.6 * widths[0]


def test_trials_that_show_neither_probabilities_nor_losses_say_so(halves):
    dealing = Dealing(np.arange(300), np.arange(300) < 150, 16)
    trials = Trials(dealing.deal(0), {"label": np.zeros((16, 300, 1))}, range(16))
    model = SimpleNamespace(name="a vote", abilities=frozenset({"labels"}), classes=None)
    found = measure_leakage(trials, dealing, model, halves[0], None, seed=0, progress=silent)
    assert found.entries == []
    assert found.records is None
    assert found.not_run == {
        OUTPUTS: "It is measured on probabilities or losses, and the shadow models show neither.",
        WEIGHTS: "a vote shows no vector of parameters.",
    }


def test_no_attack_that_was_judged_leaves_the_place_beside_empty(halves):
    dealing = Dealing(np.arange(300), np.arange(300) < 150, 16)
    seen = np.random.default_rng(0).normal(size=(16, 300, 1))
    trials = Trials(dealing.deal(0), {"margin": seen}, range(16))
    model = SimpleNamespace(name="a vote", abilities=frozenset(), classes=None)
    records = SimpleNamespace(groups={})
    steps = []
    found = measure_leakage(
        trials, dealing, model, records, None, seed=0,
        progress=lambda *step: steps.append(step),
    )  # fmt: skip
    assert [one["best_attack"] for one in found.beside(None)] == [None] * 3
    assert steps[-1] == ("done", 2, 2)
