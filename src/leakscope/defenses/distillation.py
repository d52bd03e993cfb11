"""Distillation: what is released is a student that learnt from a teacher's softened answers.

Where there are reference records D′ (role 2), the student learns from the teacher's answers to them
and never sees a member: that is what protects, since all that it has of the members went through
answers about other people (Shejwalkar & Houmansadr 2021). D′ is then what the student may leak of.
Without D′ it learns from the answers to the teacher's own members (Hinton et al. 2015), which is
softer training and little protection. No formal guarantee either way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from leakscope.defenses.networks import defended, network_recipe, refuse_no_logits, refuse_own_loop
from leakscope.options import magnitude
from leakscope.protocols import Defense, Recipe
from leakscope.registry import register

if TYPE_CHECKING:
    from torch import Tensor, nn

    from leakscope.networks.stages import Stage


@register("defense")
@dataclass(frozen=True)
class Distillation(Defense):
    """A fresh network learns from a trained one's softened answers, and is released in its place.

    temperature: what the logits of both are divided by while the student learns. The answers are
    about the reference records (role 2) if there are any, else about the members. The teacher is
    trained as the recipe says, also by which loss and where to stop; the student for all epochs.
    Parts that another defense adds afterwards train the student, on the same answers.
    """

    name: ClassVar[str] = "distill"
    paper: ClassVar[str] = "Hinton et al. 2015; Shejwalkar & Houmansadr 2021"
    example: ClassVar[str] = "distill:4"
    networks: ClassVar[bool] = True

    temperature: float = 4.0

    def __post_init__(self) -> None:
        magnitude("temperature", self.temperature, above=0)

    def __str__(self) -> str:
        return f"{self.name}:{self.temperature:g}"

    def wrap_recipe(self, recipe: Recipe) -> Recipe:
        """Students of the networks that there were."""
        made = network_recipe(recipe, self)
        refuse_own_loop(made, self, "a student's training")
        return defended(made, self, course=Teaching(made.course, self))


@dataclass(frozen=True)
class Teaching:
    """A course that puts a student in the place of the network it has trained."""

    before: Callable[[Stage], None] | None
    defense: Distillation

    def __call__(self, stage: Stage) -> None:
        """The course before, then the training of a student."""
        from leakscope.networks.stages import plainly

        refuse_no_logits(stage, self.defense)
        (self.before or plainly)(stage)
        if stage.reference is not None:
            stage.X = stage.reference[0]
        temperature = self.defense.temperature
        stage.y = softened(stage.module, stage.X, temperature)
        # Of such targets no prediction is right or wrong, so that there is no accuracy to stop at.
        stage.settings = replace(
            stage.settings,
            loss=SoftenedCrossEntropy(temperature),
            stop_at_gap=None,
            stop_at_accuracy=None,
        )
        stage.module = stage.fresh()
        stage.train()


@dataclass(frozen=True)
class SoftenedCrossEntropy:
    """The log-loss of logits (n, k) over the temperature for probabilities y (n, k).

    Times its square, as Hinton et al. 2015 have it (section 2), so that gradients stay as large as
    those of the plain loss whatever the temperature.
    """

    temperature: float

    def __call__(self, outputs: Tensor, y: Tensor) -> Tensor:
        """One number; a single output, (n, 1) or (n,), is the logit of class 1 against class 0."""
        from torch.nn import functional

        cooled = outputs / self.temperature
        if outputs.ndim == 1 or outputs.shape[1] == 1:
            loss = functional.binary_cross_entropy_with_logits(cooled.reshape(len(y)), y[:, 1])
        else:
            loss = functional.cross_entropy(cooled, y)
        return loss * self.temperature**2


def softened(teacher: nn.Module, X: Tensor, temperature: float) -> Tensor:
    """A trained network's probabilities (n, k) of records X (n, …) at this temperature."""
    import torch

    from leakscope.networks.minmax import class_probabilities
    from leakscope.networks.training import LOOKED_AT

    with torch.no_grad():
        parts = [
            class_probabilities(teacher(X[start : start + LOOKED_AT]) / temperature)
            for start in range(0, len(X), LOOKED_AT)
        ]
    return torch.cat(parts)
