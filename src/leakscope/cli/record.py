"""``leakscope record``: what an audit that was made before says of one record."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from leakscope.cli.session import Debug, Session, print_json


class Side(StrEnum):
    """On which side of the audit the record was."""

    members = "members"
    nonmembers = "nonmembers"


def record_command(
    ctx: typer.Context,
    run: Annotated[
        Path, typer.Argument(help="The folder of an audit, with report.json and records.csv.")
    ],
    row: Annotated[
        int, typer.Option(help="Its row in the file of that side, from 0.", metavar="N", min=0)
    ],
    side: Annotated[Side, typer.Option(help="The file it came from.")] = Side.members,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
    debug: Debug = False,
) -> None:
    """Say what an audit found out about one record: its scores, its leakage, its groups."""
    # Here, so that help does not wait for numpy.
    from leakscope.report import Report
    from leakscope.report.person_terminal import print_record
    from leakscope.report.reading import by_its_schema

    with by_its_schema(str(run)):
        found = Report.load(run, records=True).record(row, side.value)
        told = found.to_dict()
    if as_json:
        print_json(told)
        return
    print_record(found, ctx.ensure_object(Session).stdout)
