"""Saved predictions where there is no model at hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from leakscope.models.answers import checked_probabilities, class_numbers
from leakscope.probabilities import log_loss
from leakscope.protocols import Ability, Floats, Labels, Task


class SavedPredictions:
    """Predictions made elsewhere: the "features" of a record are its class probabilities.

    It answers for these records only, so channels that ask about others cannot run on it.
    """

    name = "saved predictions"
    task: Task = "classification"
    abilities: frozenset[Ability] = frozenset({"labels", "probabilities", "loss"})

    def __init__(self, classes: Labels) -> None:
        self.classes = np.asarray(classes)

    def predict(self, X: Any) -> Labels:
        """The most probable class of each record, (n,)."""
        return np.asarray(self.classes[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """The saved probabilities, (n, k)."""
        return checked_probabilities(X, len(X), self.name, len(self.classes))

    def loss(self, X: Any, y: Labels) -> Floats:
        """The log-loss of each record, (n,)."""
        return log_loss(self.predict_proba(X), class_numbers(self, y))
