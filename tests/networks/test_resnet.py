from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from leakscope.errors import InputError
from leakscope.networks import ResNet18
from leakscope.networks.resnet import Block


def count(module: nn.Module) -> int:
    return sum(part.numel() for part in module.parameters())


def test_the_published_numbers_of_parameters() -> None:
    with torch.device("meta"):
        assert count(ResNet18(1000, form="imagenet")) == 11_689_512
        assert count(ResNet18(10)) == 11_173_962
        assert count(ResNet18(100)) == 11_173_962 + 90 * 513


def test_the_side_is_halved_as_in_the_table() -> None:
    with torch.device("meta"):
        large = ResNet18(1000, form="imagenet")
        assert large.features(torch.zeros(2, 3, 224, 224)).shape == (2, 512, 7, 7)
        assert large(torch.zeros(2, 3, 224, 224)).shape == (2, 1000)
        small = ResNet18(10, channels=1)
        assert small.features(torch.zeros(2, 1, 32, 32)).shape == (2, 512, 4, 4)
        assert small(torch.zeros(2, 1, 32, 32)).shape == (2, 10)


@pytest.mark.parametrize(("before", "after", "stride"), [(4, 4, 1), (4, 6, 1), (4, 8, 2)])
def test_a_block_is_its_formula(before: int, after: int, stride: int) -> None:
    torch.manual_seed(0)
    block = Block(before, after, stride).eval()
    x = torch.randn(2, before, 6, 6)
    state = {name: torch.randn_like(value) for name, value in block.named_parameters()}
    block.load_state_dict(state, strict=False)

    def normed(value: Tensor, name: str) -> Tensor:
        # Fresh averages are 0 and 1.
        scaled = value / (1 + 1e-5) ** 0.5
        return (
            scaled * state[f"{name}.weight"][:, None, None] + state[f"{name}.bias"][:, None, None]
        )

    inner = functional.conv2d(x, state["conv1.weight"], stride=stride, padding=1)
    inner = functional.conv2d(normed(inner, "norm1").relu(), state["conv2.weight"], padding=1)
    if (before, stride) == (after, 1):
        around = x
    else:
        around = functional.conv2d(x, state["shortcut.conv.weight"], stride=stride)
        around = normed(around, "shortcut.norm")
    expected = (normed(inner, "norm2") + around).relu()
    torch.testing.assert_close(block(x), expected, rtol=1e-4, atol=1e-4)


def test_another_form_is_refused() -> None:
    form: Any = "imagenette"
    with pytest.raises(InputError, match="The option form cannot be 'imagenette'; did you mean"):
        ResNet18(form=form)
