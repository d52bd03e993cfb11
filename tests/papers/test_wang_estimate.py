from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leakscope.defenses.pruning import Pruning
from leakscope.papers import wang_estimate
from leakscope.papers.experiment import Setting
from leakscope.papers.wang_estimate import epoch_seconds, epochs_of, estimates, seconds_of
from leakscope.papers.wang_setups import STAND_IN, Pool

SETUP = replace(
    STAND_IN, members={"full": 400, "quick": None}, training={"epochs": 10},
    pruning=Pruning(4, epochs=2, retrain=5),
)  # fmt: skip
POOL = Pool(SETUP, SETUP.load(Setting()))


def test_epochs_are_those_of_every_part() -> None:
    assert epochs_of(SETUP, ()) == 10
    assert epochs_of(SETUP, SETUP.defense("minmax")) == 10
    assert epochs_of(SETUP, SETUP.defense("prune+minmax")) == 10 + 3 * 2 + 5


def test_an_estimate_is_what_one_adds_up_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {0: 1.0, 1: 2.0, 2: 5.0}
    monkeypatch.setattr(
        wang_estimate, "epoch_seconds", lambda setup, parts, few: seconds[len(parts)]
    )
    setting = Setting("full", seeds=3, workers=2)
    # None, and half of it; pruning, its equal compute and early stop; both: of 256 members.
    total = 10 + 5 + (2 * 21 + 21 + 10) + (5 * 21 + 21 + 10)
    expected = total * 400 / 256 * 3 / 2
    assert seconds_of(POOL, ["prune", "prune+minmax"], setting) == pytest.approx(expected)
    # What is trained no longer than none has no equal compute; 599 members are a third.
    plain = seconds_of(POOL, ["minmax"], Setting("quick", seeds=1, workers=2))
    assert plain == pytest.approx((10 + 5 + 2 * 10 + 10) * 599 / 256)


def test_estimates_are_told_before_anything_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wang_estimate, "seconds_of", lambda *_: 5400.0)
    steps: list[Any] = []
    setting = Setting("full", progress=lambda *step: steps.append(step))
    (told,) = estimates([POOL], ["prune"], setting)
    assert told.startswith("Digits-MLP: about 1.5 hours of training in all")
    assert steps == [(told, 0, 0)]


def test_what_is_only_preparation_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first training takes 4 s to begin, each other 1 s, and an epoch of it 0.1 s."""
    asked = list[int]()

    def trained(setup: Any, parts: Any, few: Any, length: int) -> tuple[float, int]:
        asked.append(length)
        return (4.0 if len(asked) == 1 else 1.0) + 0.1 * 3 * length, 3 * length

    monkeypatch.setattr(wang_estimate, "_trained", trained)
    assert epoch_seconds(SETUP, (), POOL.records) == pytest.approx(0.1)
    assert asked == [1, 1, wang_estimate.MORE]
    monkeypatch.setattr(wang_estimate, "LONG", 4.0)
    asked.clear()
    assert epoch_seconds(SETUP, (), POOL.records) == pytest.approx(4.3 / 3)
    assert asked == [1]


@pytest.mark.parametrize("kind", ["", "prune", "minmax", "prune+minmax", "dpsgd"])
def test_every_kind_of_training_can_be_timed(kind: str) -> None:
    parts = SETUP.defense(kind) if kind else ()
    few = POOL.records.take(slice(0, 60))
    assert 0 < epoch_seconds(SETUP, parts, few) < 60
