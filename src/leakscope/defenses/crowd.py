"""Explanations only by records that have company: rare people are not shown.

Those whom explanations expose first are those who are unlike the others (Shokri, Strobel & Zick
2021, section 5.1, Table 2). Here a record is shown only if enough training records are near it;
where it would have been, the next most influential stands. It is no anonymity: those who have
company are shown as they are, and asking about them shows that they are members. Nor is it
differential privacy: whether a record is shown depends on who else is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from leakscope.defenses.explanations import ExplanationDefense, Guard, Screen, blocks, spreads
from leakscope.errors import InputError
from leakscope.options import magnitude, whole_number
from leakscope.protocols import Bools, Explainer, Floats
from leakscope.registry import register


@register("defense")
@dataclass(frozen=True)
class CrowdedExplanations(ExplanationDefense):
    """Explanations only by records that have company in the training set.

    size: how many training records, itself counted, must be near a record that is shown. radius:
    how near, by Euclidean distance, each feature divided by its spread among the records; labels
    do not count. By default it is the median distance to the size-th record, so that half of the
    records have company; 0 asks for equal ones.
    """

    name: ClassVar[str] = "explain-crowd"
    paper: ClassVar[str] = "after Shokri, Strobel & Zick 2021, section 5.1 (who is shown)"
    example: ClassVar[str] = "explain-crowd:5"

    size: int
    radius: float | None = None

    def __post_init__(self) -> None:
        whole_number("size", self.size, 2)
        if self.radius is not None:
            magnitude("radius", self.radius)

    def __str__(self) -> str:
        return f"{self.name}:{self.size}"

    def _guard(self, explainer: Explainer) -> Guard:
        if self.size > len(explainer.X):
            raise InputError(
                f"The option size is {self.size}, and there are {len(explainer.X)} training "
                "records; ask for a smaller crowd"
            )
        return Crowded(explainer, self)


@dataclass(frozen=True, eq=False)
class Crowded(Screen):
    """An explainer that shows only records with company."""

    layer: ClassVar[int] = 0

    defense: CrowdedExplanations

    def hidden(self, X: Floats) -> Bools:
        """The records without company, the same for every query, (q, n)."""
        return np.broadcast_to(self.alone, (len(X), len(self.alone)))

    @cached_property
    def alone(self) -> Bools:
        """Which records are never shown, (n,)."""
        radius = self.defense.radius
        far: Bools = self._reach > (np.median(self._reach) if radius is None else radius)
        return far

    @cached_property
    def _reach(self) -> Floats:
        """How far from each record the last of its crowd is, (n,)."""
        from scipy.spatial.distance import cdist

        scaled, last = self.X / spreads(self.X), self.defense.size - 1
        return np.concatenate(
            [
                np.partition(cdist(scaled[rows], scaled), last, axis=1)[:, last]
                for rows in blocks(len(scaled), len(scaled))
            ]
        )
