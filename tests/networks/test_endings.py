from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from leakscope.networks.endings import as_probabilities, kind_of_outputs, with_gradients

X = torch.tensor([[0.3, 2.0, -1.0], [0.1, 0.4, 2.2], [1.0, 1.0, 5.0]])

ENDINGS: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "logits": (lambda z: z * 1.0, "logits"),
    "softmax": (lambda z: z.softmax(1), "probabilities"),
    "layer": (nn.Softmax(1), "probabilities"),
    "log-softmax": (nn.LogSoftmax(1), "log-probabilities"),
    "sigmoid": (lambda z: z[:, :1].sigmoid(), "probabilities"),
    "sigmoid, squeezed": (lambda z: z[:, :1].sigmoid().squeeze(), "probabilities"),
    "sigmoid, squeezed in one place": (lambda z: z[:, :1].sigmoid().squeeze(1), "probabilities"),
    "sigmoid, flat": (lambda z: z[:, :1].sigmoid().view(-1), "probabilities"),
    "sigmoid, in bounds": (lambda z: z[:, 0].sigmoid().clamp(1e-6, 1 - 1e-6), "probabilities"),
    "log-sigmoid": (lambda z: functional.logsigmoid(z[:, 0]), "log-probabilities"),
    "second of a softmax": (lambda z: z.softmax(1)[:, 1], "probabilities"),
    "in double precision": (lambda z: z.softmax(1).double().clone(), "probabilities"),
    "one logit": (lambda z: z[:, 0] * 2, "logits"),
    "logits in bounds": (lambda z: (z * 2).clamp(-9, 9), "logits"),
    "two columns of a sigmoid": (
        lambda z: torch.stack([1 - z[:, 0].sigmoid(), z[:, 0].sigmoid()], 1),
        "probabilities",
    ),
    "log of a softmax": (lambda z: z.softmax(1).log(), "logits"),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_the_last_operation_tells(case: str) -> None:
    end, kind = ENDINGS[case]
    assert kind_of_outputs(end(with_gradients(X.clone()))) == kind


@pytest.mark.parametrize("case", ["softmax", "log-softmax", "log of a softmax", "logits"])
def test_whatever_the_ending_the_probabilities_are_those_of_the_logits(case: str) -> None:
    end, _ = ENDINGS[case]
    answer = end(with_gradients(X.double()))
    given = as_probabilities(answer.detach().numpy(), kind_of_outputs(answer))
    np.testing.assert_allclose(given, X.double().softmax(1).numpy(), rtol=1e-12)


def test_without_a_graph_the_numbers_tell_where_they_can() -> None:
    assert kind_of_outputs(X.softmax(1)) == "probabilities"
    assert kind_of_outputs(X) == "logits"
    assert kind_of_outputs(X[:0]) == "logits"
    assert kind_of_outputs(torch.tensor([[1.5, -0.5]])) == "logits"  # they sum to 1
    assert kind_of_outputs(X[:, 0]) is None
    assert kind_of_outputs(X[:, :1]) is None


def test_one_output_is_of_the_second_class() -> None:
    for logits in (np.array([0.0, np.log(3)]), np.array([[0.0], [np.log(3)]])):
        np.testing.assert_allclose(as_probabilities(logits, "logits").ravel(), [0.5, 0.75])


def test_a_class_that_is_ruled_out_has_probability_0() -> None:
    ruled_out = np.array([[0.0, -np.inf], [0.0, np.log(3)]])
    expected = [[1, 0], [0.25, 0.75]]
    np.testing.assert_allclose(as_probabilities(ruled_out, "logits"), expected)
    log = np.array([[0.0, -np.inf], [np.log(0.25), np.log(0.75)]])
    np.testing.assert_allclose(as_probabilities(log, "log-probabilities"), expected)
    assert np.isnan(as_probabilities(np.array([[np.inf, 0.0]]), "logits")).any()


def test_a_graph_is_kept_of_frozen_weights_and_of_work_in_place() -> None:
    frozen = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 2).requires_grad_(False))
    given = X.clone()
    answer = frozen(with_gradients(given))
    assert kind_of_outputs(answer) == "logits"
    assert answer.grad_fn is not None
    assert torch.equal(given, X)
