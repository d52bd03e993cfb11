from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leakscope.channels.outputs import Margin
from leakscope.channels.perturbing import noisy_copies
from leakscope.channels.queries import NoisyMargin
from leakscope.errors import RecordsError
from leakscope.models import as_model
from leakscope.probabilities import logit_margin
from leakscope.records import Records


def logistic(X):
    score = 1 / (1 + np.exp(-np.asarray(X)[:, 0]))
    return np.column_stack([1 - score, score])


@pytest.fixture
def records():
    X = np.random.default_rng(0).normal(size=(50, 3))
    return Records(X, (X[:, 1] > 0).astype(int))


def test_the_record_itself_comes_first_and_its_copies_follow(records):
    channel = NoisyMargin(copies=3, scale=0.3, seed=5)
    model = as_model(logistic)
    seen = channel.observe(model, records)
    assert seen.shape == (50, 4) == (50, channel.width(model))
    np.testing.assert_array_equal(seen[:, :1], Margin().observe(model, records))
    for column, X in enumerate(noisy_copies(records.X, [0.3] * 3, 5), start=1):
        np.testing.assert_array_equal(seen[:, column], logit_margin(logistic(X), records.y))
    assert (np.ptp(seen, axis=1) > 0).all()


def test_no_copies_are_the_margin(records):
    model = as_model(logistic)
    np.testing.assert_array_equal(
        NoisyMargin(copies=0).observe(model, records), Margin().observe(model, records)
    )


def test_every_model_is_asked_about_the_same_copies(records):
    asked = []

    def remember(X):
        asked.append(np.array(X))
        return logistic(X)

    for _ in range(2):
        NoisyMargin(seed=1).observe(as_model(remember), records)
    assert len(asked) == 10
    for first, second in zip(asked[:5], asked[5:], strict=True):
        np.testing.assert_array_equal(first, second)
    other = NoisyMargin(seed=2).observe(as_model(logistic), records)
    assert (other[:, 1:] != NoisyMargin(seed=1).observe(as_model(logistic), records)[:, 1:]).all()


def test_a_table_is_asked_about_as_a_table():
    frame = pd.DataFrame({"x": np.linspace(-1, 1, 40), "job": ["a", "b"] * 20})
    model = as_model(lambda X: logistic(X[["x"]].to_numpy()))
    seen = NoisyMargin(copies=2).observe(model, Records(frame, np.arange(40) % 2))
    assert seen.shape == (40, 3)


def test_an_unknown_label_is_named(records):
    with pytest.raises(RecordsError, match="unknown to"):
        NoisyMargin().observe(as_model(logistic), Records(records.X, np.full(50, 7)))
