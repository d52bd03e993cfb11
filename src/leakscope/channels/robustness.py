"""The robustness channel: how well the predicted label survives noise in the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leakscope.channels.outputs import OneNumber
from leakscope.channels.perturbing import noisy_copies
from leakscope.models.answers import class_numbers
from leakscope.protocols import Ability, Floats, Model
from leakscope.records import Records
from leakscope.registry import register


@register("channel")
@dataclass(frozen=True)
class Robustness(OneNumber):
    """The share of noisy copies of the record that still get its true label.

    Numbers get Gaussian noise in units of their column's standard deviation; two-valued and text
    columns take the value of another record at random, with the same number as probability. Each
    scale is used for as many copies; the record itself is asked about once too.
    """

    name: ClassVar[str] = "robustness"
    paper: ClassVar[str] = "Choquette-Choo et al. 2021 (robustness to noise)"
    needs: ClassVar[frozenset[Ability]] = frozenset({"labels", "queries"})

    copies: int = 8
    scales: tuple[float, ...] = (0.05, 0.2, 0.5)
    seed: int = 0

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, 1), in steps of 1 / (1 + copies × scales)."""
        clean = model.predict(records.X)  # first: a plain function knows its classes once asked
        truth = class_numbers(model, records.y, records.name)
        right = (class_numbers(model, clean) == truth).astype(np.float64)
        asked = 1
        scales = [scale for scale in self.scales for _ in range(self.copies)]
        for noisy in noisy_copies(records.X, scales, self.seed):
            right += class_numbers(model, model.predict(noisy)) == truth
            asked += 1
            del noisy  # before the next is made
        return np.asarray(right / asked)[:, None]
