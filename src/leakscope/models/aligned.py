"""A model that answers for classes it was not trained on: they have probability 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import ModelError
from leakscope.models.answers import class_numbers
from leakscope.models.parameters import parameters_of
from leakscope.probabilities import log_loss
from leakscope.protocols import Floats, Labels, Model
from leakscope.records.checks import listed, shown


def aligned(model: Model, classes: Labels | None) -> Model:
    """The model with a probability for each of the classes (k,), in their order.

    A subset of the records may lack a rare class, and a model trained on it has no column for it.
    With a column of zeros it can be asked for the loss or the margin of every record, and stands
    beside other models. The model itself where its classes are these already, or has none
    (regression).
    """
    if model.task == "regression":
        return model
    if model.classes is None or classes is None:
        raise ModelError(
            f"{model.name} cannot be given a column per class before its classes are known; make "
            "it of a recipe, or pass classes= in the order of its columns"
        )
    own, wanted = np.asarray(model.classes).tolist(), np.asarray(classes).tolist()
    if own == wanted:
        return model
    column = {label: position for position, label in enumerate(wanted)}
    unknown = [label for label in own if label not in column]
    if unknown:
        raise ModelError(
            f"{model.name} has the class {shown(unknown[0])}, which is not among "
            f"{listed(shown(label) for label in wanted)}; give the classes of all of the records"
        )
    return _Aligned(model, np.asarray(classes), np.array([column[label] for label in own]))


class _Aligned:
    """A model whose columns are put in the places of other classes."""

    def __init__(self, model: Model, classes: Labels, columns: NDArray[np.intp]) -> None:
        self._model = model
        self._columns = columns
        self.classes: Labels | None = classes
        self.name, self.task = model.name, model.task
        # Those of the model itself number its classes in another way.
        self.abilities = model.abilities - {"gradients", "records"}
        if len(columns) < len(classes):
            self.abilities -= {"parameters"}  # fewer than those of models that know all classes

    def predict(self, X: Any) -> Labels:
        """The label of each record, (n,)."""
        return self._model.predict(X)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, (n, k), 0 for those the model does not know."""
        assert self.classes is not None
        probabilities = np.zeros((len(X), len(self.classes)))
        # Of a single class there is nothing to ask: one column would be taken for one of two.
        probabilities[:, self._columns] = (
            self._model.predict_proba(X) if len(self._columns) > 1 else 1.0
        )
        return probabilities

    def loss(self, X: Any, y: Labels) -> Floats:
        """The log-loss of each record, (n,)."""
        return log_loss(self.predict_proba(X), class_numbers(self, y))

    def parameters(self) -> Floats:
        """The parameter vector, (p,), where the model knows all of the classes."""
        assert self.classes is not None
        if len(self._columns) < len(self.classes):
            raise ModelError(
                f"{self.name} was trained without {len(self.classes) - len(self._columns)} of the "
                f"{len(self.classes)} classes and has other parameters than models of all of them; "
                "train each model on records of every class"
            )
        return parameters_of(self._model)
