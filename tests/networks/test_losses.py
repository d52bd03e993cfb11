from __future__ import annotations

import math

import pytest
import torch

from leakscope.errors import InputError
from leakscope.networks.losses import (
    accurate,
    cross_entropy,
    loss_function,
    squared_error,
    stacked_loss,
)


def test_golden_values() -> None:
    logits, y = torch.tensor([[0.0, math.log(3)], [1.0, 1.0]]), torch.tensor([1, 0])
    expected = (math.log(4 / 3) + math.log(2)) / 2
    assert cross_entropy(logits, y).item() == pytest.approx(expected, rel=1e-6)
    numbers = torch.tensor([[1.0], [4.0]])
    assert squared_error(numbers, torch.tensor([0.0, 2.0])).item() == pytest.approx(2.5)


@pytest.mark.parametrize("shape", [(6,), (6, 1)])
def test_one_logit_is_that_of_two_with_a_zero_beside(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    one = torch.randn(6, generator=generator, dtype=torch.float64)
    y = torch.tensor([0, 1, 1, 0, 1, 0])
    two = torch.stack([torch.zeros_like(one), one], dim=1)
    assert cross_entropy(one.reshape(shape), y).item() == pytest.approx(
        cross_entropy(two, y).item(), rel=1e-12
    )
    assert torch.equal(accurate(one.reshape(shape), y), accurate(two, y))


def test_a_loss_by_name_or_as_it_is() -> None:
    assert loss_function("squared_error") is squared_error
    assert loss_function(accurate) is accurate
    with pytest.raises(InputError, match="loss cannot be 'crossentropy'; did you mean 'cross_ent"):
        loss_function("crossentropy")


CASES = {
    "cross_entropy": (3, torch.tensor([[0, 2, 1, 1], [2, 2, 0, 1]])),
    "binary": (1, torch.tensor([[0, 1, 1, 0], [1, 1, 0, 1]])),
    "squared_error": (1, torch.tensor([[0.5, 1.0, -1.0, 2.0], [1.0, 0.0, 3.0, 0.25]]).double()),
}


@pytest.mark.parametrize("name", CASES)
def test_the_loss_of_a_stack_is_that_of_each_network(name: str) -> None:
    width, y = CASES[name]
    loss = "cross_entropy" if name == "binary" else name
    generator = torch.Generator().manual_seed(1)
    outputs = torch.randn(2, 4, width, generator=generator, dtype=torch.float64) * 3
    sizes = [4, 3]  # the second network has a record less in its batch
    shares = torch.tensor([[1 / 4] * 4, [1 / 3] * 3 + [0.0]], dtype=torch.float64)
    losses = stacked_loss(loss, outputs, y, shares)
    for number, size in enumerate(sizes):
        alone = loss_function(loss)(outputs[number, :size], y[number, :size])
        assert losses[number].item() == pytest.approx(alone.item(), rel=1e-12)
