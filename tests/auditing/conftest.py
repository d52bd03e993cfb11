"""Two sides and a forest that knows one of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from leakscope.records import Records


def draw(n, seed, d=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    # By rank, so that both sides have equal shares of the two labels.
    signal = X[:, 0] + rng.normal(size=n)
    y = (np.argsort(np.argsort(signal)) >= n // 2).astype(int)
    groups = {"sex": np.where(rng.random(n) < 0.5, "f", "m")}
    return Records(X, y, groups)


@pytest.fixture(scope="session")
def sides():
    return draw(400, 0), draw(300, 1)


@pytest.fixture(scope="session")
def forest(sides):
    return RandomForestClassifier(30, random_state=0).fit(sides[0].X, sides[0].y)


@pytest.fixture(scope="session")
def stranger():
    """A forest trained on neither side."""
    third = draw(400, 2)
    return RandomForestClassifier(30, random_state=0).fit(third.X, third.y)
