"""Recipes for the tests: quick to import, in this process and in every worker."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakscope.models.answers import class_numbers
from leakscope.probabilities import log_loss
from leakscope.protocols import Ability, Floats, Labels, Model, Recipe, Task
from leakscope.records import Records


class Centroids:
    """Classes by the distance to the mean of their records; a seed moves the means a little."""

    name = "centroids"
    task: Task = "classification"
    abilities: frozenset[Ability] = frozenset({"labels", "probabilities", "loss", "queries"})

    def __init__(self, X: Floats, y: Labels, seed: int, scale: float) -> None:
        self.classes: Labels | None = np.unique(y)
        means = np.stack([X[y == one].mean(axis=0) for one in self.classes])
        self.means = means + 0.1 * np.random.default_rng(seed).normal(size=means.shape)
        self.scale = scale

    def predict(self, X: Any) -> Labels:
        assert self.classes is not None
        return np.asarray(self.classes[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        near = -self.scale * ((np.asarray(X)[:, None] - self.means) ** 2).sum(axis=2)
        odds = np.exp(near - near.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def loss(self, X: Any, y: Labels) -> Floats:
        return log_loss(self.predict_proba(X), class_numbers(self, y))


@dataclass(frozen=True)
class Toy(Recipe):
    """Centroids, and whatever may go wrong on the way to them.

    seconds: how long a model takes. journal: a file with a line for every model that was trained.
    forbidden: a file with a seed and a word; while it is there, the model of that seed is not
    trained, and what the word says happens instead: raise, die, die-once or hang.
    A file named gone-wrong beside it then shows that it did.
    """

    name: str = "toy"
    scale: float = 1.0
    seconds: float = 0.0
    journal: Path | None = None
    forbidden: Path | None = None

    def fit_many(
        self, records: Records, roles: NDArray[np.int8], seeds: Sequence[int]
    ) -> list[Model]:
        return [self._fit(records, row == 1, seed) for row, seed in zip(roles, seeds, strict=True)]

    def _fit(self, records: Records, members: NDArray[np.bool_], seed: int) -> Model:
        if self.forbidden is not None and self.forbidden.exists():
            asked, what = self.forbidden.read_text().split()
            if int(asked) == seed:
                if what == "die-once":
                    self.forbidden.unlink()
                self.forbidden.with_name("gone-wrong").touch()
                _go_wrong(what)
        if self.journal is not None:
            with self.journal.open("a") as journal:
                journal.write(f"{seed}\n")
        time.sleep(self.seconds)
        return Centroids(records.X[members], records.y[members], seed, self.scale)


def _go_wrong(what: str) -> None:
    if what == "raise":
        raise ValueError("the matrix is singular.\nA second line.")
    if what.startswith("die"):
        os.kill(os.getpid(), 9)
    # One call into a library that never comes back, and gives Python no chance to look up: a lock
    # that is taken twice. Unlike a sleep, a signal does not end it.
    library, lock = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(lock)
    library.pthread_mutex_lock(lock)


@dataclass(frozen=True)
class Together(Toy):
    """Models in threes, each of which knows the number of members of all three."""

    name: str = "together"
    together: ClassVar[int] = 3

    def fit_many(
        self, records: Records, roles: NDArray[np.int8], seeds: Sequence[int]
    ) -> list[Model]:
        models = super().fit_many(records, roles, seeds)
        for model in models:
            model.means += 1e-3 * (roles == 1).sum() + 1e-3 * len(roles)  # type: ignore[attr-defined]
        return models


def draw_records(n: int = 300, classes: int = 2, seed: int = 0) -> Records:
    """Overlapping clouds, one per class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return Records(rng.normal(size=(n, 4)) + y[:, None], y)
