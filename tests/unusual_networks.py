"""Small networks that are not made of layers used once, for tests."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Shared(nn.Module):
    """A layer that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.last(torch.tanh(self.first(torch.tanh(self.first(x)))))
        return logits


class Scaled(nn.Module):
    """A weight that belongs to no layer that opacus knows."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.last = nn.Parameter(torch.ones(4)), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.last(x * self.scale)
        return logits
