from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from leakscope.networks import network
from leakscope.papers import shokri_targets
from leakscope.papers.experiment import Setting
from leakscope.papers.shokri_targets import (
    SOURCES,
    STAND_IN,
    Pool,
    _Snapshots,
    draw,
    first_wide,
    pools,
    setup_of,
    targets_of,
)
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

SMALL = replace(STAND_IN, members={"quick": 60, "full": 60}, epochs={"quick": 6, "full": 6})


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    """A setting without data files."""
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)
    return Setting(data=tmp_path, workers=1)


def test_what_is_not_there_is_said_and_replaced(nowhere: Setting) -> None:
    found, missing = pools(nowhere)
    assert [one.source.name for one in found] == ["synthetic", "adult"]
    assert len(missing) == len(SOURCES)  # all but Adult, and that there is a stand-in
    assert missing[0].startswith("Purchase is left out: purchase100.npz")
    found, missing = pools(nowhere, wide=True)
    assert [one.source.name for one in found] == ["synthetic"]
    pool, missing = first_wide(nowhere)
    assert pool.source is STAND_IN
    assert missing[0].startswith("Made-up records stand")


def test_files_that_are_there_are_used(nowhere: Setting, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    features, labels = rng.integers(0, 2, (50, 600)), rng.integers(0, 100, 50)
    np.savez(tmp_path / "purchase100.npz", features=features, labels=labels)
    pool, missing = first_wide(nowhere)
    assert (pool.source.name, missing) == ("purchase100", [])
    found, _ = pools(nowhere, wide=True)
    assert [one.source.name for one in found] == ["purchase100"]


def test_grey_images_become_vectors(nowhere: Setting, tmp_path: Path) -> None:
    images, labels = np.zeros((3, 28, 28), np.uint8), np.arange(3)
    np.savez(tmp_path / "mnist.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    pool, _ = first_wide(nowhere)
    assert (pool.source.name, pool.records.X.shape) == ("mnist", (6, 784))


def test_nobody_is_drawn_twice() -> None:
    X = np.repeat(np.arange(30.0), 2)[:, None]
    population = Records(X, np.repeat([0, 1], 30))
    records, roles = draw(population, 100, 0)
    assert len(np.unique(np.asarray(records.X))) == len(records) == 30
    assert [(roles == role).sum() for role in (1, 0, 2)] == [12, 12, 6]
    records, roles = draw(population, 5, 0)
    assert [(roles == role).sum() for role in (1, 0, 2)] == [5, 5, 5]
    other, _ = draw(population, 5, 1)
    assert not np.array_equal(np.asarray(records.X), np.asarray(other.X))


def test_copies_are_taken_at_the_first_epoch_of_a_gap() -> None:
    snapshots = _Snapshots([0.25, 0.0, 0.1])
    for epoch, gap in enumerate([-0.1, 0.02, 0.05, 0.3, 0.4], start=1):
        snapshots._look([epoch], epoch, SimpleNamespace(gap=gap))
    assert snapshots.taken == [(0.0, 2, [2]), (0.25, 4, [4])]  # 0.1 and 0.25 at once


def test_a_target_is_what_stopping_there_would_have_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shokri_targets, "LEVELS", {"quick": (0.0, 0.3)})
    setting = Setting(seed=3, workers=1)
    pool = Pool(SMALL, SMALL.load(setting))
    *stopped, last = targets_of([pool], setting)
    assert [one.level for one in stopped][-1] == 0.3
    assert (last.level, last.epoch) == (None, 6)
    records, roles = draw(pool.records, 60, 3)
    for one in stopped:
        recipe = TorchRecipe(
            "again", partial(network, SMALL.network), optimizer="adagrad", lr=0.01, decay=1e-7,
            epochs=6, stop_at_gap=one.level,
        )  # fmt: skip
        (model,) = recipe.fit_many(records, roles[None], [3])
        np.testing.assert_array_equal(one.model.parameters(), model.parameters())
    assert last.membership.sum() == (~last.membership).sum() == 60
    members = {bytes(row) for row in np.asarray(records.X)[roles == 1]}
    inside = [bytes(row) in members for row in np.asarray(last.records.X)]
    np.testing.assert_array_equal(inside, last.membership)
    (alone,) = targets_of([pool], setting, levels=False)
    np.testing.assert_array_equal(alone.model.parameters(), last.model.parameters())


def test_a_gap_at_the_last_epoch_is_not_told_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shokri_targets, "LEVELS", {"quick": (0.0,)})
    source = replace(SMALL, epochs={"quick": 1})
    targets = targets_of([Pool(source, source.load(Setting()))], Setting(workers=1, seeds=2))
    assert [(one.seed, one.level, one.epoch) for one in targets] == [(0, None, 1), (1, None, 1)]
    assert setup_of([Pool(source, targets[0].records)], Setting())["targets"]["synthetic"] == {
        "network": "shokri-location", "members": 60, "others": 60, "epochs": 1,
        "optimizer": "adagrad, rate 0.01, batches of 32",
    }  # fmt: skip
