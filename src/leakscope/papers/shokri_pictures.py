"""Pictures of section 4 of Shokri, Strobel & Zick (2021): sweeps, bars and clouds of records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leakscope.papers.drawing import own_style
from leakscope.papers.experiment import Row
from leakscope.protocols import Bools, Floats
from leakscope.report.svg import LINE, MEMBER, NONMEMBER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# One after another; after them they begin again.
COLOURS = (
    "#1f6f8b", "#c8553d", "#588157", "#8e6c8a", "#b08900", "#3d405b", "#d08c60", "#7a7a7a",
)  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """Values along x, (m,) each, with the ends of their intervals."""

    name: str
    x: Sequence[float]
    values: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    dashed: bool = False


@dataclass(frozen=True)
class Sweep:
    """One panel of curves. level: where a dotted line is drawn, such as chance."""

    title: str
    curves: Sequence[Curve]
    xlabel: str
    ylabel: str
    level: float | None = None
    xlog: bool = False


@dataclass(frozen=True, eq=False)
class Cloud:
    """A number of each record by a swept quantity: values (n, m) at x (m,), and who is a member."""

    title: str
    x: Sequence[float]
    values: Floats
    membership: Bools
    xlabel: str
    ylabel: str


@dataclass(frozen=True, eq=False)
class Bars:
    """Groups of bars: values, low and high (groups, bars)."""

    title: str
    groups: Sequence[str]
    bars: Sequence[str]
    values: Floats
    low: Floats
    high: Floats
    ylabel: str
    level: float


def curve(rows: Sequence[Row], name: str, x: str, value: str, ends: tuple[str, str]) -> Curve:
    """The curve of these rows, by the names of their columns."""
    along, values, low, high = ([row[key] for row in rows] for key in (x, value, *ends))
    return Curve(name, along, values, low, high)


def picture(drawn: Sequence[Sweep | Cloud | Bars]) -> Figure:
    """The panels side by side; sweeps of the same quantities on axes of the same lengths."""
    from matplotlib.figure import Figure

    with own_style():
        size = (1.0 + 4.2 * len(drawn), 4.4)
        figure = Figure(figsize=size, dpi=72, layout="constrained")
        alike = len({(type(panel), panel.ylabel) for panel in drawn}) == 1
        row = figure.subplots(1, len(drawn), squeeze=False, sharex=alike, sharey=alike)[0]
        for axes, panel in zip(row, drawn, strict=True):
            axes.set_title(panel.title)
            if isinstance(panel, Cloud):
                _draw_cloud(axes, panel)
            elif isinstance(panel, Bars):
                _draw_bars(axes, panel)
            else:
                _draw_sweep(axes, panel)
            axes.set_ylabel(panel.ylabel)
        _legends(figure, row)
        return figure


def _legends(figure: Figure, row: Sequence[Axes]) -> None:
    """One legend below all where all panels have the same names, else one in each."""
    names = [axes.get_legend_handles_labels()[1] for axes in row]
    if all(one == names[0] for one in names):
        handles, labels = row[0].get_legend_handles_labels()
        columns = min(len(labels), 2 + 2 * len(row))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=8)
    else:
        for axes in row:
            axes.legend(fontsize=8)


def _draw_sweep(axes: Axes, panel: Sweep) -> None:
    if panel.level is not None:
        axes.axhline(panel.level, color=LINE, linestyle="dotted", linewidth=1)
    for at, one in enumerate(panel.curves):
        values = np.asarray(one.values)
        axes.errorbar(
            one.x, values, yerr=[values - np.asarray(one.low), np.asarray(one.high) - values],
            color=COLOURS[at % len(COLOURS)], marker="o", markersize=3, capsize=2, linewidth=1.2,
            linestyle="dashed" if one.dashed else "solid", label=one.name,
        )  # fmt: skip
    if panel.xlog:
        axes.set_xscale("log")
    axes.set_xlabel(panel.xlabel)


def _draw_cloud(axes: Axes, panel: Cloud) -> None:
    """Each record a point: members beside the tick on the left, others on the right."""
    ticks = np.arange(len(panel.x))
    # Spread by their order: the same records always give the same picture.
    for side, colour, name, shift in (
        (panel.membership, MEMBER, "members", -0.2),
        (~panel.membership, NONMEMBER, "others", 0.2),
    ):
        values = panel.values[side]
        spread = shift + 0.3 * (np.arange(len(values)) / max(1, len(values) - 1) - 0.5)
        axes.plot(
            (ticks[None] + spread[:, None]).ravel(), values.ravel(),
            linestyle="none", marker=".", markersize=1.5, color=colour, label=name,
        )  # fmt: skip
    axes.set_xticks(ticks, [f"{x:g}" for x in panel.x])
    axes.set_yscale("log")
    axes.set_xlabel(panel.xlabel)


def _draw_bars(axes: Axes, panel: Bars) -> None:
    axes.axhline(panel.level, color=LINE, linestyle="dotted", linewidth=1)
    among = len(panel.bars)
    options: dict[str, Any] = {"capsize": 2, "linestyle": "none", "marker": "o", "markersize": 4}
    for at, name in enumerate(panel.bars):
        places = np.arange(len(panel.groups)) + (at - (among - 1) / 2) * 0.7 / among
        values = panel.values[:, at]
        axes.errorbar(
            places, values, yerr=[values - panel.low[:, at], panel.high[:, at] - values],
            color=COLOURS[at % len(COLOURS)], label=name, **options,
        )  # fmt: skip
    axes.set_xticks(range(len(panel.groups)), list(panel.groups), rotation=30, ha="right")
