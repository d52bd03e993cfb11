from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def halves():
    """Which records are members: complementary pairs of random halves, or independent ones."""

    def draw(rng, models, n, pairs=True):
        if not pairs:
            return np.array([rng.permutation(n) < n // 2 for _ in range(models)])
        ones = [rng.permutation(n) < n // 2 for _ in range(models // 2)]
        return np.array([row for one in ones for row in (one, ~one)])

    return draw
