"""The figures of the page, each a function from parts of report.json to SVG text.

Every figure says what it shows without its colours, and has a text alternative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leakscope.report.svg import INK, LINE, MEMBER, NONMEMBER, SHADE, SOFT, canvas, finish
from leakscope.report.words import number, one_in, percent, percent_span, shorten, span

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL_WIDTH = 24
# An estimate of a share of non-members needs about this many of them (DESIGN: FPR × n < 5).
FEWEST = 5
# Above the axes: inside there is no place that every curve leaves free.
LEGEND: dict[str, Any] = {
    "loc": "lower left",
    "bbox_to_anchor": (-0.02, 1.0),
    "fontsize": 10,
    "handlelength": 1.6,
    "columnspacing": 1.0,
    "borderaxespad": 0.3,
}


DASHED: dict[str, Any] = {"lw": 1.2, "ls": (0, (4, 3)), "zorder": 1}

# What can be reached while accusing at most so many: between two thresholds, what the stricter of
# them reaches. A sloping line would promise rates that no threshold gives where scores are tied.
STEPS: dict[str, Any] = {"drawstyle": "steps-post", "solid_joinstyle": "miter"}


def roc(outcomes: Sequence[Mapping[str, Any]], headline: Mapping[str, Any], nonmembers: int) -> str:
    """ROC curves on log-log axes, the headline attack in front, the others in grey behind it."""
    floor = min(1 / max(nonmembers, 1), 1e-2)
    with canvas(400, 388, left=58, bottom=48, right=22, top=50) as (figure, axes):
        axes.set(xscale="log", yscale="log", xlim=(floor, 1), ylim=(floor, 1))
        # Where rows belong to persons, fewer rates can be told than the number of rows suggests.
        untold = [rate["fpr"] for rate in headline["tpr_at_fpr"] if not rate["resolved"]]
        edge = min(max([FEWEST / max(nonmembers, 1), *untold]), 1)
        axes.axvspan(floor, edge, color=SHADE, lw=0, zorder=0, label="too few non-members to say")
        axes.plot([floor, 1], [floor, 1], color=SOFT, lw=1, ls=(0, (4, 3)), label="guessing")
        others = [one for one in outcomes if one is not headline]
        for at, other in enumerate(others):
            label = "other attacks" if at == 0 else None
            axes.plot(*_points(other["curve"], floor), color=LINE, lw=1, label=label, **STEPS)
        # A name that starts with an underscore would be left out of the legend.
        strongest = shorten(headline["attack"], LABEL_WIDTH).lstrip("_")
        axes.plot(
            *_points(headline["curve"], floor), color=MEMBER, lw=2.2, label=strongest, **STEPS
        )
        for rate in _resolved(headline):
            low, high = (max(rate[end], floor) for end in ("low", "high"))
            axes.plot([rate["fpr"]] * 2, [low, high], color=INK, lw=1.2, solid_capstyle="butt")
            axes.plot(rate["fpr"], max(rate["value"], floor), "o", color=INK, ms=4.5)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
        axes.minorticks_off()
        axes.set_xlabel("non-members wrongly accused, at most")
        axes.set_ylabel("members found")
        # Drawn from back to front, named from front to back.
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles[::-1], labels[::-1], ncols=2, **LEGEND)
        return finish(figure, "roc", _roc_in_words(headline))


def _points(curve: Mapping[str, Any], floor: float) -> tuple[list[float], list[float]]:
    """The curve with what lies below the axes' least value moved onto it: log 0 has no place."""
    return [max(x, floor) for x in curve["fpr"]], [max(y, floor) for y in curve["tpr"]]


def _resolved(outcome: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        rate
        for rate in outcome["tpr_at_fpr"]
        if rate["resolved"]
        and rate["fpr"] > 0
        and None not in (rate["value"], rate["low"], rate["high"])
    ]


def _roc_in_words(headline: Mapping[str, Any]) -> str:
    parts = [
        f"{percent(rate['value'])} of members ({percent_span(rate)}) "
        f"while accusing {one_in(rate['fpr'])} non-members"
        for rate in _resolved(headline)
    ]
    found = "; ".join(parts) if parts else "at no low rate are there enough non-members to say"
    return f"ROC curve of the attack {headline['attack']} on logarithmic axes. It finds {found}."


