"""``leakscope reproduce``: one figure or table of a paper, beside what is printed there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from leakscope.cli.completing import completed
from leakscope.cli.listings import UNBROKEN, registered, show_table
from leakscope.cli.messages import Verbose
from leakscope.cli.progress import showing_steps
from leakscope.cli.session import Debug, Session, one_line, print_json
from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.papers.experiment import Experiment, Row, Setting

TRIALS = "trials"
NOTHING = "–"

# A number, and the keys of the two that say how far it may be off or how it spreads.
SPREADS = (("", "_low", "_high"), ("_median", "_q1", "_q3"))


class ScaleOption(StrEnum):
    """How much is computed."""

    quick = "quick"
    full = "full"


def reproduce_command(
    ctx: typer.Context,
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="The figure or table, such as farokhi-fig1.",
            autocompletion=completed("experiment"),
        ),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List what there is.")] = False,
    scale: Annotated[
        ScaleOption, typer.Option(help="About a minute, or all of it.")
    ] = ScaleOption.quick,
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Repetitions.", show_default="as the scale has"),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The folder of data files.", show_default="$LEAKSCOPE_DATA"
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results are saved.")] = Path(
        "reproduce"
    ),
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The source of all chance.")] = 0,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Processes or threads.", show_default="one per core"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    verbose: Verbose = 0,
    debug: Debug = False,
) -> None:
    """Compute a figure or table of a paper again, beside what is printed there."""
    session = ctx.ensure_object(Session)
    if listed:
        _list(session, name, as_json)
        return
    if name is None:
        raise InputError(
            "Nothing says which figure or table to compute; give its ID, one of those that "
            "`leakscope reproduce --list` lists"
        )
    if data is not None and not data.is_dir():
        raise InputError(f"There is no folder {str(data)!r}; give --data a folder of data files")
    # Here, so that help does not wait for numpy and scikit-learn.
    from leakscope.papers.experiment import Setting

    store = out / TRIALS
    setting = Setting(scale.value, seed, seeds, data=data, store=store, workers=workers)
    _reproduce(session, name, setting, out, as_json)


def _reproduce(session: Session, name: str, setting: Setting, out: Path, as_json: bool) -> None:
    from leakscope.papers.saving import check_place, save
    from leakscope.registry import lookup

    entry = lookup("experiment", name)
    check_place(out, name)
    with showing_steps(session) as steps:
        experiment: Experiment = entry.thing(replace(setting, progress=steps))
    saved = list[Path]()
    try:
        saved = save(experiment, out)
    finally:
        # Also where it could not be saved after all: the work is not lost.
        _print_experiment(session, experiment, saved, as_json)


def _list(session: Session, name: str | None, as_json: bool) -> None:
    if name is not None:
        raise InputError(f"--list lists everything, and {name!r} is given beside it; leave one out")
    headings = {"name": "id", "summary": "what it shows", "paper": "paper"}
    show_table(session, registered("experiment", ()), headings, as_json)


def _print_experiment(
    session: Session, experiment: Experiment, saved: Sequence[Path], as_json: bool
) -> None:
    if as_json:
        print_json(experiment.to_dict())
        for path in saved:
            session.say(f"Saved {path}.")
        return
    on_terminal = session.stdout.is_terminal
    # What is not a terminal gets each row on one line, to be searched.
    console = session.stdout if on_terminal else Console(width=UNBROKEN)
    console.print(Text(f"{experiment.experiment}: {experiment.paper}", style="bold"))
    console.print()
    console.print(_table(experiment.rows))
    if experiment.paper_rows:
        console.print()
        console.print(Text("In the paper", style="bold"))
        console.print(_table(experiment.paper_rows))
    console.print()
    for note in experiment.notes:
        console.print(Text(f"• {one_line(note)}"))
    if saved:
        console.print()
    for path in saved:
        session.stdout.print(Text(str(path)), soft_wrap=True)


def _table(rows: Sequence[Row]) -> Table:
    """The rows, each number with its interval in one cell."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    columns = _columns(rows)
    for heading in columns:
        table.add_column(heading.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(row, keys)) for keys in columns.values()))
    return table


def _columns(rows: Sequence[Row]) -> dict[str, tuple[str, ...]]:
    """For each heading the keys of the numbers in its cells: a value, or a value and two ends."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    ends = dict[str, tuple[str, ...]]()
    for key in keys:
        for own, low, high in SPREADS:
            stem = key.removesuffix(own)
            both = (stem + low, stem + high)
            if key.endswith(own) and set(both) <= set(keys):
                ends[key] = both
    inside = {end for both in ends.values() for end in both}
    return {key: (key, *ends.get(key, ())) for key in keys if key not in inside}


def _cell(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    value, *ends = (_told(row.get(key)) for key in keys)
    return f"{value} ({' to '.join(ends)})" if ends and value != NOTHING else value


def _told(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, float):
        return f"{value:.3g}".replace("-", "−")
    return one_line(value)
