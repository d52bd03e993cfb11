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
    of the bundled Adult data. Your own is a file beside the records it
    was trained on and others like them, or a recipe that is trained on
    them first; then how each column is used is told.
    """
    asked.check()
    # Here, so that help does not wait for numpy, pandas and scikit-learn.
    from leakscope.report.folders import check_folder
    from leakscope.report.redaction import refuse_telling_files

    check_folder(asked.out)
    if asked.redact:
        refuse_telling_files(asked.out)
    with showing_steps(session) as steps:
        from leakscope.cli.calling import Call

        report = Call(asked, session.command, steps, session.say).make()
    if asked.redact:
        report = report.redacted()
        session.say("The report is redacted: neither records.csv nor trials/ is written.")
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
