"""Networks that remember how their training went: the loss of their members after every epoch.

What Figure 2 of Wang et al. (2020) calls the classification loss: without the penalties that
pruning and the min-max game add to what is minimized.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from leakscope.models import Remembering
from leakscope.models.torch import TorchModel
from leakscope.protocols import BOTH, Ability, Channel, Floats, Model, Recipe, Task, WrappedModel
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

if TYPE_CHECKING:
    from torch import nn

    from leakscope.networks.training import Beginning, Figures, Hooks


class TracedModel(Remembering):
    """A model with the mean loss of its members after each epoch, (e,), which is stored with it."""

    def __init__(self, model: Model, losses: Floats) -> None:
        super().__init__(model)
        self.losses = losses

    def __reduce__(self) -> tuple[Callable[[Model, Floats], Model], tuple[Model, Floats]]:
        return TracedModel, (self.wrapped, self.losses)


@dataclass(frozen=True)
class LossCurve(Channel):
    """The mean loss of a model's members after each epoch of its training."""

    name: ClassVar[str] = "loss-curve"
    paper: ClassVar[str] = "Wang et al. 2020, Figure 2"
    tasks: ClassVar[frozenset[Task]] = BOTH
    needs: ClassVar[frozenset[Ability]] = frozenset()
    scope: ClassVar[Literal["record", "model"]] = "model"

    def width(self, model: Model) -> int:
        """How many epochs there were."""
        return len(_traced(model).losses)

    def observe(self, model: Model, records: Records) -> Floats:
        """(1, epochs)."""
        return _traced(model).losses[None]


def _traced(model: Model) -> TracedModel:
    while not isinstance(model, TracedModel):
        assert isinstance(model, WrappedModel)  # a TracedRecipe has made the one inside
        model = model.wrapped
    return model


@dataclass(frozen=True)
class TracedRecipe(Recipe):
    """A recipe of torch networks that remember their losses; their weights are the same."""

    name: str
    recipe: TorchRecipe
    together: int = 1

    def fit_many(
        self, records: Records, roles: NDArray[np.int8], seeds: Sequence[int]
    ) -> list[Model]:
        """One model per row of roles (m, n)."""
        made: list[Model] = []
        for row, seed in zip(roles, seeds, strict=True):
            trace = Trace()
            (model,) = replace(self.recipe, hooks=trace.hooks).fit_many(records, row[None], [seed])
            made.append(TracedModel(model, np.array(trace.losses)))
        return made


@dataclass
class Trace:
    """Looks at the members after every epoch, in whichever part of the training it is."""

    losses: list[float] = field(default_factory=list)

    def hooks(self, beginning: Beginning) -> Hooks:
        """What the training loop calls."""
        from leakscope.networks.training import Hooks

        given: Any = beginning.X
        X, y = given.numpy(), beginning.y.numpy()

        def look(module: nn.Module, epoch: int, figures: Figures) -> None:
            losses = TorchModel(module, outputs="logits").loss(X, y)
            self.losses.append(float(losses.mean()))

        return Hooks(on_epoch=look)
