"""``leakscope audit``: from options to a report, saved and shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from leakscope.cli.options import AuditOptions
from leakscope.cli.progress import showing_steps
from leakscope.cli.session import Session, print_json

if TYPE_CHECKING:
    from leakscope.report import Report


def audit_command(session: Session, asked: AuditOptions) -> None:
    """Audit a model: find out who can tell that a record was used to train it.

    Without options it is a random forest, trained on half of 4,000 records
    of the bundled Adult data. The exit code is 0 for a finished audit,
    whatever the verdict, and 2 for an error.

    [bold]leakscope audit --dataset digits --recipe nearest[/bold]

    [bold]leakscope audit --members a.csv --nonmembers b.csv --label y --model m.skops[/bold]

    [bold]leakscope audit --member-predictions a.csv --nonmember-predictions b.csv[/bold]
    """
    asked.check()
    # Here, so that help does not wait for numpy, pandas and scikit-learn.
    from leakscope.report.folders import check_folder

    check_folder(asked.out)
    with showing_steps(session) as steps:
        from leakscope.cli.calling import Call

        report = Call(asked, session.command, steps).make()
    saved: Path | None = None
    try:
        saved = report.save(asked.out)
    finally:
        # Also where it could not be saved after all: the work is not lost.
        _print_report(session, report, saved, asked.as_json)


def _print_report(session: Session, report: Report, saved: Path | None, as_json: bool) -> None:
    if as_json:
        print_json(report.to_dict())
        if saved is not None:
            session.say(f"The report is in {saved}.")
        return
    from leakscope.report.terminal import print_summary

    print_summary(report.to_dict(), session.stdout, folder=saved)
