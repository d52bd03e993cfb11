from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leakscope.datasets import load_dataset
from leakscope.errors import InputError


def test_the_defaults_are_those_of_the_paper() -> None:
    records = load_dataset("synthetic")
    assert records.X.shape == (20_000, 20)
    assert set(records.y.tolist()) == {0, 1}
    assert abs(records.y.mean() - 0.5) < 0.01


def test_classes_lie_apart_in_proportion_to_the_separation() -> None:
    near, far = (
        load_dataset("synthetic", n=4_000, features=5, separation=s, flip=0.0) for s in (1.0, 4.0)
    )
    gaps = [
        np.linalg.norm(r.numbers()[r.y == 0].mean(axis=0) - r.numbers()[r.y == 1].mean(axis=0))
        for r in (near, far)
    ]
    assert gaps[1] / gaps[0] == pytest.approx(4, rel=0.1)


def test_a_hundred_classes_in_seven_dimensions() -> None:
    records = load_dataset("synthetic", n=1_000, features=7, classes=100)
    assert records.X.shape == (1_000, 7)
    assert len(set(records.y.tolist())) == 100


@pytest.mark.parametrize("name", ["synthetic", "synthetic-regression"])
def test_the_seed_decides(name: str) -> None:
    first, again, other = (load_dataset(name, n=50, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)


def test_regression_is_linear_up_to_the_noise() -> None:
    for noise in (0.0, 3.0):
        records = load_dataset("synthetic-regression", n=4_000, features=6, noise=noise)
        X = np.column_stack([records.numbers(), np.ones(len(records))])
        residual = records.y - X @ np.linalg.lstsq(X, records.y)[0]
        assert residual.std() == pytest.approx(noise, rel=0.1, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("synthetic", {"classes": 1}, "classes must be a whole number of at least 2, got 1"),
        ("synthetic", {"classes": 9, "n": 8}, "n must be a whole number of at least 9, got 8"),
        ("synthetic", {"classes": 100, "features": 6}, "is 6, where 100 classes need at least 7"),
        ("synthetic", {"features": 0}, "features is 0, where 2 classes need at least 1"),
        ("synthetic", {"separation": -1.0}, "separation is -1.0, where a number of at least 0"),
        ("synthetic", {"separation": float("nan")}, "separation is nan, where a number"),
        ("synthetic", {"flip": 1.5}, "flip is 1.5, where a share from 0 to 1"),
        ("synthetic", {"seed": -1}, "seed must be a whole number from 0"),
        ("synthetic", {"seed": "x"}, "seed .* is 'x', where a whole number is needed"),
        ("synthetic-regression", {"n": 1}, "n must be a whole number of at least 2, got 1"),
        ("synthetic-regression", {"features": 0}, "features must be a whole number of at least 1"),
        ("synthetic-regression", {"noise": float("inf")}, "noise is inf, where a number"),
        ("synthetic-regression", {"seed": 2**32}, "seed must be a whole number"),
    ],
)
def test_options_out_of_bounds_are_one_sentence(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load_dataset(name, **options)
