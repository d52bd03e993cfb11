"""The network that is attacked and explained."""

from __future__ import annotations

from torch import nn


class Network(nn.Sequential):
    """Two hidden layers; gives logits."""

    def __init__(self, inputs: int = 104, classes: int = 2) -> None:
        first, second = nn.Linear(inputs, 128), nn.Linear(128, 64)
        super().__init__(first, nn.ReLU(), second, nn.ReLU(), nn.Linear(64, classes))
