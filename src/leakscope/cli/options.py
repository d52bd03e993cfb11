"""What ``leakscope audit`` can be asked for: a field is an option, and its type what it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from leakscope.cli.completing import completed, several
from leakscope.cli.messages import Verbose
from leakscope.cli.session import Debug, Session
from leakscope.cli.texts import typed
from leakscope.errors import InputError

DATA, MODEL = "A data set, bundled or known by name", "Your own model and records"
SAVED, HOW, RESULT = "Predictions saved before", "How to audit", "Result"
SHADOW = "Shadow models: trained like it, for the attacks that compare it with them"


class Backend(StrEnum):
    """Where shadow models are trained."""

    local = "local"
    dask = "dask"
    ray = "ray"


def _option(text: str, panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The options of ``leakscope audit``; None and False where they were not given."""

    dataset: Annotated[
        str | None,
        _option(
            "The data set, half of whose records a coin makes members; see [bold]leakscope "
            "datasets[/bold].",
            DATA,
            metavar="NAME",
            show_default="adult",
            autocompletion=completed("dataset"),
        ),
    ] = None
    dataset_options: Annotated[
        str | None,
        _option("Options of the data set, such as encoding=table.", DATA, metavar="A=1,B=x"),
    ] = None
    records: Annotated[
        int | None,
        _option("How many records to draw from it.", DATA, metavar="N", min=2, show_default="4000"),
    ] = None
    data: Annotated[
        Path | None,
        _option("The folder of data files.", DATA, metavar="DIR", show_default="$LEAKSCOPE_DATA"),
    ] = None
    download: Annotated[
        bool, _option("Download the data set if it is not there.", DATA, "--download")
    ] = False

    members: Annotated[
        Path | None,
        _option("The records it was trained on: .csv, .csv.gz or .csv.xz.", MODEL, metavar="FILE"),
    ] = None
    nonmembers: Annotated[
        Path | None,
        _option("Records like them that it was not trained on.", MODEL, metavar="FILE"),
    ] = None
    label: Annotated[
        str | None,
        _option(
            "The column of labels; in predictions 'label' if not given.", MODEL, metavar="COLUMN"
        ),
    ] = None
    features: Annotated[
        str | None,
        _option(
            "The columns that --recipe trains on.",
            MODEL,
            metavar="A,B",
            show_default="all but the label, the unit and identifiers",
        ),
    ] = None
    unit: Annotated[
        str | None,
        _option("The column of the person a row belongs to.", MODEL, metavar="COLUMN"),
    ] = None
    groups: Annotated[
        str | None,
        _option(
            "Columns to report by, or groups of the data set.",
            MODEL,
            metavar="A,B",
            show_default="those of the data set",
        ),
    ] = None
    model: Annotated[
        Path | None,
        _option(
            "The trained model: a skops file, a file of XGBoost (.json, .ubj) or LightGBM (.txt), "
            "or the weights of a torch network (.safetensors, or "
            "a state dict in .pt) beside --network or --recipe.",
            MODEL,
            metavar="FILE",
        ),
    ] = None
    network: Annotated[
        str | None,
        _option(
            "The network that weights belong to, with its sizes: mlp:104,50,50,2, lenet5:1,28,28,"
            "10; those of the records if left out.",
            MODEL,
            metavar="NAME",
        ),
    ] = None
    model_url: Annotated[
        str | None,
        _option(
            "The address of a model behind HTTP, which is sent the records as JSON.",
            MODEL,
            metavar="URL",
        ),
    ] = None
    url_options: Annotated[
        str | None,
        _option(
            "How it is asked: token_env=VARIABLE, budget=N, batch_size=N, requests_per_second=N, "
            "and others of HttpModel.",
            MODEL,
            metavar="A=1,B=x",
        ),
    ] = None
    trust_pickle: Annotated[
        bool,
        _option(
            "Load the model also from a pickle, joblib or whole-module file, which can run any "
            "code.",
            MODEL,
            "--trust-pickle",
        ),
    ] = False
    recipe: Annotated[
        str | None,
        _option(
            "Train a model on the members first (beside --model: the shadow models alone, or the "
            "network of its weights): a name of [bold]leakscope recipes[/bold], or "
            "module:attribute for an estimator, a TorchRecipe, or a function that makes one.",
            MODEL,
            metavar="NAME",
            show_default="forest for a data set",
            autocompletion=completed("recipe"),
        ),
    ] = None

    member_predictions: Annotated[
        Path | None,
        _option(
            "What it answered for members: a column of probabilities per class, named by the "
            "class, and a column of labels.",
            SAVED,
            metavar="FILE",
        ),
    ] = None
    nonmember_predictions: Annotated[
        Path | None, _option("The same for non-members.", SAVED, metavar="FILE")
    ] = None

    attacks: Annotated[
        str | None,
        _option(
            "Only these; see [bold]leakscope attacks[/bold].",
            HOW,
            metavar="A,B",
            show_default="all",
            autocompletion=several("attack"),
        ),
    ] = None
    channels: Annotated[
        str | None,
        _option(
            "Only attacks through these; records also reads the training set out of explanations. "
            "See [bold]leakscope channels[/bold].",
            HOW,
            metavar="A,B",
            show_default="all",
            autocompletion=several("channel"),
        ),
    ] = None
    limit: Annotated[
        float | None,
        _option("The advantage up to which no leak counts as found.", HOW, show_default="0.1"),
    ] = None
    tail_limit: Annotated[
        float | None,
        _option(
            "The most members found at 1 % FPR for which no leak counts as found, as a multiple of "
            "the FPR.",
            HOW,
            show_default="5",
        ),
    ] = None
    prior: Annotated[
        float | None,
        _option(
            "The share of members among those an adversary asks about.", HOW, show_default="0.5"
        ),
    ] = None
    randomized: Annotated[
        bool | None,
        _option(
            "Whether a fair coin of its own put each record on its side; only then is there a "
            "lower bound on ε.",
            HOW,
            show_default="only for a data set",
        ),
    ] = None
    delta: Annotated[float | None, _option("The δ of that bound.", HOW, show_default="1e-05")] = (
        None
    )
    max_overlap: Annotated[
        float | None,
        _option("The share of non-members that may also be members.", HOW, show_default="0.05"),
    ] = None
    seed: Annotated[
        int, _option("Same seed, same numbers.", HOW, metavar="N", min=0, max=2**32 - 1)
    ] = 0

    shadows: Annotated[
        int | None,
        _option(
            "How many to train; 0 leaves those attacks out.",
            SHADOW,
            metavar="N",
            min=0,
            show_default="32 for a data set, else 0",
        ),
    ] = None
    workers: Annotated[
        int | None,
        _option(
            "How many are trained at once.",
            SHADOW,
            metavar="N",
            min=1,
            show_default="as many as there are cores",
        ),
    ] = None
    backend: Annotated[
        Backend | None,
        _option(
            "Where they are trained; dask and ray need the extra of that name.",
            SHADOW,
            show_default="local",
        ),
    ] = None
    address: Annotated[
        str | None,
        _option(
            "The scheduler of a cluster, whose workers must see the folder of --out.",
            SHADOW,
            metavar="tcp://HOST:PORT",
        ),
    ] = None
    fresh: Annotated[
        bool,
        _option("Train also those that are kept in --out from an earlier run.", SHADOW, "--fresh"),
    ] = False

    out: Annotated[
        Path,
        _option(
            "The folder for report.html, report.json, records.csv, and trials/ for shadow models.",
            RESULT,
            metavar="DIR",
        ),
    ] = Path("leakscope-report")
    redact: Annotated[
        bool,
        _option(
            "Leave out what tells of single records: no records.csv, no trials/, small groups and "
            "paths withheld.",
            RESULT,
            "--redact",
        ),
    ] = False
    as_json: Annotated[
        bool, _option("Print the report as JSON instead of a summary.", RESULT, "--json")
    ] = False
    verbose: Verbose = 0
    debug: Debug = False

    def check(self) -> None:
        """Refuse options that contradict or miss each other."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        given = {name for name, value in values.items() if value is not None and value is not False}
        for one, other in CONTRADICTIONS:
            if {one, other} <= given:
                raise InputError(
                    f"{typed(one)} and {typed(other)} contradict each other; leave one out"
                )
        for option, partners, reason in PARTNERS:
            if option in given and given.isdisjoint(partners):
                missing = " or ".join(typed(partner) for partner in partners)
                raise InputError(f"{typed(option)} is given without {missing}{reason}; add it")
        trained = self.shadows if self.shadows is not None else self.members is None
        for option in ("workers", "backend", "address", "fresh"):
            if option in given and not trained:
                raise InputError(
                    f"{typed(option)} is about shadow models, of which none are trained; say how "
                    "many with --shadows"
                )


OWN_DATA = ("members", "member_predictions")
DRAWN = ("dataset", "dataset_options", "records", "data", "download")
SHADOWING = ("shadows", "workers", "backend", "address", "fresh")

# Two ways to say what is audited, or an option that would have no effect beside another.
CONTRADICTIONS = (
    ("members", "member_predictions"),
    ("member_predictions", "model"),
    ("member_predictions", "recipe"),
    ("model", "model_url"),
    ("member_predictions", "model_url"),
    ("member_predictions", "max_overlap"),
    ("redact", "fresh"),
    ("features", "model"),
    ("features", "model_url"),
    *(("member_predictions", option) for option in SHADOWING),
    *((own, option) for own in OWN_DATA for option in DRAWN),
)

# An option, what it needs one of beside it, and why if that is not plain.
PARTNERS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("members", ("nonmembers",), ""),
    ("nonmembers", ("members",), ""),
    ("member_predictions", ("nonmember_predictions",), ""),
    ("nonmember_predictions", ("member_predictions",), ""),
    ("model", ("members",), ", and a model does not tell which records it was trained on"),
    ("members", ("label",), ", which names the column of the labels"),
    ("model_url", ("members",), ", and a model does not tell which records it was trained on"),
    ("url_options", ("model_url",), ""),
    ("members", ("model", "recipe", "model_url"), ", and nothing says which model is audited"),
    ("trust_pickle", ("model",), ""),
    ("network", ("model",), ", which holds its weights"),
    ("features", ("members",), ", and only tables from files have columns to choose from"),
    ("label", OWN_DATA, ""),
    ("unit", OWN_DATA, ""),
    ("address", ("backend",), ", and nothing says what kind of cluster is there"),
)


def options_from_fields(run: Callable[[Session, AuditOptions], None]) -> Callable[..., None]:
    """A command for typer whose parameters are the fields of AuditOptions."""

    def command(ctx: typer.Context, **given: Any) -> None:
        run(ctx.ensure_object(Session), AuditOptions(**given))

    types = get_type_hints(AuditOptions, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("ctx", keyword, annotation=typer.Context),
        *(
            inspect.Parameter(one.name, keyword, default=one.default, annotation=types[one.name])
            for one in fields(AuditOptions)
        ),
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {"ctx": typer.Context, **types}
    command.__doc__ = run.__doc__
    return command
