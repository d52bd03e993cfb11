"""Queries chosen beforehand: Figure 9 of Shokri, Strobel & Zick (2021), section 5.3.1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from leakscope.extractions.static import Distribution, StaticQueries
from leakscope.papers.experiment import Experiment, Row, Setting
from leakscope.papers.shokri_samples import (
    PAPER,
    TITLES,
    Population,
    columns,
    number,
    pooled_share,
    samples,
    setup_of,
    with_others,
)
from leakscope.registry import register

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KS = (1, 5, 10)
POINTS = (1, 10, 30, 100, 300, 1000)


@register("experiment", "shokri-fig9", paper=f"{PAPER}, figure 9")
def revealed_by_static_queries(setting: Setting) -> Experiment:
    """The share of a training set that a batch of queries reveals, by what the asker knows."""
    found, missing = with_others(setting)
    rows = [row for one in found for row in _rows(one, setting)]
    return Experiment(
        experiment="shokri-fig9",
        paper=f"{PAPER}, figure 9",
        setup=setup_of(setting, found, ks=list(KS), queries=POINTS[-1]),
        rows=rows,
        paper_rows=[
            {"dataset": name, "distribution": "uniform", "k": 10, "queries": 1000, "revealed": told}
            for name, told in (("dogfish", "less than 2 %"), ("hospital", "about 3 %"))
        ],
        notes=[*_notes(rows), *missing],
        draw=partial(_draw, rows),
    )


def _rows(population: Population, setting: Setting) -> Iterator[dict[str, Any]]:
    """The share revealed after so many queries, for each distribution and k."""
    kinds: list[tuple[Distribution, int]] = [
        (kind, k) for kind in get_args(Distribution) for k in KS
    ]
    counts: dict[tuple[Distribution, int], list[list[int]]] = {kind: [] for kind in kinds}
    sizes = list[int]()
    for sample in samples(population, setting):
        people = population.X[sample.others]
        sizes.append(len(sample.rows))
        for kind, k in kinds:
            asked = StaticQueries(people, kind, POINTS[-1], sample.seed).run(sample.oracle(k))
            counts[kind, k].append(asked.shown_after(POINTS).tolist())
    for kind, k in kinds:
        for queries, hits in zip(POINTS, np.transpose(counts[kind, k]).tolist(), strict=True):
            yield {
                "dataset": population.name,
                "distribution": kind,
                "k": k,
                "queries": queries,
                **columns("revealed", pooled_share(hits, sizes)),
            }


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    """What each kind of knowledge reveals at the largest k, and whether it saturates."""
    k, last, before = KS[-1], POINTS[-1], POINTS[-2]
    for name in dict.fromkeys(row["dataset"] for row in rows):
        at = {
            (row["distribution"], row["queries"]): row
            for row in rows
            if row["dataset"] == name and row["k"] == k
        }
        told = [
            f"{kind} {number(at[kind, last]['revealed'])} % "
            f"({number(at[kind, last]['revealed_low'])} to "
            f"{number(at[kind, last]['revealed_high'])}), of which "
            f"{at[kind, before]['revealed'] / at[kind, last]['revealed']:.0%} after {before:,}"
            for kind in get_args(Distribution)
        ]
        ends = [at[kind, last]["revealed"] for kind in get_args(Distribution)]
        order = "is kept" if ends == sorted(ends) else "is not kept"
        yield (
            f"{TITLES[name]}, k = {k}, revealed after {last:,} queries: {'; '.join(told)}; the "
            f"paper's order, uniform below marginal below actual, {order}."
        )


def _draw(rows: Sequence[Row]) -> Figure:
    from leakscope.papers.shokri_drawing import Look, Panel, Series, panels

    keys = ("queries", "revealed", "revealed_low", "revealed_high")

    def panel(name: str, kind: str) -> Panel:
        own = [row for row in rows if (row["dataset"], row["distribution"]) == (name, kind)]
        lines = [
            Series(
                f"k = {k}",
                *([row[key] for row in own if row["k"] == k] for key in keys),
            )
            for k in KS
        ]
        return Panel(f"{TITLES[name]}, {kind}", lines)

    names = dict.fromkeys(row["dataset"] for row in rows)
    drawn = [panel(name, kind) for name in names for kind in get_args(Distribution)]
    return panels(drawn, Look("queries", "training records revealed, %", xlog=True))
