"""What every registered channel must hold to."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from leakscope.models import as_model
from leakscope.protocols import Ability
from leakscope.records import Records
from leakscope.registry import entries

CHANNELS = [entry.thing() for entry in entries("channel")]
OF_SOME_MODELS = {"parameters", "gradients", "records"}
OF_ANY_MODEL = [one for one in CHANNELS if not OF_SOME_MODELS & one.needs]


@pytest.fixture(params=CHANNELS, ids=lambda channel: channel.name)
def channel(request):
    return request.param


def subject(channel, task, world):
    """A model that has what the channel needs, and its records."""
    leaky = world("leaky", task)
    if not {"parameters", "gradients"} & channel.needs:
        return leaky.seen_by(channel.needs), leaky.records
    linear = LogisticRegression() if task == "classification" else Ridge()
    return as_model(linear.fit(leaky.records.X, leaky.records.y)), leaky.records


def tasks():
    return [(channel, task) for channel in CHANNELS for task in sorted(channel.tasks)]


@pytest.mark.parametrize(
    ("channel", "task"), tasks(), ids=lambda value: getattr(value, "name", value)
)
def test_the_shape_is_what_it_says(channel, task, world):
    model, records = subject(channel, task, world)
    seen = channel.observe(model, records)
    rows = 1 if channel.scope == "model" else len(records)
    assert seen.shape == (rows, channel.width(model))
    assert seen.dtype == np.float64


def test_says_what_it_is(channel):
    assert channel.name
    assert channel.paper
    assert channel.scope in {"record", "model"}
    assert channel.needs <= set(get_args(Ability))
    assert type(channel).__doc__.partition("\n")[0].endswith(".")


@pytest.mark.parametrize("channel", OF_ANY_MODEL, ids=lambda channel: channel.name)
@pytest.mark.parametrize("answer", [[1.0, 0.0], [0.0, 1.0], [1 - 1e-16, 1e-16], [0.5, 0.5]])
def test_certain_predictions_are_safe(channel, answer):
    model = as_model(lambda X: np.tile(answer, (len(X), 1)))
    records = Records(np.arange(6.0).reshape(3, 2), [0, 1, 1])
    assert np.isfinite(channel.observe(model, records)).all()


def test_the_records_and_the_model_are_left_alone(channel, world):
    task = sorted(channel.tasks)[0]
    model, records = subject(channel, task, world)
    before = records.X.copy()
    first = channel.observe(model, records)
    np.testing.assert_array_equal(before, records.X)
    np.testing.assert_array_equal(first, channel.observe(model, records))
