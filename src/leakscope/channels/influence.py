"""The records channel: predictions are explained by the training records that influence them most.

Shokri, Strobel & Zick 2021, section 5. What is shown are real records, so that whoever asks about
a record of their own may find that very record in the answer. A model alone does not know its
training records; ``explained`` puts them beside one whose influence is exact.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast

import numpy as np

from leakscope.channels.perturbing import spread
from leakscope.errors import InputError, ModelError, NotApplicableError
from leakscope.exact.influence import LeaveOneOut
from leakscope.exact.reading import leave_one_out_of
from leakscope.models.answers import first_line
from leakscope.models.feature_columns import copied
from leakscope.models.parameters import parameters_of
from leakscope.models.sklearn import SklearnModel
from leakscope.options import one_of, whole_number
from leakscope.protocols import (
    BOTH,
    Ability,
    Channel,
    ExplainedModel,
    Explainer,
    Floats,
    Indices,
    Labels,
    Model,
    Progress,
    Show,
    Task,
    silent,
)
from leakscope.records import Records
from leakscope.registry import register

# The most training records of an audit: all pairs of them are compared.
MOST_RECORDS = 20_000
# The largest distance that is told, in standard deviations; it also stands where nothing is shown.
FARTHEST = 1000.0
# By so many standard deviations two results of the same transformation may differ.
ROUNDING = 1e-9

_NUMBERS = 2**22  # features of records shown that are held at a time


@register("channel")
@dataclass(frozen=True)
class RecordExplanations(Channel):
    """What an explanation of the record's own prediction shows: how near other records are to it.

    Of the k training records that influence the prediction most, the distance of each from the
    record and, unless show is "records", its influence or ("absolute") the size of it. The distance
    is Euclidean over the features that the model itself works on, each in standard deviations among
    the training records, labels apart; 0 is the very record. measure: "probability", the default
    for classes, or "log-loss"; "squared-error" for numbers.
    """

    name: ClassVar[str] = "records"
    paper: ClassVar[str] = "Shokri, Strobel & Zick 2021, section 5"
    tasks: ClassVar[frozenset[Task]] = BOTH
    needs: ClassVar[frozenset[Ability]] = frozenset({"records"})
    scope: ClassVar[Literal["record", "model"]] = "record"

    k: int = 5
    show: Show = "signed"
    measure: str | None = None

    def explainer_of(self, model: Model) -> Explainer:
        """What explains the model's predictions; a defense puts its own around it."""
        explainer = with_records(model).explainer
        if self.measure is None:
            return explainer
        if not isinstance(explainer, ExactInfluence):
            raise ModelError(
                f"The influence of records on {model.name} is measured in its own way; leave out "
                f"measure={self.measure!r}"
            )
        return replace(explainer, measure=self.measure)

    def width(self, model: Model) -> int:
        """One more than k, or than twice k where influence is told."""
        return 1 + self.k * (1 if self.show == "records" else 2)

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, 1 + k) or (n, 1 + 2k): the least distance, then all k, then k influences."""
        queries = with_records(model).prepared(records.X)
        return what_is_shown(self.explainer_of(model), queries, self.k, self.show)


def what_is_shown(explainer: Explainer, queries: Floats, k: int, show: Show) -> Floats:
    """What the explanations of queries (n, d) tell of them, (n, w) as ``observe`` has it.

    Where no record is shown the distance is that of the farthest, and the influence 0.
    """
    whole_number("k", k, 1)
    one_of("show", show, ("signed", "absolute", "records"))
    positions, values = explainer.explain(queries, k)
    distances = _distances(explainer.X, queries, positions)
    seen = [distances.min(axis=1, keepdims=True), distances]
    if show != "records":
        told = np.where(positions < 0, 0.0, values)
        seen.append(np.abs(told) if show == "absolute" else told)
    return np.concatenate(seen, axis=1)


def _distances(X: Floats, queries: Floats, positions: Indices) -> Floats:
    """How far the records at these positions (n, k) are from each query, (n, k)."""
    scale = spread(X)
    scale[scale == 0] = 1.0
    distances = np.empty(positions.shape)
    step = max(1, _NUMBERS // (positions.shape[1] * X.shape[1]))
    for start in range(0, len(queries), step):
        rows = slice(start, start + step)
        gaps = (X[positions[rows]] - queries[rows, None]) / scale
        gaps[np.abs(gaps) < ROUNDING] = 0.0
        distances[rows] = np.sqrt(np.square(gaps).sum(axis=2))
    return np.where(positions < 0, FARTHEST, np.minimum(distances, FARTHEST))


@dataclass(frozen=True, eq=False)
class ExactInfluence:
    """The records of a regression and the models without each, as an explainer.

    y (n,): their labels. measure: that of ``LeaveOneOut.explain``.
    """

    models: LeaveOneOut
    y: Labels
    measure: str | None = None

    @property
    def X(self) -> Floats:  # noqa: N802 -- a matrix, as everywhere
        """The features of the training records, (n, d)."""
        return self.models.X

    def predict(self, X: Floats) -> Floats:
        """The probability of class 1, (q,), or of every class, (q, C); the number predicted."""
        if self.models.classes is None:
            return self.models.predict(X)
        probabilities = self.models.predict_proba(X)
        return probabilities[:, 1] if self.models.family == "binomial" else probabilities

    def explain(self, X: Floats, k: int) -> tuple[Indices, Floats]:
        """The k records of largest influence on each query, and their influence, both (q, k)."""
        return self.models.explain(X, k, self.measure)

    def influence_chunks(self, X: Floats) -> Iterator[tuple[slice, Floats]]:
        """The influence of every record, in parts: which queries, and their influences (r, n)."""
        return self.models.influence_chunks(X, measure=self.measure)


@dataclass(frozen=True, eq=False)
class Around(Explainer):
    """An explainer of the same records and predictions as another one, which shows them otherwise.

    What it shows is for those who build on it to say.
    """

    explainer: Explainer

    @property
    def X(self) -> Floats:  # noqa: N802 -- a matrix, as everywhere
        """The features of the training records, (n, d)."""
        return self.explainer.X

    @property
    def y(self) -> Labels:
        """Their labels, (n,)."""
        return self.explainer.y

    def predict(self, X: Floats) -> Floats:
        """What is predicted inside."""
        return self.explainer.predict(X)


@dataclass(frozen=True, eq=False)
class NoInfluence(Around):
    """The same records with no influence on anything: none of them is ever shown."""

    def explain(self, X: Floats, k: int) -> tuple[Indices, Floats]:
        """No record for any query: −1 and 0, both (q, k)."""
        return np.full((len(X), k), -1, dtype=np.intp), np.zeros((len(X), k))

    def influence_chunks(self, X: Floats) -> Iterator[tuple[slice, Floats]]:
        """Zeros, (q, n)."""
        yield slice(0, len(X)), np.zeros((len(X), len(self.X)))


class Explained:
    """A model with the records that explain it: it answers as before, and has their ability."""

    def __init__(
        self, model: Model, explainer: Explainer, prepare: Callable[[Any], Floats]
    ) -> None:
        self.wrapped, self._prepare = model, prepare
        self.explainer = explainer
        self.name, self.task = model.name, model.task
        self.abilities: frozenset[Ability] = model.abilities | {"records"}

    @property
    def classes(self) -> Labels | None:
        """The classes of the model."""
        return self.wrapped.classes

    def predict(self, X: Any) -> Labels:
        """The label of each record, (n,)."""
        return self.wrapped.predict(X)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, (n, k)."""
        return self.wrapped.predict_proba(X)

    def loss(self, X: Any, y: Labels) -> Floats:
        """The loss of each record, (n,)."""
        return self.wrapped.loss(X, y)

    def parameters(self) -> Floats:
        """The parameter vector, (p,), of a model that has one."""
        return parameters_of(self.wrapped)

    def prepared(self, X: Any) -> Floats:
        """Records (n, …) as the explainer is asked about them, (n, d)."""
        return self._prepare(X)


