from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from leakscope.errors import InputError
from leakscope.networks import MLP

FUNCTIONS = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("widths", [(5, 2), (5, 7, 3), (5, 4, 6, 1)])
def test_the_logits_are_those_of_a_forward_by_hand(activation: Any, widths: Any) -> None:
    torch.manual_seed(1)
    module = MLP(widths, activation, dropout=0.5).double().eval()
    X = np.random.default_rng(0).normal(size=(8, 5))
    hidden = X
    for place, linear in enumerate(module.linears):
        if place:
            hidden = FUNCTIONS[activation](hidden)
        hidden = hidden @ linear.weight.detach().numpy().T + linear.bias.detach().numpy()
    with torch.no_grad():
        logits = module(torch.tensor(X)).numpy()
    np.testing.assert_allclose(logits, hidden, rtol=1e-12)


def test_the_layers_are_in_order_and_have_names() -> None:
    module = MLP([4, 3, 3, 2], "relu", dropout=0.25)
    assert [name for name, _ in module.layers.named_children()] == [
        "linear1", "relu1", "dropout1", "linear2", "relu2", "dropout2", "linear3",
    ]  # fmt: skip
    assert [layer.out_features for layer in module.linears] == [3, 3, 2]
    assert (module.widths, module.activation, module.dropout) == ((4, 3, 3, 2), "relu", 0.25)
    assert not any(isinstance(layer, nn.Dropout) for layer in MLP([4, 3, 2]).modules())


def test_dropout_drops_its_share_in_training_alone() -> None:
    torch.manual_seed(0)
    module = MLP([1, 10_000, 1], dropout=0.3)
    dropped = []
    module.layers.dropout1.register_forward_hook(
        lambda layer, given, out: dropped.append(float((out == 0).double().mean()))
    )
    module(torch.ones(1, 1))
    module.eval()(torch.ones(1, 1))
    # 10,000 draws of 0.3: six standard errors are 0.027.
    assert dropped[0] == pytest.approx(0.3, abs=0.027)
    assert dropped[1] == 0


def test_images_are_flattened() -> None:
    module = MLP([12, 2])
    X = torch.randn(3, 3, 2, 2)
    assert torch.equal(module(X), module(X.reshape(3, 12)))


def test_what_cannot_be_built_is_one_sentence() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"widths": [4]}, r"The option widths is \[4\]; give the number of inputs"),
        ({"widths": [4, 0, 2]}, "The option widths must be a whole number of at least 1, got 0"),
        ({"widths": [4, 2], "activation": "sigmoid"}, "option activation cannot be 'sigmoid'"),
        ({"widths": [4, 2], "dropout": 1}, "The option dropout must be below 1, got 1"),
        ({"widths": [4, 2], "dropout": -0.1}, "option dropout must be a finite number of at least"),
    ]
    for options, sentence in wrong:
        with pytest.raises(InputError, match=sentence):
            MLP(**options)
