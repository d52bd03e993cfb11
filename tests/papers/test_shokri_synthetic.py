from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import pearsonr

from leakscope.datasets import load_dataset
from leakscope.metrics.intervals import Interval
from leakscope.models.attributions import attributions
from leakscope.papers import shokri_synthetic
from leakscope.papers.drawing import as_svg
from leakscope.papers.experiment import Setting
from leakscope.papers.shokri_synthetic import (
    FEATURES,
    FIGURE_5,
    FIGURE_14,
    Case,
    Measured,
    Study,
    _left_out,
    _notes,
    correlation_by_capacity,
    correlation_by_dimension,
    measure,
)
from leakscope.recipes.torch import TorchRecipe


def test_full_has_the_papers_numbers_of_features() -> None:
    assert len(FEATURES) == 18
    for figure in (FIGURE_5, FIGURE_14):
        assert figure["full"].features == FEATURES
        assert figure["full"].records == 20_000
        assert set(figure["quick"].features) <= set(FEATURES)
        assert {100, 1000} <= set(figure["quick"].features)


def test_a_case_is_trained_on_half_and_measured_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shokri_synthetic, "EPOCHS", 5)
    trained: list[Any] = []
    fit_many = TorchRecipe.fit_many

    def watched(self: TorchRecipe, *given: Any) -> Any:
        trained.append((self, fit_many(self, *given), given))
        return trained[-1][1]

    monkeypatch.setattr(TorchRecipe, "fit_many", watched)
    found = measure(Case("base", 50, 2, 300, 4))
    ((recipe, (model,), (records, roles, seeds)),) = trained
    assert (recipe.optimizer, recipe.lr, recipe.decay, recipe.epochs) == ("adagrad", 0.01, 1e-7, 5)
    assert (roles.sum(), seeds) == (150, [4])
    X = np.asarray(load_dataset("synthetic", n=300, features=50, classes=2, seed=4).X)
    np.testing.assert_array_equal(np.asarray(records.X), X)
    membership = roles[0] == 1
    right = model.predict(X) == records.y
    assert found.train_accuracy == right[membership].mean() > right[~membership].mean()
    assert found.test_accuracy == right[~membership].mean()
    for output in ("logit", "probability"):
        norms = np.abs(attributions(model, X, output=output)).sum(axis=1)
        expected = pearsonr(membership, norms).statistic
        assert found.correlations[output].value == pytest.approx(expected, abs=1e-6)


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    """No training: members go with the norms from 1,000 features on."""

    def pretend(case: Case) -> Measured:
        value = -0.4 - case.seed / 10 if case.features >= 1000 else -0.05
        if case.features > 1000:
            value = -0.2
        interval = Interval(value, value - 0.01, value + 0.01)
        return Measured(1.0, 0.5, {"logit": interval, "probability": interval})

    monkeypatch.setattr(shokri_synthetic, "measure", pretend)


@pytest.mark.usefixtures("pretended")
def test_rows_are_in_the_order_of_the_sweep_whatever_was_done_first() -> None:
    experiment = correlation_by_dimension(Setting(scale="full", seeds=2, workers=1))
    kinds = [(row["classes"], row["features"]) for row in experiment.rows]
    assert kinds == [(2, n) for n in FEATURES] + [(100, n) for n in FEATURES if n >= 7]
    at_1000 = next(row for row in experiment.rows if row["features"] == 1000)
    assert at_1000["correlation_logit"] == pytest.approx(-0.45)
    assert at_1000["correlation_logit_low"] < -0.5  # two seeds that differ
    assert (at_1000["train_accuracy"], at_1000["test_accuracy"]) == (1.0, 0.5)
    assert experiment.setup["seeds"] == 2
    assert "from 1,000 features on it is largest at 1,000" in experiment.notes[0]
    assert experiment.notes[-1].startswith("100 classes need at least 7")


@pytest.mark.usefixtures("pretended")
def test_three_networks_are_three_curves() -> None:
    experiment = correlation_by_capacity(Setting(workers=1))
    assert len(experiment.rows) == 12
    assert experiment.draw is not None
    figure = experiment.draw()
    assert len(figure.axes) == 4
    for axes in figure.axes:
        assert (axes.get_xlabel(), axes.get_xscale()) == ("number of features n", "log")
        assert axes.get_ylabel() == "correlation with membership"
        assert len(axes.containers) == 3
    assert as_svg(figure, "a").startswith("<?xml")


def test_the_notes_hold_what_was_measured_against_the_claims() -> None:
    def row(features: int, classes: int, value: float) -> dict[str, Any]:
        ends = {"": value, "_low": value - 0.01, "_high": value + 0.01}
        both = {
            f"correlation_{output}{end}": one
            for output in ("logit", "probability")
            for end, one in ends.items()
        }
        return {"network": "base", "features": features, "classes": classes, **both}

    rows = [row(10, 2, 0.02), row(100, 2, -0.05), row(1000, 2, -0.4)]
    rows += [row(100, 100, -0.2), row(1000, 100, -0.4)]
    two, _, hundred, _ = _notes(rows)
    assert "is −0.050 (−0.060 to −0.040), at 100; that it is below 0.1 in size holds" in two
    assert "above 0.3 in size holds" in two
    assert "below 0.1 in size does not hold" in hundred
    assert "above 0.5 in size does not hold" in hundred
    (alone, *_) = _notes([row(2000, 2, 0.3), row(5000, 2, 0.1), row(10, 100, 0.0)])
    assert "largest at 2,000" in alone


def test_what_is_left_out_is_said() -> None:
    assert _left_out(Study(("base",), FEATURES)) == [
        "100 classes need at least 7 features: fewer are left out for them."
    ]
    assert _left_out(Study(("base",), (10, 1000), 500)) == [
        "The paper has 18 numbers of features up to 10,000; here are 10, 1,000.",
        "The paper has 20,000 records; here are 500.",
    ]
