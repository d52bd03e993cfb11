"""Pictures of Wang et al. (2020): curves in two rows, and histograms of weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from leakscope.papers.drawing import own_style
from leakscope.papers.experiment import Row
from leakscope.report.svg import LINE, MEMBER, NONMEMBER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def curves(rows: Sequence[Row], kinds: tuple[str, str]) -> Figure:
    """A column for each defense, with the first kind of curve above the second, as in Figure 2."""
    from matplotlib.figure import Figure

    defenses = _defenses(rows)
    with own_style():
        size = (1.0 + 3.0 * len(defenses), 5.6)
        figure = Figure(figsize=size, dpi=72, layout="constrained")
        grid = figure.subplots(2, len(defenses), squeeze=False, sharey="row")
        for column, defense in enumerate(defenses):
            own = [row for row in rows if row["defense"] == defense]
            for axes, kind, colour in zip(grid[:, column], kinds, (MEMBER, NONMEMBER), strict=True):
                _draw_curve(axes, [row for row in own if row["curve"] == kind], colour)
            grid[0, column].set_title(defense)
        for axes, kind, below in zip(grid[:, 0], kinds, ("training", "inference"), strict=True):
            axes.set_ylabel(kind)
            for one in grid[kinds.index(kind)]:
                one.set_xlabel(f"epoch of {below}")
        for axes in grid[1]:
            axes.axhline(0.5, color=LINE, linestyle="dotted", linewidth=1)
        return figure


def _draw_curve(axes: Axes, rows: Sequence[Row], colour: str) -> None:
    epochs, values = ([row[key] for row in rows] for key in ("epoch", "value"))
    axes.plot(epochs, values, color=colour, linewidth=1.4)
    if rows[0]["low"] is not None:
        low, high = ([row[key] for row in rows] for key in ("low", "high"))
        axes.fill_between(epochs, low, high, color=colour, alpha=0.15, linewidth=0)


def distributions(rows: Sequence[Row]) -> Figure:
    """A histogram for each defense, with the number of zeros beside it, as in Figure 3."""
    from matplotlib.figure import Figure

    defenses = _defenses(rows)
    with own_style():
        size = (1.0 + 3.0 * len(defenses), 3.2)
        figure = Figure(figsize=size, dpi=72, layout="constrained")
        panels = figure.subplots(1, len(defenses), squeeze=False, sharex=True)[0]
        for axes, defense in zip(panels, defenses, strict=True):
            own = [row for row in rows if row["defense"] == defense]
            edges = np.array([*(row["low_edge"] for row in own), own[-1]["high_edge"]])
            axes.stairs([row["count"] for row in own], edges, fill=True, color=MEMBER)
            axes.set_title(f"{defense}\n{own[0]['zeros']:,} zeros", fontsize=9)
            axes.set_xlabel("weight")
        panels[0].set_ylabel("number of weights")
        return figure


def _defenses(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["defense"]) for row in rows))
