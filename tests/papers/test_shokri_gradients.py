from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from leakscope.metrics.intervals import Interval
from leakscope.papers import shokri_gradients, shokri_targets
from leakscope.papers.drawing import as_svg
from leakscope.papers.experiment import Experiment, Setting
from leakscope.papers.shokri_gradients import (
    NETWORKS,
    _fewer,
    _notes,
    _substitution,
    _tree_notes,
    attacks_by_overfitting,
    network_against_tree,
)
from leakscope.papers.shokri_judging import Attempt
from leakscope.papers.shokri_targets import STAND_IN, Pool, Source

LOCATION = next(one for one in shokri_targets.SOURCES if one.name == "location30")


def pool_of(source: Source) -> Pool:
    return Pool(source, None)  # type: ignore[arg-type]  # notes look at no record


def row(gap: float, name: str, accuracy: float, half: float = 0.02, **more: Any) -> dict[str, Any]:
    return {
        "dataset": "location30", "gap": gap, "level": None if gap > 0.4 else gap,
        "attack_accuracy": accuracy, "low": accuracy - half, "high": accuracy + half,
        **({"access": name} | more),
    }  # fmt: skip


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(STAND_IN, members={"quick": 100, "full": 100}, epochs={"quick": 4, "full": 4})
    made = Pool(small, small.load(Setting()))
    monkeypatch.setattr(shokri_gradients, "EPOCHS", 1)
    monkeypatch.setattr(shokri_gradients, "pools", lambda setting, wide=False: ([made], ["Gone."]))
    monkeypatch.setattr(shokri_targets, "LEVELS", {"quick": (0.1,)})


def check_picture(experiment: Experiment) -> None:
    assert experiment.draw is not None
    figure = experiment.draw()
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("train–test accuracy gap", "attack accuracy")
    assert as_svg(figure, "a").startswith("<?xml")


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_figure_1_has_every_access_at_every_gap() -> None:
    experiment = attacks_by_overfitting(Setting(workers=1))
    rows = experiment.rows
    names = [*NETWORKS, "loss", "‖∇logit‖₁", "‖∇probability‖₁", "label right", "½ + gap/2"]
    levels = list(dict.fromkeys(one["level"] for one in rows))
    assert levels[-1] is None
    assert [(one["level"], one["access"]) for one in rows] == [
        (level, name) for level in levels for name in names
    ]
    for one in rows:
        assert one["low"] <= one["attack_accuracy"] <= one["high"]
        assert one["gap"] == pytest.approx(one["train_accuracy"] - one["test_accuracy"])
        if one["access"] in ("label right", "½ + gap/2"):
            assert one["attack_accuracy"] == pytest.approx(0.5 + one["gap"] / 2)
    # So overfitted a network cannot hide its members from the loss.
    assert next(r for r in rows if r["level"] is None and r["access"] == "loss")["low"] > 0.6
    assert experiment.notes[-2] == "Gone."
    check_picture(experiment)
    again = attacks_by_overfitting(Setting(workers=1))
    assert [dict(one) for one in again.rows] == [dict(one) for one in rows]


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_figure_2_has_the_tree_and_the_controls() -> None:
    experiment = network_against_tree(Setting(workers=1))
    names = ["network", "tree on ‖∇‖₁", "network, normalized", "forest, normalized"]
    assert [one["attack"] for one in experiment.rows[-4:]] == names
    check_picture(experiment)


def test_the_notes_say_what_rises_and_what_an_earlier_run_had() -> None:
    last = {"loss": 0.8, "‖∇logit‖₁": 0.68, "‖∇probability‖₁": 0.77, "½ + gap/2": 0.73}
    rows = [
        *(row(0.46, name, accuracy) for name, accuracy in last.items()),
        *(row(0.0, name, 0.5) for name in last),
        row(0.0, "gradient", 0.5, half=0.1),
        row(0.46, "gradient", 0.6, half=0.1),
    ]
    notes = [*_notes(rows, [pool_of(LOCATION)])]
    assert "from a gap of 0.00 to one of 0.46: loss 0.500 to 0.800;" in notes[0]
    assert notes[0].endswith("surely for loss, ‖∇logit‖₁, ‖∇probability‖₁.")
    assert "the best is loss with 0.800 (0.780 to 0.820), more than ½ + gap/2" in notes[1]
    assert [", inside of" in note for note in notes[2:]] == [True, False, True]
    flat = [row(gap, name, 0.5) for gap in (0.0, 0.46) for name in ("loss", "½ + gap/2")]
    source = replace(LOCATION, name="location30", title="A")
    flat = [one | {"dataset": "a"} for one in flat]
    notes = [*_notes(flat, [pool_of(replace(source, name="a"))])]
    assert notes[0].endswith("surely for none.")
    assert "not surely more than" in notes[1]
    assert len(notes) == 2


def test_both_are_compared_with_the_better_of_the_two() -> None:
    membership = np.arange(200) < 100
    rng = np.random.default_rng(0)
    weak, strong = (step * membership + rng.normal(size=200) for step in (0.5, 2.0))
    nothing = Interval(0.5, 0.5, 0.5)

    class Fake:
        source, level = LOCATION, None

    Fake.membership = membership  # type: ignore[attr-defined]

    def note(both: Any) -> str:
        scores = {"gradient": weak, "prediction": strong, "gradient + prediction": both}
        made = {name: Attempt(nothing, value) for name, value in scores.items()}
        (told,) = _substitution([(Fake(), made)])  # type: ignore[list-item]
        return told

    assert note(strong).endswith("is 0.000 (0.000 to 0.000); that both are no better holds.")
    assert note(membership.astype(float)).endswith("no better does not hold.")


def test_the_tree_and_the_controls_are_judged_by_their_intervals() -> None:
    def notes(tree: float, control: float) -> list[str]:
        values = {
            "network": 0.7, "tree on ‖∇‖₁": tree,
            "network, normalized": control, "forest, normalized": 0.5,
        }  # fmt: skip
        rows = [row(0.46, "", accuracy, attack=name) for name, accuracy in values.items()]
        return [*_tree_notes(rows, [pool_of(LOCATION)])]

    as_told = notes(0.69, 0.51)
    assert as_told[0].endswith("the whole gradient holds.")
    assert all(note.endswith("at chance, as the paper says.") for note in as_told[1:])
    otherwise = notes(0.6, 0.6)
    assert otherwise[0].endswith("the whole gradient does not hold.")
    assert otherwise[1].endswith("above chance.")


def test_fewer_members_than_in_the_paper_are_said() -> None:
    (note,) = _fewer([pool_of(LOCATION)], Setting())
    assert "2,000 of Location-30" in note
    many = replace(LOCATION, members={"quick": 10_000, "full": 10_000})
    assert _fewer([pool_of(many)], Setting()) == []
