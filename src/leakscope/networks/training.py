"""The one training loop: batches in a drawn order, hooks, and stopping before the last epoch.

Recipes, the attack network and the defenses all train by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor, nn

from leakscope.errors import InputError, ModelError
from leakscope.networks.losses import Loss, accurate, loss_function
from leakscope.networks.optimizers import Updates
from leakscope.networks.tracing import (
    beginning,
    failing_step,
    failure,
    first_not_finite,
    reason,
)

# What a network is given: records (n, …), or several things about each by name, (n, …) each.
Inputs: TypeAlias = "Tensor | Mapping[str, Tensor]"

# Records in a batch that is only looked at.
LOOKED_AT = 1024


@dataclass(frozen=True)
class Training:
    """How a network is trained.

    loss: "cross_entropy" of logits (of one logit, where a network has a single output),
    "squared_error", or a function of outputs and targets. An epoch is one pass over the records in
    a new order. stop_at_accuracy and stop_at_gap end training after the first epoch with this share
    of right predictions in training, or with it this much higher than on the validation records.
    """

    updates: Updates = field(default_factory=Updates)
    epochs: int = 50
    batch_size: int = 32
    loss: str | Loss = "cross_entropy"
    stop_at_gap: float | None = None
    stop_at_accuracy: float | None = None

    @property
    def watches(self) -> bool:
        """Whether right predictions are counted after each epoch."""
        return self.stop_at_gap is not None or self.stop_at_accuracy is not None

    def reached(self, figures: Figures) -> bool:
        """Whether these are the figures to stop at."""
        limits = ((self.stop_at_accuracy, figures.accuracy), (self.stop_at_gap, figures.gap))
        return any(
            limit is not None and value is not None and value >= limit for limit, value in limits
        )


@dataclass(frozen=True)
class Figures:
    """What an epoch came to: the mean loss of its batches, and the shares of right predictions.

    The shares, in evaluation mode at its end, are None where nothing asks for them.
    """

    loss: float
    accuracy: float | None = None
    validation_accuracy: float | None = None

    @property
    def gap(self) -> float | None:
        """How much more accurate it is in training than on the validation records."""
        if self.accuracy is None or self.validation_accuracy is None:
            return None
        return self.accuracy - self.validation_accuracy


@dataclass(frozen=True)
class History:
    """How a training went: the figures of each epoch, and the threads it was done in."""

    epochs: tuple[Figures, ...]
    threads: int


@dataclass(frozen=True)
class Hooks:
    """What is called while a network is trained.

    penalty(module, X, y): a number that is added to the loss of a batch. on_batch(module,
    optimizer, step, loss): after each update, counted from 1 through all epochs. on_epoch(module,
    epoch, figures): after each epoch, counted from 1; training ends where it says True.
    """

    penalty: Callable[[nn.Module, Inputs, Tensor], Tensor] | None = None
    on_batch: Callable[[nn.Module, torch.optim.Optimizer, int, float], None] | None = None
    on_epoch: Callable[[nn.Module, int, Figures], bool | None] | None = None


@dataclass(frozen=True)
class Beginning:
    """A network that is about to be trained: what hooks that differ between models are made of.

    X (n, …), y (n,): its records. reference: records of another use, such as the D′ of a min-max
    game, or None. random: for what the hooks draw.
    """

    module: nn.Module
    X: Inputs
    y: Tensor
    reference: tuple[Inputs, Tensor] | None
    random: torch.Generator


def train(
    module: nn.Module,
    X: Inputs,
    y: Tensor,
    settings: Training,
    *,
    order: torch.Generator,
    validation: tuple[Inputs, Tensor] | None = None,
    hooks: Hooks | None = None,
) -> History:
    """Train a module in place on records X (n, …) and targets y (n,); it ends in evaluation mode.

    order: where the order of the records is drawn from. Dropout draws from torch's global state;
    see seeding.drawing_from.
    """
    check_stopping(settings, y, validation is not None)
    hooks = hooks or Hooks()
    optimizer = settings.updates.optimizer([{"params": list(module.parameters())}])
    history: list[Figures] = []
    step = 0
    for epoch in range(1, settings.epochs + 1):
        module.train()
        losses = []
        for batch in batches(len(y), settings.batch_size, order):
            settings.updates.set_rate(optimizer.param_groups[0], step)
            step += 1
            loss = _update(module, optimizer, rows(X, batch), y[batch], settings, hooks, epoch)
            losses.append(loss * len(batch))
            if hooks.on_batch is not None:
                hooks.on_batch(module, optimizer, step, loss)
        module.eval()
        figures = Figures(sum(losses) / len(y), *_shares(module, X, y, validation, settings))
        history.append(figures)
        stop = hooks.on_epoch is not None and hooks.on_epoch(module, epoch, figures)
        if stop or settings.reached(figures):
            break
    optimizer.zero_grad()  # gradients are no part of the model
    return History(tuple(history), torch.get_num_threads())


def batches(n: int, size: int, order: torch.Generator) -> Iterator[Tensor]:
    """The positions of n records in a drawn order, as many at a time as a batch has."""
    drawn = torch.randperm(n, generator=order)
    for start, stop in bounds(n, size):
        yield drawn[start:stop]


def bounds(n: int, size: int) -> list[tuple[int, int]]:
    """Where the batches of n records begin and end.

    A last record that is alone joins the batch before: batch normalization cannot take one.
    """
    starts = list(range(0, n, size))
    if n > size > 1 and n % size == 1:
        starts.pop()
    return list(zip(starts, [*starts[1:], n], strict=True))


def rows(X: Inputs, index: Tensor) -> Inputs:
    """The records at these positions."""
    if isinstance(X, Tensor):
        return X.index_select(0, index)
    return {name: part.index_select(0, index) for name, part in X.items()}


def check_stopping(settings: Training, y: Tensor, validated: bool) -> None:
    """Refuse to stop at what cannot be seen."""
    if settings.watches and y.is_floating_point():
        raise InputError(
            "Numbers are not predicted right or wrong, so that training cannot stop at a share of "
            "right predictions; leave out stop_at_gap and stop_at_accuracy"
        )
    if settings.stop_at_gap is not None and not validated:
        raise InputError(
            f"Training is to stop at a gap of {settings.stop_at_gap:g} and has no validation "
            "records to see it on; give validation, the share of the records to hold out"
        )


def not_finite(module: nn.Module, loss: float, epoch: int, X: Inputs) -> ModelError:
    """What to raise where the loss of records X (n, …) is not finite: it names the layer.

    That is the first whose weights are not finite, or else whose answers are not.
    """
    broken = [
        name.rpartition(".")[0] or name
        for name, weights in module.named_parameters()
        if not torch.isfinite(weights).all()
    ]
    if broken:
        kind = type(dict(module.named_modules()).get(broken[0], module)).__name__
        where = f"the weights of the layer {broken[0]!r} ({kind}) not being finite"
    else:
        with torch.no_grad():
            step = first_not_finite(module, lambda: module(X))
        where = f"all weights being finite{beginning(step)}"
    return ModelError(
        f"The loss was {loss:g} in epoch {epoch} (counting from 1), {where}; lower lr, or scale "
        "the records"
    )


def _update(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    X: Inputs,
    y: Tensor,
    settings: Training,
    hooks: Hooks,
    epoch: int,
) -> float:
    """One step of the optimizer; the loss before it."""
    optimizer.zero_grad()
    try:
        outputs = module(X)
    except Exception as error:  # whatever a layer raises in training mode alone
        step = failing_step(module, lambda: module(X))
        raise ModelError(
            f"{type(module).__name__} could not be trained on a batch of {len(y)} "
            f"record{'s'[: len(y) - 1]}{failure(step)}: {reason(error)}"
        ) from error
    loss = loss_function(settings.loss)(outputs, y)
    if hooks.penalty is not None:
        loss = loss + hooks.penalty(module, X, y)
    value = loss.item()
    if not math.isfinite(value):
        raise not_finite(module, value, epoch, X)
    torch.autograd.backward(loss)
    optimizer.step()
    return value


def _shares(
    module: nn.Module,
    X: Inputs,
    y: Tensor,
    validation: tuple[Inputs, Tensor] | None,
    settings: Training,
) -> tuple[float | None, float | None]:
    """The shares of right predictions in training and in validation, where they are asked for."""
    if y.is_floating_point() or not (settings.watches or validation is not None):
        return None, None
    return _share(module, X, y), None if validation is None else _share(module, *validation)


@torch.no_grad()
def _share(module: nn.Module, X: Inputs, y: Tensor) -> float:
    right = 0
    for start in range(0, len(y), LOOKED_AT):
        part = torch.arange(start, min(start + LOOKED_AT, len(y)))
        right += int(accurate(module(rows(X, part)), y[part]).sum())
    return right / len(y)