def histogram(outcome: Mapping[str, Any]) -> str:
    """How the attack's scores are spread: members in front, non-members dashed."""
    bars, cut = outcome["histogram"], outcome["threshold"]["value"]
    edges = bars["edges"]
    with canvas(400, 388, left=58, bottom=48, right=22, top=50) as (figure, axes):
        for side, label, colour, dashes in (
            ("members", "members", MEMBER, "solid"),
            ("nonmembers", "non-members", NONMEMBER, (0, (4, 2))),
        ):
            axes.stairs(bars[side], edges, fill=True, color=colour, alpha=0.16, lw=0)
            axes.stairs(bars[side], edges, color=colour, lw=1.8, ls=dashes, label=label)
        if cut is not None and edges[0] <= cut <= edges[-1]:
            axes.axvline(cut, color=INK, lw=1.1, ls=(0, (1, 1.5)), label="called members from here")
        if edges[0] < edges[-1]:
            axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
        axes.set_xlabel("score: the higher, the more like a member")
        axes.set_ylabel("share of records")
        axes.legend(ncols=3, **LEGEND)
        words = (
            f"Histogram of the scores of the attack {outcome['attack']}: "
            f"{_centre(bars, 'members')} for members, "
            f"{_centre(bars, 'nonmembers')} for non-members."
        )
        return finish(figure, "histogram", words)


def _centre(bars: Mapping[str, Any], side: str) -> str:
    """The fullest bin of one side, in words."""
    at = max(range(len(bars[side])), key=bars[side].__getitem__)
    low, high = bars["edges"][at], bars["edges"][at + 1]
    return f"most often {low:.3g} to {high:.3g}"


@dataclass(frozen=True)
class Row:
    """One line of a forest plot; a heading has no interval."""

    label: str
    interval: Mapping[str, Any] | None = None
    strong: bool = False


@dataclass(frozen=True)
class Scale:
    """What a forest plot measures: its axis, what 0 means there, and the limit, if there is one."""

    axis: str
    zero: str
    limit: float | None = None

    @classmethod
    def of_advantages(cls, limit: float) -> Scale:
        """How much better than guessing attacks are."""
        return cls("advantage over guessing", "guessing", limit)


def forest(rows: Sequence[Row], scale: Scale, name: str, subject: str, narrow: bool = False) -> str:
    """Estimates with their intervals, one to a line, against 0 and the limit.

    Names stand beside the intervals or, narrow, above them, so that a phone can show them.
    """
    shown = [row.interval for row in rows if row.interval is not None]
    ends = [one[end] for one in shown for end in ("low", "value", "high") if one[end] is not None]
    low, high = min([0.0, *ends]), max([0.0, scale.limit or 0.0, *ends])
    room = 0.06 * (high - low) or 0.1
    width, left, top, step = (360, 12, 2, 40) if narrow else (560, 182, 30, 26)
    from matplotlib.ticker import MaxNLocator

    with canvas(width, step * len(rows) + 46 + top, left, bottom=46, top=top, right=16) as (
        figure,
        axes,
    ):
        axes.set(xlim=(low - room, high + room), ylim=(len(rows) - 0.4, -0.6))
        for at, row in enumerate(rows):
            forest_label(axes, at, row, narrow)
            forest_interval(axes, at + 0.18 if narrow else at, row)
        # Narrow, the lines leave out the names, which stand where they would pass.
        pieces = [(at - 0.02, at + 0.38) for at, row in enumerate(rows) if row.interval is not None]
        for low, high in pieces if narrow else [axes.get_ylim()]:
            axes.plot([0, 0], [low, high], color=SOFT, lw=1, zorder=1)
            if scale.limit is not None:
                axes.plot([scale.limit] * 2, [low, high], color=NONMEMBER, **DASHED)
        if not narrow:
            _name_lines(axes, scale)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.3g}".replace("-", "−"))
        axes.set_xlabel(scale.axis)
        words = [
            f"{row.label} {number(row.interval['value'])} ({span(row.interval)})"
            for row in rows
            if row.interval is not None
        ]
        limit = "" if scale.limit is None else f", limit {scale.limit:g}"
        return finish(figure, name, f"{subject}{limit}: {'; '.join(words)}.")


