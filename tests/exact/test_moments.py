from __future__ import annotations

import numpy as np
import pytest

from leakscope.exact.bases import draw_members, solve_bases
from leakscope.exact.moments import Accumulator, Release

GROUPS = (slice(0, 9), slice(9, 20), slice(20, 30))


@pytest.mark.parametrize("grid", [None, 0.25])
@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_moments_are_those_of_the_solutions_listed_one_by_one(population, fit, grid, noise):
    X, y = population(12, 2)
    members = draw_members(12, 5, 30, seed=0)
    kept = np.array([[record not in rows for rows in members] for record in range(12)])
    release = Release(noise, grid)
    accumulator = Accumulator.of(solve_bases(X, y, members, 0.1), GROUPS, release)
    sides = accumulator.sums(X, y, kept)
    added = noise**2 + (0 if grid is None else grid**2 / 12)

    def solved(rows):
        theta = fit(X[rows], y[rows], 5 * 0.1)
        return theta if grid is None else grid * np.round(theta / grid)

    for side in range(2):
        means, covariances = sides[side].gaussians(release.variance)
        assert means.shape == (12, 4, 2)
        for record in range(12):
            for g, out in enumerate((None, *GROUPS)):
                counted = kept[record].copy()
                if out is not None:
                    counted[out] = False
                theta = np.array(
                    [
                        solved(np.append(rows[:-1], record) if side == 0 else rows)
                        for rows in members[counted]
                    ]
                )
                mean = means[record, g] + accumulator.centre
                np.testing.assert_allclose(mean, theta.mean(axis=0), rtol=1e-10, atol=1e-12)
                expected = np.cov(theta.T) + added * np.eye(2)
                np.testing.assert_allclose(covariances[record, g], expected, atol=1e-11)


def test_a_large_common_part_of_the_solutions_costs_no_digits(population):
    X, y = population(12, 2)
    members = draw_members(12, 5, 30, seed=0)
    kept = np.array([[record not in rows for rows in members] for record in range(12)])
    far = y + 1e7 * X.sum(axis=1)  # every solution moves by 1e7 in both coordinates
    near_cov, far_cov = (
        Accumulator.of(solve_bases(X, z, members, 0.0), GROUPS, Release(0.0, None))
        .sums(X, z, kept)[0]
        .gaussians(0.0)[1]
        for z in (y, far)
    )
    np.testing.assert_allclose(far_cov, near_cov, rtol=1e-6, atol=1e-6)


def test_rounding_goes_to_the_nearest_multiple():
    rounded = Release(0.0, 0.5).rounded(np.array([0.2, -0.3, 1.1]))
    np.testing.assert_array_equal(rounded, [0.0, -0.5, 1.0])
    np.testing.assert_array_equal(Release(0.0, None).rounded(np.array([0.2])), [0.2])


def test_the_place_within_a_cell_has_the_variance_that_is_added():
    assert Release(3.0, None).variance == 9.0
    assert Release(0.0, 6.0).variance == 3.0
    assert Release(1.0, 6.0).variance == 4.0
