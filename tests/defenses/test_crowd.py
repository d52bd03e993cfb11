from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from leakscope.defenses import explanations as module
from leakscope.defenses.crowd import Crowded, CrowdedExplanations
from leakscope.errors import InputError

Make = Callable[..., Any]


def company(X: np.ndarray, radius: float) -> np.ndarray:
    """How many records, itself counted, are within the radius of each."""
    spread = X.std(axis=0)
    scaled = X / np.where(spread > 0, spread, 1)
    return np.array([(np.linalg.norm(scaled - one, axis=1) <= radius).sum() for one in scaled])


@pytest.mark.parametrize("radius", [0.3, 0.8, 2.0])
@pytest.mark.parametrize("size", [2, 4])
def test_only_records_with_company_are_shown(linear: Make, size: int, radius: float) -> None:
    explainer = linear(40)
    crowd = CrowdedExplanations(size, radius).around(explainer)
    allowed = company(explainer.X, radius) >= size
    queries = np.random.default_rng(1).normal(size=(25, 3))
    shown, values = crowd.explain(queries, 6)
    order, influence = explainer.explain(queries, 40)
    for row in range(25):
        own = allowed[order[row]]
        expected = order[row][own][:6]
        missing = 6 - len(expected)
        np.testing.assert_array_equal(shown[row], [*expected, *[-1] * missing])
        np.testing.assert_array_equal(values[row], [*influence[row][own][:6], *[0.0] * missing])


def test_half_of_the_records_have_company_by_default(linear: Make) -> None:
    explainer = linear(41)
    for size in (2, 5, 20):
        crowd = CrowdedExplanations(size).around(explainer)
        assert isinstance(crowd, Crowded)
        assert crowd.alone.sum() == 20


def test_a_radius_of_zero_asks_for_equal_records(linear: Make) -> None:
    explainer = linear(10)
    explainer.X[7] = explainer.X[2]
    crowd = CrowdedExplanations(2, radius=0.0).around(explainer)
    shown, _ = crowd.explain(explainer.X, 3)
    assert {frozenset(row) for row in shown.tolist()} == {frozenset({2, 7, -1})}
    np.testing.assert_array_equal(shown[:, 2], -1)


def test_a_feature_without_spread_counts_as_it_is(linear: Make) -> None:
    explainer = linear(10)
    explainer.X[:, 1] = 4.0
    alone = CrowdedExplanations(3, 0.8).around(explainer).alone
    np.testing.assert_array_equal(alone, company(explainer.X, 0.8) < 3)


def test_large_sets_are_compared_in_blocks(linear: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    explainer, queries = linear(40), np.random.default_rng(1).normal(size=(25, 3))
    defense = CrowdedExplanations(3)
    whole = defense.around(explainer).explain(queries, 4)
    monkeypatch.setattr(module, "_NUMBERS", 300)
    parts = defense.around(explainer).explain(queries, 4)
    np.testing.assert_array_equal(whole[0], parts[0])
    np.testing.assert_array_equal(whole[1], parts[1])


def test_the_influence_of_those_who_are_alone_is_not_told(linear: Make) -> None:
    explainer = linear(20)
    crowd = CrowdedExplanations(3).around(explainer)
    parts = np.concatenate([part for _, part in crowd.influence_chunks(explainer.X)])
    np.testing.assert_array_equal(np.isnan(parts), np.tile(crowd.alone, (20, 1)))
    there = ~crowd.alone
    np.testing.assert_array_equal(parts[:, there], explainer.influence(explainer.X)[:, there])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 1}, "option size must be a whole number of at least 2, got 1"),
        ({"size": 2.5}, "option size must be a whole number of at least 2, got 2.5"),
        ({"size": 2, "radius": -0.1}, "option radius must be a finite number of at least 0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CrowdedExplanations(**options)


def test_a_crowd_of_more_than_all_is_refused(linear: Make) -> None:
    with pytest.raises(InputError, match="size is 31, and there are 30 training records"):
        CrowdedExplanations(31).around(linear())
    assert replace(CrowdedExplanations(31), size=30).around(linear()).alone.sum() == 15
