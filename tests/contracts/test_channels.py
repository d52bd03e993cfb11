"""What every registered channel must hold to."""

from __future__ import annotations

import numpy as np
import pytest

from leakscope.models import as_model
from leakscope.records import Records
from leakscope.registry import entries

CHANNELS = [entry.thing() for entry in entries("channel")]


@pytest.fixture(params=CHANNELS, ids=lambda channel: channel.name)
def channel(request):
    return request.param


def tasks():
    return [(channel, task) for channel in CHANNELS for task in sorted(channel.tasks)]


@pytest.mark.parametrize(
    ("channel", "task"), tasks(), ids=lambda value: getattr(value, "name", value)
)
def test_the_shape_is_what_it_says(channel, task, world):
    leaky = world("leaky", task)
    seen = channel.observe(leaky.model, leaky.records)
    assert seen.shape == (len(leaky.records), channel.width(leaky.model))
    assert seen.dtype == np.float64


def test_says_what_it_is(channel):
    assert channel.name
    assert channel.paper
    assert channel.scope in {"record", "model"}
    assert channel.needs <= {"labels", "probabilities", "loss", "queries"}
    assert type(channel).__doc__.partition("\n")[0].endswith(".")


@pytest.mark.parametrize("answer", [[1.0, 0.0], [0.0, 1.0], [1 - 1e-16, 1e-16], [0.5, 0.5]])
def test_certain_predictions_are_safe(channel, answer):
    model = as_model(lambda X: np.tile(answer, (len(X), 1)))
    records = Records(np.arange(6.0).reshape(3, 2), [0, 1, 1])
    assert np.isfinite(channel.observe(model, records)).all()


def test_the_records_and_the_model_are_left_alone(channel, world):
    task = sorted(channel.tasks)[0]
    leaky = world("leaky", task)
    before = leaky.records.X.copy()
    first = channel.observe(leaky.model, leaky.records)
    np.testing.assert_array_equal(before, leaky.records.X)
    np.testing.assert_array_equal(first, channel.observe(leaky.model, leaky.records))
