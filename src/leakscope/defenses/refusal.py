"""No explanation by the very record that is asked about.

Against self-revelation (Shokri, Strobel & Zick 2021, section 5.1): who asks about a member is not
shown that member. But a refusal says the same thing: whoever is refused, and holds the record, has
learnt that it is a training record and an influential one. Showing the next records instead says
nothing to that query, and asking a little beside the record shows it all the same. Both are
measured in docs/record_explanations.md; a tolerance only makes the way longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from leakscope.channels.influence import ROUNDING
from leakscope.defenses.explanations import ExplanationDefense, Guard, Screen, blocks, spreads
from leakscope.options import magnitude, whole_number
from leakscope.protocols import Bools, Explainer, Floats, Indices
from leakscope.registry import register


@register("defense")
@dataclass(frozen=True)
class RefusedExplanations(ExplanationDefense):
    """No explanation of a query that equals a training record which the explanation would show.

    tolerance: a record is taken for the query up to this Euclidean distance, each feature divided
    by its spread among the records. show_others: True to leave such records out and show the next
    ones instead of refusing; a draw is then from the others.
    """

    name: ClassVar[str] = "explain-refuse"
    paper: ClassVar[str] = "against Shokri, Strobel & Zick 2021, section 5.1"
    example: ClassVar[str] = "explain-refuse:0.5"

    tolerance: float = 0.0
    show_others: bool = False

    def __post_init__(self) -> None:
        magnitude("tolerance", self.tolerance)

    def __str__(self) -> str:
        return f"{self.name}:{self.tolerance:g}" + (" (others shown)" if self.show_others else "")

    def _guard(self, explainer: Explainer) -> Guard:
        return (Sidestepping if self.show_others else Refusing)(explainer, self)


@dataclass(frozen=True, eq=False)
class Sidestepping(Screen):
    """An explainer that shows every query other records than itself."""

    defense: RefusedExplanations

    def hidden(self, X: Floats) -> Bools:
        """Which records are as good as the query, (q, n)."""
        from scipy.spatial.distance import cdist

        tolerance = max(self.defense.tolerance, ROUNDING)
        near: Bools = cdist(X / self._spreads, self._scaled) <= tolerance
        return near

    @cached_property
    def _spreads(self) -> Floats:
        return spreads(self.X)

    @cached_property
    def _scaled(self) -> Floats:
        return self.X / self._spreads


@dataclass(frozen=True, eq=False)
class Refusing(Sidestepping):
    """An explainer that shows nothing where it would show the query itself.

    It stays outside a draw: what is refused is what was drawn.
    """

    layer: ClassVar[int] = 2

    def explain(self, X: Floats, k: int) -> tuple[Indices, Floats]:
        """The k most influential records, or −1 k times."""
        whole_number("k", k, 1, len(self.X))
        shown, values = self.explainer.explain(X, k)
        refused = np.zeros(len(X), dtype=bool)
        for rows in blocks(len(X), len(self.X)):
            own = np.take_along_axis(self.hidden(X[rows]), shown[rows], axis=1)
            refused[rows] = (own & (shown[rows] >= 0)).any(axis=1)
        return np.where(refused[:, None], -1, shown), np.where(refused[:, None], 0.0, values)

    def influence_chunks(self, X: Floats) -> Iterator[tuple[slice, Floats]]:
        """The influence of every record, NaN for all of them where the query is one of them."""
        for rows, influence in self.explainer.influence_chunks(X):
            refused = self.hidden(X[rows]).any(axis=1, keepdims=True)
            yield rows, np.where(refused, np.nan, influence)
