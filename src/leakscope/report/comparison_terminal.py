"""The terminal summary of a comparison: the advice, a table of defenses, and the frontier."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.report.comparison import FILES
from leakscope.report.comparison_words import (
    DOMINATED,
    ON,
    UNDECIDED,
    added,
    duration,
    not_run,
    resolution,
    size,
    standing,
)
from leakscope.report.words import clean, percent, percent_span

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

MARKS = {ON: "*", UNDECIDED: "?", DOMINATED: " "}


def print_comparison(
    comparison: Mapping[str, Any], console: Console, *, folder: Path | None = None
) -> None:
    """Print the advice, one line per defense, and what was added or not run.

    comparison: the dictionary of compare.json. folder: where it was saved, to name its files. Data
    is printed as plain text: markup and control characters in it do nothing.
    """
    from rich.panel import Panel

    advice = _text(comparison["advice"], style="bold")
    console.print(Panel(advice, title=" Advice ", title_align="left", padding=(1, 2)))
    console.print(_table(comparison))
    if resolution(comparison):
        console.print(_text(f"\n{resolution(comparison)}"))
    setup = comparison["setup"]
    for heading, entries in (("Baselines", added(setup)), ("Not run", not_run(comparison))):
        if entries:
            console.print(_text(f"\n{heading}", style="bold"))
        for name, detail in entries:
            console.print(_text(f"  {name}").append(f": {clean(detail)}", style="dim"))
    if folder is not None:
        console.print()
        for name in FILES:
            console.print(_text(folder / name), soft_wrap=True)


def _table(comparison: Mapping[str, Any]) -> Table:
    """One line per defense; below each figure its 95 % interval; before it where it is."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("defense", overflow="fold")
    for name in ("attack right", "test accuracy", "train", "ε", "size", "training"):
        table.add_column(name, justify="right")
    for one in comparison["summary"]:
        mark = MARKS[standing(one)]
        below = f"  {clean(one['attack'])}" + ("\n  baseline" if one.get("baseline") else "")
        table.add_row(
            _text(f"{mark} {one['defense']}").append(f"\n{below}", style="dim"),
            _figure(one["attack_accuracy"]),
            _figure(one["test_accuracy"]),
            _text(percent(one["train_accuracy"])),
            _text("–" if one["epsilon"] is None else f"{one['epsilon']:g}"),
            _text(size(one["bytes"])),
            _text(duration(one["train_seconds"])),
        )
    seeds = comparison["setup"]["seeds"]
    table.caption = (
        f"means over {seeds} seed{'' if seeds == 1 else 's'} with 95% intervals; below a defense "
        "the attack that is strongest most often; * on the frontier, ? undecided by these seeds, "
        "otherwise another significantly dominates it; – no formal guarantee"
    )
    table.caption_justify = "left"
    return table


def _figure(interval: Mapping[str, Any]) -> Text:
    return _text(percent(interval["value"])).append(f"\n{percent_span(interval)}", style="dim")


def _text(value: object, style: str = "") -> Text:
    from rich.text import Text

    return Text(clean(value), style=style)
