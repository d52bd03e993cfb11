"""The papers' figures: one style, two axes, and the same bytes for the same numbers."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leakscope.protocols import Floats
from leakscope.report.svg import INK, LINE, MEMBER, NONMEMBER, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "path",  # the file needs no font where it is shown
    "svg.hashsalt": "leakscope",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],  # comes with matplotlib
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "legend.frameon": False,
}

# Characters of tick labels that fit side by side.
WIDE = 36


@dataclass(frozen=True)
class Line:
    """A measure along the swept quantity: values with intervals, None where there is none."""

    name: str
    values: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]
    dashed: bool = False


@contextmanager
def own_style() -> Iterator[None]:
    """Draw and write in our style whatever style the caller's matplotlib has."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def boxes_and_lines(
    ticks: Sequence[str], boxes: Sequence[Floats], lines: Sequence[Line], xlabel: str
) -> Figure:
    """Boxes of |advantage| on the left axis, leakage on the right one, as the paper has them.

    boxes: for each tick the advantages (m,) of its models. The right axis is logarithmic: what is
    not above 0 has no place on it and is left out.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    with own_style():
        figure = Figure(figsize=(6.4, 4.2), dpi=72, layout="constrained")
        left = figure.add_subplot()
        right = left.twinx()
        _draw_boxes(left, ticks, boxes, xlabel)
        for at, line in enumerate(lines):
            _draw_line(right, line, (MEMBER, NONMEMBER)[at % 2])
        right.set_yscale("log")
        right.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        right.yaxis.set_minor_formatter(NullFormatter())
        right.set_ylabel("leakage, nats (line)")
        right.spines["right"].set_visible(True)
        if len(lines) > 1:
            right.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(lines))
        return figure


def _draw_boxes(axes: Axes, ticks: Sequence[str], boxes: Sequence[Floats], xlabel: str) -> None:
    axes.boxplot(
        [np.abs(one) for one in boxes],
        tick_labels=list(ticks),
        widths=0.5,
        boxprops={"color": SOFT},
        whiskerprops={"color": SOFT},
        capprops={"color": SOFT},
        medianprops={"color": INK, "linewidth": 1.6},
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": LINE},
    )
    axes.set_ylim(bottom=0)
    if sum(map(len, ticks)) > WIDE:
        axes.tick_params(axis="x", rotation=45)
    axes.set_xlabel(xlabel)
    axes.set_ylabel("adversary's |advantage| (boxes)")


def _draw_line(axes: Axes, line: Line, colour: str) -> None:
    places = np.arange(1, len(line.values) + 1)
    values, low, high = (
        np.array([np.nan if one is None else one for one in column], dtype=np.float64)
        for column in (line.values, line.low, line.high)
    )
    name = line.name + (" (0 where it ends)" if (values == 0).any() else "")
    values = np.where(values > 0, values, np.nan)
    # An end below 0 is drawn to the value's own hundredth: a logarithm has no room for it.
    ends = np.stack([values - np.fmax(low, values / 100), np.fmax(high - values, 0.0)])
    axes.errorbar(
        places,
        values,
        yerr=np.fmax(ends, 0.0),
        color=colour,
        marker="o",
        markersize=4,
        linestyle="dashed" if line.dashed else "solid",
        capsize=2,
        label=name,
    )


def as_svg(figure: Figure, title: str) -> str:
    """The figure as a file of its own, without a date: the same numbers give the same bytes."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.BytesIO()
    with own_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        metadata = {"Date": None, "Creator": None, "Title": title}
        FigureCanvasSVG(figure).print_figure(buffer, format="svg", metadata=metadata)
    return buffer.getvalue().decode("utf-8")
