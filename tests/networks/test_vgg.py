from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from leakscope.errors import InputError
from leakscope.networks import VGG16


def count(module: nn.Module) -> int:
    return sum(part.numel() for part in module.parameters())


def test_the_published_numbers_of_parameters() -> None:
    with torch.device("meta"):
        assert count(VGG16(1000, form="imagenet")) == 138_365_992
        assert count(VGG16(10)) == 14_728_266
        assert count(VGG16(100)) == 14_728_266 + 90 * 513


def test_both_forms_take_their_images() -> None:
    with torch.device("meta"):
        assert VGG16(1000, form="imagenet")(torch.zeros(2, 3, 224, 224)).shape == (2, 1000)
        module = VGG16(10)
        assert module.features(torch.zeros(2, 3, 32, 32)).shape == (2, 512, 1, 1)
        assert module(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_sixteen_layers_have_weights() -> None:
    with torch.device("meta"):
        module = VGG16(1000, form="imagenet")
    layers = [one for one in module.modules() if isinstance(one, nn.Conv2d | nn.Linear)]
    assert len(layers) == 16


def test_another_form_is_refused() -> None:
    form: Any = "mnist"
    with pytest.raises(InputError, match="The option form cannot be 'mnist'; choose from: cifar"):
        VGG16(form=form)
