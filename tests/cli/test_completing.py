from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leakscope.cli import completing
from leakscope.cli.completing import completed, several, written_names
from leakscope.registry import HOMES, entries

Run = Callable[..., Any]

# Made in a loop, by code that has to run before anybody knows them.
MADE = ("gradient-", "smoothgrad-", "integrated-", "lrp-", "deeplift-", "kernel-", "lime-")


@pytest.mark.parametrize("kind", sorted(HOMES))
def test_names_are_read_without_running_anything(kind: str) -> None:
    written, there_are = set(written_names(kind)), {entry.name for entry in entries(kind)}
    assert written <= there_are
    assert all(name.startswith((*MADE, "occlusion-")) for name in there_are - written)


def test_one_name_is_completed() -> None:
    assert completed("recipe")("for") == ["forest", "forest-regressor"]
    assert "adult" in completed("dataset")("")


def test_the_last_of_several_names_is_completed() -> None:
    assert several("attack")("loss,conf") == ["loss,confidence"]
    assert several("defense")("prune:16+minm") == ["prune:16+minmax"]
    assert several("attack")("lir") == ["lira", "lira-offline", "lira-queries"]


def test_names_that_only_running_tells_are_found_too() -> None:
    assert several("attack")("loss,gradient-nor") == ["loss,gradient-norm"]
    assert completed("attack")("nothing") == []


def test_whatever_else_stands_in_the_source_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some.py").write_text(
        """
NAME = "by constant"
x: str = "y"

@register("attack")
class One:
    name: str = "of a class"

@register("attack", NAME)
def two(): ...

@register("attack", made())
def three(): ...

@register("channel", "another kind")
def four(): ...

@cache
@other.register("attack", "not ours")
def five(): ...

if NAME:
    pass
""",
        "utf-8",
    )
    (tmp_path / "plain.py").write_text("this is ( no Python", "utf-8")
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    monkeypatch.setattr(completing, "find_spec", lambda name: spec)
    assert written_names("attack") == ["by constant", "of a class"]
    monkeypatch.setattr(completing, "find_spec", lambda name: None)
    assert written_names("attack") == []


def shell(words: str, shell: str = "bash") -> list[str]:
    """What a shell is told where the Tab key is pressed at the end of these words."""
    given = {
        "_LEAKSCOPE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
        "_TYPER_COMPLETE_ARGS": words,
    }
    program = "import sys; from leakscope.cli import main; code = main(); " \
        "sys.exit(code or 3 * ('numpy' in sys.modules))"  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.slow
def test_a_shell_is_answered_without_waiting_for_numpy() -> None:
    assert shell("leakscope a") == ["audit", "attacks"]
    assert shell("leakscope audit --recipe for") == ["forest", "forest-regressor"]
    assert shell("leakscope audit --attacks loss,conf") == ["loss,confidence"]
    assert "shokri-table2" in shell("leakscope reproduce shokri-t")


def test_the_script_for_a_shell(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: "bash")
    ran = run("--show-completion")
    assert (ran.code, ran.stderr) == (0, "")
    assert "_LEAKSCOPE_COMPLETE=complete_bash" in ran.stdout


def test_an_unknown_shell(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_LEAKSCOPE_COMPLETE", "complete_nothing")
    assert run().code == 1
