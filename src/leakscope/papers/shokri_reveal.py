"""Who is shown by the explanation of their own record: Figure 6, Table 2 and Figure 15.

Shokri, Strobel & Zick (2021), section 5.1 and appendix G: a record that is among the k most
influential for its own prediction is revealed as a member by asking about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakscope.papers.experiment import Experiment, Row, Scale, Setting
from leakscope.papers.shokri_samples import (
    PAPER,
    TITLES,
    Population,
    against,
    columns,
    number,
    pooled_share,
    populations,
    samples,
    setup_of,
)
from leakscope.registry import register

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KS = (1, 5, 10)
ENDS = ("", "_low", "_high")
SIZES_SWEPT: dict[Scale, tuple[int, ...]] = {
    "quick": (100, 300, 1000, 3000),
    "full": (100, 300, 1000, 3000, 10000),
}

# Table 2 in print: data set, group, value, percent of the data, percent revealed at each k.
TABLE_2 = (
    ("dogfish", "all", "everyone", 100, 16, 24, 28),
    ("hospital", "all", "everyone", 100, 33, 63, 75),
    ("hospital", "age", "0-10", 0.2, 61, 100, 100),
    ("hospital", "age", "10-20", 0.7, 23, 62, 95),
    ("hospital", "race", "Caucasian", 75, 32, 62, 74),
    ("hospital", "race", "AfricanAmerican", 19, 36, 66, 78),
    ("hospital", "race", "Hispanic", 2, 40, 61, 77),
    ("hospital", "race", "Other", 1.5, 30, 60, 79),
    ("hospital", "race", "Asian", 0.6, 33, 70, 95),
    ("adult", "all", "everyone", 100, 10, 21, 28),
    ("adult", "age", "10-20", 5, 0, 1, 1),
    ("adult", "race", "White", 86, 10, 21, 28),
    ("adult", "race", "Black", 10, 9, 16, 19),
    ("adult", "race", "Amer-Indian-Eskimo", 1, 8, 23, 32),
    ("adult", "race", "Other", 0.8, 16, 32, 43),
    ("adult", "race", "Asian-Pac-Islander", 3, 21, 40, 48),
)
MAJORITIES = ("Caucasian", "White")
PRINTED: list[dict[str, Any]] = [
    dict(zip(("dataset", "group", "value", "share", "k1", "k5", "k10"), line, strict=True))
    for line in TABLE_2
]

INTERVALS = (
    "Intervals of 95 % are over samples, or over records where that is wider; the samples are "
    "drawn apart, and records of one sample share a model."
)


@dataclass(frozen=True, eq=False)
class Ranked:
    """The training sets of a population: who is in each, and the place in their own explanation."""

    population: Population
    rows: Sequence[NDArray[np.intp]]
    ranks: Sequence[NDArray[np.intp]]

    @classmethod
    def of(cls, population: Population, setting: Setting, records: int | None = None) -> Ranked:
        """Draw the training sets, and let each explain itself."""
        ranked = [
            # The models of one training set at a time: they are large.
            (sample.rows, sample.models.self_ranks())
            for sample in samples(population, setting, records)
        ]
        return cls(population, [rows for rows, _ in ranked], [ranks for _, ranks in ranked])

    def revealed(self, k: int, members: NDArray[np.bool_] | None = None) -> dict[str, Any]:
        """The percentage revealed at k, with its interval, of those in a part (N,) of everybody."""
        inside = [
            np.ones(len(rows), bool) if members is None else members[rows] for rows in self.rows
        ]
        hits = [
            int((ranks[part] <= k).sum()) for ranks, part in zip(self.ranks, inside, strict=True)
        ]
        return columns(f"k{k}", pooled_share(hits, [int(part.sum()) for part in inside]))

    def everyone(self) -> dict[str, Any]:
        """The row of everyone."""
        return self._row("all", "everyone", np.ones(len(self.population), bool))

    def by_group(self) -> Iterator[dict[str, Any]]:
        """A row for each value of each group that is in one of the training sets."""
        drawn = np.zeros(len(self.population), bool)
        drawn[np.concatenate(self.rows)] = True
        for group, values in self.population.groups.items():
            for value in sorted(set(values[drawn].tolist())):
                yield self._row(group, value, values == value)

    def _row(self, group: str, value: str, members: NDArray[np.bool_]) -> dict[str, Any]:
        count = sum(int(members[rows].sum()) for rows in self.rows)
        total = sum(len(rows) for rows in self.rows)
        row: dict[str, Any] = {
            "dataset": self.population.name,
            "group": group,
            "value": value,
            "share": 100 * count / total,
            "records": count,
        }
        for k in KS:
            row |= self.revealed(k, members)
        return row


@register("experiment", "shokri-table2", paper=f"{PAPER}, table 2")
def revealed_by_group(setting: Setting) -> Experiment:
    """Who is revealed by the explanation of their own record, by age, race and sex."""
    found, missing = populations(setting)
    ranked = [Ranked.of(one, setting) for one in found]
    rows = [row for one in ranked for row in (one.everyone(), *one.by_group())]
    return Experiment(
        experiment="shokri-table2",
        paper=f"{PAPER}, table 2",
        setup=setup_of(setting, found, ks=list(KS)),
        rows=rows,
        paper_rows=[row for row in PRINTED if row["dataset"] in {one.name for one in found}],
        notes=[*_everyone_notes(rows), *_minority_notes(rows), INTERVALS, *missing],
    )


@register("experiment", "shokri-fig6", paper=f"{PAPER}, figure 6")
def revealed_by_k(setting: Setting) -> Experiment:
    """The share of training records that are revealed by their own explanation, by k."""
    found, missing = populations(setting)
    everyone = [Ranked.of(one, setting).everyone() for one in found]
    rows = [_revealed(row, k) for row in everyone for k in KS]
    printed = {row["dataset"]: row for row in PRINTED if row["group"] == "all"}
    return Experiment(
        experiment="shokri-fig6",
        paper=f"{PAPER}, figure 6",
        setup=setup_of(setting, found),
        rows=rows,
        paper_rows=[
            {"dataset": one.name, "k": k, "revealed": printed[one.name][f"k{k}"]}
            for one in found
            for k in KS
        ],
        notes=[*_everyone_notes(everyone), INTERVALS, *missing],
        draw=partial(_draw_by_k, rows),
    )


@register("experiment", "shokri-fig15", paper=f"{PAPER}, figure 15")
def revealed_by_size(setting: Setting) -> Experiment:
    """The share of training records that reveal themselves, by the size of the training set."""
    found, missing = populations(setting)
    rows = [
        {"dataset": one.name, "records": size}
        | {key: value for k in KS for key, value in ranked.revealed(k).items()}
        | {f"count_k{k}": size * ranked.revealed(k)[f"k{k}"] / 100 for k in KS}
        for one in found
        for size in SIZES_SWEPT[setting.scale]
        if size <= len(one)
        for ranked in [Ranked.of(one, setting, size)]
    ]
    return Experiment(
        experiment="shokri-fig15",
        paper=f"{PAPER}, figure 15",
        setup=setup_of(setting, found, ks=list(KS)),
        rows=rows,
        paper_rows=[
            {
                "over": "records",
                "share": "falls slowly",
                "count": "rises",
                "source": "appendix G on figure 15: the trend, no number is printed",
            }
        ],
        notes=[*_size_notes(rows), INTERVALS, *missing],
        draw=partial(_draw_by_size, rows),
    )


def _revealed(row: Row, k: int) -> dict[str, Any]:
    ends = {f"revealed{end}": row[f"k{k}{end}"] for end in ENDS}
    return {"dataset": row["dataset"], "k": k, **ends}


def _everyone_notes(rows: Sequence[Row]) -> Iterator[str]:
    """Everyone's shares beside those in print."""
    printed = {row["dataset"]: row for row in PRINTED if row["group"] == "all"}
    for row in rows:
        if row["group"] == "all":
            told = [
                f"{against(row, f'k{k}', printed[row['dataset']][f'k{k}'], ' %')} at k = {k}"
                for k in KS
            ]
            yield f"{TITLES[row['dataset']]}, revealed of everyone: {', '.join(told)}."


