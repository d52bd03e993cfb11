"""Which networks of a recipe are trained together, and how many at once.

networks/together.py trains them. torch is imported only once there is a network to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from leakscope.recipes.tensors import Table

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from leakscope.networks.stacking import Layer
    from leakscope.networks.stages import Loop, Stage
    from leakscope.networks.training import Beginning, Hooks, Training

# Parameters in a stack, at most: with their gradients and an optimizer's two averages 64 MB. Larger
# networks gain little by being trained together, and nothing from 1.3 million parameters each.
MOST_PARAMETERS = 1 << 22


@dataclass(eq=False)
class Begun:
    """A network with its first weights, and what it will be trained on.

    records, reference, validation: positions in the table. order, weights, draws: the random
    streams of the order of its records, of its weights and then its dropout, and of its hooks.
    fresh: makes another network of the same factory, with weights of its own.
    """

    module: nn.Module
    records: Tensor
    reference: Tensor
    validation: Tensor | None
    order: torch.Generator
    weights: torch.Generator
    draws: torch.Generator
    fresh: Callable[[], nn.Module]


def models_at_once(factory: Callable[[Any, int], nn.Module], most: int) -> int:
    """How many networks of a factory are trained together: 1 where they are no plain networks.

    It is told by a network of two inputs and two classes, because a run is cut into chunks before
    there are records. One that cannot be made for them is trained alone.
    """
    try:
        parameters = _plain_parameters(factory)
    except TypeError:  # a factory that cannot be remembered
        parameters = _plain_parameters.__wrapped__(factory)
    return 1 if parameters is None else max(1, min(most, MOST_PARAMETERS // parameters))


def stacks(
    begun: Sequence[Begun], table: Table, together: int
) -> Iterator[tuple[slice, tuple[Layer, ...] | None]]:
    """Which networks to train together, in their order, and their layers; None: each by itself."""
    from leakscope.networks.mlp import MLP
    from leakscope.networks.stacking import layers_of

    def layers(one: Begun) -> tuple[Layer, ...] | None:
        # An MLP flattens images by itself; in other sequences a linear layer takes them by rows.
        flat = table.X.ndim == 2 or isinstance(one.module, MLP)
        return layers_of(one.module) if flat and together > 1 else None

    start = 0
    while start < len(begun):
        common, stop = layers(begun[start]), start + 1
        if common is not None:
            most = min(together, MOST_PARAMETERS // _size(begun[start].module))
            while stop < min(start + most, len(begun)) and layers(begun[stop]) == common:
                stop += 1
        yield slice(start, stop), common if stop - start > 1 else None
        start = stop


def train_alone(
    one: Begun,
    table: Table,
    settings: Training,
    hooks: Hooks | Callable[[Beginning], Hooks] | None,
    course: Callable[[Stage], None] | None = None,
    loop: Loop | None = None,
) -> None:
    """Train one network, in place unless its course puts another in its place."""
    from leakscope.networks.stages import Stage, plainly
    from leakscope.networks.training import Beginning, Hooks, train

    def rows(index: Tensor) -> tuple[Tensor, Tensor]:
        return table.X[index], table.y[index]

    X, y = rows(one.records)
    reference = rows(one.reference) if len(one.reference) else None
    if callable(hooks):
        hooks = hooks(Beginning(one.module, X, y, reference, one.draws))
    stage = Stage(
        module=one.module,
        X=X,
        y=y,
        reference=reference,
        validation=None if one.validation is None else rows(one.validation),
        settings=settings,
        hooks=hooks or Hooks(),
        order=one.order,
        weights=one.weights,
        random=one.draws,
        fresh=one.fresh,
        loop=loop or train,
    )
    (course or plainly)(stage)
    one.module = stage.module


def train_stack(
    begun: Sequence[Begun], layers: Sequence[Layer], table: Table, settings: Training
) -> None:
    """Train networks of the same layers in place, all at once."""
    from leakscope.networks.together import Member, train_together

    members = [
        Member(one.module, one.records, one.order, one.weights, one.validation) for one in begun
    ]
    train_together(members, layers, table.X.flatten(1), table.y, settings)


@lru_cache(maxsize=64)
def _plain_parameters(factory: Callable[[Any, int], nn.Module]) -> int | None:
    """How many parameters the smallest network of a factory has, if it is plain."""
    from leakscope.networks.seeding import Purpose, drawing_from, generator
    from leakscope.networks.stacking import layers_of

    try:
        with drawing_from(generator(0, Purpose.WEIGHTS)):
            module = factory(2, 2)
    except Exception:  # whatever a factory of images raises when it is given vectors
        return None
    return None if layers_of(module) is None else _size(module)


def _size(module: nn.Module) -> int:
    return sum(one.numel() for one in module.parameters())
