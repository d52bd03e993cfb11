"""What an audit reads out of explanations, against the extractions run by hand."""

from __future__ import annotations

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import leakscope
from leakscope.auditing import disclosures
from leakscope.auditing.disclosures import BUDGET, Explaining, uninfluenced
from leakscope.channels.influence import explained
from leakscope.channels.oracle import LocalOracle
from leakscope.exact import leave_one_out
from leakscope.extractions import InfluenceGraph, Reconstruction, SelfReveal, StaticQueries
from leakscope.metrics.intervals import newcombe, wilson
from leakscope.models import as_model
from leakscope.protocols import silent
from leakscope.records import Records
from leakscope.registry import entries
from leakscope.report import load_schema
from leakscope.report.disclosures import in_words

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
    assert details["reach_mean"] == pytest.approx(graph.shown.mean())
    assert details["reach_median"] == np.median(graph.shown)
    assert details["reach_share"] == pytest.approx(graph.shown.mean() / 150)
    assert details["omniscient_queries"] == graph.omniscient_queries(start)
    # What a walk is shown is what the figures of other starts count.
    assert told["shown"] == graph.shown[start]
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
    assert [entry(report, "reconstruction", k)["bound"] for k in (1, 5)] == [7, 35]
    assert entry(report, "reconstruction", 5)["details"]["rank"] == 6


def test_nobody_is_like_somebody_else_where_features_are_numbers(report):
    details = entry(report, "self-reveal", 10)["details"]
    assert details["twins"] == 0
    shares = [one for one in entry(report, "self-reveal", 10)["groups"] if one["group"] == "all"]
    for one, share in zip(details["others"], shares, strict=True):
        assert (one["k"], one["n"], one["recovered"]) == (share["k"], 120, 0)
        assert one["share"] == wilson(0, 120).to_dict()
        expected = newcombe(share["share"]["value"], 150, 0, 120).to_dict()
        assert one["excess"] == pytest.approx(expected, abs=1e-12)


def people(n, seed):
    """Two sexes, six schools and five races; a number of their own that the model never sees."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "id": 10_000 * seed + np.arange(n),
            "sex": rng.choice(["f", "m"], n),
            "edu": rng.choice(list("abcdef"), n),
            "race": rng.choice(list("vwxyz"), n, p=[0.6, 0.2, 0.1, 0.06, 0.04]),
        }
    )
    chance = 0.3 + 0.2 * (X["sex"] == "m") + 0.2 * (X["edu"] > "c")
    return Records(X, (rng.random(n) < chance).astype(int), {"sex": X["sex"].to_numpy()})


def rounded(X):
    """The last digits differ with the size of the table, as those of a matrix product may."""
    return X * (1 + 1e-14 * (len(X) % 7))


@pytest.mark.parametrize("steps", [[], [FunctionTransformer(rounded)]])
def test_who_has_twins_on_both_sides_is_shown_on_both_and_that_is_said(steps):
    sides = people(300, 1), people(260, 2)
    coded = make_column_transformer((OneHotEncoder(sparse_output=False), ["sex", "edu", "race"]))
    report = audited(make_pipeline(coded, *steps, LogisticRegression(**EXACT)), sides)
    told = entry(report, "self-reveal", 10)
    kinds = [side.X[["sex", "edu", "race"]].agg("".join, axis=1) for side in sides]
    counts = kinds[0].value_counts()
    assert told["details"]["twins"] == counts[counts > 1].sum() > 280
    five = [one for one in told["groups"] if one["group"] == "all"][1]
    others = told["details"]["others"][1]
    assert others["k"] == five["k"] == 5
    assert others["n"] == 260
    # Of a kind that members have, everybody sees the same.
    assert others["recovered"] > 20
    assert others["excess"]["value"] == five["share"]["value"] - others["share"]["value"]
    assert others["excess"]["low"] <= 0
    # The attack decides in the same way.
    (shown,) = report["outcomes"]
    assert shown["advantage"]["value"] == pytest.approx(others["excess"]["value"], abs=1e-12)
    assert told["recovered"] <= told["shown"] < five["recovered"]
    first = in_words(report["disclosures"])[0]
    assert "is not surely above 0: being shown does not tell here who was" in first
    assert "distinct records in all" in first


def test_a_column_called_like_everyone_is_refused_before_anything_is_computed(sides):
    renamed = [Records(one.X, one.y, {"all": np.full(len(one), "everyone")}) for one in sides]
    steps = []
    with pytest.raises(leakscope.errors.InputError, match="A group column is called 'all'"):
        audited(LogisticRegression(**EXACT), renamed, progress=lambda *step: steps.append(step))
    assert steps == []
    model = LogisticRegression(**EXACT).fit(sides[0].X, sides[0].y)
    alone = leakscope.audit(model, *renamed, attacks=["shown"]).to_dict()
    assert {one["group"] for one in alone["outcomes"][0]["groups"]} == {"all"}


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
    assert reasons(usual)["shown"] == "It runs on request, by its name or by --channels records."
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
    names = ["shown", "self-reveal", "traversal", "static", "reconstruction"]
    assert {reasons(report)[name] for name in names} == {"The control of the overlap failed."}
    model = LogisticRegression(**EXACT).fit(members.X, members.y)
    attack = leakscope.audit(model, members, members, attacks=["shown"]).to_dict()
    assert "self-reveal" not in reasons(attack)


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


def test_where_no_record_has_influence_nothing_is_read_and_nothing_bounds_it(sides):
    members, nonmembers = sides
    model = explained(as_model(LogisticRegression(**EXACT).fit(members.X, members.y)), members)
    blank = uninfluenced(model, model)
    told = Explaining(blank, members).disclosed(nonmembers, 0, silent).entries
    assert [one["shown"] for one in told] == [0, 0, 0, 0, 0]
    assert [one["bound"] for one in told] == [150, None, None, None, None]
    assert {one["excess"]["value"] for one in told[0]["details"]["others"]} == {0.0}
    assert told[1]["details"]["reach_median"] == 0


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


@pytest.mark.slow
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
    first = entry(report, "reconstruction", 1)
    # One-hot columns add up to one each: fewer directions than columns.
    assert first["recovered"] <= first["bound"] == rank + 1 < members.X.shape[1]
    assert entry(report, "reconstruction", 5)["bound"] == min(5 * (rank + 1), len(members))
    assert entry(report, "reconstruction", 5)["recovered"] > rank
    assert report["verdict"]["level"] == "leaks"
