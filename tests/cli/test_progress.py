from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from leakscope.cli.progress import showing_steps
from leakscope.cli.session import Session


def session(*, terminal: bool) -> tuple[Session, io.StringIO]:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=100, legacy_windows=False)
    return Session((), stderr=console), file


def test_a_line_per_step_where_there_is_no_terminal() -> None:
    lines, file = session(terminal=False)
    with showing_steps(lines) as steps:
        steps("reading [bold]a.csv[/bold]")
        steps("running loss", 0, 2)
        steps("running entropy", 1, 2)
        steps("summing up", 2, 2)
        steps("checking", 0, 1)
    assert file.getvalue().splitlines() == [
        "reading [bold]a.csv[/bold]",
        "running loss (1 of 2)",
        "running entropy (2 of 2)",
        "checking",
    ]


def test_a_bar_on_a_terminal_that_goes_away() -> None:
    bar, file = session(terminal=True)
    with showing_steps(bar) as steps:
        steps("running loss", 1, 3)
    text = file.getvalue()
    assert "running loss (2 of 3)" in text
    # The last thing done is to erase the line of the bar.
    assert re.search(r"\x1b\[2K$", text)


def test_what_a_step_names_is_neither_markup_nor_control_on_a_terminal() -> None:
    bar, file = session(terminal=True)
    with showing_steps(bar) as steps:
        steps("reading [bold]a\x1b[31m.csv[/bold]")
    assert "reading [bold]a\ufffd[31m.csv[/bold]" in file.getvalue()


def test_a_step_that_goes_on_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("leakscope.cli.progress.time.monotonic", lambda: now[0])
    lines, file = session(terminal=False)
    with showing_steps(lines) as steps:
        for done, second in enumerate((100.0, 100.5, 109.0, 111.0, 112.0)):
            now[0] = second
            steps("training 9 models", done, 9)
        steps("running loss", 0, 1)
    assert file.getvalue().splitlines() == [
        "training 9 models (1 of 9)",
        "training 9 models (4 of 9)",
        "running loss",
    ]
