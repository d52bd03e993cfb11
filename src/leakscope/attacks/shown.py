"""The attack on record-based explanations: whoever is shown to themselves was in the training set.

Shokri, Strobel & Zick 2021, section 5.1. A record has influence on its own prediction, often more
than any other, and an explanation that shows it tells its membership without any inference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leakscope.evidence import Evidence
from leakscope.protocols import BOTH, Attack, Floats, Knowledge, Task
from leakscope.registry import register


@register("attack")
@dataclass(frozen=True)
class Shown(Attack):
    """A member where the explanation of the record's own prediction shows that very record."""

    name: ClassVar[str] = "shown"
    paper: ClassVar[str] = "Shokri, Strobel & Zick 2021, section 5.1"
    channel: ClassVar[str] = "records"
    tasks: ClassVar[frozenset[Task]] = BOTH
    knowledge: ClassVar[Knowledge] = "none"
    on_request: ClassVar[bool] = True  # leaving out every record takes its time

    def score(self, evidence: Evidence) -> Floats:
        """0 where the nearest record that is shown is at no distance, else −1, (n,).

        How near another record is tells nothing: of those who are not shown to themselves the
        members are, if anything, farther from those who are.
        """
        return np.where(evidence.observations[:, 0] == 0, 0.0, -1.0)

    def threshold(self, evidence: Evidence) -> float | None:
        """The record itself."""
        return 0.0
