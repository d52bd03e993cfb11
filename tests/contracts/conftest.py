"""Small populations in which the truth about membership is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from leakscope.auditing.battery import channel_of
from leakscope.models import as_model
from leakscope.protocols import Model
from leakscope.records import Records, pool
from leakscope.trials import Trials, random_halves

SHADOWS = 16


@dataclass(frozen=True, eq=False)
class World:
    """A model and a pool of records, the first of them members by name at least."""

    model: Model
    records: Records
    membership: np.ndarray
    _observed: dict[str, Trials] = field(default_factory=dict)

    def trials(self, channel: str) -> Trials:
        """Forests trained on random halves of the pool in canonical order, seen once."""
        if channel not in self._observed:
            records = self.records.take(self.records.canonical_order())
            seen = [channel_of(channel, 0).observe(model, records) for model in self._shadows]
            self._observed[channel] = Trials(
                roles=self._roles, observations={channel: np.stack(seen)}, seeds=range(SHADOWS)
            )
        return self._observed[channel]

    @cached_property
    def _roles(self) -> np.ndarray:
        return random_halves(len(self.records), SHADOWS, 11)

    @cached_property
    def _shadows(self) -> list[Model]:
        records = self.records.take(self.records.canonical_order())
        return [
            fit(records.take(np.flatnonzero(row == 1)), self.model.task, trees=10)
            for row in self._roles
        ]


def draw(n: int, seed: int, task: str) -> Records:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    signal = X[:, 0] + rng.normal(size=n)
    # Classes by rank: both sides have the same share of each, so that labels tell nothing.
    rank = np.argsort(np.argsort(signal)) / n
    y = (rank >= 0.5).astype(int) + (rank >= 0.8) if task == "classification" else signal
    return Records(X, y)


def fit(records: Records, task: str, trees: int = 20) -> Model:
    forest = RandomForestClassifier if task == "classification" else RandomForestRegressor
    return as_model(forest(trees, random_state=0).fit(records.X, records.y))


def constant(records: Records, task: str) -> Model:
    if task == "regression":
        return as_model(lambda X: np.full(len(X), 0.25), task="regression")
    return as_model(lambda X: np.tile([0.5, 0.2, 0.3], (len(X), 1)))


def untrained(records: Records, task: str) -> Model:
    """A network as it is before training: it answers, and has seen nobody."""
    rng = np.random.default_rng(7)
    inner, outer = rng.normal(size=(4, 16)), rng.normal(size=(16, 3))

    def answer(X):
        logits = np.tanh(X @ inner) @ outer
        if task == "regression":
            return logits[:, 0]
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    return as_model(answer, task=task)


@pytest.fixture(scope="session")
def world() -> Callable[..., World]:
    """A maker of worlds: leaky, constant, untrained, or with neither side in the training set."""
    made: dict[tuple, World] = {}

    def make(
        kind: str,
        task: str = "classification",
        sizes: tuple[int, int] = (300, 300),
        seed: int = 0,
    ) -> World:
        key = (kind, task, sizes, seed)
        if key not in made:
            members, nonmembers, others = (
                draw(size, 3 * seed + side, task) for side, size in enumerate((*sizes, 300))
            )
            records, membership = pool(members, nonmembers)
            makers = {
                "leaky": lambda: fit(members, task),
                "exchangeable": lambda: fit(others, task),
                "constant": lambda: constant(members, task),
                "untrained": lambda: untrained(members, task),
            }
            made[key] = World(makers[kind](), records, membership)
        return made[key]

    return make
