from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from leakscope.defenses.dpsgd import DPSGD
from leakscope.networks import MLP, LeNet5
from leakscope.papers import wang_tables
from leakscope.papers.experiment import Setting
from leakscope.papers.wang_curves import SHOWN
from leakscope.papers.wang_setups import (
    IMAGENET,
    LOCATION,
    MNIST,
    SETUPS,
    STAND_IN,
    as_network_takes,
    first_there,
    pools,
    repetitions,
    setup_of,
)
from leakscope.records import Records


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    """A setting without data files."""
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)
    return Setting(data=tmp_path, workers=1)


def save_digits(folder: Path, n: int = 7000) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (n, 28, 28), np.uint8), np.arange(n) % 10
    few = {"x_test": images[:10], "y_test": labels[:10]}
    np.savez(folder / "mnist.npz", x_train=images, y_train=labels, **few)


def test_images_have_their_channels_first_and_are_shares_of_255() -> None:
    rng = np.random.default_rng(0)
    grey = rng.integers(0, 256, (3, 5, 5), np.uint8)
    colour = rng.integers(0, 256, (3, 4, 5, 3), np.uint8)
    made = as_network_takes(Records(grey, np.arange(3)))
    np.testing.assert_array_equal(made.X, np.float32(grey)[:, None] / np.float32(255))
    made = as_network_takes(Records(colour, np.arange(3)))
    np.testing.assert_array_equal(made.X[:, 2], np.float32(colour[..., 2]) / np.float32(255))
    assert (made.X.shape, made.X.dtype) == ((3, 3, 4, 5), np.float32)
    vectors = as_network_takes(Records(np.array([[0.5, 16.0]]), np.zeros(1, int)))
    np.testing.assert_array_equal(vectors.X, [[0.5, 16.0]])
    first = np.zeros((2, 3, 6, 7))  # as torch has them already
    assert as_network_takes(Records(first, np.arange(2))).X.shape == (2, 3, 6, 7)


def test_what_is_not_there_is_said_and_digits_stand_in(nowhere: Setting) -> None:
    found, missing = pools(nowhere, [MNIST.name, LOCATION.name])
    assert [one.setup for one in found] == [STAND_IN]
    assert len(found[0].records) == 1797
    assert [one.partition(":")[0] for one in missing[:2]] == [
        "MNIST-LeNet-5 is left out", "Location-30-MLP is left out",
    ]  # fmt: skip
    assert "mnist.npz is not in the data folder" in missing[0]
    assert missing[2].startswith("Digits-MLP, images of 8 × 8 digits")


def test_a_file_that_is_there_is_used(nowhere: Setting, tmp_path: Path) -> None:
    save_digits(tmp_path)
    found, missing = pools(nowhere, [MNIST.name, LOCATION.name])
    assert [one.setup for one in found] == [MNIST]
    assert found[0].records.X.shape == (6000, 1, 28, 28)
    assert len(missing) == 1
    other = MNIST.load(Setting(seed=1, data=tmp_path))
    assert not np.array_equal(other.X, found[0].records.X)


def test_the_first_set_up_that_is_there_is_shown(nowhere: Setting, tmp_path: Path) -> None:
    pool, missing = first_there(nowhere, [LOCATION.name, MNIST.name])
    assert (pool.setup, len(missing)) == (STAND_IN, 3)
    save_digits(tmp_path)
    pool, missing = first_there(nowhere, [LOCATION.name, MNIST.name])
    assert (pool.setup, len(missing)) == (MNIST, 1)
    assert missing[0].startswith("Location-30-MLP is left out")


def test_every_table_names_set_ups_that_exist_at_its_scale() -> None:
    tables = [getattr(wang_tables, f"TABLE_{number}") for number in (1, 2, 3, 5, 6)]
    for table in [*tables, SHOWN]:
        for scale, names in table.items():
            assert names
            assert all(scale in SETUPS[name].members for name in names)
    assert wang_tables.TABLE_1["quick"] == ("MNIST-LeNet-5", "Location-30-MLP")
    assert all(scale in STAND_IN.members for scale in ("quick", "full"))


def test_networks_are_the_papers() -> None:
    assert isinstance(MNIST.recipe.factory((1, 28, 28), 10), LeNet5)
    made = LOCATION.recipe.factory(446, 30)
    assert isinstance(made, MLP)
    assert made.widths == (446, 1024, 512, 256, 30)
    assert MNIST.recipe.epochs == MNIST.training["epochs"]


def test_defenses_are_named_by_their_kinds() -> None:
    assert MNIST.defense("prune") == (MNIST.pruning,)
    assert MNIST.defense("prune+minmax") == (MNIST.pruning, MNIST.minmax)
    assert MNIST.defense("dpsgd") == (DPSGD(6.28),)


def test_the_set_up_is_told(nowhere: Setting) -> None:
    found, _ = pools(nowhere, [MNIST.name])
    told = setup_of(found, nowhere, more=1)
    assert told["setups"]["Digits-MLP"] == {
        "dataset": "digits", "network": "mlp-256", "members": 599, "reference": 599,
        "nonmembers": 599, "training": dict(STAND_IN.training), "prune": "prune:16",
        "minmax": "minmax:0.3", "sizes": STAND_IN.sizes,
    }  # fmt: skip
    assert (told["seeds"], told["more"]) == (3, 1)
    assert repetitions(Setting(seeds=7)) == 7


def test_imagenet_is_trained_briefly_at_quick() -> None:
    for one in IMAGENET:
        quick, full = (one.at_scale(scale) for scale in ("quick", "full"))
        assert (quick.recipe.epochs, full.recipe.epochs) == (12, 60)
        assert (quick.pruning.epochs, full.pruning.epochs) == (2, 8)
        assert quick.pruning.ratio == full.pruning.ratio
        assert full == one


@pytest.mark.parametrize(("scale", "side"), [("quick", 112), ("full", 224)])
def test_imagenet_is_read_from_a_folder(tmp_path: Path, scale: Any, side: int) -> None:
    small = [replace(one, members={"quick": 4, "full": 4}) for one in IMAGENET]
    for name in range(100):
        place = tmp_path / "imagenet" / f"n{name:08d}"
        place.mkdir(parents=True)
        for each in range(2):
            Image.new("RGB", (30, 20), (each, name, 0)).save(place / f"{each}.JPEG")
    for one in small:
        records = one.load(Setting(scale=scale, data=tmp_path))
        assert records.X.shape == (12, 3, side, side)
        assert records.y.max() < {"quick": 10, "full": 100}[scale]
