"""The influence graph: Table 4 and Figure 10 of Shokri, Strobel & Zick (2021), section 5.3.3.

Every training record points to the k = 5 records that explain it. Whoever holds one record walks
along these edges, and sees what can be reached from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakscope.extractions import InfluenceGraph, Traversal
from leakscope.papers.experiment import Experiment, Row, Setting
from leakscope.papers.shokri_samples import (
    PAPER,
    TITLES,
    Population,
    Sample,
    against,
    columns,
    mean_over,
    number,
    populations,
    samples,
    setup_of,
)
from leakscope.protocols import Floats
from leakscope.registry import register

if TYPE_CHECKING:
    from matplotlib.figure import Figure

K = 5
# Records a walk is started from, of each training set.
STARTS = 5
BINS = 40
FIGURES = {
    "scc": "strongly connected components",
    "scc_size_1": "of one record",
    "largest_scc": "records in the largest",
    "max_in_degree": "edges into one record at most",
    "in_degree_0": "records that explain nobody",
}

# Table 4 in print, in the order of the figures.
TABLE_4 = {
    "dogfish": (1709, 1679, 50, 1069, 1364),
    "adult": (1742, 1701, 167, 391, 1568),
    "hospital": (1448, 1333, 228, 287, 727),
}


def graph_of(sample: Sample) -> InfluenceGraph:
    """The graph of a training set, k edges from each record."""
    return InfluenceGraph.of(sample.models.explain(sample.features, K)[0])


@register("experiment", "shokri-table4", paper=f"{PAPER}, table 4")
def influence_graphs(setting: Setting) -> Experiment:
    """Components and in-degrees of the graph in which records point to those that explain them."""
    found, missing = populations(setting)
    rows = [_row(one, setting) for one in found]
    return Experiment(
        experiment="shokri-table4",
        paper=f"{PAPER}, table 4",
        setup=setup_of(setting, found, k=K),
        rows=rows,
        paper_rows=[
            {"dataset": one.name, **dict(zip(FIGURES, TABLE_4[one.name], strict=True))}
            for one in found
        ],
        notes=[*_notes(rows), "Intervals of 95 % are Student's over samples.", *missing],
    )


def _row(population: Population, setting: Setting) -> dict[str, Any]:
    """The figures of a population's graphs, averaged."""
    tables = [graph_of(sample).table() for sample in samples(population, setting)]
    row: dict[str, Any] = {"dataset": population.name, "records": population.records}
    for key in FIGURES:
        row |= columns(key, mean_over([table[key] for table in tables]))
    return row


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    """Each figure beside that in print, and what the paper concludes from them."""
    for row in rows:
        printed = dict(zip(FIGURES, TABLE_4[row["dataset"]], strict=True))
        told = [f"{what}: {against(row, key, printed[key])}" for key, what in FIGURES.items()]
        yield f"{TITLES[row['dataset']]}: {'; '.join(told)}."
        unseen, alone = row["in_degree_0"] / row["records"], row["scc_size_1"] / row["scc"]
        yield (
            f"{TITLES[row['dataset']]}: {alone:.0%} of the components have one record, and "
            f"{unseen:.0%} of the records explain nobody and cannot be found by walking."
        )


@register("experiment", "shokri-fig10", paper=f"{PAPER}, figure 10")
def revealed_by_walking(setting: Setting) -> Experiment:
    """The share of a training set that is seen by walking from a random record, and the queries."""
    found, missing = populations(setting)
    rows, reached = list[dict[str, Any]](), dict[str, Floats]()
    for one in found:
        shares = list[Floats]()
        for at, sample in enumerate(samples(one, setting)):
            graph = graph_of(sample)
            rows.append(_walked(at, sample, graph))
            shares.append(100 * graph.reach / one.records)
        reached[one.name] = np.concatenate(shares)
    return Experiment(
        experiment="shokri-fig10",
        paper=f"{PAPER}, figure 10",
        setup=setup_of(setting, found, k=K, starts=STARTS),
        rows=rows,
        paper_rows=[
            {
                "revealed": "about the size of the largest component",
                "source": "section 5.3.3 on figure 10; no number is printed",
            }
        ],
        notes=[*_walk_notes(rows), *missing],
        draw=partial(_draw, reached),
    )


def _walked(at: int, sample: Sample, graph: InfluenceGraph) -> dict[str, Any]:
    """What is seen from every record of a training set, and the queries it takes from some."""
    n, largest = len(sample.rows), int(graph.component_sizes[0])
    q1, median, q3 = np.quantile(100 * graph.reach / n, [0.25, 0.5, 0.75])
    queries, least = _queries(sample, graph)
    return {
        "dataset": sample.population.name,
        "sample": at,
        "records": n,
        "largest_scc": largest,
        "revealed_median": float(median),
        "revealed_q1": float(q1),
        "revealed_q3": float(q3),
        "starts_to_largest": 100 * float((graph.reach >= largest).mean()),
        "queries": float(queries.mean()),
        "omniscient_queries": float(least.mean()),
        "ratio": float(queries.sum() / least.sum()),
    }


def _queries(sample: Sample, graph: InfluenceGraph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Queries from random starts, (STARTS,): of one who walks, and of one who knows the graph."""
    starts = np.random.default_rng(sample.seed).choice(len(sample.rows), STARTS, replace=False)
    walked = [
        Traversal(sample.features[[start]], seed=sample.seed).run(sample.oracle(K)).queries
        for start in starts
    ]
    return np.array(walked), np.array([graph.omniscient_queries(int(one)) for one in starts])


def _walk_notes(rows: Sequence[Row]) -> Iterator[str]:
    """What a walk sees beside the largest component, and what knowing the graph would save."""
    for name in dict.fromkeys(row["dataset"] for row in rows):
        own = [row for row in rows if row["dataset"] == name]
        size = 100 * np.mean([row["largest_scc"] / row["records"] for row in own])
        seen = np.mean([row["revealed_median"] for row in own])
        starts = np.mean([row["starts_to_largest"] for row in own])
        yield (
            f"{TITLES[name]}: a walk reveals {number(float(seen))} % of the training set in the "
            f"median, and the largest component has {number(float(size))} %; as many as that are "
            f"seen from {number(float(starts))} % of the records."
        )
        ratio = columns("ratio", mean_over([row["ratio"] for row in own]))
        low, high = ratio["ratio_low"], ratio["ratio_high"]
        ends = "" if low is None else f" ({low:.2f} to {high:.2f})"
        yield (
            f"{TITLES[name]}: walking takes {ratio['ratio']:.2f}{ends} times the queries of a "
            f"greedy adversary who knows the graph."
        )


def _draw(reached: dict[str, Floats]) -> Figure:
    from leakscope.papers.shokri_drawing import Look, Panel, Series, panels

    drawn = list[Panel]()
    for name, shares in reached.items():
        counts, edges = np.histogram(shares, BINS, range=(0.0, float(shares.max())))
        percent = 100 * counts / len(shares)
        heights = np.append(percent, percent[-1]).tolist()
        drawn.append(Panel(TITLES[name], [Series("starts", edges.tolist(), heights)]))
    return panels(drawn, Look("training records revealed, %", "starting records, %", "steps"))
