"""Small populations in which the truth about membership is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.preprocessing import PolynomialFeatures
from torch import nn

from leakscope.auditing.battery import channel_of
from leakscope.channels.influence import ExactInfluence, Explained, NoInfluence
from leakscope.exact import leave_one_out
from leakscope.models import as_model
from leakscope.networks import MLP
from leakscope.protocols import Explainer, Model
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records, pool
from leakscope.trials import Trials, random_halves

SHADOWS = 16


@dataclass(frozen=True, eq=False)
class Shadows:
    """Models trained on random halves of a pool in canonical order, and what channels saw of them.

    They know nothing of the model that is attacked: worlds of the same records share them.
    """

    records: Records
    task: str
    wide: bool
    _observed: dict[str, Trials] = field(default_factory=dict)

    def trials(self, channel: str) -> Trials:
        """All of them through this channel, seen once."""
        if channel not in self._observed:
            seen = [channel_of(channel, 0).observe(model, self._ordered) for model in self._models]
            self._observed[channel] = Trials(
                roles=self._roles, observations={channel: np.stack(seen)}, seeds=range(SHADOWS)
            )
        return self._observed[channel]

    @cached_property
    def _ordered(self) -> Records:
        return self.records.take(self.records.canonical_order())

    @cached_property
    def _roles(self) -> np.ndarray:
        return random_halves(len(self.records), SHADOWS, 11)

    @cached_property
    def _models(self) -> list[Model]:
        if self.wide:
            return NETWORKS.fit_many(self._ordered, self._roles, range(SHADOWS))
        return [
            fit(self._ordered.take(np.flatnonzero(row == 1)), self.task, trees=10)
            for row in self._roles
        ]


@dataclass(frozen=True, eq=False)
class World:
    """A model and a pool of records, the first of them members by name at least."""

    model: Model
    records: Records
    membership: np.ndarray
    shadows: Shadows
    explain: Callable[[], Explainer] | None = None

    @cached_property
    def explained(self) -> Model:
        """The model with predictions explained by its records, as far as it has any."""
        return Explained(self.model, self.explain(), prepared)

    def seen_by(self, needs: frozenset[str]) -> Model:
        """The model that has what a channel needs."""
        return self.explained if "records" in needs else self.model

    def trials(self, channel: str) -> Trials:
        """Models trained on random halves of the pool in canonical order, seen once."""
        return self.shadows.trials(channel)


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


def draw_wide(n: int, seed: int) -> Records:
    """Many features that are 0 or 1: gradients tell members only where there are many."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, 200)) > 1).astype(float)
    rank = np.argsort(np.argsort(X[:, :20].sum(axis=1) / 4 + rng.normal(size=n))) / n
    return Records(X, (rank >= 0.5).astype(int) + (rank >= 0.8))


def tanh_network(features: int, classes: int) -> nn.Module:
    return MLP([features, 64, classes], activation="tanh")


NETWORKS = TorchRecipe("tanh", tanh_network, optimizer="adagrad", lr=0.1, epochs=100)


def network_of(kind: str, members: Records, others: Records) -> Model:
    """A network that learned its members by heart, others', nobody's, or nothing at all."""
    if kind in {"leaky", "exchangeable"}:
        return NETWORKS.fit(members if kind == "leaky" else others, 0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        module = tanh_network(200, 3)
    if kind == "constant":
        with torch.no_grad():
            for weights in module.parameters():
                weights.zero_()
            weights.copy_(torch.tensor([0.5, 0.2, 0.3]).log())
    return as_model(module)


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


def prepared(X):
    """More features than there are, so that a regression of them knows its records."""
    return PolynomialFeatures(2, include_bias=False).fit_transform(X)


def influence(records: Records, labels=None) -> Explainer:
    """The records of a regression that explain its predictions."""
    labels = records.y if labels is None else labels
    return ExactInfluence(leave_one_out(prepared(records.X), labels, 0.1), labels)


@pytest.fixture(scope="session")
def world() -> Callable[..., World]:
    """A maker of worlds: leaky, constant, untrained, or with neither side in the training set.

    wide: with networks of many features in place of forests.
    """
    made: dict[tuple, World] = {}
    shadows: dict[tuple, Shadows] = {}

    def make(
        kind: str,
        task: str = "classification",
        sizes: tuple[int, int] = (300, 300),
        seed: int = 0,
        *,
        wide: bool = False,
    ) -> World:
        where = (task, sizes, seed, wide)
        key = (kind, *where)
        if key in made:
            return made[key]
        members, nonmembers, others = (
            draw_wide(size, 3 * seed + side) if wide else draw(size, 3 * seed + side, task)
            for side, size in enumerate((*sizes, 300))
        )
        records, membership = pool(members, nonmembers)
        if where not in shadows:
            shadows[where] = Shadows(records, task, wide)
        if wide:
            model, explain = network_of(kind, members, others), None
        else:
            makers = {
                "leaky": lambda: fit(members, task),
                "exchangeable": lambda: fit(others, task),
                "constant": lambda: constant(members, task),
                "untrained": lambda: untrained(members, task),
            }
            # Before training all there is to show are others, and who is shown means nothing.
            shuffled = np.random.default_rng(3).permutation(others.y)
            explainers = {
                "leaky": lambda: influence(members),
                "exchangeable": lambda: influence(others),
                "constant": lambda: NoInfluence(influence(members)),
                "untrained": lambda: influence(others, shuffled),
            }
            model, explain = makers[kind](), explainers[kind]
        made[key] = World(model, records, membership, shadows[where], explain)
        return made[key]

    return make
