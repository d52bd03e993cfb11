"""The commands that say what there is: data sets, attacks, extractions, channels and more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from leakscope.cli.session import Debug, Session, print_json

Json = Annotated[bool, typer.Option("--json", help="Print a JSON list of objects instead.")]
Row = Mapping[str, Any]

# Wider than any table.
UNBROKEN = 10_000
# The two columns that every table has.
NAMED = ("name", "summary")


def datasets_command(ctx: typer.Context, as_json: Json = False, debug: Debug = False) -> None:
    """List the data sets, with where each comes from."""
    from leakscope.datasets import describe_datasets

    rows = [asdict(card) for card in describe_datasets()]
    headings = {
        "name": "data set",
        "summary": "what it is",
        "files": "needs",
        "paper": "paper",
        "license": "license",
    }
    show_table(ctx.ensure_object(Session), rows, headings, as_json)


def attacks_command(ctx: typer.Context, as_json: Json = False, debug: Debug = False) -> None:
    """List the attacks, with what each sees and knows, how many shadow models, and its paper."""
    headings = {
        "name": "attack",
        "channel": "sees",
        "knowledge": "must know",
        "shadows": "shadow models, at least",
        "summary": "what it is",
        "paper": "paper",
    }
    rows = registered("attack", ("channel", "knowledge", "tasks", "shadows", "on_request"))
    show_table(ctx.ensure_object(Session), rows, headings, as_json)


def extractions_command(ctx: typer.Context, as_json: Json = False, debug: Debug = False) -> None:
    """List the extractions: attacks that bring back records, where explanations show them."""
    headings = {
        "name": "extraction",
        "holds": "holds records",
        "summary": "what it is",
        "paper": "paper",
    }
    show_table(ctx.ensure_object(Session), registered("extraction", ("holds",)), headings, as_json)


def channels_command(ctx: typer.Context, as_json: Json = False, debug: Debug = False) -> None:
    """List the channels: what an adversary may see of a model."""
    headings = {
        "name": "channel",
        "tasks": "tasks",
        "needs": "needs",
        "summary": "what it is",
        "paper": "paper",
    }
    rows = registered("channel", ("tasks", "needs", "scope"))
    show_table(ctx.ensure_object(Session), rows, headings, as_json)


def defenses_command(ctx: typer.Context, as_json: Json = False, debug: Debug = False) -> None:
    """List the defenses: what can be done about leakage, and how each is written."""
    headings = {
        "name": "defense",
        "example": "such as",
        "summary": "what it is",
        "paper": "paper",
    }
    show_table(ctx.ensure_object(Session), registered("defense", ("example",)), headings, as_json)


def recipes_command(ctx: typer.Context, as_json: Json = False, debug: Debug = False) -> None:
    """List the recipes: the models that --recipe can train."""
    headings = {"name": "recipe", "summary": "what it makes"}
    show_table(ctx.ensure_object(Session), registered("recipe", ()), headings, as_json)


def registered(kind: str, attributes: Sequence[str]) -> list[Row]:
    """What is registered, with these attributes of each thing; sets as sorted lists."""
    from leakscope.registry import entries

    rows = list[Row]()
    for entry in entries(kind):
        values = {name: getattr(entry.thing, name) for name in attributes}
        told = {
            name: sorted(value) if isinstance(value, frozenset) else value
            for name, value in values.items()
        }
        rows.append({"name": entry.name, "summary": entry.summary, "paper": entry.paper, **told})
    return rows


def show_table(
    session: Session, rows: Sequence[Row], headings: Mapping[str, str], as_json: bool
) -> None:
    """Print rows as a table, or as JSON."""
    if as_json:
        print_json(rows)
        return
    on_terminal = session.stdout.is_terminal
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for key, heading in headings.items():
        if not on_terminal or key in NAMED:
            table.add_column(heading, overflow="fold", style="bold" if key == "name" else "")
    for row in rows:
        told = {key: _told(row[key]) for key in headings}
        table.add_row(*(_two_cells(told, headings) if on_terminal else map(Text, told.values())))
    # What is not a terminal gets each row on one line, to be searched.
    console = session.stdout if on_terminal else Console(width=UNBROKEN)
    console.print(table)


def _two_cells(told: Mapping[str, str], headings: Mapping[str, str]) -> tuple[Text, Text]:
    """The name, and all else below the summary: a narrow screen has no room for more columns."""
    summary = Text(told["summary"])
    for key, text in told.items():
        if text and key not in NAMED:
            summary.append(f"\n{headings[key]}: {text}", style="dim")
    return Text(told["name"]), summary


def _told(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list | tuple) else str(value)
