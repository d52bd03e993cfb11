from __future__ import annotations

import pytest
import torch

from leakscope.networks.slopes import sloped, summed, unseen_call

X = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
SLOPE = torch.tensor([5.0, 0.0, -1.0])


def test_the_value_and_the_slope_are_those_given():
    value = torch.tensor([7.0, 8.0, 9.0])
    result = sloped(X, value, SLOPE)
    assert torch.equal(result, value)
    (gradient,) = torch.autograd.grad(result, X, torch.tensor([1.0, 1.0, 2.0]))
    assert gradient.tolist() == [5.0, 0.0, -2.0]


def test_a_sum_passes_on_to_both():
    result = summed(torch.zeros(3), 2 * X, X)
    (gradient,) = torch.autograd.grad(result.sum(), X)
    assert gradient.tolist() == [3.0, 3.0, 3.0]


def test_results_can_be_worked_on_in_place():
    bent, both = sloped(X, torch.ones(3), SLOPE), summed(torch.ones(3), X, X)
    bent += X
    both += X
    assert torch.autograd.grad(bent.sum(), X)[0].tolist() == [6.0, 1.0, 0.0]
    assert torch.autograd.grad(both.sum(), X)[0].tolist() == [3.0, 3.0, 3.0]


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: 2 * torch.tanh(x) + 1, "Tanh"),
        (lambda x: x.softmax(0)[1:], "Softmax"),
        (lambda x: Twice.apply(x) + x, "Twice"),
        (lambda x: sloped(x, torch.ones(3), SLOPE) * 2 + x, None),
        (lambda x: summed(x.detach(), x, 2 * x), None),
        (lambda x: x.detach(), None),
    ],
)
def test_calls_that_were_left_in_a_graph(call, name):
    assert unseen_call(call(X)) == name
