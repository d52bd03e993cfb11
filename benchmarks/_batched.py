"""Many penalized models at once, by BFGS; part of benchmarks/penalty.py.

A fit of LeakagePenalizedRidge or LeakagePenalizedLogistic takes milliseconds, and the benchmark
needs hundreds of thousands. This finds the same minimum from the same start, a batch at a time;
the benchmark compares some of them with the estimators' own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leakscope.recipes.leakage_objective import LeakageObjective, plain_minimum, whitener


@dataclass
class Search:
    """The models of a batch that have not arrived: where they are, and what is known there."""

    objective: LeakageObjective
    root: np.ndarray
    theta: np.ndarray
    value: np.ndarray
    gradient: np.ndarray
    inverse: np.ndarray

    @classmethod
    def start(cls, objective: LeakageObjective) -> Search:
        """From the plain minimum, in coordinates where the plain objective is round."""
        theta = plain_minimum(objective)
        root = whitener(objective.plain(theta)[2])
        value, gradient = _evaluated(objective, theta, root)
        inverse = np.broadcast_to(np.eye(theta.shape[1]), root.shape).copy()
        return cls(objective, root, theta, value, gradient, inverse)

    def step(self, first: bool) -> None:
        """One step of every model, halved until it gains."""
        step = -(self.inverse @ self.gradient[..., None])[..., 0]
        slope = (step * self.gradient).sum(axis=1)
        length = np.ones(len(step))
        if first:
            length = np.minimum(1.0, 1 / np.maximum(np.linalg.norm(step, axis=1), 1e-300))
        for _ in range(30):
            moved = (self.root @ (length[:, None] * step)[..., None])[..., 0]
            value, gradient = _evaluated(self.objective, self.theta + moved, self.root)
            short = value > self.value + 1e-4 * length * slope + 1e-13 * np.abs(self.value)
            if not short.any():
                break
            length = np.where(short, length / 2, length)
        self._learn(length[:, None] * step, gradient - self.gradient)
        self.theta, self.value, self.gradient = self.theta + moved, value, gradient

    def _learn(self, step: np.ndarray, change: np.ndarray) -> None:
        """The inverse Hessians after a step, where it met upward curvature."""
        along = (step * change).sum(axis=1)
        usable = along > 1e-12 * np.linalg.norm(step, axis=1) * np.linalg.norm(change, axis=1)
        scale = np.where(usable, 1 / np.where(usable, along, 1.0), 0.0)[:, None, None]
        turn = np.eye(step.shape[1]) - scale * step[:, :, None] * change[:, None]
        learned = turn @ self.inverse @ turn.swapaxes(1, 2)
        learned += scale * step[:, :, None] * step[:, None]
        self.inverse = np.where(usable[:, None, None], learned, self.inverse)

    def keep(self, rows: np.ndarray) -> Search:
        """Some of the models."""
        objective = replace(self.objective, X=self.objective.X[rows], y=self.objective.y[rows])
        parts = (self.root, self.theta, self.value, self.gradient, self.inverse)
        return Search(objective, *(part[rows] for part in parts))


def penalized_minima(objective: LeakageObjective, steps: int = 100, tol: float = 1e-6) -> tuple:
    """The minima (b, q) of a batch of models, and how many did not arrive."""
    if objective.weight == 0:
        return plain_minimum(objective), 0
    search = Search.start(objective)
    found, left = search.theta.copy(), np.arange(len(search.theta))
    for number in range(steps):
        search.step(first=number == 0)
        found[left] = search.theta
        going = np.abs(search.gradient).max(axis=1) > tol
        left = left[going]
        if len(left) == 0:
            break
        if not going.all():
            search = search.keep(going)
    return found, len(left)


def _evaluated(objective: LeakageObjective, theta: np.ndarray, root: np.ndarray) -> tuple:
    value, gradient = objective.penalized(theta)
    return value, (gradient[:, None] @ root)[:, 0]
