"""The parameters channel: the adversary holds the model itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from leakscope.models.parameters import parameters_of
from leakscope.protocols import BOTH, Ability, Channel, Floats, Model, Task
from leakscope.records import Records
from leakscope.registry import register


@register("channel")
@dataclass(frozen=True)
class Parameters(Channel):
    """The parameters of the model, such as the weights of a regression.

    They are of no record in particular: one row for each model. What they tell of a record is a
    matter of comparing models with it and without it, as leakscope.leakage.parameter_leakage does
    where there are far fewer parameters than models.
    """

    name: ClassVar[str] = "parameters"
    paper: ClassVar[str] = "Farokhi & Kaafar 2020, section 3"
    tasks: ClassVar[frozenset[Task]] = BOTH
    needs: ClassVar[frozenset[Ability]] = frozenset({"parameters"})
    scope: ClassVar[Literal["record", "model"]] = "model"

    def width(self, model: Model) -> int:
        """The number of parameters."""
        return len(parameters_of(model))

    def observe(self, model: Model, records: Records) -> Floats:
        """(1, p)."""
        return parameters_of(model)[None]
