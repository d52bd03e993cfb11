"""The README and the docs say what is there, and their code runs."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

from leakscope.cli import main
from pages import blocks_of, run, text_of

OWN_FILES = "leakscope audit --members train.csv --nonmembers held_out.csv --label income"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Column .* holds categories that were not in the training")
def test_the_code_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run("README.md")
    assert "attack" in capsys.readouterr().out
    assert (tmp_path / "run" / "report.html").exists()
    # What it types next, of which the first trains a forest and the second reads the model.
    typed = [line for line in text_of("README.md").splitlines() if line.startswith(OWN_FILES)]
    recipe, model = (line for line in typed if line.endswith(("--recipe forest", "model.json")))
    for line in (recipe, model):
        assert main([*shlex.split(line)[1:], "--attacks", "loss"]) == 0
        assert "Leaks" in capsys.readouterr().out


def test_the_attack_shown_to_contributors_is_the_one_in_the_code() -> None:
    shown = blocks_of(text_of("CONTRIBUTING.md"))[0]
    assert shown in text_of("src/leakscope/attacks/threshold.py")


def test_the_code_of_the_page_about_leakage_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run("docs/leakage.md")
    assert "Interval(" in capsys.readouterr().out


@pytest.mark.slow
def test_the_code_of_the_page_about_future_works_runs() -> None:
    made = run("docs/future_works.md")
    found, again = made["found"], made["again"]
    assert found.largest.value > 3 * found.mean.value  # what the mean hides
    assert (found.renyi(2)[again.records] > 0).all()
    assert np.isfinite(again.largest_epsilon.high)
    assert (made["model"].leakage_ > 0).all()
