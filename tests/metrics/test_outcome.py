from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from leakscope import metrics
from leakscope.metrics.epsilon import Epsilon
from leakscope.metrics.groups import by_group
from leakscope.metrics.outcome import judge
from leakscope.metrics.thresholds import CHOSEN

WORDS = {
    "attack": "loss",
    "channel": "loss",
    "paper": "Yeom et al. 2018",
    "summary": "one line",
    "knowledge": "none",
}


def example(n=500, seed=0):
    rng = np.random.default_rng(seed)
    membership = rng.random(n) < 0.4
    scores = np.round(rng.normal(size=n) + 0.5 * membership, 1)
    groups = {"sex": np.array(["f", "m"])[rng.integers(0, 2, n)], "age": rng.integers(0, 3, n)}
    return scores, membership, groups


def validate(outcome):
    schema = json.loads(files("leakscope.report").joinpath("schema.json").read_text("utf-8"))
    only = {"$defs": schema["$defs"], "$ref": "#/$defs/outcome"}
    shown = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
    Draft202012Validator(only).validate(shown)
    return shown


def test_an_outcome_is_what_the_report_asks_for():
    scores, membership, groups = example()
    outcome = judge(scores, membership, groups=groups, **WORDS)
    shown = validate(outcome)
    assert shown["adjusted_p"] is None
    assert shown["epsilon_lower"] is None
    assert shown["threshold"]["source"] == CHOSEN
    filled = replace(
        outcome, adjusted_p=0.5, epsilon_lower=Epsilon(0.3, 1e-5), epsilon_note="randomized"
    )
    assert validate(filled)["epsilon_lower"]["value"] == 0.3
    assert {**WORDS}.items() <= shown.items()


@pytest.mark.parametrize(
    "scores", [np.zeros(40), np.arange(40) % 2, np.arange(40) < 20, np.arange(40.0)]
)
def test_extreme_scores_still_make_an_outcome(scores):
    validate(judge(scores, np.arange(40) < 20, groups={"g": np.arange(40) < 30}, **WORDS))


def test_a_given_threshold_names_its_source_and_a_chosen_one_does_not():
    scores, membership, _ = example()
    given = judge(
        scores, membership, threshold=0.2, threshold_source="average training loss", **WORDS
    )
    assert given.threshold.to_dict() == {"value": 0.2, "source": "average training loss"}
    assert judge(scores, membership, threshold=0.2, **WORDS).threshold.source == "given"
    chosen = judge(scores, membership, threshold_source="average training loss", **WORDS)
    assert chosen.threshold.source == CHOSEN


def test_groups_are_judged_where_the_threshold_is():
    scores, membership, groups = example()
    inside = np.arange(500) % 5 == 0
    outcome = judge(scores, membership, calibration=inside, groups=groups, **WORDS)
    called = scores >= outcome.threshold.value
    plain = tuple(replace(group, tails=()) for group in outcome.groups)
    assert plain == by_group(called, membership, groups, ~inside)
    assert sum(one.n for one in outcome.groups if one.group == "sex") == 400


def test_the_overhead_counts_calibration_persons_and_dependence():
    scores, membership, _ = example(500)
    outcome = judge(scores, membership, inflation=2.0, **WORDS)
    assert outcome.overhead == pytest.approx(2 * 5 / 4, rel=0.01)
    assert judge(scores, membership, threshold=0.0, **WORDS).overhead == 1.0
    unit = np.arange(500)
    repeated = judge(
        np.repeat(scores, 3),
        np.repeat(membership, 3),
        unit=np.repeat(unit, 3),
        threshold=0.0,
        **WORDS,
    )
    assert repeated.overhead == pytest.approx(3, rel=0.02)


def test_the_order_of_the_records_changes_nothing_at_all():
    scores, membership, groups = example()
    expected = judge(scores, membership, groups=groups, **WORDS)
    rng = np.random.default_rng(1)
    for _ in range(5):
        order = rng.permutation(500)
        shuffled = {name: column[order] for name, column in groups.items()}
        found = judge(scores[order], membership[order], groups=shuffled, **WORDS)
        assert found.to_dict() == expected.to_dict()
        assert found.rates == expected.rates


def test_every_public_name_is_there():
    assert all(hasattr(metrics, name) for name in metrics.__all__)
