"""Min-max adversarial regularization: a network trained against one that infers its members.

Nasr, Shokri & Houmansadr 2018: beside its loss the model descends gamma times what an inference
network gains, which is trained meanwhile to tell the members from D′, the records of role 2.
networks/minmax.py plays the game. It guards best against attacks like its own opponent: where those
fell to near chance, a plain threshold on the loss was still far above it. Whatever judges it must
include other attacks, and records that are neither members nor D′.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakscope.defenses.networks import defended, network_recipe, refuse_no_logits, refuse_own_loop
from leakscope.defenses.reference import refuse_missing, refuse_shared
from leakscope.options import magnitude, whole_number
from leakscope.protocols import Defense, Recipe
from leakscope.records import Records
from leakscope.registry import register

if TYPE_CHECKING:
    from leakscope.networks.stages import Stage


@register("defense")
@dataclass(frozen=True)
class MinMax(Defense):
    """A network is trained against an inference network that learns to tell its members.

    gamma: the weight of the penalty, the mean of log h over the members of a batch, h being the
    inference network's probability that a record is a member; 0.1 to 0.3 where records have a few
    hundred features. attack_steps, attack_batch, attack_lr: how often the inference network is
    updated before each update of the model, on how many members and as many records of D′ (by
    default half of the model's batch), and at which rate of Adam. No formal guarantee.
    """

    name: ClassVar[str] = "minmax"
    paper: ClassVar[str] = "Nasr, Shokri & Houmansadr 2018; Wang et al. 2020, Eq. 1 to 3"
    example: ClassVar[str] = "minmax:0.3"
    networks: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = True

    gamma: float = 0.3
    attack_steps: int = 2
    attack_batch: int | None = None
    attack_lr: float = 1e-3

    def __post_init__(self) -> None:
        magnitude("gamma", self.gamma)
        whole_number("attack_steps", self.attack_steps, 1)
        if self.attack_batch is not None:
            whole_number("attack_batch", self.attack_batch, 1)
        magnitude("attack_lr", self.attack_lr, above=0)

    def __str__(self) -> str:
        others = [
            f"{one.name} {getattr(self, one.name):g}"
            for one in fields(self)[1:]
            if getattr(self, one.name) != one.default
        ]
        return f"{self.name}:{self.gamma:g}" + (f" ({', '.join(others)})" if others else "")

    def wrap_recipe(self, recipe: Recipe) -> Recipe:
        """The same networks, trained with the penalty; each needs records of role 2."""
        made = network_recipe(recipe, self)
        refuse_own_loop(made, self, "a penalty on its members")
        return defended(made, self, course=Playing(made.course, self))


@dataclass(frozen=True)
class Playing:
    """A course in which every training is a game."""

    before: Callable[[Stage], None] | None
    defense: MinMax

    def __call__(self, stage: Stage) -> None:
        """The course before, against a new inference network."""
        from leakscope.networks.minmax import MembershipGame, play
        from leakscope.networks.stages import plainly

        assert stage.reference is not None  # by check_roles
        game = MembershipGame(
            (stage.X, stage.y),
            stage.reference,
            refuse_no_logits(stage, self.defense),
            steps=self.defense.attack_steps,
            batch=self.defense.attack_batch,
            lr=self.defense.attack_lr,
            random=stage.random,
        )
        play(stage, game, self.defense.gamma)
        (self.before or plainly)(stage)

    def check_roles(self, records: Records, roles: NDArray[np.int8]) -> None:
        """Refuse roles (m, n) without D′, or with a D′ that is not apart from the others."""
        refuse_missing(roles, self.defense)
        refuse_shared(records, roles)
