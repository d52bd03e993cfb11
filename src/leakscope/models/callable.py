"""A plain function from features to probabilities (or to numbers, for a regression)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from leakscope.errors import LeakscopeError, ModelError
from leakscope.models.answers import (
    checked_numbers,
    checked_probabilities,
    class_numbers,
    first_line,
    squared_error,
)
from leakscope.probabilities import log_loss
from leakscope.protocols import Ability, Floats, Labels, Task
from leakscope.registry import register


@register("model", "callable")
class CallableModel:
    """A function from features (n, …) to class probabilities (n, k), or to numbers (n,)."""

    def __init__(self, function: Callable[[Any], Any], classes: Labels | None, task: Task) -> None:
        self.function = function
        self.name = _plain_name(function)
        self.task = task
        self.classes = None if classes is None else np.asarray(classes)
        abilities: set[Ability] = {"labels", "loss", "queries"}
        if task == "classification":
            abilities.add("probabilities")
        self.abilities = frozenset(abilities)

    @staticmethod
    def accepts(thing: Any) -> bool:
        """Whether it can be called; neither classes, estimators nor torch modules are meant."""
        if isinstance(thing, type) or hasattr(thing, "get_params") or is_torch(thing):
            return False
        return callable(thing)

    @classmethod
    def wrap(
        cls, thing: Any, *, classes: Labels | None = None, task: Task | None = None
    ) -> CallableModel:
        """The function as a Model; without classes, column j stands for the label j."""
        return cls(thing, classes, task or "classification")

    def predict(self, X: Any) -> Labels:
        """The label of each record, (n,): the most probable class, or the number."""
        if self.task == "regression":
            return checked_numbers(self._ask(X), len(X), self.name)
        best = self.predict_proba(X).argmax(axis=1)
        assert self.classes is not None  # predict_proba sets it
        return np.asarray(self.classes[best])

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, (n, k)."""
        k = None if self.classes is None else len(self.classes)
        probabilities = checked_probabilities(self._ask(X), len(X), self.name, k)
        if self.classes is None:
            self.classes = np.arange(probabilities.shape[1])
        return probabilities

    def loss(self, X: Any, y: Labels) -> Floats:
        """The loss of each record, (n,)."""
        if self.task == "regression":
            return squared_error(self._ask(X), y, self.name)
        probabilities = self.predict_proba(X)
        return log_loss(probabilities, class_numbers(self, y))

    def _ask(self, X: Any) -> Any:
        try:
            return self.function(X)
        except LeakscopeError:
            raise  # it says what is wrong itself, as a model behind HTTP does
        except (Exception, SystemExit) as error:
            raise ModelError(
                f"{self.name} could not answer for these records: {first_line(error)}"
            ) from error


def is_torch(thing: Any) -> bool:
    """Whether it is a torch module: callable, but with tensors, gradients and a training mode."""
    return any(parent.__module__.partition(".")[0] == "torch" for parent in type(thing).__mro__)


def _plain_name(function: Any) -> str:
    """What the report calls it: a method together with its class, a lambda "the function"."""
    if isinstance(function, partial):
        return _plain_name(function.func)
    name = str(getattr(function, "__name__", type(function).__name__))
    owner = getattr(function, "__self__", None)
    if owner is not None:
        return f"{type(owner).__name__}.{name}"
    return "the function" if name == "<lambda>" else name
