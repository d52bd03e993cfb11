"""Losses of a network's outputs, and of the outputs of several at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor
from torch.nn import functional

from leakscope.options import one_of

# Outputs (n, k) and targets (n,) in, one number out.
Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(outputs: Tensor, y: Tensor) -> Tensor:
    """The mean log-loss of logits (n, k) for class numbers y (n,).

    One output, (n, 1) or (n,), is the logit of class 1 against class 0.
    """
    if _is_single(outputs):
        logits = outputs.reshape(len(y))
        return functional.binary_cross_entropy_with_logits(logits, y.to(logits.dtype))
    return functional.cross_entropy(outputs, y)


def squared_error(outputs: Tensor, y: Tensor) -> Tensor:
    """The mean squared error of numbers (n, 1) or (n,) for targets y (n,)."""
    return functional.mse_loss(outputs.reshape(len(y)), y)


LOSSES: dict[str, Loss] = {"cross_entropy": cross_entropy, "squared_error": squared_error}


def loss_function(loss: str | Loss) -> Loss:
    """A loss by its name, or as it is."""
    return loss if callable(loss) else LOSSES[one_of("loss", loss, LOSSES)]


def accurate(outputs: Tensor, y: Tensor) -> Tensor:
    """Whether each record's class is predicted right: outputs (…, n, k), y and answer (…, n)."""
    if outputs.shape == y.shape:
        return (outputs > 0) == (y == 1)
    if outputs.shape[-1] == 1:
        return (outputs[..., 0] > 0) == (y == 1)
    return outputs.argmax(dim=-1) == y


def stacked_loss(loss: str, outputs: Tensor, y: Tensor, shares: Tensor) -> Tensor:
    """The losses (m,) of m networks' outputs (m, b, k) for y (m, b), by the loss of this name.

    shares (m, b): the weight of each record in the mean of its batch, 0 where there is none.
    """
    if loss == "squared_error":
        each = (outputs[..., 0] - y).square()
    elif outputs.shape[-1] == 1:
        each = functional.binary_cross_entropy_with_logits(
            outputs[..., 0], y.to(outputs.dtype), reduction="none"
        )
    else:
        rows = functional.cross_entropy(outputs.flatten(0, 1), y.flatten(), reduction="none")
        each = rows.view_as(y)
    return (each * shares).sum(dim=1)


def _is_single(outputs: Tensor) -> bool:
    return outputs.ndim == 1 or outputs.shape[-1] == 1
