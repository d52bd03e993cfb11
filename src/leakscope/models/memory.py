"""A model that remembers its last answers, so that six channels ask it once."""

from __future__ import annotations

from typing import Any, cast

from leakscope.errors import ModelError
from leakscope.models.answers import class_numbers, squared_error
from leakscope.models.feature_columns import copied
from leakscope.models.parameters import parameters_of
from leakscope.probabilities import log_loss
from leakscope.protocols import ExplainedModel, Explainer, Floats, Labels, Model
from leakscope.records.checks import read_only


class Remembering:
    """A model whose answers for the same X (the same object) are computed once.

    Its answers cannot be written to: the next channel is given the same arrays.
    """

    def __init__(self, model: Model) -> None:
        self.wrapped = model
        self._labels: tuple[Any, Labels] | None = None
        self._probabilities: tuple[Any, Floats] | None = None
        self.name, self.task = model.name, model.task
        self.abilities = model.abilities

    @property
    def classes(self) -> Labels | None:
        """The classes; some models know them only once they have answered."""
        return self.wrapped.classes

    def predict(self, X: Any) -> Labels:
        """The label of each record, (n,)."""
        if self._labels is None or self._labels[0] is not X:
            self._labels = (X, read_only(self.wrapped.predict(self._shielded(X))))
        return self._labels[1]

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, (n, k)."""
        if self._probabilities is None or self._probabilities[0] is not X:
            self._probabilities = (X, read_only(self.wrapped.predict_proba(self._shielded(X))))
        return self._probabilities[1]

    def loss(self, X: Any, y: Labels) -> Floats:
        """The loss of each record, (n,), from the remembered answers."""
        if self.task == "regression":
            return squared_error(self.predict(X), y, self.name)
        return log_loss(self.predict_proba(X), class_numbers(self, y))

    def parameters(self) -> Floats:
        """The parameter vector, (p,), of a model that has one."""
        return parameters_of(self.wrapped)

    @property
    def explainer(self) -> Explainer:
        """The training records and their influence, of a model that comes with them."""
        return self._explained.explainer

    def prepared(self, X: Any) -> Floats:
        """Records (n, …) as that explainer is asked about them, (n, d)."""
        return self._explained.prepared(X)

    def _shielded(self, X: Any) -> Any:
        """A copy for a model of the user's own class, which may work in place; ours never do."""
        own = type(self.wrapped).__module__.partition(".")[0] == "leakscope"
        return X if own else copied(X)

    @property
    def _explained(self) -> ExplainedModel:
        if "records" not in self.abilities:
            raise ModelError(f"{self.name} comes without the records that explain it")
        return cast(ExplainedModel, self.wrapped)
