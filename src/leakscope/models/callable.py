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
    in_order_of,
    squared_error,
)
from leakscope.models.boosters import BoosterModel
from leakscope.models.feature_columns import copied
from leakscope.models.sklearn import SklearnModel
from leakscope.probabilities import log_loss
from leakscope.protocols import Ability, Floats, Labels, Task
from leakscope.records.checks import shown
from leakscope.registry import register


@register("model", "callable")
class CallableModel:
    """A function from features (n, …) to class probabilities (n, k), or to numbers (n,).

    The function gets a copy of the features, and may change it. A method of an estimator or a
    Booster reads the columns that this model was trained on, as the model itself would.
    """

    feature_names: list[str] | None = None
    default_names: list[str] | None = None
    reads_by_position: bool = False

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
        owner = getattr(thing, "__self__", None)
        if SklearnModel.accepts(owner):
            return _of_method(thing, SklearnModel.wrap(owner), classes, task)
        if BoosterModel.accepts(owner):
            return _of_method(thing, BoosterModel.wrap(owner), classes, task)
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
        answer = self._ask(X)
        _refuse_labels(answer, self.name)
        answer = in_order_of(self.classes, answer)
        probabilities = checked_probabilities(answer, len(X), self.name, k)
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
            return self.function(copied(X))
        except LeakscopeError:
            raise  # it says what is wrong itself, as a model behind HTTP does
        except (Exception, SystemExit) as error:
            raise ModelError(
                f"{self.name} could not answer for these records: {first_line(error)}"
            ) from error


# What methods of a classifier return that are not probabilities.
_RETURNS = {
    "predict": "labels",
    "decision_function": "scores",
    "predict_log_proba": "logarithms of probabilities",
}


def _of_method(
    method: Any, owner: SklearnModel | BoosterModel, classes: Labels | None, task: Task | None
) -> CallableModel:
    """The method of a model that Leakscope knows, which reads columns as the model does."""
    called = method.__name__
    task = task or owner.task
    probable = called == "predict_proba" or isinstance(owner, BoosterModel)
    function: Callable[[Any], Any] = method
    if task == owner.task == "regression" and called == "predict":
        function = owner.predict
    elif task == "classification" and probable and called in ("predict", "predict_proba"):
        function = owner.predict_proba
    elif task == "classification" and called in _RETURNS:
        proper = " or its method predict_proba" if "probabilities" in owner.abilities else ""
        raise ModelError(
            f"{_plain_name(method)} returns {_RETURNS[called]}, not probabilities; pass the model "
            f"itself{proper}. To audit what its labels reveal, add channels=['label']"
        )
    model = CallableModel(function, None if task == "regression" else classes, task)
    model.name = _plain_name(method)
    if function is not method:
        model.feature_names, model.default_names = owner.feature_names, owner.default_names
        model.reads_by_position = owner.reads_by_position
    return model


def _refuse_labels(answer: Any, name: str) -> None:
    """Refuse one text, whole number or truth value per record: these are labels.

    0.0 and 1.0 pass, which may be the probabilities of a tree.
    """
    try:
        values = np.asarray(answer)
    except ValueError:  # rows of different lengths, about which checked_probabilities has a message
        return
    if values.ndim not in (1, 2) or values.size == 0 or values.size != len(values):
        return
    first = values.ravel()[0]
    numbered = values.dtype.kind == "f" and (values % 1 == 0).all() and values.max() > 1
    if values.dtype.kind in "biu" or isinstance(first, str | bytes) or numbered:
        raise ModelError(
            f"{name} returned labels such as {shown(first)}, not probabilities; return one "
            "probability per class, as predict_proba does. If it has labels only, return 1.0 for "
            "the label and 0.0 for the other classes, and add channels=['label']"
        )


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
