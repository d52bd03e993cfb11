"""The code of docs/defenses.md runs, and says what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leakscope.registry import entries

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "defenses.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def ran(block: str, capsys: pytest.CaptureFixture[str]) -> str:
    # As a user types it: without the future imports of this file, in a module of its own.
    exec(compile(block, "docs/defenses.md", "exec", dont_inherit=True), {"__name__": "__main__"})
    return capsys.readouterr().out


def test_noise_takes_most_of_the_leakage(capsys: pytest.CaptureFixture[str]) -> None:
    said = ran(BLOCKS[0], capsys)
    assert "(ε, δ) = (2.0, 1e-05)" in said
    plain, noisy = (float(value) for value in re.findall(r": (-?[\d.]+) nats", said))
    assert noisy < plain / 2


def test_the_other_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(BLOCKS[1], capsys) == ""


def test_a_defense_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(BLOCKS[2], capsys).strip() == "[1.5 0. ]"


def test_every_defense_is_on_the_page() -> None:
    assert len(BLOCKS) == 3
    for entry in entries("defense"):
        assert f"| `{entry.name}` | `{entry.thing.example}` |" in PAGE
