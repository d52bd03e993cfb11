from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import pytest
from typer.main import get_command

from leakscope.cli.app import COMMANDS, app
from leakscope.cli.manual import PAGES, TOP

Run = Callable[..., Any]


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_examples_files_and_exit_codes(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    ran = run(command, "--help")
    assert (ran.code, ran.stderr) == (0, "")
    page, told = PAGES[command], words(ran.stdout)
    assert words(" ".join(f"$ {example}" for example in page.examples)) in told
    assert words(f"Files: {page.files} Exit codes: {page.codes}") in told
    assert max(map(len, ran.stdout.splitlines())) <= columns
    # Markup that was not understood would stand there as it is.
    assert "[bold]" not in ran.stdout
    assert "[/" not in ran.stdout


def test_the_first_help_has_them_too(run: Run) -> None:
    told = words(run("--help").stdout)
    for example in TOP.examples:
        assert example in told
    assert "--install-completion" in told
    assert "--show-completion" in told


@pytest.mark.parametrize("example", [one for page in PAGES.values() for one in page.examples])
def test_examples_are_commands_with_options_that_there_are(example: str) -> None:
    program, name, *rest = shlex.split(example)
    assert program == "leakscope"
    command = get_command(app).commands[name]  # type: ignore[attr-defined]
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    assert {word for word in rest if word.startswith("--")} <= known
