from __future__ import annotations

import io
import os
import runpy
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import leakscope
from leakscope.cli import main
from leakscope.cli.options import AuditOptions
from leakscope.errors import InputError, UnknownNameError

Run = Callable[..., Any]


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("leakscope.registry.entries", fail)


def test_the_version(run: Run) -> None:
    ran = run("--version")
    assert (ran.code, ran.stdout, ran.stderr) == (0, f"leakscope {leakscope.__version__}\n", "")


@pytest.mark.parametrize("words", [["--help"], ["-h"], []])
def test_help_names_every_command(run: Run, words: list[str]) -> None:
    ran = run(*words)
    assert (ran.code, ran.stderr) == (0, "")
    for command in ("audit", "datasets", "attacks", "channels", "recipes"):
        assert f" {command} " in ran.stdout


def test_help_of_the_audit_has_examples_and_every_option(run: Run) -> None:
    ran = run("audit", "--help")
    assert ran.code == 0
    assert "leakscope audit --dataset digits --recipe nearest" in ran.stdout
    for field in fields(AuditOptions):
        option = "--" + field.name.removeprefix("as_").replace("_", "-")
        assert f" {option} " in ran.stdout
    assert " --no-randomized " in ran.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], "No such command 'nothing'"),
        (["audit", "--nothing"], "--nothing"),
        (["audit", "--limit", "much"], "--limit"),
        (["audit", "--seed", "-1"], "--seed"),
        (["audit", "--seed", "4294967296"], "--seed"),
        (["audit", "--records", "1"], "--records"),
        (["audit", "--out"], "--out"),
        (["audit", "word"], "word"),
        (["attacks", "--seed", "1"], "--seed"),
    ],
)
def test_wrong_usage_is_one_line(run: Run, words: list[str], said: str) -> None:
    ran = run(*words)
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("Error: ")
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (InputError("The thing is 3; choose 4"), "The thing is 3; choose 4"),
        (
            UnknownNameError("attack", "los", ["loss"]),
            "There is no attack named 'los'; did you mean 'loss'?",
        ),
        (
            InputError("a\nb\x1b[31m\u202ec"),
            "a b\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}c",
        ),
        (InputError("[bold]no[/bold] [/] :smile:"), "[bold]no[/bold] [/] :smile:"),
        (
            MemoryError("Unable to allocate 7 TiB"),
            "There is not enough memory (Unable to allocate 7 TiB); audit fewer records",
        ),
        (MemoryError(), "There is not enough memory (none is left); audit fewer records"),
        (
            ZeroDivisionError("division\nby zero."),
            "ZeroDivisionError: division; run again with --debug to see where",
        ),
        (RuntimeError(), "RuntimeError: no message; run again with --debug to see where"),
        (EOFError("end."), "EOFError: end; run again with --debug to see where"),
    ],
)
def test_any_error_is_one_sentence_without_a_traceback(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str
) -> None:
    failing(monkeypatch, error)
    ran = run("attacks")
    assert (ran.code, ran.stdout, ran.stderr) == (2, "", f"Error: {sentence}\n")


def test_a_long_sentence_is_not_broken(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, InputError("word " * 100 + "end"))
    assert run("attacks").stderr == "Error: " + "word " * 100 + "end\n"


def test_debug_shows_the_traceback_and_then_the_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, InputError("The thing is 3"))
    ran = run("attacks", "--debug")
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("Traceback (most recent call last):")
    assert ran.stderr.endswith("\nError: The thing is 3\n")


def test_an_interruption_is_a_short_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    ran = run("attacks")
    assert (ran.code, ran.stdout, ran.stderr) == (130, "", "Interrupted.\n")


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line_and_told_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(*_: object) -> list[Any]:
        warnings.warn("first line\nsecond [bold]line", UserWarning, stacklevel=1)
        warnings.warn("another", UserWarning, stacklevel=1)
        # From another place, so that it is not Python that keeps it back.
        warnings.warn("first line\nsecond [bold]line", RuntimeWarning, stacklevel=1)
        return []

    monkeypatch.setattr("leakscope.registry.entries", warn)
    before = warnings.showwarning
    ran = run("attacks", "--json")
    assert (ran.code, ran.stdout) == (0, "[]\n")
    assert ran.stderr == "Warning: first line second [bold]line\nWarning: another\n"
    assert warnings.showwarning is before


def test_a_reader_who_has_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(["--version"]) == 1
        # What is left to be flushed goes nowhere, rather than to the closed pipe.
        stdout.write("more")


def test_any_stream_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stdout)
    assert main(["--version"]) == 0
    assert stdout.getvalue() == f"leakscope {leakscope.__version__}\n"


def test_the_module_is_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["leakscope", "--version"])
    # By its path, because pytest imports modules in a way that runpy cannot run them.
    module = str(Path(leakscope.__file__).with_name("__main__.py"))
    runpy.run_path(module, run_name="leakscope.__main__")
    assert capsys.readouterr().out == ""
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(module, run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"leakscope {leakscope.__version__}\n"


@pytest.mark.slow
def test_a_table_whose_reader_has_gone_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "leakscope", "recipes"],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (1, b"")
