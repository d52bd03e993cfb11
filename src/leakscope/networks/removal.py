"""Networks without the units and channels that pruning has left empty, with the same outputs."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import torch
from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.networks.cnn import CNN4
from leakscope.networks.lenet import LeNet5
from leakscope.networks.mlp import MLP
from leakscope.networks.tracing import evaluating
from leakscope.networks.vgg import VGG16

# Of these layers empty units are removed, if what is between them works on each number or each
# channel by itself and keeps a constant a constant.
Weighted: TypeAlias = nn.Linear | nn.Conv2d
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
BY_NUMBER = (nn.ReLU, nn.LeakyReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.Dropout, nn.Identity)
BY_CHANNEL = (nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.Flatten)
# Networks that flatten what their last part is given.
FLATTENED = (LeNet5, CNN4, VGG16)


@torch.no_grad()
def removed_channels(module: nn.Module) -> nn.Module:
    """A copy of a network without the units and channels that have become empty.

    Empty are those on which nothing depends, because all weights that lead on from them are zero,
    and those that are always the same, because all that lead to them are: what these add to the
    next layer goes into its biases. One stays in each layer. The network must be a stack: a
    Sequential of layers, or an MLP, LeNet5, CNN4 or VGG16. In evaluation mode the copy gives the
    same outputs but for rounding.
    """
    slim = copy.deepcopy(module)
    steps = _steps(slim)
    places = [place for place, step in enumerate(steps) if isinstance(step, Weighted)]
    parts = [steps[start : stop + 1] for start, stop in pairwise(places)]
    parts = [part for part in parts if _is_plain(part)]
    with evaluating(slim):
        # What is gone from one layer may leave the one before it without a use.
        while any(_shrunk(part) for part in parts):
            pass
    return slim


def _steps(module: nn.Module) -> list[nn.Module]:
    """The layers of a stack in the order in which they are used."""
    children = [*module._modules.values()]  # named_children leaves out what comes twice
    if not children:
        return [module]
    if type(module) not in (nn.Sequential, MLP, *FLATTENED) or _is_tied(module):
        raise InputError(
            f"A {type(module).__name__} is no stack of layers, each used once, of which empty "
            "channels could be removed; give a Sequential, an MLP, LeNet5, CNN4 or VGG16"
        )
    steps = [_steps(child) for child in children if child is not None]
    if type(module) in FLATTENED:
        steps.insert(-1, [nn.Flatten()])  # which they do by the tensor's own method
    return [step for several in steps for step in several]


def _is_tied(module: nn.Module) -> bool:
    """Whether a layer with parameters, or a parameter, is used twice."""
    parameters = [id(one) for _, one in module.named_parameters(remove_duplicate=False)]
    return len(set(parameters)) < len(parameters)


def _is_plain(part: Sequence[nn.Module]) -> bool:
    """Whether from a layer to the next each channel stays by itself, and can be taken away."""
    before, *inner, after = part
    for layer in (before, after):
        if isinstance(layer, nn.Conv2d) and layer.groups > 1:
            return False
    for step in inner:
        averaged = isinstance(step, nn.AvgPool2d) and step.padding != 0
        normed = isinstance(step, NORMS) and step.running_mean is None
        if averaged or normed or not isinstance(step, (*BY_NUMBER, *NORMS, *BY_CHANNEL)):
            return False
    if isinstance(before, nn.Linear):
        return isinstance(after, nn.Linear) and before.out_features == after.in_features
    flat = any(isinstance(step, nn.Flatten) and step.start_dim == 1 for step in inner)
    return flat == isinstance(after, nn.Linear)


def _shrunk(part: Sequence[nn.Module]) -> bool:
    """Take away the empty units of a layer, up to the next one; whether there were any."""
    before, *inner, after = part
    assert isinstance(before, Weighted)
    assert isinstance(after, Weighted)
    leading = after.weight.reshape(len(after.weight), len(before.weight), -1)
    values = _constants(before, inner)
    # A frame of zeros around an image is not the constant.
    framed = isinstance(after, nn.Conv2d) and after.padding not in ((0, 0), "valid")
    foldable = (values == 0) | (after.bias is not None and not framed)
    gone = ~leading.any(dim=2).any(dim=0) | (values.isfinite() & foldable)
    gone[0] &= ~gone.all()
    if not gone.any():
        return False
    if after.bias is not None:
        after.bias += leading.sum(dim=2)[:, gone] @ values[gone].nan_to_num()
    for layer in (before, *(step for step in inner if isinstance(step, NORMS))):
        for name, tensor in [*layer.named_parameters(), *layer.named_buffers()]:
            if tensor.ndim:  # all but the number of batches
                _replace(layer, name, tensor[~gone])
    _replace(after, "weight", leading[:, ~gone].reshape(len(leading), -1, *after.weight.shape[2:]))
    _note_sizes(before, *inner, after)
    return True


def _constants(layer: Weighted, inner: Sequence[nn.Module]) -> Tensor:
    """What each unit of a layer always gives to the next one, (units,); NaN where that varies."""
    bias = layer.weight.new_zeros(len(layer.weight)) if layer.bias is None else layer.bias
    values = bias.reshape(1, -1, 1, 1) if isinstance(layer, nn.Conv2d) else bias[None]
    for step in inner:
        if isinstance(step, (*BY_NUMBER, *NORMS)):
            values = step(values)
    varies = layer.weight.flatten(1).any(dim=1)
    return values.flatten().masked_fill(varies, math.nan)


def _replace(layer: nn.Module, name: str, tensor: Tensor) -> None:
    """Put another parameter or buffer in the place of one."""
    if name in layer._parameters:
        trained = layer.get_parameter(name).requires_grad
        setattr(layer, name, nn.Parameter(tensor.clone(), trained))
    else:
        setattr(layer, name, tensor.clone())


def _note_sizes(*layers: nn.Module) -> None:
    """Let layers say what sizes their weights now have."""
    for layer in layers:
        if isinstance(layer, nn.Linear):
            layer.out_features, layer.in_features = layer.weight.shape
        elif isinstance(layer, nn.Conv2d):
            layer.out_channels, layer.in_channels = layer.weight.shape[:2]
        elif isinstance(layer, NORMS):
            assert layer.running_mean is not None  # others are not plain
            layer.num_features = len(layer.running_mean)
