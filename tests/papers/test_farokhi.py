from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from leakscope.exact import ridge_leakage
from leakscope.papers import farokhi, farokhi_ridge
from leakscope.papers.drawing import as_svg
from leakscope.papers.experiment import Experiment, Setting
from leakscope.papers.farokhi import (
    ridge_by_features,
    ridge_by_noise,
    ridge_by_penalty,
    ridge_by_size,
)
from leakscope.papers.farokhi_ridge import Adults, Size

KEYS = [
    "rho_kl", "rho_kl_low", "rho_kl_high", "rho_mi", "rho_mi_balanced", "total_variation",
    "advantage_bound", "advantage_median", "advantage_q1", "advantage_q3", "advantage_signed",
]  # fmt: skip
FIGURES = [ridge_by_size, ridge_by_penalty, ridge_by_features, ridge_by_noise]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for scale, records in (("quick", 40), ("full", None)):
        monkeypatch.setitem(farokhi_ridge.SIZES, scale, Size(records, 80, 30))
    monkeypatch.setattr(farokhi, "SIZES_SWEPT", (10, 40))
    monkeypatch.setattr(farokhi, "PENALTIES", (0.0, 0.1, 100.0))
    monkeypatch.setattr(farokhi, "FEATURES", (1, 2))
    monkeypatch.setattr(farokhi, "SIGMAS", (0.0, 100.0))


@pytest.fixture(autouse=True)
def adults(monkeypatch: pytest.MonkeyPatch) -> Adults:
    """The population, read once."""
    loaded = ADULTS or ADULTS.append(Adults.load(Setting())) or ADULTS
    everybody = Adults(loaded[0].X, loaded[0].y, np.arange(40))
    monkeypatch.setattr(Adults, "load", classmethod(lambda cls, setting: everybody))
    return everybody


ADULTS: list[Adults] = []


@pytest.mark.parametrize(
    ("figure", "over", "options"),
    [
        (ridge_by_size, "n", {10: {"n": 10}, 40: {"n": 40}}),
        (ridge_by_penalty, "l2", {100.0: {"n": 10, "l2": 100.0}}),
        (ridge_by_noise, "sigma", {100.0: {"n": 30, "noise": 100.0}}),
    ],
)
def test_each_row_is_the_leakage_at_its_point(
    adults: Adults,
    figure: Callable[[Setting], Experiment],
    over: str,
    options: dict[float, dict[str, Any]],
) -> None:
    rows = {row[over]: row for row in figure(Setting(workers=1)).rows}
    for value, option in options.items():
        found = ridge_leakage(adults.of(5), adults.y, **option, draws=80, records=adults.asked)
        assert rows[value]["rho_kl"] == pytest.approx(found.rho_kl.mean(), rel=1e-12)
    assert all(list(row)[: 1 + len(KEYS)] == [over, *KEYS] for row in rows.values())


def test_figure_4_takes_the_first_components(adults: Adults) -> None:
    experiment = ridge_by_features(Setting(workers=1))
    for row in experiment.rows:
        X = adults.of(row["features"])
        found = ridge_leakage(X, adults.y, 10, l2=1e-6, draws=80, records=adults.asked)
        assert row["rho_kl"] == pytest.approx(found.rho_kl.mean(), rel=1e-12)
    assert (experiment.setup["n"], experiment.setup["l2"]) == (10, 1e-6)
    assert "features" not in experiment.setup


def test_figure_3_stays_level_in_full_precision_and_falls_where_it_is_rounded() -> None:
    experiment = ridge_by_penalty(Setting(workers=1))
    one, large, larger = experiment.rows
    assert larger["rho_kl"] == pytest.approx(large["rho_kl"], rel=0.01)
    assert one["rho_kl_rounded"] == pytest.approx(one["rho_kl"], rel=0.01)
    assert larger["rho_kl_rounded"] == 0.0
    assert any("from λ = 0.1 to 100 ρ_KL stays within 2%" in note for note in experiment.notes)
    assert any("at λ = 0.1 and above at most 2% is left" in note for note in experiment.notes)
    assert experiment.setup["grid"] == 1.0
    assert len(experiment.draw().axes[1].get_legend().get_texts()) == 2  # type: ignore[misc]


def test_figure_1_stands_beside_the_law_of_large_samples(adults: Adults) -> None:
    experiment = ridge_by_size(Setting(workers=1))
    first, last = experiment.rows
    share = 48842
    assert first["rho_kl_large_n"] / last["rho_kl_large_n"] == pytest.approx(
        40 * (1 - 40 / share) / (10 * (1 - 10 / share))
    )
    ratio = last["rho_kl"] / last["rho_kl_large_n"]
    assert any(note.endswith(f"{ratio:#.3g} at n = 40.") for note in experiment.notes)


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES)
def test_the_same_seed_gives_the_same_numbers_and_picture(
    figure: Callable[[Setting], Experiment],
) -> None:
    one, same, other = (
        figure(Setting(seed=seed, workers=w)) for seed, w in ((0, 1), (0, 2), (1, 1))
    )
    assert one == same
    assert one.rows != other.rows
    pictures = [as_svg(made.draw(), "title") for made in (one, same, other) if made.draw]
    assert pictures[0] == pictures[1] != pictures[2]


def test_what_is_said_of_the_paper_is_a_trend_and_other_runs_are_not_taken_for_it() -> None:
    for figure, way in zip(FIGURES, ("falls", "falls", "rises", "falls"), strict=True):
        experiment = figure(Setting(workers=1))
        (row,) = experiment.paper_rows
        assert (row["rho_kl"], row["advantage"]) == (way, way)
        assert "not the paper's" in experiment.setup["reference_measured"]["what"]


def test_a_sample_is_told_and_everybody_is_not(adults: Adults, monkeypatch: Any) -> None:
    def sampled(experiment: Experiment) -> bool:
        return any("of 200 records, drawn with seed 0" in note for note in experiment.notes)

    few = Adults(adults.X[:200], adults.y[:200], np.arange(40))
    monkeypatch.setattr(Adults, "load", classmethod(lambda cls, setting: few))
    assert sampled(ridge_by_noise(Setting(workers=1)))
    everybody = Adults(few.X, few.y, np.arange(200))
    monkeypatch.setattr(Adults, "load", classmethod(lambda cls, setting: everybody))
    assert not sampled(ridge_by_noise(Setting(workers=1)))


def test_progress_counts_the_points() -> None:
    told: list[tuple[str, int, int]] = []
    ridge_by_noise(Setting(workers=1, progress=lambda *step: told.append(step)))
    assert told == [
        ("reading the data set adult", 0, 0),
        ("measuring at sigma = 0", 0, 2),
        ("measuring at sigma = 100", 1, 2),
    ]
