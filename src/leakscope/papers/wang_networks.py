"""The networks that Wang et al. (2020) train, by the names of their set-ups.

In a file of its own, because a stored model is used again only where the code that builds its
network is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

# The hidden layers of fully connected networks with tanh, see wang_setups.py on why.
HIDDEN = {"mlp-1024": (1024, 512, 256), "mlp-256": (256, 128)}


def build(name: str, inputs: int | tuple[int, ...], classes: int) -> nn.Module:
    """A network with fresh weights for records of so many features, or of this shape."""
    from leakscope.networks import MLP, network

    if name in HIDDEN:
        assert isinstance(inputs, int)  # the records of these set-ups are vectors
        return MLP([inputs, *HIDDEN[name], classes])
    return network(name, inputs, classes)
