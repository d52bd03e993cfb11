"""Any trained model behind one small protocol; each kind is one file that says what it accepts."""

from __future__ import annotations

from os import PathLike
from typing import Any

from leakscope.errors import ModelError
from leakscope.models.answers import class_numbers
from leakscope.models.callable import is_torch
from leakscope.models.files import load_model
from leakscope.models.http import HttpModel
from leakscope.models.memory import Remembering
from leakscope.protocols import Labels, Model, Task
from leakscope.registry import entries

__all__ = ["HttpModel", "Remembering", "as_model", "class_numbers", "load_model"]


def as_model(thing: Any, *, classes: Labels | None = None, task: Task | None = None) -> Model:
    """A scikit-learn estimator, a torch module or a function of features, as a Model.

    classes and task say what a function or a module cannot: which label each column of its answer
    stands for, and whether it predicts classes (the default) or numbers.
    """
    if isinstance(thing, Model):
        return thing
    for entry in entries("model"):
        if entry.thing.accepts(thing):
            model: Model = entry.thing.wrap(thing, classes=classes, task=task)
            return model
    raise ModelError(_why_not(thing))


def _why_not(thing: Any) -> str:
    if isinstance(thing, type):
        return f"{thing.__qualname__} is a class; pass an instance of it, fitted on the members"
    kind = f"{type(thing).__module__}.{type(thing).__qualname__}"
    if is_torch(thing):
        return (
            f"A {kind} is a part of torch and no module; pass the nn.Module that answers, or a "
            "function from features to probabilities"
        )
    if isinstance(thing, str | PathLike):
        return f"{str(thing)!r} is a path; pass leakscope.models.load_model({str(thing)!r})"
    if hasattr(thing, "predict_proba"):
        return (
            f"A {kind} does not follow scikit-learn's interface; pass its method predict_proba, "
            "with classes= in the order of its columns"
        )
    known = "; ".join(entry.summary.rstrip(".") for entry in entries("model"))
    return f"A {kind} is not a model Leakscope knows; it takes: {known}"
