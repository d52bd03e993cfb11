"""Explanations by training records that show less of them: what those defenses have in common.

Shokri, Strobel & Zick (2021, sections 5 and 7) leave open how predictions could be explained by
records without giving those records away. Three ways are tried here, each around any explainer:
records drawn at random (``drawn``), only records that have company (``crowd``), and no explanation
of a query that is itself a record it would show (``refusal``). What each is worth is measured in
docs/record_explanations.md.

They combine in one order, in whichever they are wrapped: first who may be shown to the query (those
who have company, and with ``show_others`` those who are not the query itself), then who of them is
drawn, then whether the query is answered. A refusal that were decided on what is drawn from later
would refuse too much. Who may be shown is settled before the draw, as whoever asked a draw for more
records than are shown, to leave some out, would pay for all of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

import numpy as np

from leakscope.channels.influence import Around, RecordExplanations
from leakscope.channels.perturbing import spread
from leakscope.options import whole_number
from leakscope.protocols import (
    Bools,
    Channel,
    Defense,
    Explainer,
    Floats,
    Indices,
    Model,
)

# Numbers of one array of queries by records that is held at a time.
_NUMBERS = 2**20


@dataclass(frozen=True)
class ExplanationDefense(Defense):
    """A defense around explanations by records; it leaves recipes and other channels alone."""

    def wrap_channel(self, channel: Channel) -> Channel:
        """The channel with safer explanations; the channel itself if it shows no records."""
        if not isinstance(channel, RecordExplanations):
            return channel
        options = {
            one.name: getattr(channel, one.name) for one in fields(RecordExplanations) if one.init
        }
        return SaferExplanations(**options, channel=channel, defense=self)

    def around(self, explainer: Explainer) -> Explainer:
        """The explainer as it is shown to others; an oracle of it is a defended one."""
        guard = self._guard(explainer)
        if isinstance(explainer, Guard) and explainer.layer > guard.layer:
            return replace(explainer, explainer=self.around(explainer.explainer))
        return guard

    @abstractmethod
    def _guard(self, explainer: Explainer) -> Guard: ...


@dataclass(frozen=True)
class SaferExplanations(RecordExplanations):
    """The channel of explanations by records, as far as a defense lets them be seen."""

    channel: RecordExplanations = field(kw_only=True)
    defense: ExplanationDefense = field(kw_only=True)

    def explainer_of(self, model: Model) -> Explainer:
        """The model's explainer, defended."""
        return self.defense.around(self.channel.explainer_of(model))


@dataclass(frozen=True, eq=False)
class Guard(Around):
    """An explainer inside another that shows less; what the model predicts is not defended.

    ``layer``: guards of a larger one stay outside. ``influence_chunks`` gives what a guard outside
    may know: NaN for a record that is not shown, 0 where influence is not told.
    """

    layer: ClassVar[int]


@dataclass(frozen=True, eq=False)
class Screen(Guard):
    """A guard that hides some records from some queries and shows the next instead.

    Screens stay inside all other guards: a draw takes from what they leave.
    """

    layer: ClassVar[int] = 0

    @abstractmethod
    def hidden(self, X: Floats) -> Bools:
        """Which records are not shown to which of these queries, (q, n)."""

    def explain(self, X: Floats, k: int) -> tuple[Indices, Floats]:
        """The k most influential records that are not hidden, −1 where there are fewer."""
        whole_number("k", k, 1, len(self.X))
        shown, values = np.full((len(X), k), -1, dtype=np.intp), np.zeros((len(X), k))
        for rows in blocks(len(X), len(self.X)):
            shown[rows], values[rows] = self._next(X[rows], k)
        return shown, values

    def influence_chunks(self, X: Floats) -> Iterator[tuple[slice, Floats]]:
        """The influence of every record, NaN where it is hidden."""
        for rows, influence in self.explainer.influence_chunks(X):
            yield rows, np.where(self.hidden(X[rows]), np.nan, influence)

    def _next(self, X: Floats, k: int) -> tuple[Indices, Floats]:
        hidden, n = self.hidden(X), len(self.X)
        shown, values = np.full((len(X), k), -1, dtype=np.intp), np.zeros((len(X), k))
        # More than k at once, as some will be hidden; much more only where that was not enough.
        left, width = np.arange(len(X)), min(4 * k + 8, n)
        while len(left):
            positions, influence = self.explainer.explain(X[left], width)
            open_ = (positions >= 0) & ~np.take_along_axis(hidden[left], positions, axis=1)
            first = np.argsort(~open_, axis=1, kind="stable")[:, :k]
            there = np.take_along_axis(open_, first, axis=1)
            shown[left] = np.where(there, np.take_along_axis(positions, first, axis=1), -1)
            values[left] = np.where(there, np.take_along_axis(influence, first, axis=1), 0.0)
            left = left[~there.all(axis=1)] if width < n else left[:0]
            width = min(4 * width, n)
        return shown, values


def blocks(queries: int, records: int) -> Iterator[slice]:
    """Parts of the queries for which an array of queries by records fits into memory."""
    step = max(1, _NUMBERS // records)
    return (slice(start, start + step) for start in range(0, queries, step))


def spreads(X: Floats) -> Floats:
    """What a distance in each feature is divided by, (d,): its spread, or 1 where it has none."""
    found = spread(X)
    return np.where(found > 0, found, 1.0)
