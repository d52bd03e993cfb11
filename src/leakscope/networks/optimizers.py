"""The optimizers a network can be trained with, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from leakscope.errors import InputError
from leakscope.options import magnitude, one_of

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "sgd": torch.optim.SGD,
    "adagrad": torch.optim.Adagrad,
}


@dataclass(frozen=True)
class Updates:
    """How weights are updated: torch's "adam", "sgd" (with momentum) or "adagrad".

    weight_decay is a penalty of ½·weight_decay·‖w‖² beside the loss, on all parameters. decay
    lowers the rate to lr / (1 + decay·t) at update t, counted from 0, as Keras does.
    """

    name: str = "adam"
    lr: float = 1e-3
    momentum: float = 0.0
    weight_decay: float = 0.0
    decay: float = 0.0

    def optimizer(self, groups: Iterable[dict[str, Any]]) -> torch.optim.Optimizer:
        """A new optimizer of these groups of parameters."""
        make = OPTIMIZERS[one_of("optimizer", self.name, OPTIMIZERS)]
        options: dict[str, Any] = {
            "lr": magnitude("lr", self.lr, above=0),
            "weight_decay": magnitude("weight_decay", self.weight_decay),
        }
        magnitude("decay", self.decay)
        if magnitude("momentum", self.momentum):
            if self.name != "sgd":
                raise InputError(
                    f"The optimizer {self.name!r} takes no momentum, got {self.momentum!r}; leave "
                    "it out, or choose sgd"
                )
            options["momentum"] = self.momentum
        groups = list(groups)
        # One call for all parameters: small networks spend more time in calls than in arithmetic.
        fused = all(one.device.type == "cpu" for group in groups for one in group["params"])
        return make(groups, **options, fused=fused)

    def set_rate(self, group: dict[str, Any], updates: int) -> None:
        """Set the rate of a group that has been updated so many times."""
        group["lr"] = self.lr / (1 + self.decay * updates)
