"""Fully connected networks of any widths."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.networks.blocks import ACTIVATIONS, Activation, activation_module
from leakscope.networks.catalog import of_vectors
from leakscope.options import magnitude, one_of, whole_number


class MLP(nn.Module):
    """Fully connected layers with an activation between them: ``MLP([104, 50, 50, 2])``.

    widths: of the inputs, of each hidden layer, of the outputs. dropout: the share of each hidden
    layer that is dropped in training, after its activation. Takes (n, …), gives logits (n, k).
    """

    def __init__(
        self, widths: Sequence[int], activation: Activation = "tanh", dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.widths = tuple(whole_number("widths", width, low=1) for width in widths)
        if len(self.widths) < 2:
            raise InputError(
                f"The option widths is {list(self.widths)}; give the number of inputs, of each "
                "hidden layer and of outputs, such as [104, 50, 2]"
            )
        self.activation = one_of("activation", activation, ACTIVATIONS)
        self.dropout = magnitude("dropout", dropout)
        if self.dropout >= 1:
            raise InputError(f"The option dropout must be below 1, got {dropout!r}")
        self.layers = nn.Sequential()
        for place, (before, after) in enumerate(pairwise(self.widths)):
            if place:
                self.layers.add_module(f"{activation}{place}", activation_module(activation))
                if self.dropout:
                    self.layers.add_module(f"dropout{place}", nn.Dropout(self.dropout))
            self.layers.add_module(f"linear{place + 1}", nn.Linear(before, after))

    @property
    def linears(self) -> list[nn.Linear]:
        """The layers that have weights, from the inputs to the outputs."""
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, k) of records (n, …)."""
        logits: Tensor = self.layers(x.flatten(1))
        return logits


@of_vectors("mlp")
def plain_mlp(features: int, classes: int) -> MLP:
    """Two hidden layers of 50 with tanh: the base network of Shokri et al. 2021, section 4.4."""
    return MLP([features, 50, 50, classes])
