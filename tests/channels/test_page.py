"""docs/explanations.md does what it says."""

from __future__ import annotations

import re

import numpy as np
import pytest

from leakscope.channels.explanations import Explanation
from leakscope.channels.surrogates import Surrogate
from leakscope.registry import entries
from pages import run, text_of

PAGE = "docs/explanations.md"


@pytest.mark.slow
def test_the_code_of_the_page_runs_and_says_what_stands_below_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("torch")
    made = run(PAGE)
    report = made["report"].to_dict()
    assert report["verdict"]["level"] == "leaks"
    every = report["additions"][0]
    assert every["explanation"] == "explanations"
    assert every["increase"]["low"] <= 0  # explanations do not beat the predictions here
    assert made["gradients"].shape == made["smooth"].shape == (5, 60)
    assert np.isfinite(made["smooth"]).all()
    models = {one["attack"]: one["models"] for one in made["few"].outcomes}
    assert models == {"gradient-forest-shadow": 9, "loss": 1, "shadow": 9}
    assert "This model leaks membership" in capsys.readouterr().out


def test_the_page_names_every_explanation() -> None:
    named = set(re.findall(r"^\| `([a-z-]+)` \|", text_of(PAGE), re.MULTILINE))
    there = {
        entry.name
        for entry in entries("channel")
        if issubclass(entry.thing, Explanation | Surrogate)
    }
    assert named == there
