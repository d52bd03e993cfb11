"""The commands and what their help says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

import leakscope
from leakscope.cli import listings
from leakscope.cli.audit import audit_command
from leakscope.cli.check import check_command
from leakscope.cli.compare import compare_command
from leakscope.cli.manual import PAGES, TOP
from leakscope.cli.options import options_from_fields
from leakscope.cli.record import record_command
from leakscope.cli.reproduce import reproduce_command

app = typer.Typer(
    name="leakscope",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"leakscope {leakscope.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog=TOP.text())
def leakscope_command(
    ctx: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Who can tell that a record was used to train a model, and how surely.

    [bold]leakscope audit[/bold] audits a model of the bundled data in a minute, and
    [bold]leakscope audit --help[/bold] says how to audit your own.
    """
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


COMMANDS: dict[str, Callable[..., None]] = {
    "audit": options_from_fields(audit_command),
    "compare": compare_command,
    "check": check_command,
    "record": record_command,
    "reproduce": reproduce_command,
    "datasets": listings.datasets_command,
    "attacks": listings.attacks_command,
    "extractions": listings.extractions_command,
    "channels": listings.channels_command,
    "defenses": listings.defenses_command,
    "recipes": listings.recipes_command,
}

for _name, _command in COMMANDS.items():
    app.command(_name, epilog=PAGES[_name].text())(_command)
