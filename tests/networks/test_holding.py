from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from leakscope.networks import network
from leakscope.networks.holding import put_together, take_apart


class Tied(nn.Module):
    """Weights that are used twice, and tensors of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.first.bias.requires_grad_(False)
        self.register_buffer("average", torch.tensor(2.0))
        self.register_buffer("none", None)
        self.plain = torch.arange(6).reshape(2, 3).T
        self.half = torch.tensor([1.5, -2.25], dtype=torch.bfloat16)

    def forward(self, x: Tensor) -> Any:
        return (
            self.second(self.first(x)) * self.average + self.plain.sum() + self.half.float().sum()
        )


def again(module: nn.Module) -> nn.Module:
    """The module after it was written and read."""
    structure, arrays = take_apart(module)
    return put_together(pickle.loads(pickle.dumps(structure)), [array.copy() for array in arrays])


def test_a_module_comes_back_as_it_was() -> None:
    torch.manual_seed(0)
    module, X = Tied(), torch.randn(4, 3)
    back = again(module)
    assert isinstance(back, Tied)
    assert torch.equal(back(X), module(X))
    assert back.second.weight is back.first.weight
    assert isinstance(back.first.weight, nn.Parameter)
    assert [part.requires_grad for part in back.parameters()] == [True, False, True]
    assert [name for name, _ in back.named_parameters()] == [
        name for name, _ in module.named_parameters()
    ]
    for name in ("average", "plain", "half"):
        one, other = getattr(back, name), getattr(module, name)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert torch.equal(one, other)
    assert back.none is None


@pytest.mark.parametrize("name", ["lenet5", "resnet18", "mobilenet-v2"])
def test_networks_come_back_with_their_averages(name: str) -> None:
    torch.manual_seed(0)
    shape = (1, 28, 28) if name == "lenet5" else (3, 32, 32)
    module, X = network(name, shape, 3), torch.randn(4, *shape)
    module(X)  # moves the averages of batch normalization
    module.eval()
    back = again(module)
    assert torch.equal(back(X), module(X))
    assert not back.training
    assert back.state_dict().keys() == module.state_dict().keys()


def test_recurrent_layers_come_back() -> None:
    torch.manual_seed(0)
    module, X = nn.LSTM(3, 4), torch.randn(2, 5, 3)
    back = again(module)
    assert torch.equal(back(X)[0], module(X)[0])
    with torch.no_grad():
        back.weight_ih_l0.zero_()  # type: ignore[union-attr, operator]
    assert not torch.equal(back(X)[0], module(X)[0])


def test_the_layout_of_images_is_kept() -> None:
    module = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    back = again(module)
    assert isinstance(back, nn.Conv2d)
    assert back.weight.stride() == module.weight.stride() != (27, 9, 3, 1)
    assert torch.equal(back.weight, module.weight)


def test_arrays_are_the_memory_of_the_tensors() -> None:
    module = nn.Linear(3, 2)
    structure, arrays = take_apart(module)
    assert [array.nbytes for array in arrays] == [24, 8]
    with torch.no_grad():
        module.weight.fill_(7)
    assert arrays[0].view(np.float32).tolist() == [7] * 6
    assert len(pickle.dumps(structure)) < 2_000
    assert isinstance(module.weight, nn.Parameter)  # the module itself is whole


def test_a_part_of_a_larger_tensor_is_written_alone() -> None:
    module = nn.Module()
    module.register_buffer("part", torch.arange(12.0).reshape(3, 4)[:, 1:3])
    module.register_buffer("rest", torch.arange(12.0)[8:])
    _, arrays = take_apart(module)
    assert arrays[0].view(np.float32).tolist() == [1, 2, 5, 6, 9, 10]
    assert arrays[1].view(np.float32).tolist() == [8, 9, 10, 11]
    back = again(module)
    assert torch.equal(back.part, module.part)  # type: ignore[arg-type]


def test_arrays_that_cannot_be_used_as_they_are_are_copied() -> None:
    module = nn.Linear(3, 2)
    structure, arrays = take_apart(module)
    raw = np.zeros(arrays[0].nbytes + 1, np.uint8)
    unaligned = raw[1:] if raw.ctypes.data % 4 == 0 else raw[:-1]
    unaligned[:] = arrays[0]
    locked = arrays[1].copy()
    locked.flags.writeable = False
    back = put_together(structure, [unaligned, locked])
    assert isinstance(back, nn.Linear)
    assert torch.equal(back.weight, module.weight)
    assert torch.equal(back.bias, module.bias)
    with torch.no_grad():
        back.bias.zero_()
    assert locked.any()


def test_a_copy_of_the_structure_needs_no_tensors() -> None:
    structure, arrays = take_apart(nn.Linear(3, 2))
    other = put_together(copy.deepcopy(structure), arrays)
    assert isinstance(other, nn.Linear)
    assert other.weight.data_ptr() == arrays[0].ctypes.data
