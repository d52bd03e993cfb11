"""The code of docs/record_explanations.md runs, and says what the page says."""

from __future__ import annotations

import re

import pytest

from leakscope.defenses.drawn import most_often_shown
from leakscope.registry import entries
from pages import run, text_of

PAGE = "docs/record_explanations.md"


@pytest.mark.slow
def test_the_code_runs_and_each_attack_brings_something_back(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = run(PAGE)
    said = capsys.readouterr().out
    assert len(re.findall(r"sex=\w+, k=\d+: ", said)) == 6
    for told in (made["static"], made["walk"], made["read"]):
        assert told.recovered > 5
        assert f"{told.extraction}: {told.recovered} records by {told.queries} queries" in said
    assert made["told"].recovered == 0
    assert made["again"].recovered > 20
    own = next(one for one in made["own"].groups if one.k == 5)
    assert own.recovered == (made["ranks"] <= 5).sum()


def test_every_extraction_and_its_defenses_are_on_the_page() -> None:
    text = text_of(PAGE)
    for entry in entries("extraction"):
        assert f"| `{entry.name}` |" in text
    for entry in entries("defense"):
        if entry.name.startswith("explain-"):
            assert f"**`{entry.name}" in text


def test_the_figure_of_the_promise() -> None:
    (told,) = re.findall(r"δ is (\.\d+) for one\s+answer", text_of(PAGE))
    assert float(told) == pytest.approx(most_often_shown(2000, 5, 50.0), abs=0.005)
