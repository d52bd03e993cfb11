"""Facts about the audited model: what it is, how large the sides are, how well it does on each."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.controls import Control
from leakscope.controls.target import accuracy_control, error_control
from leakscope.metrics.intervals import Interval, wilson
from leakscope.metrics.rates import Rates
from leakscope.metrics.samples import unit_codes
from leakscope.models import class_numbers
from leakscope.probabilities import count_clipped
from leakscope.protocols import Bools, Model
from leakscope.records import Records

_LOG = logging.getLogger(__name__)

Clusters = NDArray[np.intp] | None


def describe_target(
    model: Model, records: Records, membership: Bools, clusters: Clusters
) -> dict[str, Any]:
    """The part of the report about the target, apart from what the user said of it."""
    return {
        "model": model.name,
        "task": model.task,
        "classes": None if model.classes is None else [str(label) for label in model.classes],
        "class_sizes": _class_sizes(model, records, membership),
        "features": len(records.feature_names),
        "members": int(membership.sum()),
        "nonmembers": int((~membership).sum()),
        "units": unit_counts(records, membership),
        "fingerprint": records.side_fingerprint(membership),
        "clipped": _clipped(model, records),
        **_performance(model, records, membership, clusters),
    }


def _class_sizes(model: Model, records: Records, membership: Bools) -> dict[str, list[int]] | None:
    """How many records of each class there are on either side: rare ones can be withheld."""
    if model.classes is None:
        return None
    numbers, k = class_numbers(model, records.y), len(model.classes)
    return {
        side: np.bincount(numbers[rows], minlength=k).tolist()
        for side, rows in (("members", membership), ("nonmembers", ~membership))
    }


def target_control(
    model: Model, records: Records, membership: Bools, clusters: Clusters
) -> Control:
    """How well the target does on either side."""
    if model.task == "regression":
        return error_control(*_errors(model, records, membership))
    classes = None if model.classes is None else len(model.classes)
    return accuracy_control(*_accuracies(model, records, membership, clusters), classes)


def _performance(
    model: Model, records: Records, membership: Bools, clusters: Clusters
) -> dict[str, Any]:
    accuracies = ("member_accuracy", "nonmember_accuracy", "gap")
    errors = ("member_error", "nonmember_error")
    if model.task == "regression":
        found = zip(errors, _errors(model, records, membership), strict=True)
        return dict.fromkeys(accuracies) | dict(found)
    found_accuracies = _accuracies(model, records, membership, clusters)
    intervals = zip(accuracies, found_accuracies, strict=True)
    return {name: one.to_dict() for name, one in intervals} | dict.fromkeys(errors)


def _accuracies(
    model: Model, records: Records, membership: Bools, clusters: Clusters
) -> tuple[Interval, Interval, Interval]:
    """Accuracy on members, on non-members, and the gap between them."""
    truth = class_numbers(model, records.y)
    right = class_numbers(model, model.predict(records.X)) == truth
    rates = Rates.count(right, membership, _one_sided(clusters, membership))
    return (
        wilson(rates.tpr * rates.members, rates.members),
        wilson(rates.fpr * rates.nonmembers, rates.nonmembers),
        rates.advantage(),
    )


def _errors(model: Model, records: Records, membership: Bools) -> tuple[float, float]:
    """Root mean squared error on members and on non-members."""
    loss = model.loss(records.X, records.y)
    return float(np.sqrt(loss[membership].mean())), float(np.sqrt(loss[~membership].mean()))


def _one_sided(clusters: Clusters, membership: Bools) -> Clusters:
    """The clusters, or none where one is on both sides: the audit is then refused anyway."""
    if clusters is None or np.isin(clusters[membership], clusters[~membership]).any():
        return None
    return unit_codes(clusters, membership)


def _clipped(model: Model, records: Records) -> int:
    if "probabilities" not in model.abilities:
        return 0
    clipped = count_clipped(model.predict_proba(records.X), class_numbers(model, records.y))
    if clipped:
        _LOG.info("clipped the probability of %d records at 1e-7 before logarithms", clipped)
    return clipped


def unit_counts(records: Records, membership: Bools) -> dict[str, int] | None:
    """How many persons are on either side; None where rows have none."""
    if records.unit is None:
        return None
    sides = {"members": membership, "nonmembers": ~membership}
    return {name: len(set(records.unit[side].tolist())) for name, side in sides.items()}
