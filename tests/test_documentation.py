"""The README and the docs say what is there, and their code runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pages import ROOT, blocks_of, run, text_of

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_code_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run("README.md")
    assert "attack" in capsys.readouterr().out
    assert (tmp_path / "run" / "report.html").exists()


def test_the_attack_shown_to_contributors_is_the_one_in_the_code() -> None:
    shown = blocks_of(text_of("CONTRIBUTING.md"))[0]
    assert shown in text_of("src/leakscope/attacks/threshold.py")


def test_the_code_of_the_page_about_leakage_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run("docs/leakage.md")
    assert "Interval(" in capsys.readouterr().out


def test_the_code_of_the_page_about_future_works_runs() -> None:
    made = run("docs/future_works.md")
    found, again = made["found"], made["again"]
    assert found.largest.value > 3 * found.mean.value  # what the mean hides
    assert (found.renyi(2)[again.records] > 0).all()
    assert np.isfinite(again.largest_epsilon.high)
    assert (made["model"].leakage_ > 0).all()
