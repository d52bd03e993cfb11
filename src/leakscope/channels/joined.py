"""Several channels side by side: what an adversary sees who is shown more than one thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, Literal

import numpy as np

from leakscope.errors import InputError
from leakscope.protocols import Ability, Channel, Floats, Model, Task
from leakscope.records import Records

PLUS = "+"


@dataclass(frozen=True)
class Joined(Channel):
    """What several channels show of each record, in one row: ``Joined((Gradient(), Label()))``.

    Its name is those of its parts, in their order: "gradient+label". It needs what any of them
    needs, and shows the tasks that all of them show.
    """

    parts: tuple[Channel, ...]

    paper: ClassVar[str] = "Shokri, Strobel & Zick 2021, section 4.3"
    scope: ClassVar[Literal["record", "model"]] = "record"

    # What stands in the class elsewhere depends on the parts here.
    @property
    def name(self) -> str:  # type: ignore[override]
        """The names of the parts, joined by a plus."""
        return PLUS.join(part.name for part in self.parts)

    @property
    def tasks(self) -> frozenset[Task]:  # type: ignore[override]
        """The tasks that all parts are for."""
        return reduce(frozenset.intersection, (part.tasks for part in self.parts))

    @property
    def needs(self) -> frozenset[Ability]:  # type: ignore[override]
        """All that any part needs."""
        return reduce(frozenset.union, (part.needs for part in self.parts))

    def width(self, model: Model) -> int:
        """The widths of all parts together."""
        return sum(part.width(model) for part in self._checked())

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, w), the columns of the first part first."""
        return np.hstack([part.observe(model, records) for part in self._checked()])

    def _checked(self) -> Sequence[Channel]:
        for part in self.parts:
            if part.scope == "model":
                raise InputError(
                    f"The channel {part.name!r} shows the model as a whole and cannot stand beside "
                    "what is seen of each record; leave it out"
                )
        return self.parts
