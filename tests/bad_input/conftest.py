from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command

from leakscope.cli import main


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed."""

    code: int
    stdout: str
    stderr: str


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fresh folder to stand in, from which modules can be imported that are then forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = {*sys.modules}
    yield tmp_path
    for name in {*sys.modules} - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


# A command can be invoked many times, and takes longer to make than to refuse its options.
made_once = cache(get_command)


@pytest.fixture
def run(
    place: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    """Run the command with these words in that folder, within this process."""
    monkeypatch.setattr("leakscope.cli.run.get_command", made_once)

    def ran(*words: object) -> Ran:
        capfd.readouterr()
        with warnings.catch_warnings():
            # As outside of the tests, where a warning is a line and not an error.
            warnings.simplefilter("default")
            code = main([str(word) for word in words])
        return Ran(code, *capfd.readouterr())

    return ran
