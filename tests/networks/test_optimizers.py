from __future__ import annotations

import pytest
import torch

from leakscope.errors import InputError
from leakscope.networks.optimizers import Updates

GRADIENTS = [
    torch.tensor([1.0, -2.0, 0.5]),
    torch.tensor([0.5, 1.0, 0.0]),
    torch.tensor([-1, 2, 1]),
]
START = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64)


def by_hand(updates: Updates) -> torch.Tensor:
    """The textbook's formulas, one number at a time."""
    weights = START.tolist()
    for place in range(3):
        first = second = 0.0
        for step, gradients in enumerate(GRADIENTS):
            rate = updates.lr / (1 + updates.decay * step)
            g = float(gradients[place]) + updates.weight_decay * weights[place]
            if updates.name == "adam":
                first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
                mean, square = first / (1 - 0.9 ** (step + 1)), second / (1 - 0.999 ** (step + 1))
                weights[place] -= rate * mean / (square**0.5 + 1e-8)
            elif updates.name == "sgd":
                first = updates.momentum * first + g
                weights[place] -= rate * first
            else:
                second += g * g
                weights[place] -= rate * g / (second**0.5 + 1e-10)
    return torch.tensor(weights, dtype=torch.float64)


@pytest.mark.parametrize(
    "updates",
    [
        Updates("adam", 0.01),
        Updates("adam", 0.01, weight_decay=0.1, decay=0.5),
        Updates("sgd", 0.1, momentum=0.9, weight_decay=0.01, decay=1.0),
        Updates("sgd", 0.1),
        Updates("adagrad", 0.01, decay=1e-2, weight_decay=0.1),
    ],
    ids=str,
)
def test_three_steps_by_hand(updates: Updates) -> None:
    weights = START.clone().requires_grad_()
    optimizer = updates.optimizer([{"params": [weights]}])
    for step, gradients in enumerate(GRADIENTS):
        updates.set_rate(optimizer.param_groups[0], step)
        weights.grad = gradients.double()
        optimizer.step()
    torch.testing.assert_close(weights.detach(), by_hand(updates), rtol=1e-9, atol=1e-12)


def test_what_has_no_fused_form_elsewhere_is_not_asked_for_it() -> None:
    weights = torch.zeros(2, device="meta", requires_grad=True)
    optimizer = Updates("adagrad").optimizer([{"params": [weights]}])
    assert optimizer.param_groups[0]["fused"] is False


@pytest.mark.parametrize(
    ("updates", "sentence"),
    [
        (Updates("adamw"), "optimizer cannot be 'adamw'; did you mean 'adam'?"),
        (Updates(lr=0.0), "lr must be a finite number above 0, got 0.0"),
        (Updates(weight_decay=-1.0), "weight_decay must be a finite number of at least 0"),
        (Updates(decay=-1.0), "decay must be a finite number of at least 0"),
        (Updates("adam", momentum=0.9), "'adam' takes no momentum, got 0.9; leave it out"),
    ],
)
def test_options_that_make_no_sense_are_refused(updates: Updates, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence.replace("?", r"\?")):
        updates.optimizer([{"params": [torch.zeros(1, requires_grad=True)]}])
