"""Saved predictions where there is no model at hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from leakscope.errors import ModelError
from leakscope.models.answers import checked_probabilities, class_numbers, improbable, row_text
from leakscope.probabilities import log_loss
from leakscope.protocols import Ability, Floats, Labels, Task
from leakscope.records import Records


class SavedPredictions:
    """Predictions made elsewhere: the "features" of a record are its class probabilities.

    It answers for these records only, so channels that ask about others cannot run on it.
    """

    name = "saved predictions"
    task: Task = "classification"
    abilities: frozenset[Ability] = frozenset({"labels", "probabilities", "loss"})

    def __init__(self, classes: Labels) -> None:
        self.classes = np.asarray(classes)

    def check(self, side: Records) -> None:
        """Refuse predictions that cannot be probabilities of the classes, naming side and row."""
        values = np.asarray(side.X, dtype=np.float64)
        if values.shape[1:] != self.classes.shape:
            raise ModelError(
                f"The predictions of the {side.name} have the shape {values.shape} where there are "
                f"{len(self.classes)} classes; give one probability per class, and the classes in "
                "that order"
            )
        for row in improbable(values)[:1]:
            raise ModelError(
                f"The predictions of the {side.name} are {row_text(values[row])} in row {row} "
                "(counting from 0), which are not probabilities: finite numbers from 0 to 1 that "
                "sum to 1; apply a softmax to logits, or divide percentages by 100"
            )

    def predict(self, X: Any) -> Labels:
        """The most probable class of each record, (n,)."""
        return np.asarray(self.classes[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """The saved probabilities, (n, k)."""
        return checked_probabilities(X, len(X), self.name, len(self.classes))

    def loss(self, X: Any, y: Labels) -> Floats:
        """The log-loss of each record, (n,)."""
        return log_loss(self.predict_proba(X), class_numbers(self, y))
