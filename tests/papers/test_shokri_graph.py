from __future__ import annotations

import numpy as np
import pytest

from leakscope.extractions import InfluenceGraph
from leakscope.papers import shokri_graph
from leakscope.papers.drawing import as_svg
from leakscope.papers.experiment import Setting
from leakscope.papers.shokri_graph import graph_of, influence_graphs, revealed_by_walking
from leakscope.papers.shokri_samples import Population, samples

KEYS = ["scc", "scc_size_1", "largest_scc", "max_in_degree", "in_degree_0"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Population:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6)) ** 3
    y = (X[:, 0] + rng.normal(size=150) > 0).astype(np.int64)
    population = Population("adult", X, y, 80)
    monkeypatch.setattr(shokri_graph, "populations", lambda setting: ([population], ["Gone."]))
    return population


def test_a_record_points_to_those_of_largest_influence(small: Population) -> None:
    sample = next(samples(small, Setting()))
    sizes = np.abs(sample.models.influence(sample.features))
    expected = np.argsort(-sizes, axis=1)[:, :5]
    np.testing.assert_array_equal(graph_of(sample).neighbours, expected)


def test_table_4_is_the_mean_of_the_graphs(small: Population) -> None:
    experiment = influence_graphs(Setting())
    (row,) = experiment.rows
    tables = [graph_of(sample).table() for sample in samples(small, Setting())]
    assert len(tables) == 3
    for key in KEYS:
        values = [table[key] for table in tables]
        assert row[key] == pytest.approx(np.mean(values))
        assert row[f"{key}_low"] <= row[key] <= row[f"{key}_high"]
    assert next(iter(row)) == "dataset"
    assert row["records"] == 80


def test_table_4_stands_beside_the_paper() -> None:
    experiment = influence_graphs(Setting(seeds=1))
    assert experiment.paper_rows == [
        {"dataset": "adult", "scc": 1742, "scc_size_1": 1701, "largest_scc": 167,
         "max_in_degree": 391, "in_degree_0": 1568},
    ]  # fmt: skip
    assert experiment.rows[0]["scc_low"] is None
    assert experiment.notes[-1] == "Gone."


def test_the_notes_tell_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    golden = InfluenceGraph.of([[1, 2], [2, 0], [0, 1], [0, 4], [3, 0], [5, 0], [0, 3], [6, 1]])
    monkeypatch.setattr(shokri_graph, "graph_of", lambda sample: golden)
    figures, shares, *_ = influence_graphs(Setting(seeds=2)).notes
    assert "strongly connected components: 5 (5 to 5) against 1,742 in print" in figures
    # 3 of 5 components; one of what are 80 records in the set-up.
    assert "60% of the components have one record, and 1% of the records" in shares


def test_figure_10_walks_and_compares_with_one_who_knows_the_graph(small: Population) -> None:
    experiment = revealed_by_walking(Setting(seeds=2))
    for row, sample in zip(experiment.rows, samples(small, Setting(seeds=2)), strict=True):
        graph = graph_of(sample)
        starts = np.random.default_rng(sample.seed).choice(80, 5, replace=False)
        # Whoever walks asks about each record that can be reached, once.
        assert row["queries"] == pytest.approx(graph.reach[starts].mean())
        least = [graph.omniscient_queries(int(start)) for start in starts]
        assert row["omniscient_queries"] == pytest.approx(np.mean(least))
        assert row["ratio"] == pytest.approx(graph.reach[starts].sum() / sum(least))
        assert row["revealed_median"] == pytest.approx(np.median(graph.reach) / 0.8)
        assert row["largest_scc"] == graph.table()["largest_scc"]
        seen = [one >= row["largest_scc"] for one in graph.reach]
        assert row["starts_to_largest"] == pytest.approx(100 * np.mean(seen))


@pytest.mark.parametrize(("seeds", "ends"), [(1, False), (3, True)])
def test_figure_10_tells_the_ratio_with_its_interval(seeds: int, ends: bool) -> None:
    experiment = revealed_by_walking(Setting(seeds=seeds))
    ratio = np.mean([row["ratio"] for row in experiment.rows])
    assert f"walking takes {ratio:.2f}" in experiment.notes[1]
    assert (" to " in experiment.notes[1]) is ends
    assert experiment.notes[-1] == "Gone."


def test_figure_10_is_a_histogram_of_all_starts() -> None:
    experiment = revealed_by_walking(Setting(seeds=2))
    assert experiment.draw is not None
    figure = experiment.draw()
    (axes,) = figure.axes
    assert axes.get_xlabel() == "training records revealed, %"
    assert axes.get_ylabel() == "starting records, %"
    heights = np.asarray(axes.lines[0].get_ydata())
    assert heights[:-1].sum() == pytest.approx(100.0)
    assert as_svg(figure, "a").startswith("<?xml")
