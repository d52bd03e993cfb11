"""The two front doors: audit a model, or audit saved predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope.auditing.asking import Asking
from leakscope.auditing.doors import check_side, enter_model, enter_records
from leakscope.auditing.run import run_audit
from leakscope.auditing.settings import Settings, typed
from leakscope.auditing.shadows import Shadowing, shadow_recipe
from leakscope.errors import InputError
from leakscope.models.predictions import SavedPredictions
from leakscope.protocols import Attack, Labels, Progress, Task, silent
from leakscope.records import Records
from leakscope.report import Report
from leakscope.report.folders import check_folder
from leakscope.trials.backends import check_backend

# Where shadow models are kept, within the folder of the report.
TRIALS = "trials"


def audit(
    model: Any,
    members: Any,
    nonmembers: Any,
    *,
    label: str | None = None,
    groups: Sequence[str] | None = None,
    unit: str | None = None,
    classes: Labels | None = None,
    task: Task | None = None,
    attacks: Sequence[str | Attack] | None = None,
    channels: Sequence[str] | None = None,
    limit: float = 0.1,
    prior: float = 0.5,
    randomized: bool = False,
    delta: float = 1e-5,
    max_overlap: float = 0.05,
    seed: int = 0,
    recipe: Any = None,
    shadows: int = 0,
    workers: int | None = None,
    backend: str = "local",
    address: str | None = None,
    fresh: bool = False,
    store: str | Path | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
    command: str | None = None,
    dataset: str | None = None,
    tail_limit: float = 5.0,
) -> Report:
    """Who can tell that a record was used to train this model, and how surely.

    model: a fitted scikit-learn estimator (or one that follows its interface), a function from
    features to probabilities, or an HttpModel. members, nonmembers: (X, y), a DataFrame with
    label=, or Records. groups: columns to report by. unit: the column of the person a row belongs
    to. limit: the advantage below which no leak counts as found. tail_limit: the same for the
    members found at a false positive rate of 1 %, as a multiple of that rate. prior: the share of
    members among those an adversary asks about, for the positive predictive value. randomized:
    each record was put on its side by an independent fair coin; only then is a lower bound on ε
    given, at delta.
    shadows: how many models to train like it, on other draws from these records, for the attacks
    that compare it with them; 0 leaves those attacks out. recipe: how to train one, an unfitted
    estimator, a name or a Recipe; a scikit-learn model's own clone by default. They are trained by
    as many workers as there are cores, or on a cluster (backend "dask" or "ray", at address), and
    kept in the folder store (out/trials by default), where another run finds them unless it is
    fresh. progress: called with what is being done, how many steps are done, and of how many;
    progress=print will do.
    out: a folder for report.json, report.html and records.csv.
    """
    settings = Settings(
        attacks, channels, limit, prior, randomized, delta, max_overlap, seed, shadows, tail_limit
    )
    settings.check()
    _check_shadowing(shadows, recipe, workers, backend, address, fresh)
    if out is not None:
        check_folder(out)
    wrapped = enter_model(model, members, label, classes, task)
    features = getattr(wrapped, "feature_names", None)
    sides = [
        enter_records(data, side, label=label, groups=groups, unit=unit, features=features)
        for data, side in ((members, "members"), (nonmembers, "nonmembers"))
    ]
    asking = Asking.of(wrapped)
    asking.check(sides)
    for side in sides:
        check_side(wrapped, side)
    told = typed(label=label, groups=groups, unit=unit, classes=classes, task=task, recipe=recipe)
    shadowing = None
    if shadows:
        if store is None and out is not None:
            store = Path(out) / TRIALS
        found = shadow_recipe(recipe, wrapped)
        folder = None if store is None else Path(store)
        shadowing = Shadowing(found, shadows, folder, workers, backend, address, fresh)
    report = run_audit(
        wrapped,
        sides[0],
        sides[1],
        settings,
        progress=progress or silent,
        command=command or f"leakscope.audit(model, members, nonmembers, {told}{settings.typed()})",
        dataset=dataset,
        unit=unit,
        shadowing=shadowing,
        asking=asking,
    )
    if out is not None:
        report.save(out)
    return report


def _check_shadowing(
    shadows: int,
    recipe: Any,
    workers: int | None,
    backend: str,
    address: str | None,
    fresh: bool,
) -> None:
    """Refuse what has no effect without shadow models, and a backend that cannot be used."""
    given = {
        "recipe": recipe is not None,
        "workers": workers is not None,
        "backend": backend != "local",
        "address": address is not None,
        "fresh": fresh,
    }
    idle = next((name for name, is_given in given.items() if is_given), None)
    if idle is not None and not shadows:
        raise InputError(
            f"{idle}= is about shadow models, of which none are trained; say how many with "
            "shadows=32"
        )
    check_backend(backend, workers, address)


def audit_predictions(
    member_probabilities: ArrayLike,
    member_labels: ArrayLike,
    nonmember_probabilities: ArrayLike,
    nonmember_labels: ArrayLike,
    *,
    classes: Labels | None = None,
    attacks: Sequence[str | Attack] | None = None,
    channels: Sequence[str] | None = None,
    limit: float = 0.1,
    prior: float = 0.5,
    randomized: bool = False,
    delta: float = 1e-5,
    max_overlap: float = 0.05,
    seed: int = 0,
    member_groups: dict[str, ArrayLike] | None = None,
    nonmember_groups: dict[str, ArrayLike] | None = None,
    member_units: ArrayLike | None = None,
    nonmember_units: ArrayLike | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
    command: str | None = None,
    tail_limit: float = 5.0,
) -> Report:
    """An audit from saved predictions, with no model at hand.

    Probabilities (n, k), or (n,) of the second of two classes; labels (n,). classes: the label of
    each column, by default the labels in sorted order where they are not the numbers 0 … k−1.
    Controls that look at features cannot be run, and the report says so.
    """
    settings = Settings(
        attacks, channels, limit, prior, randomized, delta, max_overlap, seed, tail_limit=tail_limit
    )
    settings.check()
    if out is not None:
        check_folder(out)
    given = (
        ("members", member_probabilities, member_labels, member_groups, member_units),
        (
            "nonmembers",
            nonmember_probabilities,
            nonmember_labels,
            nonmember_groups,
            nonmember_units,
        ),
    )
    sides = [
        Records(_two_columns(values), y, groups or {}, units, name=name)  # type: ignore[arg-type]
        for name, values, y, groups, units in given
    ]
    given_classes = classes
    model = SavedPredictions(_classes_of(sides) if classes is None else classes)
    for side in sides:
        model.check(side)
        check_side(model, side)
    told = typed(classes=given_classes)
    report = run_audit(
        model,
        sides[0],
        sides[1],
        settings,
        progress=progress or silent,
        command=command or f"leakscope.audit_predictions(*saved, {told}{settings.typed()})",
        dataset=None,
        unit=None if member_units is None else "unit",
    )
    if out is not None:
        report.save(out)
    return report


def _two_columns(probabilities: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(probabilities)
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        return values  # text among them is refused by Records, with its column and row
    return np.column_stack([1.0 - values, values])


def _classes_of(sides: Sequence[Records]) -> Labels:
    k = np.shape(sides[0].X)[1]
    labels = np.unique(np.concatenate([side.y for side in sides]))
    numbered = labels.dtype.kind in "biu" and labels.min() >= 0 and labels.max() < k
    if not numbered and len(labels) != k:
        raise InputError(
            f"There are {k} probabilities per record and {len(labels)} different labels; "
            "pass classes= in the order of the columns"
        )
    return np.arange(k) if numbered else labels
