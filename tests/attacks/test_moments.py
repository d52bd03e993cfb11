from __future__ import annotations

import numpy as np
import pytest

from leakscope.attacks.moments import moments, slices


@pytest.mark.parametrize("size", [(1, 1, 1), (3, 40, 2), (30, 1500, 1), (7, 11, 5)])
@pytest.mark.parametrize("sides", [(True, False), (False,), (False, True)])
def test_they_agree_with_a_loop_over_records(size, sides, monkeypatch):
    monkeypatch.setattr("leakscope.attacks.moments.READ", 7000)
    monkeypatch.setattr("leakscope.attacks.moments.NEAR", 900)
    m, n, _ = size
    rng = np.random.default_rng(m)
    scores, membership = rng.normal(size=size), rng.random((m, n)) < 0.5
    found = moments(scores, membership, sides)
    plain = moments(scores, membership, sides, spread=False)
    twice = moments(scores, membership, sides, view=lambda values: 2 * values)
    for side, one, mean_only, doubled in zip(sides, found, plain, twice, strict=True):
        for i in range(n):
            chosen = scores[membership[:, i] == side, i]
            assert one.count[i] == len(chosen)
            if len(chosen):
                np.testing.assert_allclose(one.mean[i], chosen.mean(axis=0), atol=1e-13)
                squares = ((chosen - chosen.mean(axis=0)) ** 2).sum(axis=0)
                np.testing.assert_allclose(one.squares[i], squares, atol=1e-12)
        np.testing.assert_array_equal(mean_only.mean, one.mean)
        assert not mean_only.squares.any()
        np.testing.assert_array_equal(doubled.mean, 2 * one.mean)


@pytest.mark.parametrize("value", [0.1, -1e9 / 3, 1e-30])
def test_equal_numbers_have_no_spread_at_all(value):
    membership = np.random.default_rng(0).random((37, 200)) < 0.5
    scores = np.where(membership, value, 1.7 * value)[:, :, None]
    for one in moments(scores, membership):
        assert not one.squares.any()


def test_slices_cover_everything_once():
    parts = [np.arange(10)[part] for part in slices(10, 4)]
    assert [part.tolist() for part in parts] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
