"""Small models whose every leave-one-out twin is known, behind oracles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from leakscope.channels.oracle import LocalOracle


@dataclass(frozen=True, eq=False)
class Problem:
    """Records, a logistic model theta (d + 1,) and its twins (n, d + 1), intercepts last."""

    X: np.ndarray
    y: np.ndarray
    theta: np.ndarray
    without: np.ndarray

    @property
    def bound(self) -> int:
        """The most records that a pass at k = 1 can find."""
        return int(np.linalg.matrix_rank(self.X - self.X.mean(axis=0))) + 1

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(expit(X @ self.theta[:-1] + self.theta[-1]))

    def changes(self, X: np.ndarray) -> np.ndarray:
        """How leaving each record out changes the logit of each query, (q, n)."""
        gap = self.without - self.theta
        return np.asarray(X @ gap[:, :-1].T + gap[:, -1])

    def explain(self, X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k of largest |influence|, ties by the change of the logit.

        The probability rises with the logit: they are among the k largest and k smallest changes.
        """
        changes, n = self.changes(X), len(self.X)
        ends = np.r_[: min(k, n), max(n - k, min(k, n)) : n]
        among = np.argpartition(changes, sorted({min(k, n) - 1, max(n - k, 0)}), axis=1)[:, ends]
        moves = np.take_along_axis(changes, among, axis=1)
        logits = (X @ self.theta[:-1] + self.theta[-1])[:, None]
        moved = logits + moves
        # Each on the side where it is small: near 1 the difference would lose its digits.
        influence = np.where(
            logits > 0, expit(-moved) - expit(-logits), expit(moved) - expit(logits)
        )
        order = np.lexsort((-np.abs(moves), -np.abs(influence)), axis=1)[:, :k]
        return (
            np.take_along_axis(among, order, axis=1),
            np.take_along_axis(influence, order, axis=1),
        )

    def oracle(self, **options: Any) -> LocalOracle:
        return LocalOracle(self.predict, self.explain, self.X, self.y, **options)


def fit(X: np.ndarray, y: np.ndarray, l2: float = 1.0) -> np.ndarray:
    """Logistic regression by Newton's method, the intercept free and last."""
    Z = np.column_stack([X, np.ones(len(X))])
    penalty = np.append(np.full(X.shape[1], l2), 0.0)
    theta = np.zeros(Z.shape[1])
    for _ in range(50):
        p = expit(Z @ theta)
        gradient = Z.T @ (p - y) + penalty * theta
        theta -= np.linalg.solve((Z * (p * (1 - p))[:, None]).T @ Z + np.diag(penalty), gradient)
        if np.abs(gradient).max() < 1e-12:
            return theta
    raise AssertionError("Newton's method did not converge")


def left_out(X: np.ndarray, y: np.ndarray) -> Problem:
    """The problem by as many fits as there are records."""
    others = ~np.eye(len(X), dtype=bool)
    return Problem(X, y, fit(X, y), np.stack([fit(X[rows], y[rows]) for rows in others]))


def trained(n: int, d: int, seed: int = 0, rank: int | None = None) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank or d))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    if rank is not None:
        X = X @ rng.normal(size=(rank, d)) / np.sqrt(rank)
    return left_out(X + rng.normal(size=d), y)


def drawn(n: int, d: int, rank: int, seed: int = 0) -> Problem:
    """Twins drawn at random, with gradients in the span of the centred records: no training."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) / np.sqrt(rank)
    span = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:rank]
    theta = np.append(rng.normal(size=rank) @ span / 2, 0.2)
    gaps = np.column_stack([rng.normal(size=(n, rank)) @ span, rng.normal(size=n)]) / 100
    return Problem(X, rng.integers(2, size=n), theta, theta + gaps)


@pytest.fixture(scope="session")
def problem() -> Callable[..., Problem]:
    return trained


@pytest.fixture(scope="session")
def drawn_problem() -> Callable[..., Problem]:
    return drawn


@pytest.fixture(scope="session")
def six() -> Problem:
    """The six records whose self-ranks are known to be 2, 4, 1, 2, 3, 1."""
    X = np.array([(0, 0), (1, 0), (0, 1), (2, 1), (1, 3), (3, 2)], dtype=float)
    return left_out(X, np.array([0, 0, 1, 0, 1, 1]))


@pytest.fixture(scope="session")
def one_to_one() -> Callable[..., LocalOracle]:
    """An oracle over a graph: record i has the features (i, i²), explained by its neighbours."""

    def make(neighbours: Any, **options: Any) -> LocalOracle:
        table = np.asarray(neighbours)
        n, k = table.shape
        X = np.column_stack([np.arange(n), np.arange(n) ** 2]).astype(float)

        def explain(Q: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
            rows = table[Q[:, 0].astype(int)]
            return rows[:, :k], np.ones(rows[:, :k].shape)

        return LocalOracle(lambda Q: np.full(len(Q), 0.5), explain, X, np.zeros(n), k=k, **options)

    return make
