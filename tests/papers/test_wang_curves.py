from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leakscope.defenses.pruning import Pruning
from leakscope.evidence import Folds
from leakscope.papers import wang_curves, wang_setups
from leakscope.papers.drawing import as_svg
from leakscope.papers.experiment import Setting
from leakscope.papers.wang_curves import (
    ATTACK,
    LOSS,
    Traced,
    _notes,
    _rows,
    _settled,
    attack_curve,
    losses_and_attacks,
)

TINY = replace(
    wang_setups.STAND_IN, dataset="synthetic", members={"quick": 60},
    options={"n": 200, "features": 10, "classes": 3}, training={"epochs": 2, "lr": 0.01},
    pruning=Pruning(4, epochs=1, retrain=1),
)  # fmt: skip


def seen(n: int, shift: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, Folds]:
    """Outputs of two classes: surer for members by a shift of the logit."""
    rng = np.random.default_rng(0)
    membership = np.arange(n) % 2 == 0
    labels = rng.integers(0, 2, n)
    sure = 1 / (1 + np.exp(-rng.normal(size=n) - shift * membership))
    probabilities = np.where(labels[:, None] == np.arange(2), sure[:, None], 1 - sure[:, None])
    return probabilities, labels, membership, Folds.draw(np.arange(n), membership, 0)


@pytest.mark.slow
def test_an_attack_that_can_tell_learns_to_and_one_that_cannot_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wang_curves, "EPOCHS", 12)
    hits, asked = attack_curve(*seen(800, 8.0), seed=0)
    assert (len(hits), asked) == (12, 400)
    assert hits[-1] > 0.95 * asked
    hits, asked = attack_curve(*seen(800, 0.0), seed=0)
    # Guessing is right about 200 of 400; more than 50 away from that is rarer than 1e-6.
    assert (np.abs(hits - 200) <= 50).all()
    again, _ = attack_curve(*seen(800, 0.0), seed=0)
    np.testing.assert_array_equal(again, hits)


@pytest.mark.parametrize(
    ("losses", "epoch"), [([9, 5, 1, 0.5, 0], 4), ([1, 1, 1], 1), ([0, 5, 0], 3), ([1, 0], 2)]
)
def test_a_curve_has_settled_where_it_stays_near_its_end(losses: list[float], epoch: int) -> None:
    assert _settled(np.array(losses, dtype=float)) == epoch


def made(name: str, loss: float, hits: int) -> Traced:
    losses = np.array([[2.0, loss], [2.0, loss]])
    return Traced(name, losses, np.full((2, 3), float(hits)), [100, 100])


def test_rows_are_means_with_intervals_and_notes_follow_them() -> None:
    traced = [made("none", 0.1, 90), made("prune:4", 0.3, 50), made("minmax:1", 0.2, 60)]
    rows = [row for one in traced for row in _rows("here", one)]
    assert [row["curve"] for row in rows[:5]] == [LOSS] * 2 + [ATTACK] * 3
    assert (rows[1]["value"], rows[1]["low"]) == (0.1, None)
    assert rows[2]["value"] == pytest.approx(0.9)
    assert rows[2]["low"] < 0.9 < rows[2]["high"]
    notes = [*_notes("here", traced, rows)]
    assert "the highest is that of prune:4" in notes[0]
    assert "from epoch 2 of 2 on" in notes[1]
    assert notes[2].endswith("of held-out records, above chance.")
    assert notes[3].endswith("of held-out records, not surely above chance.")
    other = [made("none", 0.5, 90), *traced[1:]]
    assert "the highest is that of none" in next(_notes("here", other, rows))


@pytest.mark.slow
def test_figure_2_has_a_column_for_each_defense(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)
    monkeypatch.setattr(wang_setups, "STAND_IN", TINY)
    monkeypatch.setattr(wang_curves, "EPOCHS", 2)
    steps: list[str] = []
    setting = Setting(
        seeds=2, workers=1, store=tmp_path, progress=lambda step, done, total: steps.append(step)
    )
    experiment = losses_and_attacks(setting)
    names = ["none", "prune:4 (epochs 1; retrain 1)", "minmax:0.3"]
    counts = {name: (epochs, 2) for name, epochs in zip(names, (2, 6, 2), strict=True)}
    for name, expected in counts.items():
        own = [row for row in experiment.rows if row["defense"] == name]
        found = tuple(sum(row["curve"] == curve for row in own) for curve in (LOSS, ATTACK))
        assert found == expected
    assert experiment.notes[-1].startswith("Digits-MLP, images")
    assert experiment.draw is not None
    figure = experiment.draw()
    assert len(figure.axes) == 6
    assert [axes.get_title() for axes in figure.axes[:3]] == names
    assert figure.axes[0].get_ylabel() == LOSS
    assert (figure.axes[3].get_ylabel(), figure.axes[3].get_xlabel()) == (
        ATTACK, "epoch of inference",
    )  # fmt: skip
    assert as_svg(figure, "a").startswith("<?xml")
    # A second run trains nothing and gives the same numbers.
    steps.clear()
    assert losses_and_attacks(setting).rows == experiment.rows
    assert not any("training" in step for step in steps)
