"""The figure of compare.html: what each defense keeps of accuracy, and what it gives away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from leakscope.report.comparison_words import DOMINATED, ON, UNDECIDED, standing
from leakscope.report.svg import INK, LINE, MEMBER, SOFT, canvas, finish
from leakscope.report.words import percent, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Up to so many defenses have their names beside their points; more would lie on each other.
NAMED = 12
WIDTH = 26

FILLS: dict[str, Literal["full", "left", "none"]] = {
    ON: "full",
    UNDECIDED: "left",
    DOMINATED: "none",
}


def frontier(summaries: Sequence[Mapping[str, Any]], name: str, *, narrow: bool = False) -> str:
    """Test accuracy over attack accuracy: up and to the left is better.

    Defenses on the frontier are filled, undecided ones half filled, and those that another
    significantly dominates hollow; a number beside each leads to the list of names. A defense
    without figures has no point.
    """
    places = [
        (place, one)
        for place, one in enumerate(summaries, start=1)
        if None not in (one["attack_accuracy"]["value"], one["test_accuracy"]["value"])
    ]
    size = (340, 420) if narrow else (680, 440)
    with canvas(*size, left=60, bottom=48, right=16, top=16) as (figure, axes):
        axes.axvline(0.5, color=SOFT, lw=1, ls=(0, (4, 3)), zorder=1)
        values = [one["attack_accuracy"]["value"] for _, one in places]
        middle = (min(values, default=0.5) + max(values, default=0.5)) / 2
        with_names = not narrow and len(summaries) <= NAMED
        for place, one in places:
            label = f"{place} {shorten(one['defense'], WIDTH)}" if with_names else str(place)
            # Names stand on the side where there is room.
            _draw(axes, one, label, before=one["attack_accuracy"]["value"] > middle)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
        left = min([0.5, *(one["attack_accuracy"]["low"] for _, one in places)])
        axes.set_xlim(left=left - 0.01)
        axes.set_xlabel("records the strongest attack is right about (dashed: guessing)")
        axes.set_ylabel("test accuracy")
        return finish(figure, name, _in_words(summaries))


def _draw(axes: Axes, one: Mapping[str, Any], label: str, *, before: bool) -> None:
    leaking, right = one["attack_accuracy"], one["test_accuracy"]
    x, y = leaking["value"], right["value"]
    where = standing(one)
    colour = SOFT if where == DOMINATED else MEMBER
    axes.plot([leaking["low"], leaking["high"]], [y, y], color=LINE, lw=1.1, zorder=2)
    axes.plot([x, x], [right["low"], right["high"]], color=LINE, lw=1.1, zorder=2)
    style = FILLS[where]
    (point,) = axes.plot(x, y, "o", color=colour, ms=7.5, mew=1.6, zorder=3)
    point.set_fillstyle(style)
    point.set_markerfacecoloralt("none")
    axes.annotate(
        label,
        (x, y),
        (-7 if before else 7, 5),
        textcoords="offset points",
        ha="right" if before else "left",
        color=INK,
        fontsize=10,
        zorder=4,
    )


def _in_words(summaries: Sequence[Mapping[str, Any]]) -> str:
    parts = [
        f"{place} {one['defense']}: attack accuracy {percent(one['attack_accuracy']['value'])}, "
        f"test accuracy {percent(one['test_accuracy']['value'])}" + f", {standing(one)}"
        for place, one in enumerate(summaries, start=1)
    ]
    return f"Test accuracy over attack accuracy of {len(parts)} defenses. {'; '.join(parts)}."
