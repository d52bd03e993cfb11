from __future__ import annotations

import numpy as np
import pytest

from leakscope.channels.outputs import Entropy, Label, Loss, Margin, ModifiedEntropy, Probabilities
from leakscope.models import as_model
from leakscope.records import Records

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])


@pytest.fixture
def model():
    return as_model(lambda X: P[: len(X)], classes=np.array(["a", "b", "c"]))


@pytest.fixture
def records():
    return Records(np.zeros((2, 1)), ["a", "b"])


def test_label_is_the_number_of_the_class(model, records):
    assert Label().observe(model, records).tolist() == [[0.0], [2.0]]


def test_label_of_a_regression_is_its_prediction(records):
    model = as_model(lambda X: np.array([1.5, -2.0]), task="regression")
    assert Label().observe(model, records).tolist() == [[1.5], [-2.0]]


def test_probabilities_are_passed_on(model, records):
    np.testing.assert_array_equal(Probabilities().observe(model, records), P)
    assert Probabilities().width(model) == 3


def test_probabilities_of_a_regression_have_no_width():
    assert Probabilities().width(as_model(lambda X: X, task="regression")) == 0


def test_loss_by_hand(model, records):
    expected = [[-np.log(0.7)], [-np.log(0.1)]]
    np.testing.assert_allclose(Loss().observe(model, records), expected, rtol=1e-14)


def test_margin_by_hand(model, records):
    expected = [[np.log(0.7 / 0.3)], [np.log(0.1 / 0.9)]]
    np.testing.assert_allclose(Margin().observe(model, records), expected, rtol=1e-14)


def test_entropy_by_hand(model, records):
    expected = [[-sum(p * np.log(p) for p in row)] for row in P]
    np.testing.assert_allclose(Entropy().observe(model, records), expected, rtol=1e-14)


def test_modified_entropy_by_hand(model, records):
    first = -0.3 * np.log(0.7) - 0.2 * np.log(0.8) - 0.1 * np.log(0.9)
    second = -0.9 * np.log(0.1) - 0.1 * np.log(0.9) - 0.8 * np.log(0.2)
    np.testing.assert_allclose(
        ModifiedEntropy().observe(model, records), [[first], [second]], rtol=1e-14
    )