def _minority_notes(rows: Sequence[Row]) -> Iterator[str]:
    """Whether the minorities of the paper are revealed more often than everyone, at k = 5."""
    minorities = {
        (row["dataset"], row["group"], row["value"])
        for row in PRINTED
        if row["group"] != "all" and row["value"] not in MAJORITIES
    }
    for name in dict.fromkeys(row["dataset"] for row in rows if row["dataset"] != "dogfish"):
        everyone = next(r for r in rows if (r["dataset"], r["group"]) == (name, "all"))
        sides: dict[str, list[str]] = {"more": [], "less": [], "undecided": []}
        for row in rows:
            if row["dataset"] == name and (name, row["group"], row["value"]) in minorities:
                text = f"{row['group']} {row['value']} ({number(row['k5'])} %)"
                sides[_side(row, everyone["k5"])].append(text)
        told = "; ".join(
            f"{what}: {', '.join(sides[side]) or 'none'}"
            for side, what in (
                ("more", "revealed more often"),
                ("less", "less often"),
                ("undecided", "not to be told apart"),
            )
        )
        yield (
            f"{TITLES[name]}, minorities of the paper against everyone's {number(everyone['k5'])} "
            f"% at k = 5, by their intervals: {told}."
        )


def _side(row: Row, level: float) -> str:
    if row["k5_low"] > level:
        return "more"
    return "less" if row["k5_high"] < level else "undecided"


