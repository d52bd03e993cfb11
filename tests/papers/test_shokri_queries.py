from __future__ import annotations

import numpy as np
import pytest

from leakscope.extractions import StaticQueries
from leakscope.papers import shokri_queries
from leakscope.papers.drawing import as_svg
from leakscope.papers.experiment import Setting
from leakscope.papers.shokri_queries import _notes, revealed_by_static_queries
from leakscope.papers.shokri_samples import Population, samples


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Population:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5)) ** 3
    y = (X[:, 0] + rng.normal(size=150) > 0).astype(np.int64)
    population = Population("adult", X, y, 60)
    monkeypatch.setattr(shokri_queries, "with_others", lambda setting: ([population], ["Gone."]))
    monkeypatch.setattr(shokri_queries, "POINTS", (1, 20, 80))
    return population


def test_figure_9_is_the_share_of_distinct_records_shown(small: Population) -> None:
    rows = revealed_by_static_queries(Setting(seeds=2)).rows
    assert len(rows) == 27
    found = {(row["distribution"], row["k"], row["queries"]): row["revealed"] for row in rows}
    drawn = list(samples(small, Setting(seeds=2)))
    for kind in ("uniform", "marginal", "actual"):
        for k in (1, 10):
            hits = 0
            for sample in drawn:
                asked = StaticQueries(small.X[sample.others], kind, 80, sample.seed)
                queries = asked._drawn(small.X[sample.others])[:20]
                hits += len(np.unique(sample.models.explain(queries, k)[0]))
            assert found[kind, k, 20] == pytest.approx(100 * hits / 120)
            assert found[kind, k, 1] == pytest.approx(100 * k / 60)


def test_more_queries_and_more_records_reveal_no_less() -> None:
    rows = revealed_by_static_queries(Setting(seeds=1)).rows
    found = {(row["distribution"], row["k"], row["queries"]): row["revealed"] for row in rows}
    for (kind, k, queries), share in found.items():
        if queries > 1:
            assert share >= found[kind, k, 1]
        if k > 1:
            assert share >= found[kind, 1, queries]


@pytest.mark.parametrize(("marginal", "order"), [(15.0, "is kept"), (35.0, "is not kept")])
def test_the_order_of_knowledge_is_judged(marginal: float, order: str) -> None:
    ends = {"uniform": 4.0, "marginal": marginal, "actual": 30.0}
    rows = [
        {"dataset": "adult", "distribution": kind, "k": 10, "queries": queries,
         "revealed": share * part, "revealed_low": 1.0, "revealed_high": 40.0}
        for kind, share in ends.items()
        for queries, part in ((20, 0.75), (80, 1.0))
    ]  # fmt: skip
    (note,) = _notes(rows)
    assert "uniform 4 % (1 to 40), of which 75% after 20" in note
    assert note.endswith(f"uniform below marginal below actual, {order}.")


def test_the_figure_has_a_panel_for_each_distribution() -> None:
    experiment = revealed_by_static_queries(Setting(seeds=2))
    assert experiment.draw is not None
    figure = experiment.draw()
    assert [axes.get_title() for axes in figure.axes] == [
        "Adult, uniform", "Adult, marginal", "Adult, actual",
    ]  # fmt: skip
    assert all(axes.get_xlabel() == "queries" and axes.get_ylabel() for axes in figure.axes)
    assert as_svg(figure, "a").startswith("<?xml")
    assert experiment.notes[-1] == "Gone."
