"""Audits of a model behind a real server: the same figures, within a budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import leakscope as ls
from leakscope.auditing.asking import LOCAL, Asking, questions_about_each
from leakscope.channels.queries import NoisyMargin
from leakscope.channels.robustness import Robustness
from leakscope.errors import ModelError, OracleBudgetError
from leakscope.models import HttpModel, as_model
from leakscope.records import Records
from leakscope.report import load_schema
from serving import Served, as_json, predicting, serving

QUICK = ["loss", "confidence", "label-gap", "robustness"]


@pytest.fixture
def small(sides: Any) -> list[Records]:
    """Sixty of each side: every attack has something to do, and robustness 3,000 questions."""
    return [side.take(np.arange(60)) for side in sides]


@pytest.fixture
def served(forest: Any) -> Iterator[Served]:
    def probabilities(rows: list[Any]) -> Any:
        return forest.predict_proba(np.array(rows, dtype=float)).tolist()

    with serving(predicting(probabilities)) as one:
        yield one


def asked(served: Served) -> int:
    return sum(len(body["instances"]) for body in served.bodies)


def test_the_figures_are_those_of_the_model_at_hand(
    served: Served, forest: Any, small: list[Records]
) -> None:
    remote = ls.audit(HttpModel(served.url), *small, attacks=QUICK).to_dict()
    local = ls.audit(forest, *small, attacks=QUICK).to_dict()
    assert json.dumps(remote["outcomes"]) == json.dumps(local["outcomes"])
    assert remote["verdict"] == local["verdict"]
    assert remote["target"]["model"] == f"the model at {served.url}"
    jsonschema.validate(remote, load_schema())


@pytest.mark.slow
def test_what_was_asked_is_in_the_report_and_nothing_was_asked_twice(
    served: Served, small: list[Records]
) -> None:
    model = HttpModel(served.url)
    report = ls.audit(model, *small, attacks=QUICK)
    cost = report.to_dict()["cost"]
    assert cost["queries"] == asked(served) == 120 * (1 + 24)
    assert cost["requests"] == len(served.bodies)
    assert cost["retries"] == 0
    assert 0 < cost["seconds_waiting"] < cost["seconds"] + 10
    assert "about 3,000 records in" in report.to_html()
    # The next audit finds every answer there.
    again = ls.audit(model, *small, attacks=QUICK).to_dict()
    assert again["cost"]["queries"] == again["cost"]["requests"] == 0
    assert again["outcomes"] == report.to_dict()["outcomes"]


def test_an_audit_of_any_other_model_tells_of_no_queries(forest: Any, small: list[Records]) -> None:
    report = ls.audit(forest, *small, attacks=["loss"])
    assert set(report.to_dict()["cost"]) == {"models", "seconds", "threads"}
    assert "Asked over HTTP" not in report.to_html()
    assert LOCAL.cost() == {}
    LOCAL.check(small)


def test_a_budget_too_small_for_the_records_stops_before_the_first_question(
    served: Served, small: list[Records]
) -> None:
    with pytest.raises(OracleBudgetError) as caught:
        ls.audit(HttpModel(served.url, budget=100), *small)
    assert str(caught.value) == (
        f"The audit asks the model at {served.url} about 120 records at least, and 0 of the 100 "
        "that the budget allows were asked about before; give a budget of at least 120, or audit "
        "fewer records"
    )
    assert served.bodies == []


def test_attacks_that_the_budget_has_no_room_for_say_what_would_be_enough(
    served: Served, small: list[Records]
) -> None:
    report = ls.audit(HttpModel(served.url, budget=200), *small, attacks=QUICK).to_dict()
    reasons = {one["attack"]: one["reason"] for one in report["not_run"]}
    assert reasons["robustness"] == (
        f"It asks the model at {served.url} about 2,880 records more, and the budget of 200 leaves "
        "80; 3,000 would be enough."
    )
    assert {one["attack"] for one in report["outcomes"]} == {*QUICK} - {"robustness"}
    assert asked(served) == report["cost"]["queries"] == 120


def test_the_budget_it_names_is_enough(served: Served, small: list[Records]) -> None:
    report = ls.audit(HttpModel(served.url, budget=3000), *small, attacks=QUICK).to_dict()
    assert "robustness" in {one["attack"] for one in report["outcomes"]}
    assert asked(served) == 3000


def test_a_channel_is_paid_for_once_and_others_after_it_may_be_too_dear(
    served: Served, small: list[Records]
) -> None:
    class Twin:
        """Sees what robustness sees."""

        name, channel, tasks = "twin", "robustness", frozenset({"classification"})

    pool = small[0]
    model = as_model(HttpModel(served.url, budget=60 * 25))
    model.predict(pool.X)
    asking = Asking.of(model)
    robustness, margins = Twin(), Twin()
    margins.channel, margins.name = "noisy-margin", "margins"  # type: ignore[misc]
    kept, left_out = asking.affordable([robustness, Twin(), margins], model, pool, 0)  # type: ignore[list-item]
    assert [one.name for one in kept] == ["twin", "twin"]
    assert "about 240 records more, and the budget of 1,500 leaves 0; 1,740" in left_out["margins"]


def test_attacks_of_another_task_are_left_to_say_so(served: Served, small: list[Records]) -> None:
    report = ls.audit(
        HttpModel(served.url, budget=150), *small, attacks=["loss", "gaussian-error"]
    ).to_dict()
    reasons = {one["attack"]: one["reason"] for one in report["not_run"]}
    assert "regression" in reasons["gaussian-error"]


@pytest.mark.parametrize(
    ("channel", "more"),
    [
        ("loss", 0),
        ("robustness", Robustness().copies * len(Robustness().scales)),
        ("noisy-margin", NoisyMargin().copies),
    ],
)
def test_the_questions_of_a_channel_are_counted_without_asking(
    served: Served, small: list[Records], channel: str, more: int
) -> None:
    model = as_model(HttpModel(served.url))
    model.predict(small[0].X)
    before = asked(served)
    assert questions_about_each(channel, model, small[0], 0) == more
    assert asked(served) == before


def test_a_channel_that_cannot_be_tried_costs_nothing(served: Served, small: list[Records]) -> None:
    model = as_model(HttpModel(served.url))
    model.predict(small[0].X)
    assert questions_about_each("records", model, small[0], 0) == 0


def test_a_regression_from_afar(small: list[Records]) -> None:
    sides = [Records(side.X, side.X[:, 0] + 0.1 * side.y) for side in small]
    line = LinearRegression().fit(sides[0].X, sides[0].y)
    with serving(predicting(lambda rows: line.predict(np.array(rows)).tolist())) as served:
        model = HttpModel(served.url, budget=120)
        remote = ls.audit(model, *sides, task="regression", attacks=["loss"]).to_dict()
    local = ls.audit(line, *sides, attacks=["loss"]).to_dict()
    assert remote["outcomes"][0]["auc"] == local["outcomes"][0]["auc"]


def test_a_service_that_fails_ends_the_audit_in_one_sentence(small: list[Records]) -> None:
    with (
        serving(lambda *_: as_json({"error": "no such model"}, 404)) as served,
        pytest.raises(ModelError, match=r"refused a request \(status 404: no such model\)"),
    ):
        ls.audit(HttpModel(served.url), *small)


def test_a_token_is_in_no_file_of_the_report(
    served: Served, small: list[Records], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUSH", "s3cret-token")
    model = HttpModel(served.url, token_env="HUSH")
    ls.audit(model, *small, attacks=["loss"], out=tmp_path)
    assert served.headers[0]["Authorization"] == "Bearer s3cret-token"
    for path in tmp_path.iterdir():
        assert "s3cret" not in path.read_text("utf-8")
