from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leakscope.channels.explanations import Gradient, SmoothGrad
from leakscope.channels.summaries import (
    SUMMARIES,
    GradientProbabilitySummary,
    GradientSummary,
    SmoothGradSummary,
    Summary,
    summarize,
)
from leakscope.channels.surrogates import Surrogate
from leakscope.models import as_model
from leakscope.records import Records
from leakscope.registry import entries


def test_the_nine_numbers_by_hand():
    (found,) = summarize(np.array([[3.0, -1.0, 0.0, 0.02]]), np.array([[1.0, 2.0, 5.0, 0.0]]))
    sizes = np.array([3, 1, 0.02]) / 4.02
    expected = {
        "1-norm": 4.02,
        "2-norm": math.sqrt(9 + 1 + 0.0004),
        "largest size": 3.0,
        "sum": 2.02,
        "sum with the features": 1.0,
        "variance": 10.0004 / 4 - (2.02 / 4) ** 2,
        "entropy of the sizes": -(sizes * np.log(sizes)).sum(),
        "share of small ones": 0.5,
        "1-norm with the features": 5.0,
    }
    assert list(expected) == list(SUMMARIES)
    np.testing.assert_allclose(found, list(expected.values()), rtol=1e-12)


def test_an_explanation_of_nothing_is_finite():
    (found,) = summarize(np.zeros((1, 3)), np.ones((1, 3)))
    np.testing.assert_array_equal(found, [0, 0, 0, 0, 0, 0, 0, 1, 0])


def test_the_channel_summarizes_what_the_explanation_shows():
    X = np.random.default_rng(0).normal(size=(30, 2, 3))
    flat = X.reshape(30, 6)
    y = (flat[:, 0] > 0).astype(int)
    model = as_model(LogisticRegression().fit(flat, y))
    records = Records(flat, y)
    for channel, output in (
        (GradientSummary(), "logit"),
        (GradientProbabilitySummary(), "probability"),
    ):
        expected = summarize(Gradient(output).observe(model, records), flat)
        np.testing.assert_array_equal(channel.observe(model, records), expected)
        assert channel.width(model) == 9


def test_it_has_the_options_of_its_explanation():
    loud, quiet = (SmoothGradSummary(SmoothGrad(sigma=sigma)) for sigma in (1.0, 0.1))
    assert loud != quiet
    assert loud.explanation.sigma == 1.0


@pytest.mark.parametrize(
    "kind",
    [entry.thing for entry in entries("channel") if issubclass(entry.thing, Summary)],
    ids=lambda kind: kind.name,
)
def test_each_needs_what_its_explanation_needs(kind):
    assert kind.needs == kind().explanation.needs
    assert isinstance(kind().explanation, Surrogate) == ("queries" in kind.needs)
