"""Channels of a model's outputs: label, probabilities, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from leakscope.models.answers import class_numbers
from leakscope.probabilities import entropy, logit_margin, modified_entropy
from leakscope.protocols import BOTH, CLASSIFICATION, Ability, Channel, Floats, Model, Task
from leakscope.records import Records
from leakscope.registry import register


@dataclass(frozen=True)
class OneNumber(Channel):
    """What the channels of one number per record share."""

    paper: ClassVar[str] = ""
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION
    needs: ClassVar[frozenset[Ability]] = frozenset({"probabilities"})
    scope: ClassVar[Literal["record", "model"]] = "record"

    def width(self, model: Model) -> int:
        """One."""
        return 1


@register("channel")
@dataclass(frozen=True)
class Label(OneNumber):
    """The predicted label alone: the number of the class, or the predicted number."""

    name: ClassVar[str] = "label"
    paper: ClassVar[str] = "Choquette-Choo et al. 2021"
    tasks: ClassVar[frozenset[Task]] = BOTH
    needs: ClassVar[frozenset[Ability]] = frozenset({"labels"})

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, 1)."""
        predicted = model.predict(records.X)
        if model.task == "classification":
            predicted = class_numbers(model, predicted)
        return np.asarray(predicted, dtype=np.float64)[:, None]


@register("channel")
@dataclass(frozen=True)
class Probabilities(Channel):
    """The whole vector of class probabilities."""

    name: ClassVar[str] = "probabilities"
    paper: ClassVar[str] = "Shokri et al. 2017, section III"
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION
    needs: ClassVar[frozenset[Ability]] = frozenset({"probabilities"})
    scope: ClassVar[Literal["record", "model"]] = "record"

    def width(self, model: Model) -> int:
        """The number of classes."""
        return 0 if model.classes is None else len(model.classes)

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, k)."""
        return model.predict_proba(records.X)


@register("channel")
@dataclass(frozen=True)
class Loss(OneNumber):
    """The loss of the record: log-loss for classes, squared error for numbers."""

    name: ClassVar[str] = "loss"
    paper: ClassVar[str] = "Yeom et al. 2018, section 3.2"
    tasks: ClassVar[frozenset[Task]] = BOTH
    needs: ClassVar[frozenset[Ability]] = frozenset({"loss"})

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, 1)."""
        return model.loss(records.X, records.y)[:, None]


@register("channel")
@dataclass(frozen=True)
class Margin(OneNumber):
    """The logit margin of the true class: log p − log(1 − p), near Gaussian over models."""

    name: ClassVar[str] = "margin"
    paper: ClassVar[str] = "Carlini et al. 2022, section IV-C"

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, 1)."""
        return logit_margin(*_answers(model, records))[:, None]


@register("channel")
@dataclass(frozen=True)
class Entropy(OneNumber):
    """The entropy of the prediction, in nats: how unsure the model is."""

    name: ClassVar[str] = "entropy"
    paper: ClassVar[str] = "Salem et al. 2019, section V"

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, 1)."""
        return entropy(model.predict_proba(records.X))[:, None]


@register("channel")
@dataclass(frozen=True)
class ModifiedEntropy(OneNumber):
    """Entropy that knows the true class: 0 where sure and right, large where sure and wrong."""

    name: ClassVar[str] = "modified-entropy"
    paper: ClassVar[str] = "Song & Mittal 2021, section 3.2"

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, 1)."""
        return modified_entropy(*_answers(model, records))[:, None]


def _answers(model: Model, records: Records) -> tuple[Floats, NDArray[np.int64]]:
    """Probabilities (n, k) and the number of each record's true class (n,)."""
    probabilities = model.predict_proba(records.X)
    return probabilities, class_numbers(model, records.y, records.name)
