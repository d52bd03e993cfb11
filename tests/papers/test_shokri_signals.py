from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import pearsonr

from leakscope.models.attributions import attributions
from leakscope.papers import shokri_signals, shokri_targets
from leakscope.papers.experiment import Setting
from leakscope.papers.shokri_signals import correlated_signals, gradient_norms
from leakscope.papers.shokri_targets import STAND_IN, Pool, targets_of

SMALL = replace(STAND_IN, members={"quick": 100, "full": 100}, epochs={"quick": 4, "full": 4})
POOL = Pool(SMALL, SMALL.load(Setting()))


def test_norms_are_worked_out_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shokri_signals, "AT_ONCE", 7)
    (target,) = targets_of([POOL], Setting(workers=1), levels=False)
    X = np.asarray(target.records.X, dtype=np.float64)
    for output in ("logit", "probability"):
        expected = np.abs(attributions(target.model, X, output=output)).sum(axis=1)
        np.testing.assert_allclose(gradient_norms(target.model, X, output), expected, rtol=1e-5)


def test_figure_3_correlates_three_signals_of_two_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shokri_signals, "pools", lambda setting, wide: ([POOL], ["Gone."]))
    monkeypatch.setattr(shokri_targets, "LEVELS", {"quick": (0.1,)})
    experiment = correlated_signals(Setting(workers=1))
    last = {(row["one"], row["other"]): row for row in experiment.rows if row["level"] is None}
    assert len(last) == 5
    target = targets_of([POOL], Setting(workers=1))[-1]
    X = np.asarray(target.records.X, dtype=np.float64)
    norms = np.abs(attributions(target.model, X)).sum(axis=1)
    variance = target.model.predict_proba(X).var(axis=1)
    for pair, one, other in (
        (("membership", "‖∇logit‖₁"), target.membership, norms),
        (("membership", "Var(c)"), target.membership, variance),
        (("Var(c)", "‖∇logit‖₁"), variance, norms),
    ):
        assert last[pair]["correlation"] == pytest.approx(pearsonr(one, other).statistic, abs=1e-6)
    assert last["membership", "‖∇logit‖₁"]["correlation_high"] < 0
    assert "5 of 5 are surely not 0." in experiment.notes[0]
    assert experiment.notes[1].endswith("it surely goes up for Made-up records.")
    assert experiment.notes[-1] == "Gone."
    assert experiment.draw is not None
    (axes,) = experiment.draw().axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("train–test accuracy gap", "|correlation|")
    # The paper draws sizes: nothing is below 0 but the ends of intervals.
    assert all(min(one.lines[0].get_ydata()) >= 0 for one in axes.containers)
