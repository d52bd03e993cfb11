"""Values that change with their arguments by another slope than their own.

They are what a rule of explanation puts in the place of nonlinearities; ``unseen_call`` finds one
that has been left in a graph.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# Nonlinearities in the graph that torch keeps of the calls, by the names of their gradients.
BARE = frozenset(
    f"{name}Backward"
    for name in (
        "Abs", "Clamp", "ClampMax", "ClampMin", "Cos", "Elu", "Exp", "Gelu", "Hardsigmoid",
        "Hardswish", "Hardtanh", "LeakyRelu", "LogSigmoid", "LogSoftmax", "Mish", "Pow", "Relu",
        "Sigmoid", "Silu", "Sin", "Softmax", "Softplus", "Sqrt", "Tanh", "Threshold",
    )
)  # fmt: skip


def sloped(argument: Tensor, value: Tensor, slope: Tensor) -> Tensor:
    """A value (n, …) that changes with its argument (n, …) by the slope (n, …) it is given."""
    result: Tensor = _Sloped.apply(argument, _own(value), slope)  # type: ignore[no-untyped-call]
    return result


def summed(value: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """A value (n, …) that changes with two arguments (n, …) as their sum does."""
    result: Tensor = _Summed.apply(_own(value), one, other)  # type: ignore[no-untyped-call]
    return result


def unseen_call(result: Tensor) -> str | None:
    """The name of a call on the way to a result that no rule has seen, if there is one.

    Such are own autograd functions, and whatever is called inside of torch.vmap.
    """
    ours = {"_SlopedBackward", "_SummedBackward"}
    waiting: list[Any] = [result.grad_fn]
    met: set[Any] = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        name = str(node.name()).rstrip("0123456789")
        written = isinstance(node, torch.autograd.function.BackwardCFunction)
        if name in BARE or (written and name not in ours):
            return name.removesuffix("Backward")
        waiting.extend(before for before, _ in node.next_functions)
    return None


_Value = tuple[Tensor]


def _own(value: Tensor) -> _Value:
    """A value as it is handed to a function that returns it, so that it can be changed in place.

    That cannot be done with a view, nor with a tensor that the function is given, of which it
    returns a view: torch does not look into a tuple.
    """
    return (value.clone() if value._is_view() else value,)


class _Sloped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, argument: Tensor, value: _Value, slope: Tensor) -> Tensor:
        # Not saved by torch's own way, in which a checkpoint would put a tensor of its own.
        ctx.slope = slope
        return value[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return gradients[0] * ctx.slope, None, None


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: _Value, one: Tensor, other: Tensor) -> Tensor:
        return value[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, Tensor]:
        return None, gradients[0], gradients[0]
