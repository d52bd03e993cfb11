from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leakscope.defenses.pruning import BudgetSearch, Candidate, Pruning
from leakscope.papers import wang_search, wang_setups
from leakscope.papers.experiment import Setting
from leakscope.papers.wang_search import RATES, gain_of, least_gain, together
from leakscope.papers.wang_setups import MNIST
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

TINY = replace(
    wang_setups.STAND_IN, dataset="synthetic", members={"quick": 60},
    options={"n": 200, "features": 10, "classes": 3}, training={"epochs": 1},
    pruning=Pruning(4, epochs=1, retrain=1),
)  # fmt: skip
FEW = RATES[:2]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)
    monkeypatch.setattr(wang_setups, "STAND_IN", TINY)
    monkeypatch.setattr(wang_search, "RATES", FEW)
    return Setting(seeds=2, workers=1)


def test_a_row_for_each_candidate_and_one_is_chosen(tiny: Setting) -> None:
    experiment = least_gain(tiny)
    names = ["prune:4 (epochs 1; retrain 1)", "prune:4 (epochs 1; retrain 1; rate 1, then 0.1)"]
    assert [row["defense"] for row in experiment.rows] == ["none", *names]
    plain, *others = experiment.rows
    total = 10 * 256 + 256 * 128 + 128 * 3
    assert [row["weights"] for row in experiment.rows] == [total, total // 4, total // 4]
    assert (plain["allowed"], plain["chosen"]) == (None, None)
    least = plain["reference_accuracy"] - wang_search.TOLERANCE
    for row in others:
        assert row["allowed"] is (row["reference_accuracy"] >= least - 1e-12)
        assert row["gain"] >= -math.log(4)
    allowed = [row for row in others if row["allowed"]]
    chosen = [row for row in others if row["chosen"]]
    if allowed:
        best = min(allowed, key=lambda row: (row["gain"], -row["reference_accuracy"]))
        assert chosen == [best]
        assert f"{best['defense']} is chosen" in experiment.notes[1]
    else:
        assert not chosen
    assert experiment.setup["setups"][TINY.name]["members"] == 60
    assert experiment.setup["records"] == "those of the tables"
    assert experiment.setup["seeds"] == 2


def test_the_members_of_the_search_are_in_no_table(tmp_path: Path) -> None:
    """Test images choose, training images are judged."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (7300, 28, 28), np.uint8)
    np.savez(
        tmp_path / "mnist.npz", x_train=images[:7000], y_train=np.arange(7000) % 10,
        x_test=images[7000:], y_test=np.arange(300) % 10,
    )  # fmt: skip
    setting = Setting(data=tmp_path)
    apart, table = MNIST.load_apart(setting), MNIST.load(setting)
    assert apart is not None
    assert len(apart) == 300
    assert not set(apart.keys()) & set(table.keys())
    assert TINY.load_apart(setting) is None


def test_the_gain_is_that_of_margins() -> None:
    """It is nothing between records of the same kind, and much between fitted and other ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20)).astype(np.float32)
    records = Records(X, rng.integers(2, size=500))
    recipe = TorchRecipe("mlp", TINY.recipe.factory, epochs=60, lr=0.01)
    fitted, some, others = (
        records.take(np.arange(*ends)) for ends in ((60,), (60, 280), (280, 500))
    )
    model = recipe.fit(fitted, 0)
    assert gain_of(model, fitted, others) > -math.log(4) + 0.3
    assert gain_of(model, some, others) < -math.log(4) + 0.05


def test_means_over_seeds_decide() -> None:
    def search(plain: float, *others: tuple[float, float]) -> BudgetSearch:
        made = [Candidate(Pruning(ratio), 10, *one) for ratio, one in enumerate(others, 2)]
        return BudgetSearch(Candidate(None, 100, -1.0, plain), tuple(made), 0.01)

    found = together(
        [search(0.9, (-1.3, 0.9), (-1.1, 0.9)), search(0.8, (-1.2, 0.8), (-1.38, 0.7))]
    )
    assert found.baseline.accuracy == pytest.approx(0.85)
    assert [one.gain for one in found.candidates] == pytest.approx([-1.25, -1.24])
    assert found.allowed == found.candidates[:1]
    assert found.chosen is found.candidates[0]
