"""Explainers whose influence is plain to see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest


@dataclass(frozen=True, eq=False)
class Linear:
    """Record j has the influence q · G_j on the query q; G (n, d)."""

    X: np.ndarray
    y: np.ndarray
    G: np.ndarray

    def influence(self, X: np.ndarray) -> np.ndarray:
        # Not a product of matrices, which rounds by place.
        return np.asarray((X[:, None] * self.G).sum(axis=2))

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), 0.25)

    def explain(self, X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        influence = self.influence(X)
        first = np.argsort(-np.abs(influence), axis=1, kind="stable")[:, :k]
        return first, np.take_along_axis(influence, first, axis=1)

    def influence_chunks(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        for start in range(0, len(X), 7):
            yield slice(start, start + 7), self.influence(X[start : start + 7])


@pytest.fixture
def linear() -> Callable[..., Linear]:
    """A maker of explainers of n random records."""

    def make(n: int = 30, d: int = 3, seed: int = 0) -> Linear:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, d))
        return Linear(X, rng.integers(2, size=n), rng.normal(size=(n, d)) / 100)

    return make


@pytest.fixture
def constant() -> Callable[..., Linear]:
    """A maker of explainers whose influences (n,) are the same for all queries (q, 1) of any size.

    The query's only feature is its number; the influence does not depend on it.
    """

    class Constant(Linear):
        def influence(self, X: np.ndarray) -> np.ndarray:
            return np.tile(self.G[:, 0], (len(X), 1))

    def make(influences: np.ndarray) -> Linear:
        G = np.asarray(influences, dtype=float)[:, None]
        return Constant(np.arange(len(G), dtype=float)[:, None], np.zeros(len(G)), G)

    return make
