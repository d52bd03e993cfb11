"""Pruning by ADMM: a network of few weights that are not zero, found while it is trained.

Which weights stay is a constraint on each layer: at most n_i of layer i are not zero. The
alternating direction method of multipliers (Zhang et al. 2018, as used by Wang et al. 2020,
section 4.1) turns it into a penalty ρ/2‖W − Z + U‖² beside the loss. W are the weights, trained as
ever; Z are those of W + U that the constraint leaves, and U adds up what is between the two. ρ is
raised from round to round until W hardly differs from Z. Then all other weights are set to zero and
held there, and those that are left are trained again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.networks.stages import Stage, combined
from leakscope.networks.training import Figures, Hooks, Inputs

# Biases and normalization are few, and networks need them.
LAYERS = (
    nn.Linear,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)
# Sizes of weights in the sample that says where the largest are, at most, and how many times more
# than are wanted it is asked for.
SAMPLED, MORE = 4096, 1.3
# Whole numbers of the size of the weights.
WHOLE = {torch.float32: torch.int32, torch.float64: torch.int64}


@dataclass(frozen=True)
class Schedule:
    """How long a network is pruned: so many epochs at each ρ of the penalty, then of retraining.

    rate, retrain_rate: how many times the recipe's learning rate, in the rounds and in retraining.
    """

    rhos: tuple[float, ...] = (1e-3, 1e-2, 1e-1)
    epochs: int = 8
    retrain: int = 15
    rate: float = 1.0
    retrain_rate: float = 1.0


@dataclass(frozen=True)
class Pruned:
    """What a pruning came to.

    budgets: how many weights each layer keeps. residuals: ‖W − Z‖ over all layers at the end of
    each round. masks: which weights those are.
    """

    budgets: Mapping[str, int]
    residuals: tuple[float, ...]
    masks: Masks


def prunable(module: nn.Module) -> dict[str, nn.Parameter]:
    """The weights that may be pruned, by the path of their layer and in the module's order.

    Those of linear and convolutional layers that are trained; tied ones are there once.
    """
    found: dict[str, nn.Parameter] = {}
    for path, layer in module.named_modules():
        weight = layer._parameters.get("weight") if isinstance(layer, LAYERS) else None
        if weight is not None and weight.requires_grad and not _is_in(weight, found):
            found[path] = weight
    if not found:
        raise InputError(
            f"A {type(module).__name__} has no trained weights of linear or convolutional layers, "
            "and no others are pruned; use another network"
        )
    return found


def layer_budgets(sizes: Mapping[str, int], ratio: float, protect: bool = True) -> dict[str, int]:
    """How many weights each layer keeps: ⌊all of them / ratio⌋ together.

    sizes: of each layer, in order. Every layer gets the same share. With protect the first and the
    last keep half of their weights where that is more, as long as it takes no more than half of all
    that are kept; the smaller of the two is served first. No layer is left without a weight unless
    there are fewer than layers.
    """
    total = math.floor(sum(sizes.values()) / ratio)
    if not total:
        raise InputError(
            f"A ratio of {ratio:g} leaves none of {sum(sizes.values())} weights; give a lower one"
        )
    even = _shared(total, sizes)
    first, *inner = sizes
    if not protect or len(inner) < 2:
        return even
    ends = {path: even[path] for path in (first, inner.pop())}
    spare = max(0, total // 2 - sum(ends.values()))
    wanted = {path: max(0, -(-sizes[path] // 2) - kept) for path, kept in ends.items()}
    small, large = sorted(wanted, key=lambda path: wanted[path])
    # What is taken from the layers between leaves each of them a weight.
    spare = min(spare, max(0, total - sum(ends.values()) - len(inner)))
    for path in (small, large):
        added = min(wanted[path], spare)
        ends[path] += added
        spare -= added
    between = _shared(total - sum(ends.values()), {path: sizes[path] for path in inner})
    kept = ends | between
    return {path: kept[path] for path in sizes}


def checked_budgets(sizes: Mapping[str, int], budgets: Mapping[str, int]) -> dict[str, int]:
    """Budgets as they were given, if every layer exists and has so many weights."""
    for path, number in budgets.items():
        if path not in sizes:
            raise InputError(
                f"There is a budget for the layer {path!r}, which the network has not; its layers "
                f"with weights to prune are: {', '.join(sizes)}"
            )
        if number > sizes[path]:
            raise InputError(
                f"The budget of the layer {path!r} is {number}, and it has {sizes[path]} weights; "
                "give at most as many"
            )
    return dict(budgets)


@torch.no_grad()
def largest(weights: Tensor, number: int) -> Tensor:
    """Where the so many largest magnitudes are, in the shape of the weights.

    Of equal ones those of the lowest index are taken.
    """
    if number == 0:
        return torch.zeros_like(weights, dtype=torch.bool)
    sizes = weights.abs().flatten().cpu().numpy()
    least = _least_of_largest(sizes, number)
    mask = sizes > least
    equal = np.flatnonzero(sizes == least)
    mask[equal[: number - np.count_nonzero(mask)]] = True
    return torch.from_numpy(mask).reshape(weights.shape).to(weights.device)


def _least_of_largest(sizes: NDArray[Any], number: int) -> Any:
    """The smallest of the so many largest sizes (m,).

    A projection after each epoch would be a third of the time of a large layer, because most of it
    is put in order in vain. So a sample says which sizes may be among the largest; where it is
    wrong, all of them are looked at. numpy is ten times as fast as torch at this.
    """
    step = len(sizes) // SAMPLED + 1
    sample = np.sort(sizes[::step])
    above = math.ceil(number / step * MORE) + 1
    likely = sizes[sizes >= sample[-above]] if step > 1 and above < len(sample) else sizes
    if len(likely) < number:
        likely = sizes
    place = len(likely) - number
    return np.partition(likely, place)[place]


class Splitting:
    """The variables of ADMM: the weights W of some layers, their sparse copies Z, and U.

    The gradient of the penalty is added to that of the loss where it has arrived, in place: for a
    large linear layer the copies that a graph makes would take as long as the rest of a step.
    """

    def __init__(self, weights: Mapping[str, nn.Parameter], budgets: Mapping[str, int]) -> None:
        self.weights = [weights[path] for path in budgets]
        self.numbers = list(budgets.values())
        self.rho: float | None = None
        with torch.no_grad():
            self.U = [torch.zeros_like(W) for W in self.weights]
            self.Z = self._projected()
            self._targets = [Z - U for Z, U in zip(self.Z, self.U, strict=True)]
            self._apart = [torch.zeros_like(W) for W in self.weights]
        self._waiting: set[int] = set()

    @contextmanager
    def at(self, rho: float) -> Iterator[Hooks]:
        """The hooks of a round with this ρ, for as long as it lasts.

        U is in units of 1/ρ, and is rescaled.
        """
        for U in self.U:
            U.mul_(1 if self.rho is None else self.rho / rho)
        self.rho = rho
        self._aim()
        handles = [
            W.register_post_accumulate_grad_hook(partial(self._pull, place, rho))  # type: ignore[no-untyped-call]
            for place, W in enumerate(self.weights)
        ]
        try:
            yield Hooks(partial(self._penalty, rho), None, self._update)
        finally:
            for handle in handles:
                handle.remove()

    @torch.no_grad()
    def residual(self) -> float:
        """‖W − Z‖ over all layers: how far the weights are from being as few as they should."""
        return _norm([W - Z for W, Z in zip(self.weights, self.Z, strict=True)])

    @torch.no_grad()
    def _penalty(self, rho: float, module: nn.Module, X: Inputs, y: Tensor) -> Tensor:
        """ρ/2‖W − Z + U‖²; its gradient follows in the next backward pass, once."""
        for W, target, apart in zip(self.weights, self._targets, self._apart, strict=True):
            torch.sub(W, target, out=apart)
        self._waiting = set(range(len(self.weights)))
        return self.weights[0].new_tensor(rho / 2 * _norm(self._apart) ** 2)

    def _pull(self, place: int, rho: float, W: Tensor) -> None:
        """Add the gradient of the penalty, ρ(W − Z + U), to that of the loss."""
        if place in self._waiting and W.grad is not None:
            W.grad.add_(self._apart[place], alpha=rho)
            self._waiting.remove(place)

    @torch.no_grad()
    def _update(self, module: nn.Module, epoch: int, figures: Figures) -> None:
        """The steps of Z and U, after each epoch."""
        self.Z = self._projected()
        for U, W, Z in zip(self.U, self.weights, self.Z, strict=True):
            U.add_(W - Z)
        self._aim()

    def _aim(self) -> None:
        self._targets = [Z - U for Z, U in zip(self.Z, self.U, strict=True)]

    def _projected(self) -> list[Tensor]:
        """Of W + U the largest in each layer, and zeros."""
        sums = [W.detach() + U for W, U in zip(self.weights, self.U, strict=True)]
        return [
            torch.where(largest(one, number), one, 0.0)
            for one, number in zip(sums, self.numbers, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class Masks:
    """Which weights of which layers are kept.

    bits: by path, in the shapes of the weights and as whole numbers of their size: all bits are set
    where a weight is kept, and none elsewhere.
    """

    bits: Mapping[str, Tensor]

    @classmethod
    def of_largest(cls, weights: Mapping[str, Tensor], budgets: Mapping[str, int]) -> Masks:
        """So many of each layer's largest weights."""
        kept = {path: largest(weights[path], number) for path, number in budgets.items()}
        return cls({path: -one.to(WHOLE[weights[path].dtype]) for path, one in kept.items()})

    @property
    def kept(self) -> dict[str, Tensor]:
        """Whether each weight is kept, by path."""
        return {path: bits != 0 for path, bits in self.bits.items()}

    @torch.no_grad()
    def hold(self, module: nn.Module, *_: object) -> None:
        """Set all other weights to zero; as a hook, after each update, whatever its momentum.

        Bits are twice as fast as filling in zeros, and leave no −0.0 as a product would.
        """
        for path, bits in self.bits.items():
            weight = module.get_parameter(f"{path}.weight" if path else "weight")
            weight.view(bits.dtype).bitwise_and_(bits)


