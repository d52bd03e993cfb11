from __future__ import annotations

import numpy as np
import pytest

from leakscope.papers import shokri_reveal
from leakscope.papers.drawing import as_svg
from leakscope.papers.experiment import Setting
from leakscope.papers.shokri_reveal import (
    PRINTED,
    Ranked,
    _minority_notes,
    _size_notes,
    revealed_by_group,
    revealed_by_k,
    revealed_by_size,
)
from leakscope.papers.shokri_samples import Population, samples


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Population:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6)) ** 3
    y = (X[:, 0] + rng.normal(size=150) > 0).astype(np.int64)
    race = np.where(np.abs(X).max(axis=1) > 8, "Other", "White").astype(object)
    race[0] = "Black"
    population = Population("adult", X, y, 80, {"race": race})
    monkeypatch.setattr(shokri_reveal, "populations", lambda setting: ([population], ["Gone."]))
    monkeypatch.setattr(shokri_reveal, "SIZES_SWEPT", {"quick": (30, 120, 151)})
    return population


def slow_share(population: Population, k: int, members: np.ndarray, size: int = 80) -> float:
    """The percentage of members whose own explanation shows them, one by one."""
    hits = total = 0
    for sample in samples(population, Setting(), size):
        influence = np.abs(sample.models.influence(sample.features))
        for at, row in enumerate(sample.rows):
            if members[row]:
                total += 1
                hits += at in np.argsort(-influence[at])[:k]
    return 100 * hits / total


def test_table_2_counts_who_is_in_the_explanation_of_their_own_record(small: Population) -> None:
    experiment = revealed_by_group(Setting())
    race = small.groups["race"]
    rows = {(row["group"], row["value"]): row for row in experiment.rows}
    assert set(rows) >= {("all", "everyone"), ("race", "Other"), ("race", "White")}
    for k in (1, 5, 10):
        everyone, other = rows["all", "everyone"], rows["race", "Other"]
        assert everyone[f"k{k}"] == pytest.approx(slow_share(small, k, np.ones(150, bool)))
        assert other[f"k{k}"] == pytest.approx(slow_share(small, k, race == "Other"))
        assert everyone[f"k{k}_low"] < everyone[f"k{k}"] < everyone[f"k{k}_high"]
    assert rows["all", "everyone"]["share"] == 100
    assert list(experiment.rows[0])[:4] == ["dataset", "group", "value", "share"]


def test_groups_of_nobody_have_no_row(small: Population) -> None:
    white = np.flatnonzero(small.groups["race"] == "White")[:80]
    ranked = Ranked(small, [white], [np.ones(80, dtype=np.intp)])
    assert [row["value"] for row in ranked.by_group()] == ["White"]


def test_the_papers_table_has_the_data_sets_of_the_run() -> None:
    printed = revealed_by_group(Setting(seeds=1)).paper_rows
    assert {row["dataset"] for row in printed} == {"adult"}
    assert (len(printed), len(PRINTED)) == (7, 16)
    assert printed[0] == {
        "dataset": "adult", "group": "all", "value": "everyone", "share": 100,
        "k1": 10, "k5": 21, "k10": 28,
    }  # fmt: skip


def test_minorities_are_sorted_by_their_intervals() -> None:
    def row(value: str, low: float, high: float, group: str = "race") -> dict[str, object]:
        middle = (low + high) / 2
        names = {"dataset": "adult", "group": group, "value": value}
        return {**names, "k5": middle, "k5_low": low, "k5_high": high}

    note, _ = _minority_notes(
        [
            row("everyone", 20, 22, "all"),
            row("White", 30, 40),
            row("Black", 15, 17),
            row("Other", 20, 44),
            row("Asian-Pac-Islander", 36, 44),
            row("everyone", 60, 64, "all") | {"dataset": "hospital"},
            row("Other", 65, 70) | {"dataset": "hospital"},
        ]
    )
    assert "against everyone's 21 % at k = 5" in note
    assert "revealed more often: race Asian-Pac-Islander (40 %)" in note
    assert "less often: race Black (16 %);" in note
    assert "not to be told apart: race Other (32 %)." in note
    assert "White" not in note


def test_figure_6_is_everyone_of_table_2() -> None:
    figure, table = revealed_by_k(Setting()), revealed_by_group(Setting())
    assert [(row["k"], row["revealed"]) for row in figure.rows] == [
        (k, table.rows[0][f"k{k}"]) for k in (1, 5, 10)
    ]
    assert [row["revealed"] for row in figure.paper_rows] == [10, 21, 28]
    assert figure.notes[0] == table.notes[0]
    assert "21 % in print at k = 5" in figure.notes[0]


def test_figure_15_sweeps_the_sizes_that_can_be_drawn(small: Population) -> None:
    rows = revealed_by_size(Setting()).rows
    assert [row["records"] for row in rows] == [30, 120]
    everyone = np.ones(150, bool)
    for row in rows:
        assert row["k5"] == pytest.approx(slow_share(small, 5, everyone, row["records"]))
        assert row["count_k5"] == pytest.approx(row["k5"] / 100 * row["records"])


def test_figure_15_counts_the_steps_that_go_as_said() -> None:
    def row(size: int, share: float) -> dict[str, object]:
        shares = {f"k{k}": share for k in (1, 5, 10)}
        counts = {f"count_k{k}": share * size / 100 for k in (1, 5, 10)}
        return {"dataset": "adult", "records": size, **shares, **counts}

    note = next(_size_notes([row(100, 40.0), row(200, 10.0), row(400, 20.0)]))
    assert "from 100 to 400 records: the share goes from 40 % to 20 %" in note
    assert "falls at 1 of 2 steps" in note
    assert "goes from 40 to 80 and rises at 1 of 2." in note


@pytest.mark.parametrize("figure", [revealed_by_k, revealed_by_size])
@pytest.mark.parametrize("seeds", [1, 2])
def test_figures_have_two_labelled_axes(figure: object, seeds: int) -> None:
    assert callable(figure)
    experiment = figure(Setting(seeds=seeds))
    drawn = experiment.draw()
    (axes,) = drawn.axes
    assert axes.get_xlabel()
    assert axes.get_ylabel() == "training records revealed, %"
    assert axes.get_title() == "Adult"
    assert as_svg(drawn, "a").startswith("<?xml")
