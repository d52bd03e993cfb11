from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from leakscope.metrics.gaussian import jeffreys


def shortest(X: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
    """Ridge regression by stacking the penalty under the data; the shortest of all solutions."""
    p = X.shape[1]
    rows = np.vstack([X, np.sqrt(penalty) * np.eye(p)])
    return np.linalg.lstsq(rows, np.append(y, np.zeros(p)), rcond=None)[0]


def enumerate_leakage(
    X: np.ndarray,
    y: np.ndarray,
    n: int,
    l2: float = 0.0,
    release: Callable[[np.ndarray], np.ndarray] = lambda theta: theta,
    variance: float = 0.0,
) -> np.ndarray:
    """rho_kl of each record from every training set there is."""
    sets = [list(rows) for rows in combinations(range(len(X)), n)]
    theta = release(np.array([shortest(X[rows], y[rows], n * l2) for rows in sets]))
    found = []
    for record in range(len(X)):
        inside = np.array([record in rows for rows in sets])
        gaussians = []
        for side in (theta[inside], theta[~inside]):
            covariance = np.cov(side.T, ddof=0).reshape(X.shape[1], -1)
            gaussians += [side.mean(axis=0), covariance + variance * np.eye(X.shape[1])]
        found.append(float(jeffreys(*gaussians)))
    return np.array(found)


@pytest.fixture(scope="session")
def fit() -> Callable[..., np.ndarray]:
    return shortest


@pytest.fixture(scope="session")
def enumerated() -> Callable[..., np.ndarray]:
    return enumerate_leakage


@pytest.fixture(scope="session")
def population() -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Records with noisy targets: size, features, seed."""

    def make(size: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(size, p))
        return X, X.sum(axis=1) + rng.normal(size=size)

    return make
