from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from leakscope.exact.bases import Completer, draw_members, solve, solve_bases


def test_members_are_distinct_and_every_ordered_set_is_as_likely():
    draws = 60_000
    members = draw_members(5, 2, draws, seed=0)
    codes = members[:, 0] * 5 + members[:, 1]
    counts = np.bincount(codes, minlength=25)
    pairs = [a * 5 + b for a, b in permutations(range(5), 2)]
    assert counts[pairs].sum() == draws
    expected = draws / 20
    # A binomial count is within 5.5 deviations of its mean but for once in 25 million.
    assert np.abs(counts[pairs] - expected).max() < 5.5 * np.sqrt(expected)


def test_more_draws_begin_with_the_same_ones():
    few, many = draw_members(100, 7, 10, seed=3), draw_members(100, 7, 20, seed=3)
    np.testing.assert_array_equal(many[:10], few)
    assert not np.array_equal(draw_members(100, 7, 10, seed=4), few)


CASES = [
    (8, 3, 0.0),  # more records than features
    (8, 3, 0.2),
    (4, 4, 0.0),  # the base is singular, completed it is not
    (4, 4, 1e-3),
    (3, 5, 0.0),  # no training set determines the solution: the shortest is meant
    (1, 2, 0.0),  # an empty base
    (1, 2, 0.5),
]


@pytest.mark.parametrize(("n", "p", "l2"), CASES)
def test_bases_and_partners_are_solved_as_least_squares_are(population, fit, n, p, l2):
    X, y = population(20, p)
    members = draw_members(20, n, 12, seed=1)
    bases = solve_bases(X, y, members, l2)
    for draw, rows in enumerate(members):
        expected = fit(X[rows[:-1]], y[rows[:-1]], n * l2)
        np.testing.assert_allclose(bases.base.theta[draw], expected, rtol=1e-9, atol=1e-11)
        expected = fit(X[rows], y[rows], n * l2)
        np.testing.assert_allclose(bases.without[draw], expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("n", "p", "l2"), CASES)
def test_completing_a_base_is_training_on_it_with_the_record(population, fit, n, p, l2):
    X, y = population(20, p)
    members = draw_members(20, n, 12, seed=2)
    bases = solve_bases(X, y, members, l2)
    records = np.array([0, 5, 19])
    theta = Completer.of(bases, slice(3, 12)).complete(X[records], y[records])
    assert theta.shape == (3, p, 9)
    for i, record in enumerate(records):
        for draw in range(3, 12):
            rows = np.append(members[draw, :-1], record)
            expected = fit(X[rows], y[rows], n * l2)
            np.testing.assert_allclose(theta[i, :, draw - 3], expected, rtol=1e-8, atol=1e-10)


def test_records_that_bring_no_direction_to_a_singular_base(fit):
    # Three records on a line and one off it; a base of two on the line is singular.
    X = np.array([[1.0, 2.0], [2.0, 4.0], [-1.0, -2.0], [1.0, 0.0], [0.0, 0.0]])
    y = np.array([1.0, 0.0, 3.0, 2.0, 5.0])
    members = np.array([[0, 1, 3], [3, 0, 2]])  # the second base has both directions
    completer = Completer.of(solve_bases(X, y, members, 0.0), slice(0, 2))
    np.testing.assert_array_equal(completer.singular, [0])
    theta = completer.complete(X, y)
    for record in range(5):
        for draw in range(2):
            rows = np.append(members[draw, :-1], record)
            np.testing.assert_allclose(theta[record, :, draw], fit(X[rows], y[rows], 0), atol=1e-12)


def test_the_inverse_and_the_open_directions_share_the_space_out():
    X = np.zeros((2, 4, 3))
    X[0, :, 0], X[0, 1, 1] = 1.0, 2.0
    solved = solve(X, np.zeros((2, 4)), 0.0, 4)
    inverse, outside = solved.inverse, solved.outside
    gram = np.swapaxes(X, 1, 2) @ X
    for k in range(2):
        np.testing.assert_allclose(gram[k] @ inverse[k] + outside[k], np.eye(3), atol=1e-14)
    np.testing.assert_allclose(outside[0], np.diag([0.0, 0.0, 1.0]), atol=1e-14)
    np.testing.assert_array_equal(outside[1], np.eye(3))  # no data at all


