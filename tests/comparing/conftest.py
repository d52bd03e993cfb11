"""Small pools, and rows of a comparison that are made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from leakscope.comparing.averaging import Figure
from leakscope.comparing.contest import Contest
from leakscope.comparing.judging import Judged
from leakscope.records import Records


def draw(n: int, seed: int = 0, d: int = 12) -> Records:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return Records(X, (X[:, 0] + rng.normal(size=n) > 0).astype(int))


@pytest.fixture(scope="session")
def pool() -> Records:
    return draw(240)


def row(defense: str, seed: int, **figures: object) -> dict[str, object]:
    """A row with figures that nobody looks at, but for those that are given."""
    return {
        "defense": defense,
        "seed": seed,
        "train_accuracy": 1.0,
        "test_accuracy": 0.7,
        "attack": "loss",
        "attack_accuracy": 0.6,
        "low": 0.5,
        "high": 0.7,
        "advantage": 0.2,
        "auc": 0.6,
        "attacks": 2,
        "by_attack": {},
        "leakage": None,
        "epsilon": None,
        "delta": None,
        "guarantee": "no formal guarantee",
        "bytes": 100,
        "train_seconds": 1.0,
        "predict_seconds": 0.001,
        "epochs": 10.0,
    } | figures


@pytest.fixture
def contest() -> Callable[..., Contest]:
    """A contest of defenses whose figures are (test accuracy, attack accuracy) for each seed.

    Of so many records that the seeds alone decide, unless records are few.
    """

    def make(figures: Mapping[str, Sequence[tuple[float, float]]], n: int = 10_000) -> Contest:
        still = np.zeros(3)
        return Contest(
            {
                name: [
                    Judged(
                        name,
                        row(name, seed, test_accuracy=right, attack_accuracy=found, low=found),
                        Figure(right, still, 4 / n**2),
                        Figure(found, still, 4 / n**2),
                        {},
                    )
                    for seed, (right, found) in enumerate(seeds)
                ]
                for name, seeds in figures.items()
            }
        )

    return make
