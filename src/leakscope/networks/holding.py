"""A module as its structure and its arrays, which are written and read without torch's own format.

A tensor pickled by torch is a file in the file, whose bytes depend on more than its numbers. Here
the numbers of every parameter and buffer are a plain array, the very memory of the tensor, and the
module around them holds only where each belongs.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Numbers = NDArray[Any]


@dataclass(frozen=True)
class Held:
    """In place of a tensor: which array it is, and how its numbers lie there."""

    place: int
    dtype: str
    size: tuple[int, ...]
    stride: tuple[int, ...]
    is_parameter: bool
    requires_grad: bool


def take_apart(module: nn.Module) -> tuple[nn.Module, list[Numbers]]:
    """The structure of a module, with a Held for each tensor, and the arrays they stand for.

    Arrays share the memory of tensors that are on the CPU. The structure cannot be called.
    """
    memo: dict[int, Any] = {}
    arrays: list[Numbers] = []
    for _, _, tensor in _held_by(module, Tensor):
        if id(tensor) not in memo:
            memo[id(tensor)], array = _apart(tensor, len(arrays))
            arrays.append(array)
    return copy.deepcopy(module, memo), arrays


def put_together(structure: nn.Module, arrays: list[Numbers]) -> nn.Module:
    """The module again, on the CPU, its tensors made of the arrays; tied ones are one again."""
    made: dict[int, Tensor] = {}
    for layer, name, held in list(_held_by(structure, Held)):
        if held.place not in made:
            made[held.place] = _together(held, arrays[held.place])
        setattr(layer, name, made[held.place])  # recurrent layers keep a list besides
    return structure


def _held_by(module: nn.Module, kind: type[Any]) -> Iterator[tuple[nn.Module, str, Any]]:
    """The parameters, buffers and plain attributes of this kind: layer, name and value."""
    for layer in module.modules():
        own = vars(layer)
        for names in (own["_parameters"], own["_buffers"], own):
            for name, value in names.items():
                if isinstance(value, kind):
                    yield layer, name, value


def _apart(tensor: Tensor, place: int) -> tuple[Held, Numbers]:
    values = tensor.detach().cpu()
    if not (values.is_contiguous() or values.is_contiguous(memory_format=torch.channels_last)):
        values = values.contiguous()
    held = Held(
        place,
        str(values.dtype).removeprefix("torch."),
        tuple(values.shape),
        values.stride(),
        isinstance(tensor, nn.Parameter),
        tensor.requires_grad,
    )
    flat = values.as_strided((values.numel(),), (1,))
    # As bytes: numpy has no name for some of torch's types, such as bfloat16.
    return held, flat.view(torch.uint8).numpy()


def _together(held: Held, array: Numbers) -> Tensor:
    dtype: torch.dtype = getattr(torch, held.dtype)
    # A copy where the memory may not be written to, or does not lie where its type wants it.
    usable = array.flags.writeable and array.ctypes.data % dtype.itemsize == 0
    flat = torch.from_numpy(array if usable else np.array(array)).view(dtype)
    tensor = flat.as_strided(held.size, held.stride)
    if held.is_parameter:
        return nn.Parameter(tensor, requires_grad=held.requires_grad)
    return tensor.requires_grad_(held.requires_grad)
