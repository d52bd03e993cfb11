from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leakscope.channels.explanations import Gradient, SmoothGrad
from leakscope.papers import shokri_smoothing
from leakscope.papers.drawing import as_svg
from leakscope.papers.experiment import Setting
from leakscope.papers.shokri_smoothing import Smoothing, smooth, smoothed_gradients
from leakscope.papers.shokri_targets import STAND_IN, Pool, Target, targets_of

SMALL = replace(STAND_IN, members={"quick": 100, "full": 100}, epochs={"quick": 3, "full": 3})
POOL = Pool(SMALL, SMALL.load(Setting()))


@pytest.fixture(scope="module")
def target() -> Target:
    (made,) = targets_of([POOL], Setting(workers=1), levels=False)
    return made


def test_no_copies_are_the_gradient_itself() -> None:
    assert Smoothing("probability", 0.0, 0).channel == Gradient("probability")
    assert Smoothing("logit", 0.5, 3).channel == SmoothGrad("logit", sigma=0.5, samples=3)


@pytest.mark.slow
def test_norms_attacks_and_fidelity_of_one_explanation(target: Target) -> None:
    plain, noisy = (smooth(target, kind) for kind in (
        Smoothing("logit", 0.0, 0), Smoothing("logit", 3.0, 1),
    ))  # fmt: skip
    shown = Gradient().observe(target.model, target.records)
    np.testing.assert_allclose(plain.norms, np.abs(shown).sum(axis=1), rtol=1e-5)
    # A network this overfitted gives its members away.
    assert plain.norm_attack.low > 0.6
    assert plain.forest_attack.low > 0.6
    # A gradient explains small changes nearly all; far from the record it does not.
    assert plain.infidelity < 0.1 < noisy.infidelity
    assert plain.sensitivity < noisy.sensitivity


@pytest.mark.slow
def test_figure_4_sweeps_noise_and_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shokri_smoothing, "first_wide", lambda setting: (POOL, ["Gone."]))
    monkeypatch.setattr(shokri_smoothing, "SIGMAS", {"quick": (0.2, 50.0)})
    monkeypatch.setattr(shokri_smoothing, "SAMPLES", {"quick": (1, 2)})
    monkeypatch.setattr(shokri_smoothing, "ASKED", 5)
    experiment = smoothed_gradients(Setting(workers=1))
    swept = [(0.0, 0), (0.2, 1), (0.2, 2), (50.0, 1), (50.0, 2)]
    assert [(row["output"], row["sigma"], row["samples"]) for row in experiment.rows] == [
        (output, *one) for output in ("logit", "probability") for one in swept
    ]
    plain, noisy = experiment.rows[0], experiment.rows[4]
    assert plain["norm_members"] < plain["norm_others"]
    assert noisy["norm_accuracy_low"] < 0.5 < plain["norm_accuracy_low"]
    assert noisy["infidelity"] > plain["infidelity"]
    notes = experiment.notes
    assert "at chance; forest" in notes[2]
    assert notes[3].endswith("brings the 1-norm attack to chance at 1 of the σ 0.2, 50: 50.")
    assert notes[-1] == "Gone."
    assert experiment.draw is not None
    figure = experiment.draw()
    cloud, logit, probability = figure.axes
    assert (cloud.get_xlabel(), cloud.get_ylabel()) == (
        "number of samples", "1-norm of the gradient",
    )  # fmt: skip
    assert [tick.get_text() for tick in cloud.get_xticklabels()] == ["0", "1", "2"]
    assert len(logit.containers) == len(probability.containers) == 4
    assert as_svg(figure, "a").startswith("<?xml")
