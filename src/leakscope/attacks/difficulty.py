"""Difficulty calibration: a low loss says little about a record that every model finds easy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leakscope.attacks.moments import checked, moments, require
from leakscope.evidence import Evidence
from leakscope.protocols import BOTH, Attack, Floats, Knowledge, Task
from leakscope.registry import register


@register("attack")
@dataclass(frozen=True)
class CalibratedLoss(Attack):
    """A member where the loss is lower than models trained without the record would have."""

    name: ClassVar[str] = "calibrated-loss"
    paper: ClassVar[str] = "Watson et al. 2022, section 3"
    channel: ClassVar[str] = "loss"
    tasks: ClassVar[frozenset[Task]] = BOTH
    knowledge: ClassVar[Knowledge] = "how it was trained, and records like its members"
    shadows: ClassVar[int] = 2

    def score(self, evidence: Evidence) -> Floats:
        """The mean loss of the models without the record, minus the target's, (n,)."""
        losses, inside, target = checked(
            evidence.shadow_observations, evidence.shadow_membership, evidence.observations
        )
        require(inside, 1, both=False)
        (without,) = moments(losses, inside, (False,), spread=False)
        return np.asarray((without.mean - target)[:, 0])
