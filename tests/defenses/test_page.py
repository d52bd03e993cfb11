"""The code of docs/defenses.md runs, and says what the page says."""

from __future__ import annotations

import re

import pytest

from leakscope.registry import entries
from pages import blocks_of, run, text_of

PAGE = "docs/defenses.md"
BLOCKS = blocks_of(text_of(PAGE))


@pytest.mark.slow
def test_noise_takes_most_of_the_leakage(capsys: pytest.CaptureFixture[str]) -> None:
    run(PAGE, BLOCKS[0])
    said = capsys.readouterr().out
    assert "(ε, δ) = (2.0, 1e-05)" in said
    plain, noisy = (float(value) for value in re.findall(r": (-?[\d.]+) nats", said))
    assert noisy < plain / 2


@pytest.mark.slow
def test_a_released_model_is_audited_beside_others_made_the_same_way() -> None:
    made = run(PAGE, BLOCKS[1])
    assert made["report"].to_dict()["trials"]["models"] == 16
    assert made["noised"].name.endswith("+noise:0.1")


def test_the_other_way(capsys: pytest.CaptureFixture[str]) -> None:
    run(PAGE, BLOCKS[2])
    assert capsys.readouterr().out == ""


def test_a_defense_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    run(PAGE, BLOCKS[3])
    assert capsys.readouterr().out.strip() == "[1.5 0. ]"


def test_every_defense_is_on_the_page() -> None:
    assert len(BLOCKS) == 4
    for entry in entries("defense"):
        assert f"| `{entry.name}` | `{entry.thing.example}` |" in text_of(PAGE)