def test_a_few_records_stand_for_all_of_a_base(population):
    X, y = population(20, 4)
    X, y = X.reshape(2, 10, 4), y.reshape(2, 10)
    solved = solve(X, y, 0.0, 10)
    for k in range(2):
        root, aim = solved.root[k], solved.aim[k]
        np.testing.assert_allclose(root.T @ root, X[k].T @ X[k], atol=1e-12)
        np.testing.assert_allclose(root.T @ aim, X[k].T @ y[k], atol=1e-12)


@pytest.mark.parametrize("apart", [1e-3, 1e-5, 1e-6, 1e-7])
@pytest.mark.parametrize("l2", [0.0, 1e-16])
def test_ill_conditioned_bases_keep_the_digits_that_least_squares_keep(fit, apart, l2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    X[:, 2] = X[:, 0] + apart * X[:, 2]  # the Gram matrix has a condition of 1 / apart²
    y = rng.normal(size=30)
    members = draw_members(30, 8, 5, seed=0)
    theta = Completer.of(solve_bases(X, y, members, l2), slice(0, 5)).complete(X[:4], y[:4])
    for record in range(4):
        for draw in range(5):
            rows = np.append(members[draw, :-1], record)
            expected = fit(X[rows], y[rows], 8 * l2)
            lost = np.linalg.norm(theta[record, :, draw] - expected) / np.linalg.norm(expected)
            assert lost < 1e-13 / apart + 1e-8  # rounding errors, times the condition of the data


@pytest.mark.parametrize("sine", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-17])
def test_a_record_that_hardly_brings_a_new_direction_to_a_singular_base(fit, sine):
    # Base and partner on a plane of three dimensions, the record off it by this angle: whether it
    # counts as off it is the same question, with the same answer, as for any least squares.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, 3))
    X[:, 2] = X[:, 0] - X[:, 1]
    X[0] += sine * np.linalg.norm(X[0]) * np.array([1, -1, -1]) / np.sqrt(3)
    y = rng.normal(size=6)
    members = np.array([[1, 2, 3, 4, 5]])
    completer = Completer.of(solve_bases(X, y, members, 0.0), slice(0, 1))
    np.testing.assert_array_equal(completer.singular, [0])
    theta = completer.complete(X[:1], y[:1])[0, :, 0]
    rows = [1, 2, 3, 4, 0]
    np.testing.assert_allclose(theta, fit(X[rows], y[rows], 0.0), rtol=1e-13 / sine + 1e-9)


def test_doubtful_records_are_solved_a_few_at_a_time(fit, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    X[:, 1] = X[:, 0] + 1e-6 * X[:, 1]
    y = rng.normal(size=12)
    completer = Completer.of(solve_bases(X, y, draw_members(12, 5, 4, 0), 0.0), slice(0, 4))
    assert completer.base.ill.all()
    whole = completer.complete(X, y)
    monkeypatch.setattr("leakscope.exact.bases._BLOCK", 2 * 3 * 5)  # five at a time of 48
    np.testing.assert_array_equal(completer.complete(X, y), whole)


def test_blocks_do_not_change_the_solutions(population, monkeypatch):
    X, y = population(20, 3)
    members = draw_members(20, 6, 11, seed=0)
    whole = solve_bases(X, y, members, 0.1)
    monkeypatch.setattr("leakscope.exact.bases._BLOCK", 6 * 3 * 4)  # four draws at a time
    parts = solve_bases(X, y, members, 0.1)
    np.testing.assert_array_equal(parts.without, whole.without)
    for one, other in zip(vars(parts.base).values(), vars(whole.base).values(), strict=True):
        np.testing.assert_array_equal(one, other)
