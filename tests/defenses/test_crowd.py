from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from leakscope.defenses import explanations as module
from leakscope.defenses.crowd import Crowded, CrowdedExplanations
from leakscope.errors import InputError
from leakscope.recipes.fingerprint import fingerprint

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
    crowd = CrowdedExplanations(2, radius=0.0, unit=range(10)).around(explainer)
    shown, _ = crowd.explain(explainer.X, 3)
    assert {frozenset(row) for row in shown.tolist()} == {frozenset({2, 7, -1})}
    np.testing.assert_array_equal(shown[:, 2], -1)


@pytest.mark.parametrize("moved", [0.0, 1e-14])
def test_equal_rows_are_one_person_unless_told_otherwise(linear: Make, moved: float) -> None:
    explainer = linear(40)
    explainer.X[:5] = 50.0  # far from everyone, five times
    explainer.X[1] += moved  # by rounding, no more
    explainer.X[10:13] = explainer.X[10]
    crowd = CrowdedExplanations(3, 0.8).around(explainer)
    assert crowd.alone[:5].all()
    shown, _ = crowd.explain(explainer.X, 40)
    assert not set(range(5)) & set(shown.ravel().tolist())
    # Five people who are the same in everything are company.
    people = np.arange(40)
    told = CrowdedExplanations(3, 0.8, people).around(explainer)
    np.testing.assert_array_equal(told.alone, company(explainer.X, 0.8) < 3)
    assert not told.alone[:5].any()
    # With zeros of either sign, and with the default radius.
    explainer.X[:5] = 0.0
    explainer.X[:2] *= -1
    assert len(set(CrowdedExplanations(3).around(explainer).people[:5].tolist())) == 1


@pytest.mark.parametrize("radius", [0.5, 0.9, None])
@pytest.mark.parametrize("size", [2, 3, 6])
def test_the_rows_of_one_person_count_once(linear: Make, size: int, radius: float | None) -> None:
    explainer, rng = linear(60), np.random.default_rng(2)
    people = rng.integers(25, size=60)
    people[:7] = 25  # one who is far from everyone, seven times
    explainer.X[:7] = 9.0 + rng.normal(size=(7, 3)) / 100
    names = np.array([f"p{one}" for one in people])
    scaled = explainer.X / explainer.X.std(axis=0)
    reach = []
    for one in scaled:
        near: dict[int, float] = {}
        for person, other in zip(people.tolist(), scaled, strict=True):
            gap = float(np.linalg.norm(one - other))
            near[person] = min(gap, near.get(person, gap))
        reach.append(sorted(near.values())[size - 1])
    crowd = CrowdedExplanations(size, radius, names).around(explainer)
    limit = np.median(reach) if radius is None else radius
    np.testing.assert_array_equal(crowd.alone, np.array(reach) > limit)
    assert crowd.alone[:7].all()
    assert 0 < crowd.alone.sum() < 60


def test_units_are_options_like_others() -> None:
    people = np.array([0, 1, 1])
    first, second = CrowdedExplanations(2, unit=people), CrowdedExplanations(2, unit=[0, 1, 1])
    assert first == second
    assert hash(first) == hash(second)
    assert first != CrowdedExplanations(2, unit=[0, 1, 2])
    assert first != CrowdedExplanations(2)
    people[:] = 5
    assert first == second
    assert pickle.loads(pickle.dumps(first)) == first
    assert fingerprint(first) != fingerprint(CrowdedExplanations(2))


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        (range(29), "30 rows of features and 29 of unit; give as many of both"),
        ([None, *range(29)], "unit of the training records is missing in row 0"),
    ],
)
def test_units_that_do_not_fit_are_refused(linear: Make, unit: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CrowdedExplanations(2, unit=unit).around(linear())


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
        ({"size": 2, "radius": 0.0}, "radius is 0.0, which asks for equal records, .* give unit"),
        ({"size": 2, "unit": 7}, r"unit must have one value for each .*, got shape \(\)"),
        (
            {"size": 2, "unit": [[1, 2]]},
            r"unit must have one value for each .*, got shape \(1, 2\)",
        ),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CrowdedExplanations(**options)


def test_a_crowd_of_more_than_all_is_refused(linear: Make) -> None:
    with pytest.raises(InputError, match="size is 31, and the 30 training records are those of 30"):
        CrowdedExplanations(31).around(linear())
    with pytest.raises(InputError, match="size is 4, and the 30 training records are those of 3"):
        CrowdedExplanations(4, unit=np.arange(30) % 3).around(linear())
    assert replace(CrowdedExplanations(31), size=30).around(linear()).alone.sum() == 15
