from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from leakscope.papers import shokri_gradients, shokri_methods
from leakscope.papers.experiment import Setting
from leakscope.papers.shokri_methods import METHODS, PAPER_ORDER, _notes, compared_methods
from leakscope.papers.shokri_targets import STAND_IN, Pool

SMALL = replace(STAND_IN, members={"quick": 100, "full": 100}, epochs={"quick": 3, "full": 3})


@pytest.mark.slow
def test_figure_12_attacks_every_method_of_every_output(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(SMALL, SMALL.load(Setting()))
    monkeypatch.setattr(shokri_methods, "first_wide", lambda setting: (pool, ["Gone."]))
    monkeypatch.setattr(shokri_gradients, "EPOCHS", 1)
    experiment = compared_methods(Setting(workers=1))
    expected = [
        (method, output, attack)
        for method in METHODS
        for output in ("logit", "probability")
        for attack in ("forest", "tree", "network")
        if output == "logit" or attack != "network"
    ]
    assert [(r["method"], r["output"], r["attack"]) for r in experiment.rows] == expected
    gradient = experiment.rows[0]
    assert gradient["low"] > 0.6  # so overfitted a network gives its members away
    assert len(experiment.notes) == 6
    assert experiment.draw is not None
    logit, probability = experiment.draw().axes
    assert [tick.get_text() for tick in logit.get_xticklabels()] == list(METHODS)
    assert (len(logit.containers), len(probability.containers)) == (3, 2)
    drawn = logit.containers[0].lines[0].get_ydata()
    np.testing.assert_allclose(drawn[0], gradient["attack_accuracy"])


def test_the_papers_order_is_looked_for() -> None:
    def note(smallest: float, methods: Any) -> str:
        rows = [
            {"method": method, "output": "logit", "attack": "tree",
             "attack_accuracy": 0.8 - at / 10, "low": smallest, "high": 0.9}
            for at, method in enumerate(methods)
        ]  # fmt: skip
        (told,) = _notes(rows)
        return told

    as_told = note(0.4, ("gradient", "gradient × input", *PAPER_ORDER[1:]))
    assert as_told.endswith("SmoothGrad comes out; SmoothGrad is at chance.")
    otherwise = note(0.6, reversed(PAPER_ORDER))
    assert otherwise.endswith("SmoothGrad does not come out; SmoothGrad is above chance.")
