"""``leakscope check``: a report held to limits, with an exit code for a build."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leakscope.cli.completing import completed
from leakscope.cli.session import Debug, Session, print_json
from leakscope.errors import InputError

if TYPE_CHECKING:
    from leakscope.gate import Check

LIMITS, BEFORE, RESULT = "What the report must keep to", "An older report", "Result"
SUMMARY = "GITHUB_STEP_SUMMARY"


def _option(text: str, panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


def check_command(
    ctx: typer.Context,
    report: Annotated[
        Path,
        typer.Argument(metavar="REPORT", help="A report.json, or the folder that holds it."),
    ],
    *,
    max_advantage: Annotated[
        float | None,
        _option(
            "The most that any attack's advantage may be.",
            LIMITS,
            metavar="0.1",
            show_default="without any limit: that of the report",
        ),
    ] = None,
    max_auc: Annotated[
        float | None, _option("The most that any attack's AUC may be.", LIMITS, metavar="0.55")
    ] = None,
    max_tpr: Annotated[
        list[str] | None,
        _option(
            "The most members that may be found at a false positive rate: TPR@FPR. Repeatable.",
            LIMITS,
            metavar="0.02@0.01",
        ),
    ] = None,
    max_disclosed: Annotated[
        int | None,
        _option("The most training records that may be recovered.", LIMITS, metavar="N"),
    ] = None,
    require: Annotated[
        list[str] | None,
        _option(
            "An attack without which nothing is decided. Repeatable.",
            LIMITS,
            metavar="ATTACK",
            autocompletion=completed("attack"),
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        _option("No attack may do surely better than in this one.", BEFORE, metavar="OLD.json"),
    ] = None,
    tolerance: Annotated[
        float,
        _option("How much better it may do without anybody being able to tell.", BEFORE),
    ] = 0.05,
    allow_other_records: Annotated[
        bool,
        _option(
            "Compare also where it is of other records, sampled from the same population.",
            BEFORE,
            "--allow-other-records",
        ),
    ] = False,
    junit: Annotated[
        Path | None, _option("Write JUnit XML, a case per limit.", RESULT, metavar="FILE")
    ] = None,
    summary: Annotated[
        Path | None, _option("Write a summary in Markdown.", RESULT, metavar="FILE")
    ] = None,
    github: Annotated[
        bool,
        _option(f"Append the summary to ${SUMMARY}, the page of the job.", RESULT, "--github"),
    ] = False,
    as_json: Annotated[bool, _option("Print JSON instead of a table.", RESULT, "--json")] = False,
    debug: Debug = False,
) -> None:
    """Hold a report to limits: the gate of a build.

    It decides by the ends of intervals, never by estimates.
    """
    session = ctx.ensure_object(Session)
    page = _job_page() if github else None
    # Here, so that help does not wait for numpy and scipy.
    from leakscope.gate import check

    found = check(
        report,
        max_advantage=max_advantage,
        max_auc=max_auc,
        max_tpr=max_tpr,
        max_disclosed=max_disclosed,
        baseline=baseline,
        tolerance=tolerance,
        allow_other_records=allow_other_records,
        require=require or (),
    )
    try:
        _write(found, junit, summary, page)
    finally:
        # Also where a file could not be written: the decision is known.
        _print(session, found, as_json)
    raise typer.Exit(found.exit_code)


def _job_page() -> Path:
    place = os.environ.get(SUMMARY)
    if not place:
        raise InputError(
            f"--github is given and ${SUMMARY} is not set, so that this is no GitHub job; leave "
            "--github out, or write the summary with --summary FILE"
        )
    return Path(place)


def _write(found: Check, junit: Path | None, summary: Path | None, page: Path | None) -> None:
    from leakscope.report.folders import write_together

    if junit is not None:
        write_together(junit.parent, {junit.name: found.to_junit()})
    if summary is not None:
        write_together(summary.parent, {summary.name: found.to_markdown()})
    if page is not None:
        try:
            # Other steps of the job write to the same file.
            with page.open("a", encoding="utf-8") as file:
                file.write(found.to_markdown())
        except OSError as error:
            raise InputError(
                f"The summary cannot be appended to {str(page)!r} ({error.strerror}); check "
                f"${SUMMARY}"
            ) from error


def _print(session: Session, found: Check, as_json: bool) -> None:
    if as_json:
        print_json(found.to_dict())
        return
    from leakscope.gate.terminal import print_check

    print_check(found, session.stdout)
