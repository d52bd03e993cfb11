"""Pictures of section 5 of Shokri, Strobel & Zick (2021): a panel for each data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from leakscope.papers.drawing import own_style
from leakscope.report.svg import INK, MEMBER, NONMEMBER, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (MEMBER, NONMEMBER, INK, SOFT)


@dataclass(frozen=True)
class Series:
    """Values along x, with the ends of their intervals where there are such."""

    name: str
    x: Sequence[float]
    values: Sequence[float]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


@dataclass(frozen=True)
class Panel:
    """One data set's part of the picture."""

    title: str
    series: Sequence[Series]


@dataclass(frozen=True)
class Look:
    """How a picture is drawn: lines with points, groups of bars, or steps of histograms."""

    xlabel: str
    ylabel: str
    kind: Literal["lines", "bars", "steps"] = "lines"
    xlog: bool = False
    ylog: bool = False


def panels(drawn: Sequence[Panel], look: Look) -> Figure:
    """The panels side by side on axes of the same height."""
    from matplotlib.figure import Figure

    with own_style():
        size = (1.2 + 3.6 * len(drawn), 3.8)
        figure = Figure(figsize=size, dpi=72, layout="constrained")
        row = figure.subplots(1, len(drawn), sharey=True, squeeze=False)[0]
        for axes, panel in zip(row, drawn, strict=True):
            _draw(axes, panel, look)
        return figure


def _draw(axes: Axes, panel: Panel, look: Look) -> None:
    axes.set_title(panel.title)
    for at, series in enumerate(panel.series):
        colour = COLOURS[at % len(COLOURS)]
        if look.kind == "bars":
            _draw_bars(axes, series, at, len(panel.series), colour)
        elif look.kind == "steps":
            axes.step(series.x, series.values, where="post", color=colour, label=series.name)
        else:
            axes.errorbar(
                series.x, series.values, yerr=_ends(series), color=colour, marker="o",
                markersize=3, capsize=2, label=series.name,
            )  # fmt: skip
    if look.xlog:
        axes.set_xscale("log")
    if look.ylog:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(look.xlabel)
    axes.set_ylabel(look.ylabel)
    if len(panel.series) > 1:
        axes.legend()


def _draw_bars(axes: Axes, series: Series, at: int, among: int, colour: str) -> None:
    places = np.arange(len(series.x)) + (at - (among - 1) / 2) * 0.8 / among
    axes.bar(
        places, series.values, 0.8 / among, yerr=_ends(series), color=colour, capsize=2,
        label=series.name,
    )  # fmt: skip
    axes.set_xticks(range(len(series.x)), [f"{x:g}" for x in series.x])


def _ends(series: Series) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None:
    """How far the intervals reach below and above, (2, m); None where there are none."""
    if not series.low or None in series.low:
        return None
    values = np.asarray(series.values)
    low, high = (np.asarray(ends, dtype=np.float64) for ends in (series.low, series.high))
    return np.stack([values - low, high - values])
