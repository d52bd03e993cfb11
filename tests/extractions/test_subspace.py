from __future__ import annotations

import numpy as np
import pytest

from leakscope.extractions import subspace as module
from leakscope.extractions.subspace import Subspace

rng = np.random.default_rng(0)


def cut_down(d: int, cuts: int) -> tuple[Subspace, np.ndarray, np.ndarray]:
    """A subspace, and the linear conditions a @ y = b that made it."""
    space = Subspace.whole(rng.uniform(0.5, 2.0, size=d))
    rows, values = rng.normal(size=(cuts, d)), rng.normal(size=cuts)
    for a, b in zip(rows, values, strict=True):
        point = space.points(rng.normal(size=space.dimension))
        space.cut(point, space.basis @ a, float(a @ point - b))
    return space, rows, values


@pytest.mark.parametrize(("d", "cuts"), [(5, 0), (5, 1), (30, 12), (30, 29), (7, 7)])
def test_a_cut_keeps_exactly_the_points_on_which_the_form_is_zero(d: int, cuts: int) -> None:
    space, rows, values = cut_down(d, cuts)
    assert space.basis.shape == (d - cuts, d)
    assert space.dimension == d - cuts
    np.testing.assert_allclose(space.basis @ space.basis.T, np.eye(d - cuts), atol=1e-12)
    points = space.points(rng.normal(size=(4, d - cuts)))
    np.testing.assert_allclose(rows @ points.T, np.tile(values[:, None], 4), atol=1e-8)


@pytest.mark.parametrize("first", [0.0, 2.0, -2.0])
def test_a_slope_along_the_first_direction_is_no_special_case(first: float) -> None:
    slope = np.array([first, 0.5, 0.0])
    space = Subspace.whole(np.ones(3))
    space.cut(np.ones(3), slope, 1.0)
    np.testing.assert_allclose(space.basis @ slope, 0, atol=1e-15)
    assert (space.origin - 1) @ slope + 1.0 == pytest.approx(0, abs=1e-15)


def test_a_cut_writes_in_place() -> None:
    space = Subspace.whole(np.ones(5))
    before = space.basis
    space.cut(np.zeros(5), np.arange(1.0, 6.0), 1.0)
    assert np.shares_memory(space.basis, before)


def test_the_nearest_point_leaves_a_rest_that_is_orthogonal() -> None:
    space, rows, values = cut_down(6, 2)
    point = rng.normal(size=6)
    nearest = space.points(space.nearest(point))
    np.testing.assert_allclose(rows @ nearest, values, atol=1e-10)
    np.testing.assert_allclose(space.basis @ (point - nearest), 0, atol=1e-12)


def test_going_towards_a_value_reaches_it_within_the_subspace() -> None:
    space, rows, values = cut_down(6, 2)
    gradient, start = rng.normal(size=6), rng.normal(size=(3, 4))
    reached = space.points(space.towards(start, gradient, np.array([1.0, -2.0, 0.0])))
    np.testing.assert_allclose(reached @ gradient, [1, -2, 0], atol=1e-12)
    np.testing.assert_allclose(rows @ reached.T, np.tile(values[:, None], 3), atol=1e-10)
    # The shortest way is along what the subspace keeps of the gradient.
    kept = (space.basis @ gradient) @ space.basis
    way = reached[0] - space.points(start[0])
    assert abs(way @ kept) == pytest.approx(np.linalg.norm(way) * np.linalg.norm(kept))


def test_a_function_that_is_constant_in_the_subspace_moves_nothing() -> None:
    space, rows, _ = cut_down(6, 2)
    start = rng.normal(size=(3, 4))
    assert space.towards(start, rows[0], np.ones(3)) is start
    assert space.towards(start, np.zeros(6), np.ones(3)) is start


@pytest.mark.parametrize("block", [1, 3, 100])
def test_queries_along_directions_are_in_the_units_of_the_features(
    monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(module, "BLOCK", block)
    space, *_ = cut_down(9, 2)
    point, directions, steps = rng.normal(size=9), np.array([4, 0, 4, 6, 1]), rng.normal(size=5)
    queries = space.queries_along(point, directions, steps)
    for query, direction, step in zip(queries, directions, steps, strict=True):
        expected = (point + step * space.basis[direction]) * space.scale
        np.testing.assert_allclose(query, expected, rtol=1e-14)
