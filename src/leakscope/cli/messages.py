"""What the library logs, as lines on stderr: warnings always, the rest where it is asked for."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from leakscope.cli.session import Session

LOGGER = "leakscope"
# What -v and -vv show.
LEVELS = (logging.INFO, logging.DEBUG)


class _Saying(logging.Handler):
    """Says each message on a line of its own."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            self._session.say(record.getMessage(), heading="Warning: ", style="yellow")
        else:
            self._session.say(record.getMessage())


@contextmanager
def saying_messages(session: Session) -> Iterator[None]:
    """Say what is logged inside; afterwards, logging is as it was."""
    logger, handler = logging.getLogger(LOGGER), _Saying(session)
    before = logger.level
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def _listen(value: int) -> int:
    if value:
        logging.getLogger(LOGGER).setLevel(LEVELS[min(value, len(LEVELS)) - 1])
    return value


Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        metavar="",
        help="Say more of what is done; -vv says most.",
        is_eager=True,
        callback=_listen,
    ),
]
