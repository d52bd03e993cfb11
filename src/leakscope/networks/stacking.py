"""Networks of the same plain layers as one stack of parameters.

What takes time in a small network are the calls, not the arithmetic. A stack makes one call for
the same layer of all its networks (``torch.baddbmm``), and one to update all their parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from leakscope.networks.mlp import MLP

# Of layers of these very classes alone it is known what they compute.
PLAIN = {nn.Linear: "linear", nn.Tanh: "tanh", nn.ReLU: "relu", nn.Dropout: "dropout"}


@dataclass(frozen=True)
class Layer:
    """A layer as a stack knows it: its kind, its path in the module, and its sizes or its rate."""

    kind: str
    path: str
    inputs: int = 0
    outputs: int = 0
    rate: float = 0.0


def layers_of(module: nn.Module) -> tuple[Layer, ...] | None:
    """The layers of a plain network in their order; None for any other.

    Plain are sequences of linear layers with biases, tanh, ReLU and dropout, each used once.
    """
    # An MLP is its sequence of layers; what it does besides, flattening, is done to all records.
    inner, path = (module.layers, "layers") if type(module) is MLP else (module, "")
    children = _in_order(inner, path)
    if children is None or any(_watched(layer) for layer in module.modules()):
        return None
    if len({id(child) for _, child in children}) < len(children):
        return None
    layers = [_layer(path, child) for path, child in children]
    if not all(layers) or not any(layer.kind == "linear" for layer in layers if layer):
        return None
    # A dropout of rate 0 draws nothing.
    return tuple(one for one in layers if one and (one.kind != "dropout" or one.rate > 0))


@dataclass(frozen=True)
class Masks:
    """The masks of dropout for one batch of each network, drawn as torch draws them for one alone.

    streams: each network's own, (m,); sizes: how many records its batch has, (m,). Drawing from
    one stream per network costs a fifth more than drawing all of them from one.
    """

    streams: Sequence[torch.Generator]
    sizes: Sequence[int]

    def drawn(self, rate: float, h: Tensor) -> Tensor:
        """A new mask for what is dropped out of h (a, b, d) at this rate."""
        mask = torch.zeros_like(h, requires_grad=False)
        for one, stream, size in zip(mask, self.streams, self.sizes, strict=False):
            one[:size].bernoulli_(1 - rate, generator=stream)
        return mask.div_(1 - rate)


class Stack:
    """The parameters of m networks of the same layers.

    weights and biases: of each linear layer (m, inputs, outputs) and (m, 1, outputs). Weights lie
    the other way round than in torch's layers, which is up to twice as fast in products of stacks.
    """

    def __init__(self, modules: Sequence[nn.Module], layers: Sequence[Layer]) -> None:
        self.layers = tuple(layers)
        linear = [
            [_linear(module, layer) for module in modules]
            for layer in layers
            if layer.kind == "linear"
        ]
        with torch.no_grad():
            self.weights = [torch.stack([one.weight.T for one in same]) for same in linear]
            self.biases = [torch.stack([one.bias[None] for one in same]) for same in linear]
        for one in self._all():
            one.requires_grad_()

    def parameters(self, part: slice) -> list[Tensor]:
        """The parameters of some of the networks: views, to be updated."""
        return [one.detach()[part] for one in self._all()]

    def take_gradients(self) -> list[Tensor]:
        """The gradients of all parameters, in the order of ``parameters``; they are then gone."""
        gradients = [one.grad for one in self._all() if one.grad is not None]
        for one in self._all():
            one.grad = None
        return gradients

    def forward(self, X: Tensor, masks: Masks | None = None) -> Tensor:
        """The outputs (a, b, k) of the first a networks for records X (a, b, d).

        masks: for dropout, in training; without it there is none.
        """
        a, number, h = len(X), 0, X
        for layer in self.layers:
            if layer.kind == "linear":
                h = torch.baddbmm(
                    _first(self.biases[number], a), h, _first(self.weights[number], a)
                )
                number += 1
            elif layer.kind == "tanh":
                h = torch.tanh(h)
            elif layer.kind == "relu":
                h = torch.relu(h)
            elif masks is not None:
                h = h * masks.drawn(layer.rate, h)
        return h

    @torch.no_grad()
    def write_back(self, number: int, module: nn.Module) -> None:
        """Give the parameters of one network to its module."""
        linear = [layer for layer in self.layers if layer.kind == "linear"]
        for layer, weights, biases in zip(linear, self.weights, self.biases, strict=True):
            target = _linear(module, layer)
            target.weight.copy_(weights[number].T)
            target.bias.copy_(biases[number, 0])

    def _all(self) -> list[Tensor]:
        return [*self.weights, *self.biases]


def _in_order(module: nn.Module, path: str) -> list[tuple[str, nn.Module]] | None:
    """The layers of sequences of sequences, with their paths; None where something else is done."""
    if type(module) in PLAIN:
        return [(path, module)]
    if type(module) is not nn.Sequential:
        return None
    found = []
    for name, child in module._modules.items():  # named_children leaves out what comes twice
        inner = _in_order(child, f"{path}.{name}" if path else name)
        if inner is None:
            return None
        found += inner
    return found


def _first(values: Tensor, a: int) -> Tensor:
    """The values of the first a networks; the gradient of a part costs a copy, so not of all."""
    return values if a == len(values) else values[:a]


def _linear(module: nn.Module, layer: Layer) -> nn.Linear:
    return cast(nn.Linear, module.get_submodule(layer.path))


def _layer(path: str, layer: nn.Module) -> Layer | None:
    kind = PLAIN[type(layer)]
    if isinstance(layer, nn.Linear):
        parts = dict(layer.named_parameters())
        if len(parts) < 2 or not all(one.requires_grad for one in parts.values()):
            return None
        return Layer(kind, path, layer.in_features, layer.out_features)
    rate = layer.p if isinstance(layer, nn.Dropout) else 0.0
    return Layer(kind, path, rate=rate) if rate < 1 else None  # at 1 torch draws nothing


def _watched(layer: nn.Module) -> bool:
    """Whether something of the user's is called when it is."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(getattr(layer, name) for name in hooks)
