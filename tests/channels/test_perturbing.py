from __future__ import annotations

import numpy as np
import pandas as pd

from leakscope.channels.perturbing import noisy_copies, perturb_array, perturb_frame, spread


def test_there_is_a_copy_per_scale_and_the_seed_decides():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    copies = list(noisy_copies(X, [0.1, 1.0], 3))
    for noisy, scale in zip(copies, (0.1, 1.0), strict=True):
        # The standard deviation of 4,000 differences: five standard errors.
        assert abs((noisy - X).std() / (scale * X.std()) - 1) < 5 / np.sqrt(2 * 4000)
    again, other = (list(noisy_copies(X, [0.1, 1.0], seed)) for seed in (3, 4))
    np.testing.assert_array_equal(copies, again)
    assert (np.array(copies) != np.array(other)).all()


def test_two_valued_columns_keep_their_values():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 500), rng.normal(size=500)]).astype(float)
    noisy = perturb_array(X, 0.3, np.random.default_rng(1))
    assert set(noisy[:, 0]) == {0.0, 1.0}
    assert 0.05 < (noisy[:, 0] != X[:, 0]).mean() < 0.3
    assert (noisy[:, 1] != X[:, 1]).all()


def test_text_columns_take_values_that_occur():
    frame = pd.DataFrame({"job": ["a", "b", "c", None] * 50, "age": np.arange(200.0)})
    noisy = perturb_frame(frame, 0.5, np.random.default_rng(0))
    assert set(noisy["job"].dropna()) <= {"a", "b", "c"}
    assert noisy["job"].ne(frame["job"]).any()
    assert list(noisy.columns) == ["job", "age"]
    assert noisy["age"].std() > 0


def test_spread_ignores_what_is_missing():
    values = np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan]])
    np.testing.assert_allclose(spread(values), [1.0, 0.0, 0.0])


def test_images_keep_their_shape_and_stay_single_precision():
    X = np.random.default_rng(0).random((10, 4, 4, 3), dtype=np.float32)
    noisy = perturb_array(X, 0.1, np.random.default_rng(0))
    assert noisy.shape == X.shape
    assert noisy.dtype == np.float32