def _name_lines(axes: Axes, scale: Scale) -> None:
    """Names above the lines at 0 and at the limit, pointing apart where these are near."""
    left, right = axes.get_xlim()
    style: dict[str, Any] = {"fontsize": 10, "transform": axes.get_xaxis_transform()}
    if scale.limit is None:
        axes.text(0, 1.02, scale.zero, ha="center", color=SOFT, **style)
        return
    apart = scale.limit > 0.27 * (right - left)
    axes.text(0, 1.02, scale.zero, ha="center" if apart else "right", color=SOFT, **style)
    side = "center" if apart else "left"
    axes.text(scale.limit, 1.02, f"limit {scale.limit:g}", ha=side, color=NONMEMBER, **style)


def forest_label(axes: Axes, at: int, row: Row, narrow: bool) -> None:
    """The name of a line beside its interval or, narrow, above it."""
    heading = row.interval is None
    indent = (0.0 if narrow else -0.5) + (0.0 if heading else 0.03)
    axes.text(
        indent,
        at - 0.22 if narrow and not heading else at,
        shorten(row.label, LABEL_WIDTH + (14 if narrow else 0)),
        ha="left",
        va="center",
        color=SOFT if heading else INK,
        fontstyle="italic" if heading else "normal",
        fontweight="bold" if row.strong else "normal",
        transform=axes.get_yaxis_transform(),
    )


def forest_interval(axes: Axes, at: float, row: Row) -> None:
    """The estimate of a line, and its interval where both ends are known."""
    if row.interval is None or row.interval["value"] is None:
        return
    colour = MEMBER if row.strong else INK
    low, high = row.interval["low"], row.interval["high"]
    if low is not None and high is not None:
        axes.plot([low, high], [at, at], color=colour, lw=2.6 if row.strong else 1.6)
    axes.plot(row.interval["value"], at, "D" if row.strong else "o", color=colour, ms=6)


@dataclass(frozen=True)
class Allowed:
    """One measure of leakage: the advantage it allows or is, and the same by chance."""

    label: str
    interval: Mapping[str, Any]
    null: float | None


def leakage(
    rows: Sequence[Allowed], best: Mapping[str, Any] | None, name: str, narrow: bool = False
) -> str:
    """What each measure of leakage allows, and what the best attack achieves, from 0 to 1."""
    lines = [Row(row.label, row.interval) for row in rows]
    if best is not None:
        lines.append(Row(f"achieved: {best['attack']}", best["advantage"], strong=True))
    lowest = min([0.0, *(line.interval["low"] or 0.0 for line in lines if line.interval)])
    width, left, step = (360, 12, 40) if narrow else (560, 252, 28)
    with canvas(width, step * len(lines) + 56, left, bottom=46, top=10, right=16) as (figure, axes):
        axes.set(xlim=(min(-0.02, lowest - 0.02), 1.02), ylim=(len(lines) - 0.4, -0.6))
        if not narrow:  # there names stand where it would pass
            axes.plot([0, 0], axes.get_ylim(), color=LINE, lw=1, zorder=1)
        for at, line in enumerate(lines):
            _leakage_label(axes, at, line, narrow)
            place = at + 0.18 if narrow else at
            if at < len(rows) and (null := rows[at].null) is not None:
                axes.plot([null] * 2, [place - 0.24, place + 0.24], color=SOFT, lw=2.4, zorder=1)
            forest_interval(axes, place, line)
        axes.set_yticks([])
        axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("advantage over guessing")
        return finish(figure, name, _leakage_in_words(rows, best))


def _leakage_label(axes: Axes, at: int, line: Row, narrow: bool) -> None:
    axes.text(
        0.0 if narrow else -0.02,
        at - 0.22 if narrow else at,
        shorten(line.label, 40),
        ha="left" if narrow else "right",
        va="center",
        color=INK,
        fontweight="bold" if line.strong else "normal",
        transform=axes.get_yaxis_transform(),
    )


def _leakage_in_words(rows: Sequence[Allowed], best: Mapping[str, Any] | None) -> str:
    parts = [
        f"{row.label} {number(row.interval['value'])} ({span(row.interval)}), by chance up to "
        f"{number(row.null)}"
        for row in rows
    ]
    achieved = (
        f" The surest attack on this model, {best['attack']}, achieves "
        f"{number(best['advantage']['value'])} ({span(best['advantage'])})."
        if best is not None
        else ""
    )
    return f"Advantages by measures of leakage: {'; '.join(parts)}.{achieved}"
