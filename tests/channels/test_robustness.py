from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leakscope.channels.robustness import Robustness
from leakscope.models import as_model
from leakscope.records import Records


def sign_model(X):
    positive = np.asarray(X)[:, 0] > 0
    return np.column_stack([~positive, positive]).astype(float)


def test_a_record_far_from_the_boundary_survives_and_one_beyond_it_never_does():
    X = np.linspace(-1, 1, 101)[:, None]
    y = (X[:, 0] > 0).astype(int)
    y[0] = 1  # at −1 with the wrong label
    seen = Robustness().observe(as_model(sign_model), Records(X, y))[:, 0]
    assert seen[-1] == 1.0
    assert seen[0] <= 0.2
    assert 0.3 < seen[51] < 0.9  # right beside the boundary
    middle, outer = seen[(X[:, 0] > 0) & (X[:, 0] < 0.3)], seen[X[:, 0] > 0.7]
    assert middle.mean() < outer.mean()


def test_the_share_of_survivors_is_that_of_the_normal_distribution():
    from scipy.stats import norm

    X = np.full((4000, 1), 0.5)
    X[2000:] = -0.5  # so that the column's standard deviation is ½
    y = (X[:, 0] > 0).astype(int)
    channel = Robustness(copies=1, scales=(2.0,), seed=3)
    # Two columns, so that the first is not two-valued.
    wide = np.column_stack([X[:, 0] + np.linspace(0, 1e-9, 4000), np.arange(4000.0)])
    seen = channel.observe(as_model(sign_model), Records(wide, y))[:, 0]
    survived = 2 * seen.mean() - 1  # one clean copy, always right, and one noisy
    expected = norm.cdf(0.5)  # ½ away from the boundary, noise of 2 × ½
    assert survived == pytest.approx(expected, abs=5 * np.sqrt(0.25 / 4000))


def test_a_frame_is_asked_about_as_a_frame():
    frame = pd.DataFrame({"x": np.linspace(-1, 1, 40), "job": ["a", "b"] * 20})
    y = (frame["x"] > 0).astype(int).to_numpy()
    model = as_model(lambda X: sign_model(X[["x"]].to_numpy()))
    seen = Robustness(copies=2).observe(model, Records(frame, y))
    assert seen.shape == (40, 1)
    assert seen.min() < 1 < seen.max() + 1e-9
