from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.signal import correlate2d
from torch import nn

from leakscope.errors import InputError
from leakscope.networks import LeNet5, network


def weights(module: nn.Module) -> int:
    """Of convolutions and linear layers, biases beside."""
    layers = (one for one in module.modules() if isinstance(one, nn.Conv2d | nn.Linear))
    return sum(layer.weight.numel() for layer in layers)


def count(module: nn.Module) -> int:
    return sum(part.numel() for part in module.parameters())


def test_the_published_number_of_weights() -> None:
    classic = LeNet5()
    assert weights(classic) == 61_470
    assert count(classic) == 61_470 + 236
    assert weights(LeNet5(size=32)) == 61_470
    assert count(LeNet5(channels=3, size=32)) == 62_006
    assert count(LeNet5(classes=100, channels=3, size=32)) == 62_006 + 90 * 85


def convolved(conv: nn.Conv2d, image: NDArray[Any]) -> NDArray[Any]:
    """A convolution by its definition, one map at a time."""
    frame = int(conv.padding[0])
    framed = np.pad(image, ((0, 0), (frame, frame), (frame, frame)))
    kernels = conv.weight.detach().numpy()
    assert conv.bias is not None
    return np.stack(
        [
            sum(
                correlate2d(layer, kernel, "valid")
                for layer, kernel in zip(framed, one, strict=True)
            )
            + bias
            for one, bias in zip(kernels, conv.bias.detach().numpy(), strict=True)
        ]
    )


def pooled(maps: NDArray[Any]) -> NDArray[Any]:
    depth, height, width = maps.shape
    blocks = maps.reshape(depth, height // 2, 2, width // 2, 2)
    return np.asarray(blocks.max(axis=(2, 4)))


@pytest.mark.parametrize(("channels", "size"), [(1, 28), (3, 32)])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_logits_are_those_of_a_forward_by_hand(
    channels: int, size: int, activation: Any
) -> None:
    torch.manual_seed(0)
    bend = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh}[activation]
    module = LeNet5(7, channels, size, activation).double()
    image = np.random.default_rng(0).normal(size=(channels, size, size))
    layers = dict(module.named_modules())
    hidden = image
    for name in ("features.conv1", "features.conv2"):
        conv = layers[name]
        assert isinstance(conv, nn.Conv2d)
        hidden = pooled(bend(convolved(conv, hidden)))
    vector = hidden.ravel()
    for name in ("linear1", "linear2", "linear3"):
        linear = layers[f"classifier.{name}"]
        assert isinstance(linear, nn.Linear)
        vector = linear.weight.detach().numpy() @ vector + linear.bias.detach().numpy()
        vector = vector if name == "linear3" else bend(vector)
    with torch.no_grad():
        logits = module(torch.tensor(image)[None]).numpy()
    np.testing.assert_allclose(logits[0], vector, rtol=1e-10)


def test_other_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="LeNet-5 takes images of 28 or 32 pixels a side, got 64"):
        LeNet5(size=64)
    with pytest.raises(InputError, match="LeNet-5 takes square images, got 28 × 32"):
        network("lenet5", (1, 28, 32), 10)
