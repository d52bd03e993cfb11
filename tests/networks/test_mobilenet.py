from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from leakscope.errors import InputError
from leakscope.networks import MobileNetV2
from leakscope.networks.mobilenet import InvertedResidual


def count(module: nn.Module) -> int:
    return sum(part.numel() for part in module.parameters())


def test_the_published_numbers_of_parameters() -> None:
    with torch.device("meta"):
        assert count(MobileNetV2(1000, form="imagenet")) == 3_504_872
        # The forms differ in strides: what changes the number is the last layer alone.
        assert count(MobileNetV2(10)) == 3_504_872 - 990 * 1281 == 2_236_682


@pytest.mark.slow
def test_the_side_is_halved_as_in_the_table() -> None:
    with torch.device("meta"):
        large = MobileNetV2(1000, form="imagenet")
        assert large.features(torch.zeros(2, 3, 224, 224)).shape == (2, 1280, 7, 7)
        assert large(torch.zeros(2, 3, 224, 224)).shape == (2, 1000)
        small = MobileNetV2(10)
        assert small.features(torch.zeros(2, 3, 32, 32)).shape == (2, 1280, 4, 4)
        assert small(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_seventeen_blocks_of_which_ten_have_a_shortcut() -> None:
    with torch.device("meta"):
        module = MobileNetV2()
    blocks = [one for one in module.modules() if isinstance(one, InvertedResidual)]
    assert len(blocks) == 17
    assert sum(block.sum is not None for block in blocks) == 10


def test_a_shortcut_adds_what_came_in() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 4, 5, 5)
    with_shortcut = InvertedResidual(4, 4, 1, 6).eval()
    torch.testing.assert_close(with_shortcut(x), x + with_shortcut.layers(x))
    for other in (InvertedResidual(4, 6, 1, 6), InvertedResidual(4, 4, 2, 6)):
        torch.testing.assert_close(other.eval()(x), other.layers(x))


def test_another_form_is_refused() -> None:
    form: Any = 32
    with pytest.raises(InputError, match="The option form cannot be 32; choose from: cifar, image"):
        MobileNetV2(form=form)
