"""Explanations only by records that have company: rare people are not shown.

Those whom explanations expose first are those who are unlike the others (Shokri, Strobel & Zick
2021, section 5.1, Table 2). Here a record is shown only if enough training records are near it;
where it would have been, the next most influential stands. It is no anonymity: those who have
company are shown as they are, and asking about them shows that they are members. Nor is it
differential privacy: whether a record is shown depends on who else is there.

People are company, not rows: one person's rows must not hide that the person is alone. Whose rows
they are is the option ``unit``. Without it equal rows count once, since nobody can tell whether
they are one person's: that hides too many where they are several people's, and still too few where
one person has many rows that differ a little.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from leakscope.channels.influence import ROUNDING
from leakscope.defenses.explanations import ExplanationDefense, Guard, Screen, blocks, spreads
from leakscope.errors import InputError
from leakscope.options import magnitude, whole_number
from leakscope.protocols import Bools, Explainer, Floats, Indices
from leakscope.records.checks import checked_column
from leakscope.records.content import numbered
from leakscope.registry import register


@register("defense")
@dataclass(frozen=True)
class CrowdedExplanations(ExplanationDefense):
    """Explanations only by records that have company in the training set.

    size: how many people, its own counted, must have a training record near one that is shown.
    radius: how near, by Euclidean distance, each feature divided by its spread among the records;
    labels do not count. By default it is the median distance to the size-th person, so that half of
    the records have company; 0 asks for equal records, and needs units. unit: whose each training
    record is, (n,), in their order; give it wherever one person may have several records. Without
    it every record is another person's, but equal ones count once.
    """

    name: ClassVar[str] = "explain-crowd"
    paper: ClassVar[str] = "after Shokri, Strobel & Zick 2021, section 5.1 (who is shown)"
    example: ClassVar[str] = "explain-crowd:5"

    size: int
    radius: float | None = None
    unit: ArrayLike | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        whole_number("size", self.size, 2)
        if self.radius is not None:
            magnitude("radius", self.radius)
        if self.unit is not None:
            ids = np.asarray(self.unit)
            if ids.ndim != 1:
                raise InputError(
                    f"The option unit must have one value for each training record, (n,), got "
                    f"shape {ids.shape}"
                )
            # Options are compared with each other, which arrays cannot be.
            object.__setattr__(self, "unit", tuple(ids.tolist()))
        elif self.radius == 0:
            raise InputError(
                f"The option radius is {self.radius!r}, which asks for equal records, and without "
                "units equal records count as one person's; give unit, or a larger radius"
            )

    def __str__(self) -> str:
        return f"{self.name}:{self.size}"

    def _guard(self, explainer: Explainer) -> Guard:
        guard = Crowded(explainer, self)
        people = guard.people.max() + 1
        if self.size > people:
            raise InputError(
                f"The option size is {self.size}, and the {len(explainer.X)} training records are "
                f"those of {people} people; ask for a smaller crowd"
            )
        return guard


@dataclass(frozen=True, eq=False)
class Crowded(Screen):
    """An explainer that shows only records with company."""

    defense: CrowdedExplanations

    def hidden(self, X: Floats) -> Bools:
        """The records without company, the same for every query, (q, n)."""
        return np.broadcast_to(self.alone, (len(X), len(self.alone)))

    @cached_property
    def people(self) -> Indices:
        """A number from 0 for whose each record is, (n,)."""
        if self.defense.unit is None:
            # Adding 0 makes the two zeros of floating point one.
            rounded = np.round(self._scaled / ROUNDING) + 0.0
            return np.unique(rounded, axis=0, return_inverse=True)[1]
        return numbered(checked_column(self.defense.unit, len(self.X), "unit", "training records"))

    @cached_property
    def alone(self) -> Bools:
        """Which records are never shown, (n,)."""
        radius = self.defense.radius
        far: Bools = self._reach > (np.median(self._reach) if radius is None else radius)
        return far

    @cached_property
    def _reach(self) -> Floats:
        """How far from each record the last person of its crowd is, (n,)."""
        from scipy.spatial.distance import cdist

        last = self.defense.size - 1
        order = np.argsort(self.people, kind="stable")
        by_person = self._scaled[order]
        starts = np.flatnonzero(np.diff(self.people[order], prepend=-1))
        reach = np.empty(len(order))
        for rows in blocks(len(order), len(order)):
            # A person is as near as the nearest of their records.
            nearest = np.minimum.reduceat(cdist(self._scaled[rows], by_person), starts, axis=1)
            reach[rows] = np.partition(nearest, last, axis=1)[:, last]
        return reach

    @cached_property
    def _scaled(self) -> Floats:
        return self.X / spreads(self.X)
