from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from leakscope.probabilities import (
    CLIP,
    clipped_log,
    count_clipped,
    entropy,
    log_loss,
    log_odds,
    logit_margin,
    modified_entropy,
    split_by_truth,
)
from leakscope.protocols import Floats

THREE = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]])
TRUTH = np.array([0, 1, 2, 2])
BOUND = -log(CLIP)


def clip(p: float) -> float:
    return min(max(p, CLIP), 1.0)


@pytest.mark.slow
@given(
    arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(2, 5)), elements=st.floats(0, 1)),
    st.integers(0, 2**32 - 1),
)
def test_each_quantity_is_the_sum_written_out(weights: Floats, seed: int) -> None:
    weights[weights < 1e-12] = 0.0
    weights[:, 0] += weights.sum(axis=1) == 0
    P = weights / weights.sum(axis=1, keepdims=True)
    n, k = P.shape
    y = np.random.default_rng(seed).integers(k, size=n)
    for i in range(n):
        p, others = P[i, y[i]], [P[i, j] for j in range(k) if j != y[i]]
        loss = -log(clip(p))
        margin = log(clip(p)) - log(clip(sum(others)))
        bits = -sum(q * log(q) for q in P[i] if q > 0)
        modified = -(1 - p) * log(clip(p)) - sum(q * log(clip(1 - q)) for q in others)
        assert log_loss(P, y)[i] == pytest.approx(loss, abs=1e-9)
        assert logit_margin(P, y)[i] == pytest.approx(margin, abs=1e-6)
        assert entropy(P)[i] == pytest.approx(bits, abs=1e-9)
        assert modified_entropy(P, y)[i] == pytest.approx(modified, abs=1e-6)


def test_values_by_hand() -> None:
    np.testing.assert_allclose(log_loss(THREE, TRUTH), [-log(0.7), 0, BOUND, log(2)])
    np.testing.assert_allclose(
        logit_margin(THREE, TRUTH), [log(0.7 / 0.3), BOUND, -BOUND, 0], atol=1e-12
    )
    np.testing.assert_allclose(
        entropy(THREE), [-0.7 * log(0.7) - 0.2 * log(0.2) - 0.1 * log(0.1), 0, 0, 1.5 * log(2)]
    )
    np.testing.assert_allclose(
        modified_entropy(THREE, TRUTH),
        [
            -0.3 * log(0.7) - 0.2 * log(0.8) - 0.1 * log(0.9),
            0,
            2 * BOUND,  # sure and wrong: one term of the true class, one of the other
            0.5 * log(2) - 0.5 * log(0.75),
        ],
        atol=1e-12,
    )


def test_certainty_is_finite_in_both_directions() -> None:
    sure = np.array([[1.0, 0.0], [1.0, 0.0]])
    truth = np.array([0, 1])
    for quantity in (log_loss, logit_margin, modified_entropy):
        assert np.isfinite(quantity(sure, truth)).all()
    assert np.isfinite(entropy(sure)).all()
    np.testing.assert_allclose(logit_margin(sure, truth), [BOUND, -BOUND])


def test_the_margin_keeps_what_one_minus_p_would_lose() -> None:
    # 1 − p is off by 10 % here; the sum of the others is not.
    small = np.array([[1.0, 3e-7, 4e-7]], dtype=np.float32).astype(np.float64)
    margin = logit_margin(small, np.array([0]))[0]
    assert margin == pytest.approx(-log(small[0, 1] + small[0, 2]), rel=1e-12)


def test_logarithms_are_clipped_at_the_stated_value() -> None:
    np.testing.assert_array_equal(clipped_log(np.array([0.0, CLIP, 1.0, 1.5])), [
        np.log(CLIP), np.log(CLIP), 0.0, 0.0,
    ])  # fmt: skip
    odds = log_odds(np.array([0.0, 0.5, 0.8, 1.0]))
    np.testing.assert_allclose(odds, [-log((1 - CLIP) / CLIP), 0, log(4), log((1 - CLIP) / CLIP)])


def test_the_true_class_is_taken_out() -> None:
    true_class, others = split_by_truth(THREE, TRUTH)
    np.testing.assert_array_equal(true_class, [0.7, 1.0, 0.0, 0.5])
    np.testing.assert_array_equal(others, [[0.2, 0.1], [0.0, 0.0], [0.0, 1.0], [0.25, 0.25]])


def test_clipped_records_are_those_whose_margin_is_at_a_bound() -> None:
    assert count_clipped(THREE, TRUTH) == 2
    edge = np.array([[CLIP, 1 - CLIP], [CLIP / 2, 1 - CLIP / 2], [1 - CLIP / 2, CLIP / 2]])
    assert count_clipped(edge, np.array([0, 0, 0])) == 2
