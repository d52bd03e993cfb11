from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import typer
from rich.console import Console
from rich.text import Text

from leakscope.cli.listings import attacks_command, datasets_command
from leakscope.cli.session import Session
from leakscope.datasets import describe_datasets
from leakscope.registry import entries, lookup


@pytest.mark.parametrize(
    ("command", "kind", "keys"),
    [
        ("attacks", "attack", {"channel", "knowledge", "tasks", "shadows", "on_request"}),
        ("extractions", "extraction", {"holds"}),
        ("channels", "channel", {"tasks", "needs", "scope"}),
        ("defenses", "defense", {"example"}),
        ("recipes", "recipe", set()),
    ],
)
def test_everything_registered_is_listed(
    run: Callable[..., Any], command: str, kind: str, keys: set[str]
) -> None:
    ran = run(command, "--json")
    assert (ran.code, ran.stderr) == (0, "")
    assert [row["name"] for row in ran.json] == [entry.name for entry in entries(kind)]
    for row in ran.json:
        assert set(row) == {"name", "summary", "paper", *keys}
        assert row["summary"] == lookup(kind, row["name"]).summary
    table = run(command).stdout
    for row in ran.json:
        line = next(line for line in table.splitlines() if line.startswith(f"{row['name']} "))
        assert row["summary"] in line
        assert row["paper"] in line or command == "recipes"


def test_an_attack_tells_what_it_sees_and_must_know(run: Callable[..., Any]) -> None:
    loss = next(row for row in run("attacks", "--json").json if row["name"] == "loss")
    assert loss["channel"] == "loss"
    assert loss["knowledge"] == "average training loss"
    assert loss["tasks"] == ["classification", "regression"]


def test_data_sets_are_listed_with_their_origin(run: Callable[..., Any]) -> None:
    ran = run("datasets", "--json")
    assert [row["name"] for row in ran.json] == [card.name for card in describe_datasets()]
    adult = next(row for row in ran.json if row["name"] == "adult")
    assert adult["license"] == "CC BY 4.0"
    assert set(adult) >= {"summary", "paper", "source", "license", "files", "download", "options"}
    table = run("datasets").stdout
    assert any(line.startswith("adult ") and "CC BY 4.0" in line for line in table.splitlines())


@pytest.mark.parametrize("command", [attacks_command, datasets_command])
def test_a_narrow_terminal_gets_two_columns_that_fit(command: Callable[..., None]) -> None:
    file = io.StringIO()
    session = Session((), stdout=Console(file=file, force_terminal=True, width=60))
    context = typer.Context(typer.main.get_command(typer.Typer(callback=print)), obj=session)
    command(context)
    text = file.getvalue()
    assert "paper: " in text
    plain = Text.from_ansi(text).plain
    assert all(len(line) <= 60 for line in plain.splitlines())
    assert "\N{HORIZONTAL ELLIPSIS}" not in plain
