"""The gate on a terminal: the decision in a sentence, and a table with a row for each limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakscope.gate.deciding import Decision
from leakscope.gate.words import HEADINGS, SIGNS, cells
from leakscope.report.words import by_reason, clean

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
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    table.add_column(HEADINGS[0], overflow="fold", min_width=len("advantage ≤"))
    table.add_column(HEADINGS[1], no_wrap=True)
    table.add_column(HEADINGS[2], overflow="fold")
    for heading in HEADINGS[3:]:
        table.add_column(heading, justify="right")
    for one in check.limits:
        first, decision, *rest = (clean(cell) for cell in cells(one))
        table.add_row(
            Text(first),
            Text(f"{SIGNS[one.decision]} {decision}", style=STYLES[one.decision]),
            *map(Text, rest),
        )
    console.print(table)
    for note in check.notes:
        console.print(Text(f"\n{clean(note)}"))
    skipped = by_reason(check.skipped)
    if skipped:
        console.print(Text("\nNot run", style="bold"))
    for names, reason in skipped:
        line = Text(clean(names)).append(f": {clean(reason)}", style="dim")
        console.print(Padding(line, (0, 0, 0, 2)))
