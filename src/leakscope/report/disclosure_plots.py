"""The figures about extractions: how soon records are shown, and who is shown to themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leakscope.report.disclosures import in_number, label
from leakscope.report.plots import LABEL_WIDTH, LEGEND, Row, forest_interval, forest_label
from leakscope.report.svg import INK, MEMBER, NONMEMBER, SOFT, canvas, finish
from leakscope.report.words import count, percent, percent_span, shorten

# Told apart by their dashes too, where colours cannot be seen.
LINES: tuple[dict[str, Any], ...] = (
    {"color": MEMBER, "ls": "solid", "lw": 2.2},
    {"color": NONMEMBER, "ls": (0, (5, 2)), "lw": 1.8},
    {"color": INK, "ls": (0, (1, 1.5)), "lw": 1.8},
    {"color": SOFT, "ls": (0, (5, 1, 1, 1)), "lw": 1.8},
)


def reading(disclosures: Sequence[Mapping[str, Any]], name: str, narrow: bool = False) -> str:
    """How many records each extraction had been shown after so many queries, the first four."""
    drawn = disclosures[: len(LINES)]
    most = max(10, *(one["queries"] for one in drawn))
    width, columns = (360, 1) if narrow else (560, 2)
    top = 20 * -(-len(drawn) // columns) + 12
    with canvas(width, 300 + top, left=58, bottom=48, right=22, top=top) as (figure, axes):
        for one, line in zip(drawn, LINES, strict=False):
            # Nothing is shown before the first query, for which a logarithm has no place.
            asked, shown = one["curve"]["queries"], one["curve"]["shown"]
            points = [(x, y) for x, y in zip(asked, shown, strict=True) if x > 0]
            # A name that starts with an underscore would be left out of the legend.
            called = shorten(label(one), LABEL_WIDTH + 6).lstrip("_")
            axes.plot([x for x, _ in points], [y for _, y in points], label=called, **line)
        axes.set(xscale="log", xlim=(1, most))
        axes.set_ylim(bottom=0)
        axes.minorticks_off()
        axes.xaxis.set_major_formatter(lambda queries, _: count(queries))
        axes.set_xlabel("queries asked")
        axes.set_ylabel("training records shown")
        axes.legend(ncols=columns, **LEGEND)
        told = "; ".join(
            f"{label(one)}: {count(one['shown'])} after "
            f"{in_number(one['queries'], 'query', 'queries')}"
            for one in drawn
        )
        return finish(figure, name, f"Training records shown against queries asked. {told}.")


def exposed(rows: Sequence[Row], k: int, name: str, narrow: bool = False) -> str:
    """The share of each group that is shown to itself, with its interval, from 0 on."""
    ends = [row.interval[end] or 0.0 for row in rows if row.interval for end in ("value", "high")]
    width, left, step = (360, 12, 40) if narrow else (560, 182, 26)
    with canvas(width, step * len(rows) + 56, left, bottom=46, top=10, right=22) as (figure, axes):
        axes.set(xlim=(0, 1.06 * max([0.01, *ends])), ylim=(len(rows) - 0.4, -0.6))
        for at, row in enumerate(rows):
            forest_label(axes, at, row, narrow)
            forest_interval(axes, at + 0.18 if narrow else at, row)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
        axes.set_xlabel(f"shown a record equal to theirs, of {k}")
        words = [
            f"{row.label} {percent(row.interval['value'])} ({percent_span(row.interval)})"
            for row in rows
            if row.interval is not None
        ]
        return finish(figure, name, f"Members shown a record equal to theirs: {'; '.join(words)}.")
