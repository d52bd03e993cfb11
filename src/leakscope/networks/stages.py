"""A network while it is trained: what a course of several parts works with.

By default a course has one part, the whole training. A defense may add parts, such as the rounds of
a pruning, or put another loop in the place of the usual one; each part is trained by the recipe's
loop with the recipe's hooks, so that defenses combine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor, nn

from leakscope.networks.losses import Loss
from leakscope.networks.seeding import drawing_from
from leakscope.networks.training import Beginning, Figures, History, Hooks, Inputs, Training, train

HooksOrMaker: TypeAlias = "Hooks | Callable[[Beginning], Hooks]"


class Loop(Protocol):
    """What trains a module in place: ``networks.training.train``, or another in its place."""

    def __call__(
        self,
        module: nn.Module,
        X: Inputs,
        y: Tensor,
        settings: Training,
        *,
        order: torch.Generator,
        validation: tuple[Inputs, Tensor] | None = None,
        hooks: Hooks | None = None,
    ) -> History:
        """How the training went; the module ends in evaluation mode."""
        ...


@dataclass(eq=False)
class Stage:
    """One network and all that it is trained with.

    X (n, …), y (n,): its records. reference: records of another use, such as the D′ of a min-max
    game; validation: those that are held out; None where there are none. hooks: those of the
    recipe, in force in every part. order, weights, random: where the order of records, first
    weights and dropout, and all else is drawn from. fresh: makes another module of the factory.
    """

    module: nn.Module
    X: Tensor
    y: Tensor
    reference: tuple[Tensor, Tensor] | None
    validation: tuple[Tensor, Tensor] | None
    settings: Training
    hooks: Hooks
    order: torch.Generator
    weights: torch.Generator
    random: torch.Generator
    fresh: Callable[[], nn.Module]
    loop: Loop = train
    parts: list[History] = field(default_factory=list)

    def train(
        self,
        *,
        epochs: int | None = None,
        hooks: Hooks | None = None,
        loss: str | Loss | None = None,
        y: Tensor | None = None,
        stops: bool = True,
        rate: float = 1.0,
    ) -> History:
        """One part of the training, of the module as it is now.

        epochs, loss, y: in place of the recipe's and the records' own. hooks: beside those of the
        recipe. stops: whether it ends early where the recipe says so. rate: how many times the
        recipe's learning rate.
        """
        updates = self.settings.updates
        settings = replace(
            self.settings,
            updates=replace(updates, lr=updates.lr * rate),
            epochs=self.settings.epochs if epochs is None else epochs,
            loss=self.settings.loss if loss is None else loss,
        )
        if not stops:
            settings = replace(settings, stop_at_gap=None, stop_at_accuracy=None)
        with drawing_from(self.weights):
            history = self.loop(
                self.module,
                self.X,
                self.y if y is None else y,
                settings,
                order=self.order,
                validation=self.validation,
                hooks=self.hooks if hooks is None else combined(self.hooks, hooks),
            )
        self.parts.append(history)
        return history


def plainly(stage: Stage) -> None:
    """The usual course: one training."""
    stage.train()


def refuse(part: object, method: str, *given: Any) -> None:
    """Let a course, and those it goes on from, or a loop say what it cannot train, untrained.

    method: "check", which is given a module, or "check_roles": records and the roles (m, n) of them
    for m models. Who has no such method refuses nothing.
    """
    while part is not None:
        check = getattr(part, method, None)
        if check is not None:
            check(*given)
        part = getattr(part, "before", None)


def combined(*hooks: Hooks) -> Hooks:
    """Hooks that are all called, in this order; penalties are added up."""
    penalties = [one.penalty for one in hooks if one.penalty is not None]
    batches = [one.on_batch for one in hooks if one.on_batch is not None]
    epochs = [one.on_epoch for one in hooks if one.on_epoch is not None]

    def penalty(module: nn.Module, X: Inputs, y: Tensor) -> Tensor:
        first, *others = (one(module, X, y) for one in penalties)
        return sum(others, first)

    def on_batch(
        module: nn.Module, optimizer: torch.optim.Optimizer, step: int, loss: float
    ) -> None:
        for one in batches:
            one(module, optimizer, step, loss)

    def on_epoch(module: nn.Module, epoch: int, figures: Figures) -> bool:
        said = [one(module, epoch, figures) for one in epochs]  # all of them, whatever one says
        return any(said)

    return Hooks(
        penalty if penalties else None, on_batch if batches else None, on_epoch if epochs else None
    )


@dataclass(frozen=True)
class JoinedHooks:
    """Hooks, or makers of hooks, of several defenses, made for each model together."""

    hooks: tuple[HooksOrMaker, ...]

    def __call__(self, beginning: Beginning) -> Hooks:
        """The hooks of one model."""
        return combined(*(one(beginning) if callable(one) else one for one in self.hooks))
