from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.datasets

from leakscope import registry
from leakscope.datasets import DatasetCard, describe_datasets, load_dataset
from leakscope.datasets.catalog import DataFolder
from leakscope.errors import InputError, MissingDataError, UnknownNameError
from leakscope.records import Records

NAMES = {
    "adult", "breast-cancer", "cifar10", "cifar100", "diabetes", "diabetes130", "digits",
    "fashion-mnist", "features", "hospital", "image-folder", "iris", "location30", "mnist",
    "purchase100", "synthetic", "synthetic-regression", "texas100", "wine",
}  # fmt: skip


def own(folder: DataFolder, *, rows: int = 2) -> Records:
    """My data."""
    name = f"{folder.path} {folder.download}"
    return Records(X=np.zeros((rows, 1)), y=np.arange(rows), name=name)


@pytest.fixture
def own_dataset(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(
        registry._ENTRIES["dataset"], "own", registry.Entry("dataset", "own", own, "")
    )
    return "own"


def test_every_data_set_is_described() -> None:
    cards = describe_datasets()
    assert [card.name for card in cards] == sorted(card.name for card in cards)
    assert {card.name for card in cards} >= NAMES
    for card in cards:
        assert card.summary.endswith(".")
        assert card.source
        assert card.license
        json.dumps(dataclasses.asdict(card))


def test_a_card_says_what_is_needed_and_what_can_be_chosen() -> None:
    cards = {card.name: card for card in describe_datasets()}
    assert cards["hospital"] == dataclasses.replace(cards["diabetes130"], name="hospital")
    assert cards["mnist"].files == ("mnist.npz",)
    assert cards["mnist"].download
    assert cards["mnist"].options == {"part": "all", "n": None, "seed": 0}
    assert cards["adult"].files == ()
    assert not cards["adult"].download
    with pytest.raises(dataclasses.FrozenInstanceError):
        cards["adult"].name = "other"  # type: ignore[misc]


def test_a_data_set_of_one_s_own_is_loaded_and_listed(own_dataset: str) -> None:
    assert len(load_dataset(own_dataset, rows=3)) == 3
    (card,) = [card for card in describe_datasets() if card.name == own_dataset]
    assert card == DatasetCard("own", "My data.", "", "", "", (), False, {"rows": 2})


def test_the_folder_is_the_one_given_or_that_of_the_environment(
    own_dataset: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)
    assert load_dataset(own_dataset).name == "None False"
    monkeypatch.setenv("LEAKSCOPE_DATA", "")
    assert load_dataset(own_dataset).name == "None False"
    monkeypatch.setenv("LEAKSCOPE_DATA", "some/place")
    assert load_dataset(own_dataset, download=True).name == "some/place True"
    assert load_dataset(own_dataset, folder=tmp_path).name == f"{tmp_path} False"
    monkeypatch.setenv("HOME", "/home/somebody")
    assert load_dataset(own_dataset, folder="~/data").name == "/home/somebody/data False"


def test_unknown_names_and_options_are_answered_with_the_nearest() -> None:
    with pytest.raises(
        UnknownNameError, match="There is no dataset named 'adlt'; did you mean 'adu"
    ):
        load_dataset("adlt")
    with pytest.raises(
        InputError, match="'adult' has no option 'encodng'; did you mean 'encoding'"
    ):
        load_dataset("adult", encodng="pca")
    with pytest.raises(InputError, match="'location30' has no option 'n'; it has none"):
        load_dataset("location30", n=3)


@pytest.mark.parametrize("card", describe_datasets(), ids=lambda card: card.name)
def test_a_data_set_loads_or_says_what_it_needs(
    card: DatasetCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    if not card.files:
        records = load_dataset(card.name, folder=tmp_path)
        assert len(records) >= 100
        assert len(np.unique(records.y)) >= 2
        assert np.isfinite(records.numbers()).all()
        return
    options = {"features": {"file": "mine.npz"}, "image-folder": {"path": "mine"}}.get(
        card.name, {}
    )
    with pytest.raises(MissingDataError) as caught:
        load_dataset(card.name, folder=tmp_path, **options)
    if not options:
        assert all(file in str(caught.value) for file in card.files)
        assert card.source in str(caught.value)
        assert str(tmp_path) in str(caught.value)
        assert ("--download" in str(caught.value)) == card.download
    assert "\n" not in str(caught.value)
