from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import ks_2samp

from leakscope.papers import shokri_influence
from leakscope.papers.drawing import as_svg
from leakscope.papers.experiment import Setting
from leakscope.papers.shokri_influence import (
    Influences,
    _chance,
    _distance,
    _notes,
    largest_influences,
)
from leakscope.papers.shokri_samples import Population, samples


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Population:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5)) ** 3
    y = (X[:, 0] + rng.normal(size=150) > 0).astype(np.int64)
    population = Population("adult", X, y, 60)
    monkeypatch.setattr(shokri_influence, "with_others", lambda setting: ([population], ["Gone."]))
    return population


def test_the_largest_influence_on_each_prediction(small: Population) -> None:
    sample = next(samples(small, Setting()))
    found = Influences.of(sample)
    members = np.abs(sample.models.influence(sample.features))
    others = np.abs(sample.models.influence(small.X[sample.others[:60]]))
    np.testing.assert_allclose(found.members, members.max(axis=1), rtol=1e-12)
    np.testing.assert_allclose(found.others, others.max(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(found.own, members.argmax(axis=1) == np.arange(60))
    hidden = found.members[~found.own]
    expected = [ks_2samp(one, found.others).statistic for one in (found.members, hidden)]
    assert found.distances == pytest.approx(expected)


def test_figure_7_counts_everybody_once() -> None:
    experiment = largest_influences(Setting())
    rows = experiment.rows
    assert len(rows) == 30
    for key in ("members", "others"):
        assert sum(row[key] for row in rows) == pytest.approx(100.0)
    assert all(0 <= row["revealed"] <= row["members"] for row in rows)
    assert 0 < sum(row["revealed"] for row in rows) < 100
    for one, other in pairwise(rows):
        assert one["influence_to"] == other["influence_from"] > one["influence_from"]
    assert experiment.notes[-1] == "Gone."


def test_the_notes_compare_with_chance() -> None:
    rng = np.random.default_rng(0)
    others = rng.uniform(size=2000)
    members = np.append(rng.uniform(0.0, 0.5, 1000), rng.uniform(0.5, 1.0, 1000))
    own = np.arange(2000) >= 1000
    (note,) = _notes({"adult": [Influences(members, others, own)]})
    assert note.count(", as the paper says") == 2
    (note,) = _notes({"adult": [Influences(members, others, np.arange(2000) % 2 == 0)]})
    assert note.endswith("not as the paper says.")
    (note,) = _notes({"adult": [Influences(members / 2, others, own)]})
    assert "twenty, not as the paper says; without" in note


@pytest.mark.slow
def test_chance_exceeds_its_level_once_in_twenty_times() -> None:
    rng = np.random.default_rng(0)
    level = _chance(300, 200)
    over = [_distance(rng.normal(size=300), rng.normal(size=200)) > level for _ in range(1000)]
    # The limit errs to the safe side; 0.05 less a little, within five standard errors.
    assert 0.01 < np.mean(over) < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 1000)


def test_the_figure_has_both_labels_and_a_logarithm() -> None:
    experiment = largest_influences(Setting(seeds=1))
    assert experiment.draw is not None
    figure = experiment.draw()
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_ylabel()) == ("log", "records, %")
    assert axes.get_xlabel() == "|influence| of the first record"
    assert as_svg(figure, "a").startswith("<?xml")
