"""``leakscope compare``: defenses side by side, from options to a comparison, saved and shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakscope.cli.completing import completed, several
from leakscope.cli.messages import Verbose
from leakscope.cli.options import Backend
from leakscope.cli.progress import Steps, showing_steps
from leakscope.cli.session import Debug, Session, print_json
from leakscope.cli.texts import names_in, values_in
from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.protocols import Recipe
    from leakscope.records import Records
    from leakscope.report.comparison import Comparison

DATASET, RECORDS, RECIPE = "adult", 3000, "network"
DATA, WHAT, HOW = "What they are trained on", "What is compared", "How"
TRAINING, RESULT = "Where models are trained", "Result"


def _option(text: str, panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


@dataclass(frozen=True)
class Pool:
    """Where the records come from: a data set by its name, or a table in a file."""

    dataset: str | None
    dataset_options: str | None
    records: int | None
    data: Path | None
    download: bool
    table: Path | None
    label: str | None
    unit: str | None

    def check(self) -> None:
        """Refuse options that contradict or miss each other."""
        drawn = {
            "--dataset": self.dataset,
            "--dataset-options": self.dataset_options,
            "--data": self.data,
            "--download": self.download or None,
        }
        for option, value in drawn.items():
            if self.table is not None and value is not None:
                raise InputError(f"--table and {option} contradict each other; leave one out")
        for option, value in (("--label", self.label), ("--unit", self.unit)):
            if self.table is None and value is not None:
                raise InputError(f"{option} is given without --table; add it")
        if self.table is not None and self.label is None:
            raise InputError(
                "--table is given without --label, which names the column of the labels; add it"
            )

    def read(self, seed: int, recipe: Recipe, steps: Steps, say: Callable[[str], None]) -> Records:
        """The records, as many as were asked for; what the recipe makes of a table is said."""
        if self.table is not None and self.label is not None:
            from leakscope.cli.columns import sort_out
            from leakscope.cli.tables import read_table

            steps(f"reading {self.table}")
            sorted_out = sort_out(
                [read_table(self.table)],
                ["records"],
                recipe,
                label=self.label,
                groups=(),
                unit=self.unit,
            )
            sorted_out.say(sorted_out.told(), say)
            [found] = sorted_out.records
            return found if self.records is None else found.sample(self.records, seed)
        from leakscope.datasets import load_dataset

        name = self.dataset or DATASET
        steps(f"reading the data set {name}")
        options = values_in("dataset_options", self.dataset_options)
        everybody = load_dataset(name, download=self.download, folder=self.data, **options)
        return everybody.sample(self.records or RECORDS, seed)


def compare_command(
    ctx: typer.Context,
    *,
    defenses: Annotated[
        str,
        _option(
            "What to compare with no defense: see [bold]leakscope defenses[/bold]; a+b is b around "
            "a.",
            WHAT,
            metavar="A,B+C",
            autocompletion=several("defense"),
        ),
    ],
    recipe: Annotated[
        str,
        _option(
            "A name of [bold]leakscope recipes[/bold], or module:attribute for an estimator, a "
            "TorchRecipe, or a function that makes one.",
            WHAT,
            metavar="NAME",
            autocompletion=completed("recipe"),
        ),
    ] = RECIPE,
    dataset: Annotated[
        str | None,
        _option(
            "See [bold]leakscope datasets[/bold].",
            DATA,
            metavar="NAME",
            show_default=DATASET,
            autocompletion=completed("dataset"),
        ),
    ] = None,
    dataset_options: Annotated[
        str | None, _option("Options of the data set.", DATA, metavar="A=1,B=x")
    ] = None,
    data: Annotated[
        Path | None,
        _option("The folder of data files.", DATA, metavar="DIR", show_default="$LEAKSCOPE_DATA"),
    ] = None,
    download: Annotated[
        bool, _option("Download the data set if it is not there.", DATA, "--download")
    ] = False,
    table: Annotated[
        Path | None, _option("Your own records: .csv, .csv.gz or .csv.xz.", DATA, metavar="FILE")
    ] = None,
    label: Annotated[
        str | None, _option("The column of its labels.", DATA, metavar="COLUMN")
    ] = None,
    unit: Annotated[
        str | None,
        _option("The column of the person a row belongs to.", DATA, metavar="COLUMN"),
    ] = None,
    records: Annotated[
        int | None,
        _option(
            "How many records to draw.",
            DATA,
            metavar="N",
            min=2,
            show_default=f"{RECORDS} of a data set, all of a table",
        ),
    ] = None,
    members: Annotated[
        int | None,
        _option(
            "How many each model is trained on; as many are D′, and as many are evaluated.",
            DATA,
            metavar="N",
            min=1,
            show_default="a third",
        ),
    ] = None,
    seeds: Annotated[int, _option("How many models of each defense.", HOW, metavar="N", min=1)] = 3,
    attacks: Annotated[
        str | None,
        _option(
            "Only these.",
            HOW,
            metavar="A,B",
            show_default="all",
            autocompletion=several("attack"),
        ),
    ] = None,
    channels: Annotated[
        str | None,
        _option(
            "Only attacks through these.",
            HOW,
            metavar="A,B",
            show_default="all",
            autocompletion=several("channel"),
        ),
    ] = None,
    shadows: Annotated[
        int,
        _option(
            "Shadow models for each model, with its defense; 0 leaves their attacks out.",
            HOW,
            metavar="N",
            min=0,
        ),
    ] = 0,
    limit: Annotated[float, _option("The advantage that counts as none.", HOW)] = 0.1,
    seed: Annotated[
        int, _option("Same seed, same numbers.", HOW, metavar="N", min=0, max=2**32 - 1)
    ] = 0,
    workers: Annotated[
        int | None,
        _option(
            "How many are trained at once.",
            TRAINING,
            metavar="N",
            min=1,
            show_default="as many as there are cores",
        ),
    ] = None,
    backend: Annotated[
        Backend, _option("dask and ray need the extra of that name.", TRAINING)
    ] = Backend.local,
    address: Annotated[
        str | None,
        _option(
            "The scheduler of a cluster, whose workers must see the folder of --out.",
            TRAINING,
            metavar="tcp://HOST:PORT",
        ),
    ] = None,
    fresh: Annotated[
        bool,
        _option("Train also those that are kept in --out from before.", TRAINING, "--fresh"),
    ] = False,
    out: Annotated[
        Path,
        _option(
            "The folder for compare.html, compare.json, compare.csv, and trials/ for the models.",
            RESULT,
            metavar="DIR",
        ),
    ] = Path("leakscope-compare"),
    as_json: Annotated[bool, _option("Print JSON instead of a table.", RESULT, "--json")] = False,
    verbose: Verbose = 0,
    debug: Debug = False,
) -> None:
    """Compare defenses: what each buys in privacy, and costs in accuracy, size and time.

    No defense always stands beside them; so do, where one changes how a network is trained, as long
    a training without it and an earlier end of training at the same train accuracy. What is
    finished is found again in --out.
    """
    session = ctx.ensure_object(Session)
    pool = Pool(dataset, dataset_options, records, data, download, table, label, unit)
    pool.check()
    settings: dict[str, Any] = {
        "defenses": names_in("defenses", defenses),
        "members": members,
        "seeds": seeds,
        "attacks": names_in("attacks", attacks),
        "channels": names_in("channels", channels),
        "shadows": shadows,
        "limit": limit,
        "seed": seed,
        "workers": workers,
        "backend": backend.value,
        "address": address,
        "fresh": fresh,
        "dataset": str(table) if table is not None else dataset or DATASET,
        "command": session.command,
    }
    _compare(session, pool, recipe, settings, out, as_json)


def _compare(
    session: Session, pool: Pool, recipe: str, settings: dict[str, Any], out: Path, as_json: bool
) -> None:
    # Here, so that help does not wait for numpy, pandas and scikit-learn.
    from leakscope.cli.recipes import find_recipe
    from leakscope.comparing import compare
    from leakscope.comparing.defending import combinations

    combinations(settings["defenses"])  # a name that is not known is said before data is read
    made: Recipe = find_recipe(recipe)
    with showing_steps(session) as steps:
        comparison = compare(
            made,
            pool.read(settings["seed"], made, steps, session.say),
            out=out,
            progress=steps,
            **settings,
        )
    _print(session, comparison, out, as_json)


def _print(session: Session, comparison: Comparison, out: Path, as_json: bool) -> None:
    if as_json:
        print_json(comparison.to_dict())
        session.say(f"The comparison is in {out}.")
        return
    from leakscope.report.comparison_terminal import print_comparison

    print_comparison(comparison.to_dict(), session.stdout, folder=out)
