"""The network that infers membership (Shokri, Strobel & Zick 2021, section 4.2 and Figure 11)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.networks.blocks import draw_normal
from leakscope.options import one_of, whole_number

# What the adversary may see of a record, and the layers of the sub-network that reads it: the label
# that is predicted and the true one (n, k), one-hot; the probability of each class (n, k); an
# explanation (n, d).
PARTS = {
    "predicted": (512, 64),
    "truth": (512, 64),
    "probabilities": (1024, 512, 64),
    "explanation": (1024, 512, 64),
}
JOINED = 64


class AttackNetwork(nn.Module):
    """A sub-network for each thing the adversary sees, joined to one logit of membership.

    inputs: how many numbers each part has, ``{"predicted": 10, "explanation": 446}``; the names are
    those of PARTS, and the order of the dictionary does not matter. ReLU between the layers,
    weights from N(0, 0.01²), biases of 0.
    """

    def __init__(self, inputs: Mapping[str, int]) -> None:
        super().__init__()
        if not inputs:
            raise InputError(f"The attack network sees nothing; give some of {', '.join(PARTS)}")
        for name, size in inputs.items():
            one_of("inputs", name, PARTS)
            whole_number(f"inputs of {name!r}", size, low=1)
        # In one order, so that the same seed draws the same weights.
        self.inputs = {name: inputs[name] for name in PARTS if name in inputs}
        self.parts = nn.ModuleDict(
            {name: _part(size, PARTS[name]) for name, size in self.inputs.items()}
        )
        width = sum(PARTS[name][-1] for name in self.inputs)
        self.joined = nn.Sequential()
        self.joined.add_module("linear1", nn.Linear(width, JOINED))
        self.joined.add_module("relu1", nn.ReLU())
        self.joined.add_module("linear2", nn.Linear(JOINED, 1))
        draw_normal(self)

    def forward(self, seen: Mapping[str, Tensor]) -> Tensor:
        """The logit of membership of each record, (n,), from tensors (n, size) by part."""
        if seen.keys() != self.inputs.keys():
            raise InputError(
                f"The attack network was given {', '.join(seen) or 'nothing'}; give exactly "
                f"{', '.join(self.inputs)}"
            )
        read = [part(seen[name].flatten(1)) for name, part in self.parts.items()]
        logit: Tensor = self.joined(torch.cat(read, dim=1))
        return logit.squeeze(1)


def _part(size: int, widths: tuple[int, ...]) -> nn.Sequential:
    layers, before = nn.Sequential(), size
    for place, width in enumerate(widths, start=1):
        layers.add_module(f"linear{place}", nn.Linear(before, width))
        layers.add_module(f"relu{place}", nn.ReLU())
        before = width
    return layers
