"""What is going on, on stderr: a bar on a terminal, a line per step elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from leakscope.cli.session import Session, one_line

# Between two lines about the same step, where there is no bar.
SECONDS = 10.0


class Steps(Protocol):
    """Told what is being done, how many steps are done and how many there are; 0 is unknown."""

    def __call__(self, step: str, done: int = 0, total: int = 0) -> None: ...


@contextmanager
def showing_steps(session: Session) -> Iterator[Steps]:
    """Show the steps told inside; on a terminal the bar goes away at the end."""
    if not session.stderr.is_terminal:
        last = ("", 0.0)

        def say(step: str, done: int = 0, total: int = 0) -> None:
            nonlocal last
            # A step that goes on is told again only now and then: this may be a file.
            again = step == last[0] and time.monotonic() < last[1] + SECONDS
            if (done < total or total == 0) and not again:
                last = (step, time.monotonic())
                session.say(_told(step, done, total))

        yield say
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    # Words in the steps come from data: they are no markup.
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=session.stderr, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(step: str, done: int = 0, total: int = 0) -> None:
            text = one_line(_told(step, done, total))
            bar.update(task, description=text, completed=done, total=total or None)

        yield show


def _told(step: str, done: int, total: int) -> str:
    return f"{step} ({done + 1} of {total})" if done < total and total > 1 else step
