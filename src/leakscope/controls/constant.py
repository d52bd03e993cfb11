"""The constant model: every attack again, on a model that says the same of everyone.

Such a model knows nobody. If an attack still tells the sides apart, it is not the audited model
that gives members away: their labels differ, or the attack is at fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from leakscope.controls import Control
from leakscope.metrics.curves import auc_delong
from leakscope.models import class_numbers
from leakscope.models.callable import CallableModel
from leakscope.protocols import Bools, Floats, Labels, Model
from leakscope.records import Records

LEVEL = 0.001


def constant_model(model: Model, records: Records) -> CallableModel:
    """The model of the same task that answers with the average label of all records."""
    if model.classes is None:
        mean = float(np.mean(np.asarray(records.y, dtype=np.float64)))
        return CallableModel(lambda X: np.full(len(X), mean), None, "regression")
    numbers = class_numbers(model, records.y, records.name)
    shares = np.bincount(numbers, minlength=len(model.classes)) / len(records)

    def answer(X: Any) -> Floats:
        return np.tile(shares, (len(X), 1))

    return CallableModel(answer, model.classes, "classification")


def constant_control(
    shots: Mapping[str, tuple[Floats, float]],
    not_run: Sequence[str],
    membership: Bools,
    unit: Labels | None,
) -> Control:
    """From each attack's scores (n,) on the constant model, with the inflation of their variance.

    None may tell the sides apart, in either sense. not_run: attacks that could not be tried on it.
    """
    left_out = f" It could not be tried with {', '.join(not_run)}." if not_run else ""
    if not shots:
        detail = f"No attack could be tried on a model that says the same of everyone.{left_out}"
        assumption = "the labels have the same distribution on both sides"
        return Control("constant model", None, True, detail, assumption)
    suspects = []
    for name, (scores, inflation) in sorted(shots.items()):
        area = auc_delong(
            scores,
            membership,
            unit=unit,
            inflation=inflation,
            confidence=1 - LEVEL / len(shots),
        )
        if not area.low <= 0.5 <= area.high:
            suspects.append(f"{name} (AUC {area.value:.3f})")
    told = "On a model that says the same of everyone"
    if suspects:
        return Control(
            "constant model",
            passed=False,
            fatal=True,
            detail=f"{told} the sides are still told apart by {', '.join(suspects)}: their labels "
            f"differ in distribution; draw both at random.{left_out}",
        )
    count = "1 attack is" if len(shots) == 1 else f"{len(shots)} attacks are"
    detail = f"{told}, {count} at chance.{left_out}"
    return Control("constant model", passed=True, fatal=True, detail=detail)