def with_records(model: Model) -> ExplainedModel:
    """The model as one that comes with the records that explain it, or a ModelError."""
    if "records" not in model.abilities:
        raise ModelError(
            f"{model.name} comes without the records that explain it; put them beside it with "
            "leakscope.channels.influence.explained(model, members)"
        )
    return cast(ExplainedModel, model)


def explained(model: Model, members: Records, progress: Progress = silent) -> ExplainedModel:
    """The model with exact influence of its training records, or why there is none.

    members: all of the records that it was trained on. It is a LogisticRegression or a Ridge of
    scikit-learn, alone or at the end of a pipeline or in a search. What comes before it stays as it
    was fitted: influence is on the model of the features that it is given, and a record's part in
    preparing them is left out. A NotApplicableError says in a sentence why there is no influence.
    """
    if "records" in model.abilities:
        return with_records(model)
    if not isinstance(model, SklearnModel):
        raise NotApplicableError(
            f"The influence of records on {model.name} is not known exactly: it is no "
            "LogisticRegression or Ridge of scikit-learn."
        )
    if len(members) > MOST_RECORDS:
        raise NotApplicableError(
            f"There are {len(members):,} members, and an audit computes exact influence for "
            f"{MOST_RECORDS:,} at most; use leakscope.exact.leave_one_out_of and "
            "leakscope.extractions in Python."
        )
    *before, estimator = _in_a_row(model.estimator)

    def prepare(X: Any) -> Floats:
        prepared = model.as_fitted(copied(X))  # a step may work in place
        try:
            for step in before:
                prepared = step.transform(prepared)
            dense = prepared.toarray() if hasattr(prepared, "toarray") else prepared
            return np.asarray(dense, dtype=np.float64)
        except Exception as error:
            raise ModelError(
                f"The steps before {type(estimator).__name__} could not prepare these records: "
                f"{first_line(error)}"
            ) from error

    models = _left_out(estimator, prepare(members.X), members.y, progress)
    return Explained(model, ExactInfluence(models, members.y), prepare)


def _in_a_row(estimator: Any) -> list[Any]:
    """The steps of pipelines within pipelines and searches, the model itself last."""
    best = getattr(estimator, "best_estimator_", None)
    if best is not None:
        return _in_a_row(best)
    if not hasattr(estimator, "steps"):
        return [estimator]
    before = [estimator[:-1]] if len(estimator.steps) > 1 else []
    return [*before, *_in_a_row(estimator.steps[-1][1])]


def _left_out(estimator: Any, X: Floats, y: Labels, progress: Progress) -> LeaveOneOut:
    """The models without each member, if the estimator is the optimum of all of them."""
    with warnings.catch_warnings():
        # What is a warning to somebody who looks at influence would make an audit wrong.
        warnings.filterwarnings("error", ".* short of its optimum", UserWarning)
        try:
            return leave_one_out_of(estimator, X, y, progress=progress)
        except UserWarning as far:
            raise NotApplicableError(
                f"The {type(estimator).__name__} is not the optimum of these {len(y):,} members: "
                "they are not the records it was fitted on, or had weights there, or it has not "
                "converged (a LogisticRegression has with solver='newton-cholesky' and tol=1e-10)."
            ) from far
        except InputError as error:
            raise NotApplicableError(f"{error}.") from error
