"""Which networks can be trained with the gradient of every record clipped, and their wiring.

opacus finds the norm of each record's gradient. Linear and embedding layers are clipped as ghosts:
the norm is found without the gradient (Li et al. 2022, section 4). Of other layers, such as
convolutions, the gradients of some records at a time are made, one layer after another.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from opacus.grad_sample import GradSampleModuleFastGradientClipping
from opacus.validators import ModuleValidator
from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.networks.tracing import evaluating
from leakscope.networks.training import Inputs

# Numbers of one array of gradients, or of the patches that a convolution sees, at a time: 256 MB.
NUMBERS = 1 << 26


@dataclass(frozen=True)
class ConvertedFactory:
    """Networks of a factory with layers in the place of those that mix records, as opacus has them.

    Batch normalization becomes group normalization: of images in up to 32 groups of channels, of
    vectors in one.
    """

    factory: Callable[[Any, int], Any]

    def __call__(self, inputs: Any, classes: int) -> nn.Module:
        """A new network."""
        made = self.factory(inputs, classes)
        converted: nn.Module = ModuleValidator.fix(made)
        for name, layer in made.named_modules():
            if isinstance(layer, nn.BatchNorm1d):
                # opacus would make each number of a vector a group of its own, of which 0 is left.
                one = nn.GroupNorm(1, layer.num_features, affine=layer.affine)
                converted.set_submodule(name, one)
        return converted


def refuse_mixing(module: nn.Module) -> None:
    """Refuse layers whose output for one record depends on others, or that keep averages."""
    for name, layer in module.named_modules():
        batch = isinstance(layer, nn.modules.batchnorm._BatchNorm)
        validate = ModuleValidator.VALIDATORS.get(type(layer))
        if not batch and (validate is None or not validate(layer)):
            continue
        why = "mixes the records of a batch" if batch else "is none that opacus can clip"
        raise InputError(
            f"The layer {name!r} ({type(layer).__name__}) {why}, so that no gradient is of one "
            "record alone; give convert=True, which puts another in its place (a GroupNorm for "
            "batch normalization), or build the network without it"
        )


@dataclass(frozen=True)
class Layers:
    """How the layers of a network are clipped, and how many records at once at most."""

    ghost: tuple[str, ...]
    per_record: tuple[str, ...]
    most: int


def looked_at(module: nn.Module, one: Inputs) -> Layers:
    """What can be told of the layers while the network answers for one record."""
    trained = {name: layer for name, layer in module.named_modules() if _own(layer)}
    calls: Counter[Tensor] = Counter()
    numbers: dict[str, int] = {}
    flat: dict[str, bool] = {}

    def note(name: str, layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        calls.update(_own(layer))
        flat[name] = inputs[0].ndim <= 3  # of larger inputs opacus has no ghosts
        numbers[name] = sum(part.numel() for part in layer.parameters())
        if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            numbers[name] += layer.weight[0].numel() * output[0, 0].numel()

    def watched(name: str) -> Callable[..., None]:
        return lambda layer, inputs, output: note(name, layer, inputs, output)

    handles = [layer.register_forward_hook(watched(name)) for name, layer in trained.items()]
    try:
        with evaluating(module), torch.no_grad():
            module(one)
    finally:
        for handle in handles:
            handle.remove()
    if unused := [name for name in trained if name not in numbers]:
        raise InputError(
            f"The layer {unused[0]!r} has weights and is not called for a record, so that their "
            "gradient is not known; leave it out, or freeze it with requires_grad_(False)"
        )
    ghosts = GradSampleModuleFastGradientClipping.NORM_SAMPLERS
    able = [name for name, layer in trained.items() if type(layer) in ghosts]
    # One layer of two uses is enough: opacus has ghosts of all such layers, or of none.
    once = all(calls[part] == 1 and flat[name] for name in able for part in _own(trained[name]))
    ghost = tuple(able) if once else ()
    per_record = tuple(name for name in trained if name not in ghost)
    largest = max((numbers[name] for name in per_record), default=1)
    return Layers(ghost, per_record, max(1, NUMBERS // largest))


def _own(layer: nn.Module) -> list[Tensor]:
    return [part for part in layer.parameters(recurse=False) if part.requires_grad]


@contextmanager
def wired_for_clipping(
    module: nn.Module, clip: float, ghost: bool
) -> Iterator[GradSampleModuleFastGradientClipping]:
    """The module with opacus' hooks; afterwards it has nothing of them."""
    layers = list(module.modules())
    things = [*layers, *module.parameters()]
    known = [set(vars(thing)) for thing in things]
    full = [layer._is_full_backward_hook for layer in layers]
    in_place = [layer for layer in layers if getattr(layer, "inplace", False) is True]
    for layer in in_place:
        # What a hook was shown must not be written over.
        layer.inplace = False  # type: ignore[assignment]
    wired = None
    try:
        with warnings.catch_warnings():
            # Said of every first layer, whose inputs are records and need no gradient.
            warnings.filterwarnings("ignore", "Full backward hook is firing")
            wired = GradSampleModuleFastGradientClipping(
                module, loss_reduction="sum", max_grad_norm=clip, use_ghost_clipping=ghost
            )
            yield wired
    finally:
        if wired is not None:
            wired.remove_hooks()
        for layer, value in zip(layers, full, strict=True):
            layer._is_full_backward_hook = value
        for layer in in_place:
            layer.inplace = True  # type: ignore[assignment]
        for thing, names in zip(things, known, strict=True):
            for name in set(vars(thing)) - names:
                delattr(thing, name)