def prune(stage: Stage, budgets: Mapping[str, int], schedule: Schedule) -> Pruned:
    """Prune the network of a stage to these budgets, and train on what is left.

    From then on the pruned weights are held at zero in whatever the stage is trained further, also
    if another network of the same layers takes the place of this one.
    """
    weights = prunable(stage.module)
    splitting, residuals = Splitting(weights, budgets), []
    for rho in schedule.rhos:
        with splitting.at(rho) as hooks:
            stage.train(epochs=schedule.epochs, hooks=hooks, stops=False, rate=schedule.rate)
        residuals.append(splitting.residual())
    masks = Masks.of_largest(weights, budgets)
    masks.hold(stage.module)
    stage.hooks = combined(stage.hooks, Hooks(on_batch=masks.hold))
    if schedule.retrain:
        stage.train(epochs=schedule.retrain, stops=False, rate=schedule.retrain_rate)
    return Pruned(budgets, tuple(residuals), masks)


def _norm(parts: Sequence[Tensor]) -> float:
    return math.hypot(*(part.norm().item() for part in parts))


def _is_in(weight: Tensor, found: Mapping[str, Tensor]) -> bool:
    return any(weight is one for one in found.values())


def _shared(total: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """A total shared in proportion to sizes, one for each first; the largest remainders win."""
    first = 1 if total >= len(sizes) else 0
    room = {path: size - first for path, size in sizes.items()}
    left, whole = total - first * len(sizes), sum(room.values())
    if not whole:
        return dict.fromkeys(sizes, first)
    # In whole numbers, so that the total is exact whatever the sizes.
    parts = {path: divmod(left * size, whole) for path, size in room.items()}
    shares = {path: first + part for path, (part, _) in parts.items()}
    missing = total - sum(shares.values())
    for path in sorted(parts, key=lambda one: -parts[one][1])[:missing]:
        shares[path] += 1
    return shares
