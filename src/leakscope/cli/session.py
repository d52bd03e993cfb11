"""One run of the command: what was typed, and where its lines go."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from leakscope.scrubbing import without_queries


@dataclass
class Session:
    """One run of the command; typer's context carries it to the commands as ``ctx.obj``.

    argv: what was typed after ``leakscope``. debug: whether errors show a traceback. stdout is for
    results, stderr for everything else.
    """

    argv: tuple[str, ...]
    debug: bool = False
    stdout: Console = field(default_factory=Console)
    stderr: Console = field(default_factory=lambda: Console(stderr=True))

    @property
    def command(self) -> str:
        """The command line, to be pasted into a shell; addresses have lost what may be secret."""
        words = (without_queries(word, word=True) for word in self.argv)
        return shlex.join(("leakscope", *words))

    def say(self, text: object, *, heading: str = "", style: str = "") -> None:
        """One line on stderr, however long and whatever characters the text holds."""
        line = Text(heading, style=style).append(one_line(text), style="none")
        self.stderr.print(line, soft_wrap=True)


def one_line(text: object) -> str:
    """The text without line breaks, characters that could drive a terminal, and queries."""
    # Here, because the package around it imports numpy, which help need not wait for.
    from leakscope.report.words import clean

    return " ".join(clean(without_queries(str(text))).splitlines())


def print_json(thing: Any) -> None:
    """The thing as JSON on stdout, in UTF-8 whatever the terminal's encoding."""
    text = json.dumps(thing, indent=2, ensure_ascii=False, allow_nan=False)
    typer.echo(text.encode("utf-8"))


def _remember_debug(ctx: typer.Context, value: bool) -> bool:
    if value:
        ctx.ensure_object(Session).debug = True
    return value


Debug = Annotated[
    bool,
    typer.Option(
        "--debug",
        help="Show the traceback of an error.",
        # Eager, so that errors in the other options show theirs too.
        is_eager=True,
        callback=_remember_debug,
    ),
]
