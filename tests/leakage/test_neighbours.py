from __future__ import annotations

import numpy as np
import pytest

from leakscope.leakage.neighbours import wider_anywhere, wider_in_line


def slow(points, membership, k):
    """One record, one model and one side at a time."""
    means = []
    for side in (membership, ~membership):
        found = np.zeros(points.shape[1])
        for record in range(points.shape[1]):
            logs = []
            for model in np.flatnonzero(side[:, record]):
                away = np.linalg.norm(points[:, record] - points[model, record], axis=1)
                own = np.delete(away, model)[np.delete(side[:, record], model)]
                other = away[~side[:, record]]
                kth = [np.sort(one)[k[record] - 1] for one in (other, own)]
                logs.append(points.shape[2] * np.log(kth[0] / kth[1]))
            found[record] = np.mean(logs)
        means.append(found)
    return means


@pytest.mark.parametrize("w", [1, 2])
def test_neighbours_are_those_of_the_slow_way_whatever_the_sides(w):
    rng = np.random.default_rng(w)
    points = rng.normal(size=(17, 12, w)) ** 3
    membership = np.array([rng.permutation(17) < count for count in (2, 3, 5, 8) * 3]).T
    k = np.minimum(5, np.minimum(membership.sum(axis=0), (~membership).sum(axis=0)) - 1)
    assert set(k) == {1, 2, 4, 5}
    expected = slow(points, membership, k)
    ways = [wider_anywhere, *([wider_in_line] if w == 1 else [])]
    for way in ways:
        for found, wanted in zip(way(points)(membership, k), expected, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_models_that_stand_at_one_place_are_finite():
    points = np.zeros((8, 1, 1))
    membership = np.arange(8)[:, None] < 4
    assert wider_in_line(points)(membership, np.array([2])) == [0.0, 0.0]
