"""What a model costs: the time and the passes over its records in training, and its size.

Training happens in workers and is resumed, so that its cost is written down where the model is: as
what a channel shows of it. The model itself is stored without it, the same bytes every time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from leakscope.models import Remembering
from leakscope.models.aligned import aligned
from leakscope.models.torch import TorchModel
from leakscope.protocols import BOTH, Ability, Channel, Floats, Model, Recipe, Task, WrappedModel
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records
from leakscope.trials.packing import pack

if TYPE_CHECKING:
    from leakscope.networks.stages import Loop
    from leakscope.networks.training import History

UNKNOWN = -1.0


class Costed(Remembering):
    """A model fresh from its training, which knows what that took; stored, it is the plain one."""

    def __init__(self, model: Model, seconds: float, epochs: float) -> None:
        super().__init__(model)
        self.seconds, self.epochs = seconds, epochs

    def __reduce__(self) -> tuple[Callable[[Model], Model], tuple[Model]]:
        return _itself, (self.wrapped,)


def _itself(model: Model) -> Model:
    return model


@dataclass(frozen=True)
class Cost(Channel):
    """The seconds and the passes over its records that a model was trained for; −1: unknown."""

    name: ClassVar[str] = "cost"
    paper: ClassVar[str] = ""
    tasks: ClassVar[frozenset[Task]] = BOTH
    needs: ClassVar[frozenset[Ability]] = frozenset()
    scope: ClassVar[Literal["record", "model"]] = "model"

    def width(self, model: Model) -> int:
        """Two."""
        return 2

    def observe(self, model: Model, records: Records) -> Floats:
        """(1, 2)."""
        while isinstance(model, WrappedModel):
            if isinstance(model, Costed):
                return np.array([[model.seconds, model.epochs]])
            model = model.wrapped
        return np.full((1, 2), UNKNOWN)


@dataclass(frozen=True)
class Measured(Recipe):
    """A recipe whose models tell what their training took."""

    name: str
    recipe: Recipe
    together: int = 1

    @classmethod
    def of(cls, recipe: Recipe) -> Measured:
        """Around a recipe."""
        return cls(recipe.name, recipe, recipe.together)

    def fit_many(
        self, records: Records, roles: NDArray[np.int8], seeds: Sequence[int]
    ) -> list[Model]:
        """One model per row of roles (m, n), each with its share of the time."""
        passes: list[int] = []
        recipe = counted(self.recipe, passes)
        started = time.perf_counter()
        models = recipe.fit_many(records, roles, seeds)
        seconds = (time.perf_counter() - started) / len(models)
        epochs = sum(passes) / len(models) if passes else UNKNOWN
        classes = np.unique(records.y)
        return [Costed(aligned(model, classes), seconds, epochs) for model in models]


def counted(recipe: Recipe, passes: list[int]) -> Recipe:
    """The same recipe, which enters how many epochs each part of a training had.

    A network that is trained by itself comes out the same to the last bit.
    """
    if isinstance(recipe, TorchRecipe):
        return replace(recipe, loop=Counting(recipe.loop, passes))
    around: Any = recipe
    inner = getattr(around, "recipe", None)
    made = None if inner is None else counted(inner, passes)
    if made is inner or not hasattr(around, "__dataclass_fields__"):
        return recipe
    changed: Recipe = replace(around, recipe=made)
    return changed


@dataclass(frozen=True)
class Counting:
    """A training loop that counts the epochs of another."""

    loop: Loop | None
    passes: list[int]

    def __call__(self, *given: Any, **named: Any) -> History:
        """How the training went."""
        from leakscope.networks.training import train

        history = (self.loop or train)(*given, **named)
        self.passes.append(len(history.epochs))
        return history


def alone(recipe: Recipe) -> Recipe:
    """The recipe with each network trained by itself.

    In a stack it would depend on its company in its last bits, and on how many seeds there are.
    """
    return replace(recipe, stack=1) if isinstance(recipe, TorchRecipe) else recipe


def size_of(model: Model) -> int | None:
    """How many bytes are released: the weights of a network, any other model as it is stored.

    Of a network whose weights are mostly zero it is the compact file, if that is smaller. None for
    a model that cannot be written.
    """
    if isinstance(model, TorchModel):
        from leakscope.networks.sparse import packed as compact

        state = model.module.state_dict()
        dense = sum(int(one.numel() * one.element_size()) for one in state.values())
        return min(dense, len(compact(state)))
    packed = pack(model)
    return None if packed is None else sum(len(part) for part in packed)


def seconds_to_predict(model: Model, X: Any) -> float:
    """How long a model takes to answer for these records: the shorter of two tries."""
    tries = []
    for _ in range(2):
        started = time.perf_counter()
        model.predict(X)
        tries.append(time.perf_counter() - started)
    return min(tries)
