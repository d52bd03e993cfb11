from __future__ import annotations

import pytest
import torch
from torch import nn

from leakscope.errors import InputError
from leakscope.networks.blocks import activation_module, draw_for_relu, draw_normal, form_of


def test_an_activation_is_a_new_module_each_time() -> None:
    first, second = activation_module("tanh"), activation_module("tanh")
    assert isinstance(first, nn.Tanh)
    assert first is not second
    assert isinstance(activation_module("relu"), nn.ReLU)
    with pytest.raises(InputError, match="The option activation cannot be 'rellu'; did you mean"):
        activation_module("rellu")


def test_the_form_follows_the_smaller_side() -> None:
    assert form_of("net", 32, 224) == "cifar"
    assert form_of("net", 111, 111) == "cifar"
    assert form_of("net", 112, 112) == "imagenet"
    with pytest.raises(InputError, match="'net' takes images of at least 32 × 32 pixels, got 31"):
        form_of("net", 31, 64)


def layers() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 80, 5), nn.Conv2d(3, 80, 5, bias=False), nn.BatchNorm2d(3), nn.Linear(90, 70)
    )


def test_normal_weights_and_no_biases() -> None:
    torch.manual_seed(0)
    module = layers()
    draw_normal(module, 0.03)
    for layer in (module[0], module[1], module[3]):
        assert isinstance(layer, nn.Conv2d | nn.Linear)
        # 6,000 draws: the deviation of their deviation is 0.9 %.
        assert float(layer.weight.detach().std()) == pytest.approx(0.03, rel=0.06)
        assert abs(float(layer.weight.detach().mean())) < 6 * 0.03 / 6000**0.5
        assert layer.bias is None or not layer.bias.detach().any()
    norm = module[2]
    assert isinstance(norm, nn.BatchNorm2d)
    assert bool((norm.weight == 1).all())


def test_weights_for_relu_keep_the_size_of_gradients() -> None:
    torch.manual_seed(0)
    module = layers()
    linear = module[3].weight
    assert isinstance(linear, torch.Tensor)
    before = linear.detach().clone()
    draw_for_relu(module)
    for conv in (module[0], module[1]):
        assert isinstance(conv, nn.Conv2d)
        fan_out = 80 * 5 * 5
        assert float(conv.weight.detach().std()) == pytest.approx((2 / fan_out) ** 0.5, rel=0.06)
        assert conv.bias is None or not conv.bias.detach().any()
    assert torch.equal(linear, before)
