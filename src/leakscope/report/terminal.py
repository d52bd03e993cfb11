"""The terminal summary: the verdict, the attacks, and what failed or was not run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.report import additions, information, redaction
from leakscope.report.disclosures import in_a_table
from leakscope.report.words import (
    MOST_NAMES,
    SMALL_LEAK,
    badge,
    by_reason,
    clean,
    headline_outcome,
    number,
    p_value,
    percent,
    percent_span,
    span,
    tone,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

STYLES = {
    "leaks": "red",
    SMALL_LEAK: "yellow",
    "no_leak_found": "green",
    "undecided": "yellow",
    "invalid": "magenta",
}
# A sign before the word, so that the verdict does not depend on colour.
SIGNS = {"leaks": "!", SMALL_LEAK: "!", "no_leak_found": "✓", "undecided": "?", "invalid": "×"}
FILES = ("report.html", "report.json", "records.csv")


def print_summary(
    report: Mapping[str, Any], console: Console, *, folder: Path | None = None
) -> None:
    """Print the verdict, a table of attacks, and what failed or was not run.

    report: the dictionary of report.json. folder: where the report was saved, to name its files.
    Data is printed as plain text: markup and control characters in it do nothing.
    """
    from rich.panel import Panel

    verdict = report["verdict"]
    style, sign = STYLES[tone(verdict)], SIGNS[tone(verdict)]
    title = _text(f" {sign} {badge(verdict)} ", style=f"bold {style}")
    body = _text(verdict["headline"], style="bold").append(f"\n{clean(verdict['reason'])}")
    console.print(Panel(body, title=title, title_align="left", border_style=style, padding=(1, 2)))
    if verdict["level"] == "invalid":
        _print_invalid(report, console)
    elif report["outcomes"]:
        console.print(_attacks(report))
        _print_list(console, "Shadow models", _shadows(report))
    added = additions.in_a_line(report["additions"])
    _print_list(console, "What explanations add to predictions", added)
    if report["disclosures"]:
        console.print(_text("\nRecords read out of explanations", style="bold"))
        console.print(_extractions(report))
    _print_list(console, "Information leakage", information.in_a_line(report["leakage"]))
    _print_list(console, "Controls that failed", _failed(report))
    _print_list(console, "Not run", by_reason(report["not_run"], MOST_NAMES))
    if told := redaction.in_words(report):
        console.print(_text(f"\n{told}", style="dim"))
    if folder is not None:
        _print_files(console, folder)


def _print_invalid(report: Mapping[str, Any], console: Console) -> None:
    """Figures of an invalid audit say nothing about the model, so the terminal leaves them out."""
    if report["outcomes"]:
        tried = len(report["outcomes"])
        console.print(
            _text(f"\nFigures of {tried} attacks are in report.json. Do not rely on them.", "dim")
        )


def _text(value: object, style: str = "") -> Text:
    from rich.text import Text

    return Text(clean(value), style=style)


def _attacks(report: Mapping[str, Any]) -> Table:
    """One line per attack; below each figure its 95 % interval."""
    from rich import box
    from rich.table import Table

    strongest = headline_outcome(report)
    # So narrow that the longest name beside three intervals fits 80 columns.
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("attack", overflow="fold")
    for name in ("AUC", "advantage", "found at 1%", "adjusted p"):
        table.add_column(name, justify="right")
    for one in report["outcomes"]:
        table.add_row(
            _text(one["attack"], style="bold" if one is strongest else ""),
            _figure(number(one["auc"]["value"]), span(one["auc"])),
            _figure(number(one["advantage"]["value"]), span(one["advantage"])),
            _found(one),
            _text(p_value(one["adjusted_p"])),
        )
    table.caption = (
        "with 95% intervals; found at 1%: members found while 1 in 100 non-members is accused"
    )
    table.caption_justify = "left"
    return table


def _extractions(report: Mapping[str, Any]) -> Table:
    """One line per extraction; those shown to themselves at each size of explanation."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    table.add_column("extraction, explained by", overflow="fold")
    for name in ("records", "of members", "of non-members", "queries"):
        table.add_column(name, justify="right")
    for what, records, *shares, queries in in_a_table(report["disclosures"]):
        figures = [_figure(value, end) for value, _, end in (one.partition("\n") for one in shares)]
        table.add_row(_text(what), _text(records), *figures, _text(queries))
    table.caption = (
        "self-reveal: people whose own explanation shows a record equal to theirs, with 95% "
        "intervals; it tells of membership only by what members have more"
    )
    table.caption_justify = "left"
    return table


def _figure(value: str, interval: str) -> Text:
    return _text(value).append(f"\n{interval}" if interval else "", style="dim")


def _found(outcome: Mapping[str, Any]) -> Text:
    for rate in outcome["tpr_at_fpr"]:
        if rate["fpr"] == 0.01 and rate["resolved"]:
            return _figure(percent(rate["value"]), percent_span(rate))
    return _text("too few\nnon-members", style="dim")


def _shadows(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Which attacks rest on models that were trained like the target."""
    trials = report["trials"]
    if trials is None:
        return []
    names = ", ".join(one["attack"] for one in report["outcomes"] if one["models"] > 1)
    made = (
        f"{trials['models']} of the recipe {trials['recipe']}, {trials['members']:,} records each"
    )
    return [(made, f"used by {names}")] if names else []


def _failed(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(one["name"], one["detail"]) for one in report["controls"] if one["passed"] is False]


def _print_list(console: Console, heading: str, entries: list[tuple[str, str]]) -> None:
    from rich.padding import Padding

    if not entries:
        return
    console.print(_text(f"\n{heading}", style="bold"))
    for name, detail in entries:
        line = _text(name).append(f": {clean(detail)}", style="dim")
        console.print(Padding(line, (0, 0, 0, 2)))


def _print_files(console: Console, folder: Path) -> None:
    """The files of the run, one to a line and never broken, so that a path can be clicked."""
    console.print()
    for name in FILES:
        if (folder / name).exists():
            console.print(_text(folder / name), soft_wrap=True)
