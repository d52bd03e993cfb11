"""The entry point: whatever happens inside becomes a result, or one sentence and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import typer
from typer.main import get_command

from leakscope.cli.app import app
from leakscope.cli.interrupts import Stop, stopping_soon
from leakscope.cli.messages import saying_messages
from leakscope.cli.session import Session
from leakscope.errors import InputError, LeakscopeError
from leakscope.scrubbing import without_queries

FINISHED, BROKEN_PIPE, FAILED = 0, 1, 2

# Set by the script that a shell runs where its user asks for completion, and what installs that.
COMPLETING = "_LEAKSCOPE_COMPLETE"
COMPLETION = {"--install-completion", "--show-completion"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (those typed by default); the exit code."""
    session = Session(tuple(sys.argv[1:] if argv is None else argv))
    if hasattr(sys.stdout, "reconfigure"):
        # A terminal without ε shows a question mark for it, rather than an error.
        sys.stdout.reconfigure(errors="replace")
    stop = Stop()
    with warnings.catch_warnings(), saying_messages(session):
        warnings.showwarning = _one_line_each(session)
        try:
            with stopping_soon(session.say) as stop:
                _invoke(session)
            sys.stdout.flush()
        except typer.Exit as wanted:
            return wanted.exit_code
        except SystemExit as ended:
            return _left(session, ended)
        except KeyboardInterrupt as interrupt:
            with suppress(OSError):  # a terminal that is closed
                session.say(str(interrupt) or stop.sentence)
            return stop.exit_code
        except BrokenPipeError:
            return _close_quietly()
        except Exception as error:
            return _fail(session, error)
    return FINISHED


def _invoke(session: Session) -> None:
    if os.environ.get(COMPLETING):
        app(prog_name="leakscope")  # answers the shell and exits
    command = get_command(app)
    with command.make_context("leakscope", [*session.argv], obj=session) as context:
        command.invoke(context)


def _fail(session: Session, error: Exception) -> int:
    if session.debug:
        session.stderr.file.write(without_queries("".join(traceback.format_exception(error))))
    session.say(_sentence(error), heading="Error: ", style="bold red")
    return FAILED


def _left(session: Session, ended: SystemExit) -> int:
    """typer leaves the program after completion, rich where nobody reads; nobody else should."""
    if isinstance(ended.__context__, BrokenPipeError):
        return _close_quietly()
    if os.environ.get(COMPLETING) or COMPLETION.intersection(session.argv[:1]):
        return int(ended.code or FINISHED)
    return _fail(session, _ended_by(ended))


def _ended_by(ended: SystemExit) -> InputError:
    """What to say where a model, a recipe or another thing of the user's leaves the program."""
    error = InputError(
        f"The program was left by what it called (SystemExit: {str(ended) or 'no reason'}); let "
        "your model or recipe raise an error in its place"
    )
    error.__cause__ = ended
    return error


def _sentence(error: Exception) -> str:
    """What went wrong, in one sentence."""
    if isinstance(error, LeakscopeError):
        # A model without a name of its own is "the function", or "the model at …".
        message = str(error)
        return message[:1].upper() + message[1:] if message.startswith("the ") else message
    if hasattr(error, "format_message"):  # typer's own errors: an unknown option, a wrong value
        return str(error.format_message())
    message = next(iter(str(error).strip().splitlines()), "").rstrip(".")
    if isinstance(error, MemoryError):
        return f"There is not enough memory ({message or 'none is left'}); audit fewer records"
    kind = type(error).__name__
    return f"{kind}: {message or 'no message'}; run again with --debug to see where"


def _one_line_each(session: Session) -> Callable[..., None]:
    """Warnings of libraries as single lines on stderr, each text once."""
    said = set[str]()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if str(message) not in said:
            said.add(str(message))
            session.say(message, heading="Warning: ", style="yellow")

    return show


def _close_quietly() -> int:
    """Whoever read stdout has gone: leave nothing to be flushed at exit, which would fail again."""
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return BROKEN_PIPE
