"""Every leave-one-out model of a logistic or ridge regression at once.

Shokri, Strobel & Zick (2021, section 5) explain a prediction by the training records without which
it would change most, and train a model without each. Here these models come from the one of all
records: a Newton step leads close to each, and further steps with the curvature of that one model,
corrected for the record that is missing, lead to it (columns.py). Where they do not, the model is
trained by itself (newton.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope.errors import InputError
from leakscope.exact.columns import LeftOut
from leakscope.exact.influence import LeaveOneOut, Method
from leakscope.exact.labels import Labelled, labelled, named
from leakscope.exact.newton import Minimum, minimum
from leakscope.exact.penalized import Regression
from leakscope.exact.remainders import Remainders
from leakscope.exact.threads import Each, over_parts, single_products, threads
from leakscope.exact.turning import turned
from leakscope.options import magnitude, whole_number
from leakscope.protocols import Floats, Indices, Progress, silent

_COLUMNS = 1024  # models moved together: enough for fast products, few enough to be light
_WIDE = 512  # features from which on one product is worth several threads
_NUMBERS = 2**23  # held for Woodbury's identity by the models moved together


def leave_one_out(
    X: ArrayLike,
    y: ArrayLike,
    l2: float = 1.0,
    family: str = "auto",
    sample_weight: ArrayLike | None = None,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> LeaveOneOut:
    """The model of all records, and for each record the model of all others.

    X (n, d) and y (n,): the training records. family: "binomial" or "multinomial" logistic
    regression, or "gaussian" for ridge regression; "auto" takes numbers with fractions for
    gaussian, and classes for what they are. l2: scikit-learn's 1/C, or the alpha of Ridge, in ½·l2
    times the sum of squared weights beside the sum of log-losses, or of half the squared errors;
    the intercept is not penalized. sample_weight (n,): of each record's loss; one of weight zero
    is in no model. workers: threads, as many as there are cores by default; the figures do not
    depend on it. progress: told of the records that are done.

    Where leaving out a record leaves a model without an optimum, as classes do that can then be
    separated under no penalty, an InputError names the record.
    """
    if workers is not None:
        whole_number("workers", workers, 1)
    with threads(workers) as each:
        task = Task.of(X, y, l2, family, sample_weight, each)
        task.prepare()
    columns, refused, done = [], list[int](), 0
    # Closed, whatever happens: what none has begun is then not waited for.
    with closing(over_parts(partial(_models_without, task), task.parts, workers)) as found:
        for part, (theta, lost) in zip(task.parts, found, strict=True):
            columns.append(theta)
            refused += lost
            done += len(part)
            (progress or silent)("records left out", done, len(task.distinct))
    if refused:
        raise InputError(_no_optimum_without(refused, l2))
    return task.result(columns, "exact")


@dataclass(frozen=True, eq=False)
class Task:
    """A regression with its optimum, and the records to be left out of it in parts.

    alike (n,): for each record the first that equals it. Records that are the same are left out
    once, so that what is the same is the same number. each: maps what is done for groups of records
    before any is left out.
    """

    X: Floats
    given: Labelled
    alike: Indices
    regression: Regression
    full: Minimum
    each: Each

    @classmethod
    def of(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        l2: float,
        family: str,
        sample_weight: ArrayLike | None,
        each: Each = map,
    ) -> Task:
        """Check what is given, and find the model of all records."""
        magnitude("l2", l2)
        features, given = labelled(X, y, family, sample_weight)
        if features.shape[1] >= _WIDE:  # either parts or products have several threads
            each = map
        with _products(features):
            regression = Regression.of(
                given.family, features, given.targets, given.weights, float(l2)
            )
            full = minimum(regression, given.weights, each=each)
        if full is None:
            raise InputError(
                f"The model of all records has no optimum at l2 = {l2:g}, or none that can be "
                "computed, as where classes can be separated; use a larger l2"
            )
        return cls(features, given, given.first_alike(features), regression, full, each)

    @cached_property
    def distinct(self) -> Indices:
        """The records that equal none before them."""
        return np.unique(self.alike)

    @cached_property
    def turned(self) -> tuple[Regression, Minimum]:
        """The regression and its optimum in the coordinates in which records are left out."""
        return turned(self.regression, self.full, self.each)

    @cached_property
    def remainders(self) -> Remainders:
        """Of that regression around its optimum, the same for all parts."""
        regression, full = self.turned
        return Remainders.around(regression, full.model)

    def prepare(self) -> None:
        """Compute what all parts share before threads ask for it at the same time."""
        if self.given.family.name != "gaussian":
            with _products(self.X):
                _ = self.remainders, self.turned[1].inverse

    @property
    def parts(self) -> list[Indices]:
        """These records in groups whose models are found together: by the shape alone."""
        width, free = self.full.model.shape
        step = max(1, min(_COLUMNS, _NUMBERS // (width * free * free)))
        # As large as each other, so that threads are done at about the same time.
        return np.array_split(self.distinct, -(-len(self.distinct) // step))

    def result(self, columns: Sequence[Floats], method: Method) -> LeaveOneOut:
        """The result of models (m, C, d + 1) of all parts."""
        theta = self.regression.parameters(self.full.model[..., None])[0]
        without = np.concatenate(columns)[np.searchsorted(self.distinct, self.alike)]
        without[self.given.weights == 0] = theta  # exactly: it is the same model
        single = len(theta) == 1
        return LeaveOneOut(
            family=self.given.family.name,
            classes=self.given.classes,
            l2=self.regression.l2,
            theta=theta[0] if single else theta,
            theta_without=without[:, 0] if single else without,
            X=self.X,
            alike=self.alike,
            method=method,
        )


def _products(features: Floats) -> AbstractContextManager[Any]:
    """With one thread for each product, unless they are wide enough to be worth several."""
    return single_products() if features.shape[1] < _WIDE else nullcontext()


def _models_without(task: Task, records: Indices) -> tuple[Floats, list[int]]:
    """The models (m, C, d + 1) without each of these records, and those that cannot be missed."""
    if task.regression.family.name == "gaussian":  # one step is all the way
        left_out = LeftOut.of(task.regression, task.full, records)
        models = task.full.model[..., None] + left_out.one_step()
        refused = [int(record) for record in records[left_out.determined]]
        return task.regression.parameters(models), refused
    models, found = LeftOut.of(*task.turned, records, task.remainders).solve_frozen()
    theta, refused = task.turned[0].parameters(models), []
    for column in np.flatnonzero(~found):
        weights = task.regression.weights.copy()
        weights[records[column]] = 0.0
        alone = minimum(task.regression, weights, task.full.model)
        if alone is None:
            refused.append(int(records[column]))
        else:
            theta[column] = task.regression.parameters(alone.model[..., None])[0]
    return theta, refused


def _no_optimum_without(records: Sequence[int], l2: float) -> str:
    return (
        f"There is no unique optimum at l2 = {l2:g} without {named(records)}, or none that can be "
        "computed; use a larger l2"
    )
