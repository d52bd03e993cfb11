"""What an audit reads out of explanations, against the extractions run by hand."""

from __future__ import annotations

import jsonschema
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakscope
from leakscope.auditing import disclosures
from leakscope.auditing.disclosures import BUDGET, Explaining
from leakscope.channels.influence import explained
from leakscope.channels.oracle import LocalOracle
from leakscope.exact import leave_one_out
from leakscope.extractions import InfluenceGraph, Reconstruction, SelfReveal, StaticQueries
from leakscope.metrics.intervals import wilson
from leakscope.models import as_model
from leakscope.protocols import silent
from leakscope.records import Records
from leakscope.registry import entries
from leakscope.report import load_schema

EXACT = {"solver": "newton-cholesky", "tol": 1e-10}


def draw(n, seed, unit=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    signal = X[:, 0] + rng.normal(size=n)
    y = (np.argsort(np.argsort(signal)) >= n // 2).astype(int)
    groups = {"sex": np.where(X[:, 1] > 0.3, "f", "m"), "old": np.where(X[:, 2] > 1, "yes", "no")}
    return Records(X, y, groups, 1000 * seed + np.arange(n) // 2 if unit else None)


@pytest.fixture(scope="module")
def sides():
    return draw(150, 0), draw(120, 1)


def audited(estimator, sides, **options):
    members, nonmembers = sides
    model = estimator.fit(members.X, members.y)
    report = leakscope.audit(model, members, nonmembers, channels=["records"], **options)
    jsonschema.validate(report.to_dict(), load_schema())
    return report.to_dict()


@pytest.fixture(scope="module")
def report(sides):
    return audited(LogisticRegression(**EXACT), sides, seed=3)


@pytest.fixture(scope="module")
def members(sides):
    """The members in the order in which the audit explains by them."""
    return sides[0].take(sides[0].canonical_order())


@pytest.fixture(scope="module")
def models(members):
    return leave_one_out(members.X, members.y)


def entry(report, extraction, k):
    (found,) = [
        one for one in report["disclosures"] if (one["extraction"], one["k"]) == (extraction, k)
    ]
    return found


def reasons(report):
    return {one["attack"]: one["reason"] for one in report["not_run"]}


def test_every_extraction_is_reported_and_the_attack_judged(report):
    assert [(one["extraction"], one["k"], one["show"]) for one in report["disclosures"]] == [
        ("self-reveal", 10, "records"),
        ("traversal", 5, "records"),
        ("static", 5, "records"),
        ("reconstruction", 1, "signed"),
        ("reconstruction", 5, "signed"),
    ]
    assert {one["extraction"] for one in report["disclosures"]} == {
        one.name for one in entries("extraction")
    }
    assert [one["attack"] for one in report["outcomes"]] == ["shown"]
    assert report["verdict"]["attack"] == "shown"
    assert all(one["details"]["budget"] == BUDGET for one in report["disclosures"])
    assert all(control["passed"] for control in report["controls"])


def test_self_reveal_is_that_of_the_ranks_by_group(report, models, members):
    ranks = models.self_ranks()
    shares = {
        (one["group"], one["value"], one["k"]): one
        for one in entry(report, "self-reveal", 10)["groups"]
    }
    assert len(shares) == 3 * 5
    for (group, value, k), one in shares.items():
        inside = np.ones(150, bool) if group == "all" else members.groups[group] == value
        hits = int((ranks[inside] <= k).sum())
        assert (one["n"], one["recovered"]) == (inside.sum(), hits)
        assert one["share"] == wilson(hits, int(inside.sum())).to_dict()
    five = shares["all", "everyone", 5]["share"]["value"]
    assert report["outcomes"][0]["advantage"]["value"] == pytest.approx(five, abs=1e-12)


def test_the_walk_and_its_graph_are_those_of_the_explanations(report, models):
    told = entry(report, "traversal", 5)
    graph = InfluenceGraph.of(models.explain(models.X, 5)[0])
    start = int(np.random.default_rng(3).integers(150))
    details = told["details"]
    assert details["graph"] == graph.table()
    assert details["reach_mean"] == pytest.approx(graph.reach.mean())
    assert details["reach_median"] == np.median(graph.reach)
    assert details["reach_share"] == pytest.approx(graph.reach.mean() / 150)
    assert details["omniscient_queries"] == graph.omniscient_queries(start)
    # The start itself is known, and shown only if somebody's explanation shows it.
    assert graph.reach[start] - 1 <= told["shown"] <= graph.reach[start]
    assert told["groups"][0]["recovered"] == told["shown"]


def test_non_members_ask_and_queries_are_chosen_as_by_hand(report, sides, members, models):
    explainer = explained(
        as_model(LogisticRegression(**EXACT).fit(members.X, members.y)), members
    ).explainer
    held = sides[1].take(sides[1].canonical_order()).X
    by_hand = {
        ("static", 5): StaticQueries(held, "actual", len(held), 3),
        ("reconstruction", 1): Reconstruction(seed=3),
        ("reconstruction", 5): Reconstruction(seed=3),
    }
    for (name, k), extraction in by_hand.items():
        show = "records" if name == "static" else "signed"
        told = extraction.run(LocalOracle.of(explainer, k=k, show=show, budget=BUDGET))
        found = entry(report, name, k)
        assert (found["recovered"], found["queries"]) == (told.recovered, told.queries)
        assert found["curve"] == told.to_dict()["curve"]
        shares = told.among(150, members.groups).to_dict()["groups"]
        assert found["groups"] == shares
    # One pass at k = 1 finds at most as many records as there are directions, and one.
    assert 0 < entry(report, "reconstruction", 1)["recovered"] <= 7


def test_the_order_of_the_input_changes_nothing(report, sides):
    rng = np.random.default_rng(0)
    shuffled = [side.take(rng.permutation(len(side))) for side in sides]
    # The same model: another order of sums would be another model in the last digits.
    again = audited(_Fitted(sides[0]), shuffled, seed=3)
    first = audited(_Fitted(sides[0]), sides, seed=3)
    assert again["disclosures"] == first["disclosures"]
    assert again["outcomes"] == first["outcomes"]


class _Fitted:
    """An estimator that is fitted on these records, whatever it is given."""

    def __init__(self, records):
        self.model = LogisticRegression(**EXACT).fit(records.X, records.y)

    def fit(self, X, y):
        return self.model


def test_rows_of_one_person_count_together():
    sides = draw(150, 0, unit=True), draw(120, 1, unit=True)
    by_person = audited(LogisticRegression(**EXACT), sides)
    by_row = audited(LogisticRegression(**EXACT), (draw(150, 0), draw(120, 1)))
    one, other = (entry(report, "self-reveal", 10)["groups"] for report in (by_person, by_row))
    members = sides[0].take(sides[0].canonical_order())
    explainer = explained(
        as_model(LogisticRegression(**EXACT).fit(members.X, members.y)), members
    ).explainer
    told = SelfReveal(members.X, (1, 5, 10), members.groups, members.unit).run(
        LocalOracle.of(explainer, k=10)
    )
    assert one == told.to_dict()["groups"]
    assert one != other
    assert [row["recovered"] for row in one] == [row["recovered"] for row in other]


def test_a_pipeline_is_read_in_the_features_of_its_model(sides):
    report = audited(make_pipeline(StandardScaler(), LogisticRegression(**EXACT)), sides)
    members = sides[0].take(sides[0].canonical_order())
    features = StandardScaler().fit_transform(members.X)
    ranks = leave_one_out(features, members.y).self_ranks()
    everyone = [one for one in entry(report, "self-reveal", 10)["groups"] if one["group"] == "all"]
    assert [one["recovered"] for one in everyone] == [(ranks <= k).sum() for k in (1, 5, 10)]


def three_classes(side):
    return Records(side.X, np.digitize(side.X[:, 0] + np.sin(9 * side.X[:, 1]), [-0.5, 0.5]))


@pytest.mark.parametrize(
    ("estimator", "change", "has"),
    [
        (LogisticRegression(**EXACT), three_classes, "LogisticRegression has 3."),
        (Ridge(), lambda side: Records(side.X, side.X[:, 0] + np.sin(9 * side.X[:, 1])),
         "Ridge predicts numbers."),
    ],
)  # fmt: skip
def test_algorithm_1_is_left_out_by_name_where_there_are_not_two_classes(
    sides, estimator, change, has
):
    report = audited(estimator, [change(side) for side in sides])
    assert [one["extraction"] for one in report["disclosures"]] == [
        "self-reveal",
        "traversal",
        "static",
    ]
    told = reasons(report)["reconstruction"]
    assert told == f"It reads a logistic regression of two classes, and {has}"
    assert [one["attack"] for one in report["outcomes"]] == ["shown"]


def test_a_model_without_exact_influence_is_said_to_have_none(sides):
    report = audited(RandomForestClassifier(5, random_state=0), sides)
    assert report["disclosures"] == report["outcomes"] == []
    assert report["verdict"]["level"] == "invalid"
    names = ["shown", "self-reveal", "traversal", "static", "reconstruction"]
    told = {reasons(report)[name] for name in names}
    assert len(told) == 1
    assert "not from a RandomForestClassifier" in told.pop()


def test_other_attacks_run_beside_a_model_without_exact_influence(sides, forest_of_members):
    found = leakscope.audit(forest_of_members, *sides, channels=["records", "loss"]).to_dict()
    assert {one["attack"] for one in found["outcomes"]} == {"loss"}
    assert "self-reveal" in reasons(found)


@pytest.fixture(scope="module")
def forest_of_members(sides):
    return RandomForestClassifier(5, random_state=0).fit(sides[0].X, sides[0].y)


def test_nothing_of_it_is_done_unless_it_is_asked_for(sides):
    model = LogisticRegression(**EXACT).fit(sides[0].X, sides[0].y)
    usual = leakscope.audit(model, *sides, attacks=["loss"]).to_dict()
    assert usual["disclosures"] == []
    assert reasons(usual)["shown"] == "It runs on request (attacks shown, or channels records)."
    assert "self-reveal" not in reasons(usual)
    attack = leakscope.audit(model, *sides, attacks=["shown", "loss"]).to_dict()
    assert {one["attack"] for one in attack["outcomes"]} == {"shown", "loss"}
    assert attack["disclosures"] == []
    assert "self-reveal" not in reasons(attack)


def test_a_refused_audit_reads_nothing(sides):
    members, _ = sides
    report = audited(LogisticRegression(**EXACT), (members, members))
    assert report["disclosures"] == []
    assert report["verdict"]["level"] == "invalid"
    assert reasons(report)["shown"] == "The control of the overlap failed."


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (MemoryError("no room\nfor it"), "It failed (MemoryError: no room)."),
        (leakscope.errors.InputError("It cannot be."), "It cannot be."),
    ],
)
def test_a_failing_extraction_does_not_lose_the_audit(sides, monkeypatch, failure, told):
    def fail(self, oracle):
        raise failure

    monkeypatch.setattr(StaticQueries, "run", fail)
    report = audited(LogisticRegression(**EXACT), sides)
    assert reasons(report)["static"] == told
    assert len(report["disclosures"]) == 4
    assert report["verdict"]["level"] == "leaks"


def test_the_budget_is_kept_and_said(sides, monkeypatch):
    monkeypatch.setattr(disclosures, "BUDGET", 25)
    report = audited(LogisticRegression(**EXACT), sides)
    for one in report["disclosures"]:
        assert one["queries"] <= 25
        assert one["details"]["budget"] == 25
    assert entry(report, "static", 5)["stopped"] == "the budget of queries was spent"


def test_a_model_that_comes_with_its_records_is_taken_as_it_is(sides, report):
    members, nonmembers = sides
    model = explained(as_model(LogisticRegression(**EXACT).fit(members.X, members.y)), members)
    found = leakscope.audit(model, members, nonmembers, channels=["records"], seed=3).to_dict()
    shares = entry(report, "self-reveal", 10)["groups"]
    assert entry(found, "self-reveal", 10)["groups"] == shares
    other = members.take(np.arange(150)[::-1])
    found = leakscope.audit(model, other, nonmembers, channels=["records"]).to_dict()
    assert "are not the members in their order" in reasons(found)["traversal"]


def test_the_steps_are_told(sides):
    steps = []
    audited(LogisticRegression(**EXACT), sides, progress=lambda *step: steps.append(step))
    assert ("records left out", 150, 150) in steps
    reading = "reading records out of explanations: "
    told = [step for step in steps if step[0].startswith(reading)]
    assert [done for _, done, _ in told] == [0, 1, 2, 3, 4]
    assert told[-1] == (f"{reading}reconstruction at k = 5", 4, 5)


def test_without_attacks_through_explanations_the_model_is_left_alone(sides):
    model = as_model(lambda X: np.full(len(X), 0.5))
    explaining = Explaining.of(model, sides[0], [], ["records"], silent)
    assert explaining.model is model
    assert explaining.disclosed(sides[1], 0, silent).entries == []


def test_adult_gives_a_fifth_of_its_members_away():
    members, nonmembers = leakscope.load_dataset("adult").sample(1200, 0).coin_split(0)
    report = audited(LogisticRegression(**EXACT), (members, nonmembers))
    ranks = leave_one_out(members.X, members.y).self_ranks()
    everyone = [one for one in entry(report, "self-reveal", 10)["groups"] if one["group"] == "all"]
    # A record is also shown by one that equals it.
    _, alike = np.unique(members.X, axis=0, return_inverse=True)
    best = np.full(alike.max() + 1, len(ranks))
    np.minimum.at(best, alike, ranks)
    assert [one["recovered"] for one in everyone] == [(best[alike] <= k).sum() for k in (1, 5, 10)]
    assert 0.15 < everyone[1]["share"]["value"] < 0.45
    rank = np.linalg.matrix_rank(members.X - members.X.mean(axis=0))
    assert entry(report, "reconstruction", 1)["recovered"] <= rank + 1
    assert entry(report, "reconstruction", 5)["recovered"] > rank
    assert report["verdict"]["level"] == "leaks"