def _size_notes(rows: Sequence[Row]) -> Iterator[str]:
    """Whether shares fall and counts rise with the size, at every step."""
    for name in dict.fromkeys(row["dataset"] for row in rows):
        swept = [row for row in rows if row["dataset"] == name]
        for k in KS:
            steps = list(pairwise(swept))
            falls = sum(one[f"k{k}"] > other[f"k{k}"] for one, other in steps)
            rises = sum(one[f"count_k{k}"] < other[f"count_k{k}"] for one, other in steps)
            first, last = swept[0], swept[-1]
            yield (
                f"{TITLES[name]}, k = {k}, from {first['records']:,} to {last['records']:,} "
                f"records: the share goes from {number(first[f'k{k}'])} % to "
                f"{number(last[f'k{k}'])} % and falls at {falls} of {len(steps)} steps; the count "
                f"goes from {number(first[f'count_k{k}'])} to {number(last[f'count_k{k}'])} and "
                f"rises at {rises} of {len(steps)}."
            )


def _draw_by_k(rows: Sequence[Row]) -> Figure:
    from leakscope.papers.shokri_drawing import Look, Panel, Series, panels

    def panel(name: str) -> Panel:
        own = [row for row in rows if row["dataset"] == name]
        bars = Series("revealed", KS, *([row[f"revealed{end}"] for row in own] for end in ENDS))
        return Panel(TITLES[name], [bars])

    names = dict.fromkeys(row["dataset"] for row in rows)
    look = Look("records shown by an explanation, k", "training records revealed, %", "bars")
    return panels([panel(name) for name in names], look)


def _draw_by_size(rows: Sequence[Row]) -> Figure:
    from leakscope.papers.shokri_drawing import Look, Panel, Series, panels

    def panel(name: str) -> Panel:
        swept = [row for row in rows if row["dataset"] == name]
        x = [row["records"] for row in swept]
        lines = [
            Series(f"k = {k}", x, *([row[f"k{k}{end}"] for row in swept] for end in ENDS))
            for k in KS
        ]
        return Panel(TITLES[name], lines)

    names = dict.fromkeys(row["dataset"] for row in rows)
    look = Look("training records", "training records revealed, %", xlog=True)
    return panels([panel(name) for name in names], look)
