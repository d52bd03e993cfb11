"""The gate on a terminal: the decision in a sentence, and a table with a row for each limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakscope.gate.deciding import Decision
from leakscope.gate.words import HEADINGS, SIGNS, cells
from leakscope.report.words import MOST_NAMES, by_reason, clean

if TYPE_CHECKING:
    from rich.console import Console

    from leakscope.gate.result import Check

STYLES = {Decision.holds: "green", Decision.violated: "red", Decision.undecided: "yellow"}


def print_check(check: Check, console: Console) -> None:
    """Print the decision, the limits, what to know beside, and what was not run, as plain text."""
    from rich import box
    from rich.padding import Padding
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    style = STYLES[check.decision]
    title = Text(f" {SIGNS[check.decision]} Privacy gate ", style=f"bold {style}")
    said = Text(clean(check.sentence), style="bold")
    console.print(Panel(said, title=title, title_align="left", border_style=style, padding=(1, 2)))
    # The bounds stand below the value, so that a row fits 80 columns with no name broken.
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column(HEADINGS[0], overflow="fold", min_width=len("advantage ≤"))
    table.add_column(HEADINGS[1], no_wrap=True)
    longest = max((len(clean(one.attack or "")) for one in check.limits), default=0)
    whole = longest <= len("gradient-boosting")
    table.add_column(HEADINGS[2], overflow="fold", no_wrap=whole)
    table.add_column("value, bounds", justify="right", no_wrap=True)
    table.add_column(HEADINGS[6], justify="right")
    for one in check.limits:
        limit, decision, attack, value, low, high, needed = (clean(cell) for cell in cells(one))
        bounds = f"\n{low} to {high}" if low and high else ""
        table.add_row(
            Text(limit),
            Text(f"{SIGNS[one.decision]} {decision}", style=STYLES[one.decision]),
            Text(attack),
            Text(value).append(bounds, style="dim"),
            Text(needed),
        )
    table.caption = "bounds: at least, after correction for the number of attacks, to at most"
    table.caption_justify = "left"
    console.print(table)
    for remark in check.remarks:
        console.print(Text(f"\n{clean(remark)}"))
    skipped = by_reason(check.skipped, MOST_NAMES)
    if skipped:
        console.print(Text("\nNot run", style="bold"))
    for names, reason in skipped:
        line = Text(clean(names)).append(f": {clean(reason)}", style="dim")
        console.print(Padding(line, (0, 0, 0, 2)))
