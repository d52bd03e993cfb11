"""One record of an audit on a terminal: sentences, and a table of what each attack makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakscope.report.person_words import about, beyond_attacks, opening
from leakscope.report.words import clean, figure, percent, percent_span

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from leakscope.report.person import OneRecord, Standing


def print_record(record: OneRecord, console: Console) -> None:
    """Print what the audit says of the record.

    Data is printed as plain text: markup and control characters in it do nothing.
    """
    console.print(_text(opening(record), style="bold"))
    if record.standings:
        console.print(_text(f"\n{about(record.standings[0], record)}\n"))
        console.print(_attacks(record))
    for sentence in beyond_attacks(record):
        console.print(_text(f"\n{sentence}"))
    console.print(_text("\nWhat would help", style="bold"))
    for step in record.next_steps:
        console.print(_text(f"- {step}"))


def _attacks(record: OneRecord) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    table.add_column("attack", overflow="fold")
    for name in ("score", "false alarms", "above members", "called a member"):
        table.add_column(name, justify="right")
    for one in record.standings:
        table.add_row(*_row(one))
    table.caption = (
        "false alarms: the share of non-members who score as high, with a 95% interval; called a "
        "member: at which rates of false alarms"
    )
    table.caption_justify = "left"
    return table


def _row(one: Standing) -> tuple[Text, ...]:
    if one.score is None:
        return (_text(one.attack), *[_text("none", style="dim")] * 4)
    share, above = one.false_alarms.to_dict(), one.above_members.to_dict()
    alarms = _text(percent(share["value"])).append(f"\n{percent_span(share)}", style="dim")
    return (
        _text(one.attack),
        _text(figure(one.score)),
        alarms,
        _text(percent(above["value"])),
        _called(one),
    )


def _called(one: Standing) -> Text:
    """The rates at which it is called a member; those that are not known are left out."""
    known = [fpr for fpr, called in one.called.items() if called is not None]
    at = [f"{100 * fpr:g}%" for fpr in sorted(known, reverse=True) if one.called[fpr]]
    if not known:
        return _text("too few\nnon-members", style="dim")
    return _text(", ".join(at) or "no")


def _text(value: object, style: str = "") -> Text:
    from rich.text import Text

    return Text(clean(value), style=style)
