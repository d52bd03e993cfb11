"""Several queries per record: the margin of the record, and of noisy copies of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from leakscope.channels.perturbing import noisy_copies
from leakscope.models.answers import class_numbers
from leakscope.probabilities import logit_margin
from leakscope.protocols import CLASSIFICATION, Ability, Channel, Floats, Model, Task
from leakscope.records import Features, Records
from leakscope.registry import register


@register("channel")
@dataclass(frozen=True)
class NoisyMargin(Channel):
    """The logit margins of the record and of noisy copies of it.

    The noise is that of the robustness channel at one scale. It depends on the records and the
    seed alone, so that every model is asked about the same copies. The paper gains from copies of
    images, which its models saw augmented in training; on Adult no scale gained anything.
    """

    name: ClassVar[str] = "noisy-margin"
    paper: ClassVar[str] = "Carlini et al. 2022, section VI (number of queries)"
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION
    needs: ClassVar[frozenset[Ability]] = frozenset({"probabilities", "queries"})
    scope: ClassVar[Literal["record", "model"]] = "record"

    copies: int = 4
    scale: float = 0.02
    seed: int = 0

    def width(self, model: Model) -> int:
        """One more than copies."""
        return 1 + self.copies

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, 1 + copies), the record itself first."""
        return np.column_stack([*self._margins(model, records)])

    def _margins(self, model: Model, records: Records) -> Iterator[Floats]:
        for X in self._asked(records.X):
            probabilities = model.predict_proba(X)
            # After the first answer: a plain function knows its classes once asked.
            yield logit_margin(probabilities, class_numbers(model, records.y, records.name))

    def _asked(self, X: Features) -> Iterator[Features]:
        yield X
        yield from noisy_copies(X, [self.scale] * self.copies, self.seed)
