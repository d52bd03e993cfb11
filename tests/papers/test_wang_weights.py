from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leakscope.defenses.pruning import Pruning
from leakscope.papers import wang_setups
from leakscope.papers.drawing import as_svg
from leakscope.papers.experiment import Setting
from leakscope.papers.wang_weights import BINS, distributions_of_weights, histograms

TINY = replace(
    wang_setups.STAND_IN, dataset="synthetic", members={"quick": 60},
    options={"n": 200, "features": 10, "classes": 3}, training={"epochs": 1},
    pruning=Pruning(4, epochs=1, retrain=1),
)  # fmt: skip


def test_every_weight_is_counted_once() -> None:
    rng = np.random.default_rng(0)
    weights = {"none": rng.normal(size=5000), "prune": np.repeat([0.0, 0.5, -0.25], [900, 70, 30])}
    weights["none"][0] = 1e6  # beyond the bins, and in the last of them
    rows = histograms("here", weights)
    assert len(rows) == 2 * BINS
    for name, zeros in (("none", 0), ("prune", 900)):
        own = [row for row in rows if row["defense"] == name]
        assert {row["zeros"] for row in own} == {zeros}
        assert sum(row["count"] for row in own) + zeros == len(weights[name])
        for row in own[1:-1]:
            inside = (weights[name] >= row["low_edge"]) & (weights[name] < row["high_edge"])
            assert row["count"] == (inside & (weights[name] != 0)).sum()
    assert rows[BINS - 1]["count"] >= 1
    assert rows[0]["low_edge"] == -rows[-1]["high_edge"]


def test_figure_3_has_four_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)
    monkeypatch.setattr(wang_setups, "STAND_IN", TINY)
    experiment = distributions_of_weights(Setting(seeds=1, workers=1))
    total = 10 * 256 + 256 * 128 + 128 * 3
    zeros = {row["defense"]: row["zeros"] for row in experiment.rows}
    pruned = "prune:4 (epochs 1; retrain 1)"
    kept = total // 4
    assert zeros == {
        "none": 0, pruned: total - kept, "minmax:0.3": 0, f"{pruned}+minmax:0.3": total - kept,
    }  # fmt: skip
    assert f"{pruned}: {total - kept:,} of {total:,} weights are zero" in experiment.notes[1]
    assert experiment.draw is not None
    figure = experiment.draw()
    assert len(figure.axes) == 4
    assert figure.axes[1].get_title() == f"{pruned}\n{total - kept:,} zeros"
    assert as_svg(figure, "a").startswith("<?xml")
