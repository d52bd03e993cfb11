"""DP-SGD, a training loop in the place of the usual one (Abadi et al. 2016, Algorithm 1).

Every update draws each record with the same probability and on its own, clips the gradient of each
record that was drawn, and adds Gaussian noise to the sum. opacus clips, adds the noise and
accounts for what is spent.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from opacus.accountants import create_accountant
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping
from scipy.special import ndtri
from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.networks.accounting import Sampling, noise_for, spent
from leakscope.networks.clipping import looked_at, refuse_mixing, wired_for_clipping
from leakscope.networks.losses import Loss, loss_function
from leakscope.networks.training import (
    Figures,
    History,
    Hooks,
    Inputs,
    Training,
    not_finite,
    rows,
)


@dataclass(frozen=True)
class Privacy:
    """What a private training came to: the (ε, δ) that it spent, and how.

    noise: its standard deviation in units of the clipping bound. ghost, per_record: the layers
    whose gradients of single records were not made, and were.
    """

    epsilon: float
    delta: float
    noise: float
    sampling: Sampling
    ghost: tuple[str, ...]
    per_record: tuple[str, ...]


@dataclass(frozen=True)
class PrivateHistory(History):
    """How a private training went; its losses are of the records themselves, and not private."""

    privacy: Privacy


@dataclass(frozen=True)
class PrivateTraining:
    """A loop that trains privately: at most this ε at this δ, for whether a record takes part.

    clip: the bound of the norm of a record's gradient. accountant: "rdp" or "prv". secure: who is
    drawn and the noise come from the system's own randomness, and cannot be had again by a seed;
    four draws make the noise of one number, against attacks on rounding (Holohan & Braghin 2021).
    """

    epsilon: float
    delta: float = 1e-5
    clip: float = 1.0
    accountant: str = "rdp"
    secure: bool = False

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
    ) -> PrivateHistory:
        """Train a module in place on records X (n, …) and targets y (n,).

        It takes part in nothing that looks at records: validation records are left alone.
        """
        _refuse_unaccounted(settings, hooks or Hooks())
        self.check(module)
        sampling = Sampling.of(len(y), settings.batch_size, settings.epochs)
        noise = noise_for(self.epsilon, self.delta, sampling, self.accountant)
        layers = looked_at(module, rows(X, torch.arange(1)))
        account = create_accountant(self.accountant)

        def draw() -> Tensor:
            n = len(y)
            chances = (
                torch.from_numpy(_uniform(n)) if self.secure else torch.rand(n, generator=order)
            )
            return torch.nonzero(chances < sampling.rate).squeeze(1)

        with wired_for_clipping(module, self.clip, bool(layers.ghost)) as wired:
            optimizer = self._optimizer(module, settings, noise, order, len(y))
            optimizer.attach_step_hook(account.get_optimizer_hook_fn(sampling.rate))
            run = _Run(wired, optimizer, X, y, settings, layers.most)
            each = sampling.updates // settings.epochs
            history = [run.epoch(epoch, each, draw) for epoch in range(1, settings.epochs + 1)]
            optimizer.zero_grad(set_to_none=True)
        module.eval()
        epsilon = spent(account, self.epsilon, self.delta)
        privacy = Privacy(epsilon, self.delta, noise, sampling, layers.ghost, layers.per_record)
        return PrivateHistory(tuple(history), torch.get_num_threads(), privacy)

    def check(self, module: nn.Module) -> None:
        """Refuse a module whose records cannot be told apart in its gradients."""
        refuse_mixing(module)

    def _optimizer(
        self, module: nn.Module, settings: Training, noise: float, order: torch.Generator, n: int
    ) -> DPOptimizerFastGradientClipping:
        kind = _SystemNoise if self.secure else DPOptimizerFastGradientClipping
        return kind(
            settings.updates.optimizer([{"params": list(module.parameters())}]),
            noise_multiplier=noise,
            max_grad_norm=self.clip,
            # What is drawn is of this size on average; its own size would tell who is there.
            expected_batch_size=min(settings.batch_size, n),
            generator=order,
        )


def _refuse_unaccounted(settings: Training, hooks: Hooks) -> None:
    if hooks != Hooks():
        raise InputError(
            "A private training takes no hooks: the gradient of a penalty is not of one record, "
            "and what others see of the records is not accounted for; leave them out"
        )
    if settings.watches:
        raise InputError(
            "A private training cannot stop at an accuracy or at a gap, because looking at it is "
            "not accounted for; leave out stop_at_accuracy and stop_at_gap"
        )


@dataclass(eq=False)
class _Run:
    """One private training under way."""

    module: GradSampleModuleFastGradientClipping
    optimizer: DPOptimizerFastGradientClipping
    X: Inputs
    y: Tensor
    settings: Training
    most: int
    step: int = 0

    def epoch(self, number: int, updates: int, draw: Callable[[], Tensor]) -> Figures:
        """So many updates, and the mean loss of the records that were drawn for them."""
        self.module.train()
        total, seen = 0.0, 0
        for _ in range(updates):
            self.settings.updates.set_rate(self.optimizer.param_groups[0], self.step)
            self.step += 1
            batch = draw()
            total += self._update(batch, number)
            seen += len(batch)
        return Figures(total / seen if seen else math.nan)

    def _update(self, batch: Tensor, epoch: int) -> float:
        """One step of the optimizer; the sum of the losses before it."""
        self.optimizer.zero_grad()
        if not len(batch):
            # Noise alone, as its absence would tell that nobody was drawn.
            for weights in self.optimizer.params:
                weights.grad = torch.zeros_like(weights)
            self.optimizer.step()
            return 0.0
        total, parts = 0.0, torch.split(batch, self.most)
        for number, part in enumerate(parts, start=1):
            X = rows(self.X, part)
            losses = record_losses(self.settings.loss, self.module(X), self.y[part])
            value = losses.sum().item()
            if not math.isfinite(value):
                raise not_finite(self.module._module, value, epoch, X)
            self.optimizer.signal_skip_step(number < len(parts))
            DPTensorFastGradientClipping(self.module, self.optimizer, losses, "sum").backward()
            self.optimizer.step()
            total += value
        return total


def record_losses(loss: str | Loss, outputs: Tensor, y: Tensor) -> Tensor:
    """The loss of each record by itself, (n,), whatever the loss is of several."""
    function = loss_function(loss)

    def one(output: Tensor, target: Tensor) -> Tensor:
        return function(output[None], target[None])

    try:
        losses: Tensor = torch.vmap(one)(outputs, y)
    except RuntimeError:  # a function that decides by the numbers it is given
        losses = torch.stack([one(*pair) for pair in zip(outputs, y, strict=True)])
    return losses.reshape(len(y))


class _SystemNoise(DPOptimizerFastGradientClipping):  # type: ignore[misc]
    """Noise from the system's own randomness."""

    def add_noise(self) -> None:
        """N(0, (noise · clip)²) on each number, by four draws."""
        for part in self.params:
            drawn = ndtri(_uniform((4, part.numel()))).sum(axis=0) / 2
            noise = torch.from_numpy(drawn * self.noise_multiplier * self.max_grad_norm)
            part.grad = part.summed_grad + noise.to(part.dtype).view_as(part)


def _uniform(shape: int | tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers between 0 and 1, neither included, that no seed gives."""
    bits = np.frombuffer(os.urandom(8 * int(np.prod(shape))), dtype=np.uint64)
    return np.asarray(((bits >> np.uint64(12)) + 0.5) * 2.0**-52).reshape(shape)
