"""What every training record does to a model: the models without it, and what they change.

Influence is I = L(query, model without the record) − L(query, model) of Shokri, Strobel & Zick
(2021, sections 2 and 5), with L = 1 − P(label), as they have it, or the log-loss, or for a ridge
regression the squared error. The explanation of a prediction is the k records of largest |I|.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax

from leakscope.errors import InputError
from leakscope.exact.families import FamilyName
from leakscope.exact.labels import feature_matrix
from leakscope.exact.ordering import (
    Measure,
    influence_of,
    influence_order,
    most_influential,
    odds_against_others,
    ranks_of,
)
from leakscope.exact.screening import Screen
from leakscope.exact.threads import over_parts
from leakscope.options import one_of, whole_number
from leakscope.protocols import Floats, Indices, Labels

Method = Literal["exact", "one-step-newton", "koh-liang"]
Result = TypeVar("Result")
_Explained = Callable[[Measure, Floats, Labels, int], tuple[Indices, Floats]]

_NUMBERS = 2**18  # changes of logits held at a time, 2 MB in each array of that size
_WIDE = 512  # features from which on records are left out before products in double precision
_FEW = 8  # one record in so many is few enough for these to be compared alone


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """A model of n records with d features, and the n models that each lack one of them.

    theta (d + 1,): weights, then the intercept; multinomial (C, d + 1). theta_without (n, d + 1),
    multinomial (n, C, d + 1): row j is the model without record j. classes (C,), None for ridge
    regression. l2: the penalty, scikit-learn's 1/C or alpha. X (n, d): the training features.
    alike (n,): for each record the first that equals it. method: "exact", or which approximation.
    """

    family: FamilyName
    classes: Labels | None
    l2: float
    theta: Floats = field(repr=False)
    theta_without: Floats = field(repr=False)
    X: Floats = field(repr=False)
    alike: Indices = field(repr=False)
    method: Method = "exact"

    def __len__(self) -> int:
        return len(self.theta_without)

    def predict(self, X: ArrayLike) -> Labels:
        """The label the model of all records predicts for each query, (q,)."""
        logits = self._logits(self._queries(X))
        if self.classes is None:
            return logits[:, 0]
        labels: Labels = self.classes[_likeliest(logits)]
        return labels

    def predict_proba(self, X: ArrayLike) -> Floats:
        """The probability the model of all records gives to each class, (q, C)."""
        if self.classes is None:
            raise InputError("A ridge regression has no probabilities; use predict")
        logits = self._logits(self._queries(X))
        if self.family == "binomial":
            return np.column_stack([expit(-logits[:, 0]), expit(logits[:, 0])])
        shares: Floats = softmax(logits, axis=1)
        return shares

    def influence(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        measure: str | None = None,
        signed: bool = True,
    ) -> Floats:
        """The influence of each training record on each query, (q, n).

        y (q,): the labels whose loss is meant, by default those the model predicts. measure:
        "probability", the default for classes, "log-loss", or "squared-error", the default for
        numbers. signed: False for absolute values. Many queries are better taken in chunks.
        """
        chunks = [part for _, part in self.influence_chunks(X, y, measure, signed)]
        return np.concatenate(chunks) if chunks else np.empty((0, len(self)))

    def influence_chunks(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        measure: str | None = None,
        signed: bool = True,
    ) -> Iterator[tuple[slice, Floats]]:
        """The same in parts that fit into memory: which queries, and their influences (r, n)."""
        chosen = self._measure(measure)
        queries, labels = self._labelled_queries(X, y)
        for rows in _chunks(len(queries), self._width):
            values = influence_of(chosen, *self._changes(queries[rows], labels[rows]))
            yield rows, values if signed else np.abs(values)

    def changes(self, X: ArrayLike, y: ArrayLike | None = None) -> Floats:
        """The change of the label's log-odds, or of the number predicted, without each record.

        (q, n), for each query; y as for influence, of which this is what does not saturate.
        """
        queries, labels = self._labelled_queries(X, y)
        return self._changes(queries, labels)[1]

    def explain(
        self, X: ArrayLike, k: int, measure: str | None = None, y: ArrayLike | None = None
    ) -> tuple[Indices, Floats]:
        """The k training records of largest influence on each query, and their influences.

        Both (q, k), the largest first. Records whose influence is the same number are ordered by
        what it would be with more digits, then by |change of the logit|, then by number.
        """
        whole_number("k", k, 1, len(self))
        chosen = self._measure(measure)
        queries, labels = self._labelled_queries(X, y)
        explained, width = self._way(queries, k)
        parts = _each(
            lambda rows: explained(chosen, queries[rows], labels[rows], k),
            _chunks(len(queries), width),
        )
        indices = [np.empty((0, k), dtype=np.intp), *(part[0] for part in parts)]
        return np.concatenate(indices), np.concatenate([np.empty((0, k)), *(p[1] for p in parts)])

    def self_ranks(self, measure: str | None = None, y: ArrayLike | None = None) -> Indices:
        """The place of each training record in the explanation of its own prediction, (n,).

        1: it comes first. A record of rank k or less is revealed by an explanation of k records.
        y (n,): the labels that are explained, by default those the model predicts.
        """
        chosen = self._measure(measure)
        queries, labels = self._labelled_queries(self.X, y)
        numbers = np.arange(len(self))

        def ranked(rows: slice) -> Indices:
            base, changes = self._changes(queries[rows], labels[rows])
            return ranks_of(influence_order(chosen, base, changes), changes, numbers[rows])

        return np.concatenate(_each(ranked, _chunks(len(self), self._width)))

    @cached_property
    def _distinct(self) -> tuple[Indices, Indices]:
        """The records that equal none before them, (u,), and each record's place there, (n,)."""
        records, places = np.unique(self.alike, return_inverse=True)
        return records, places

    @cached_property
    def _moves(self) -> tuple[Floats, Floats]:
        """Weights (u·C, d) and intercepts (u·C,) without each distinct record less those of all."""
        moves = (self.theta_without[self._distinct[0]] - self.theta).reshape(
            -1, self.theta.shape[-1]
        )
        return np.ascontiguousarray(moves[:, :-1]), moves[:, -1]

    @cached_property
    def _screen(self) -> Screen | None:
        """For wide records, where products take most of the time, and all of them distinct."""
        weights, intercepts = self._moves
        wide = self.family == "binomial" and weights.shape[1] >= _WIDE
        return Screen.of(weights, intercepts) if wide and len(weights) == len(self) else None

    def _way(self, queries: Floats, k: int) -> tuple[_Explained, int]:
        """How these queries (q, d) are best explained, and the changes that takes for each."""
        if self._screen is None or 2 * k >= len(self) or not len(queries):
            return self._explained, self._width
        few = self._screen.candidates(queries, k)
        if _FEW * len(few) > len(self):
            return self._screened, self._width
        return partial(self._among, few), len(few)

    def _explained(
        self, measure: Measure, queries: Floats, labels: Labels, k: int
    ) -> tuple[Indices, Floats]:
        """The k most influential records of each query (q, d) and their influence, both (q, k)."""
        base, changes = self._changes(queries, labels)
        indices = most_influential(measure, base, changes, k)
        return indices, influence_of(measure, base, np.take_along_axis(changes, indices, 1))

    def _among(
        self, records: Indices, measure: Measure, queries: Floats, labels: Labels, k: int
    ) -> tuple[Indices, Floats]:
        """The same for two classes, where they are known to be among these records (c,)."""
        weights, intercepts = self._moves
        signs = np.where(labels == 1, 1.0, -1.0)[:, None]
        # One product for the model and the records: reading the queries is what takes time.
        moved = queries @ np.vstack([self.theta[:-1], weights[records]]).T
        base = signs * (moved[:, :1] + self.theta[-1])
        changes = signs * (moved[:, 1:] + intercepts[records])
        places = most_influential(measure, base, changes, k)
        return records[places], influence_of(measure, base, np.take_along_axis(changes, places, 1))

    def _screened(
        self, measure: Measure, queries: Floats, labels: Labels, k: int
    ) -> tuple[Indices, Floats]:
        """The same, looked for in single precision first."""
        assert self._screen is not None
        rows, records = self._screen.pairs(queries, k)
        signs = np.where(labels == 1, 1.0, -1.0)
        base = (signs * self._logits(queries)[:, 0])[rows, None]
        changes = (signs[rows] * self._screen.changes(queries, rows, records))[:, None]
        orders = influence_order(measure, base, changes)[:, 0]
        order = np.lexsort((records, -np.abs(changes[:, 0]), -orders, rows))
        starts = np.searchsorted(rows, np.arange(len(queries)))
        first = order[starts[:, None] + np.arange(k)]
        values = influence_of(measure, base, changes)[:, 0]
        return records[first], values[first]

    def _queries(self, X: ArrayLike) -> Floats:
        """Queries (q, d) as finite numbers, and no copy of what is that already: it is large."""
        width = self.theta.shape[-1] - 1
        if not isinstance(X, np.ndarray) or X.dtype != np.float64 or X.shape[1:] != (width,):
            return feature_matrix(X, width)
        return X if np.isfinite(X).all() else feature_matrix(X, width)

    def _logits(self, queries: Floats) -> Floats:
        """(q, C), one column for two classes and for numbers."""
        theta = np.atleast_2d(self.theta)
        return queries @ theta[:, :-1].T + theta[:, -1]

    def _labelled_queries(self, X: ArrayLike, y: ArrayLike | None) -> tuple[Floats, Labels]:
        """Queries (q, d), and class numbers or targets (q,), as asked for or predicted."""
        queries = self._queries(X)
        if y is None:
            logits = self._logits(queries)
            return queries, logits[:, 0] if self.classes is None else _likeliest(logits)
        labels = np.asarray(y)
        if labels.shape != queries.shape[:1]:
            raise InputError(
                f"There must be one label for each of the {len(queries)} queries, got an array of "
                f"shape {labels.shape}"
            )
        if self.classes is None:
            return queries, labels.astype(np.float64)
        numbers = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        strange = np.flatnonzero(self.classes[numbers] != labels)
        if len(strange):
            raise InputError(
                f"The label {labels[strange[0]]} of query {strange[0]} is none of the model's "
                f"{len(self.classes)} classes"
            )
        return queries, numbers

    def _measure(self, measure: str | None) -> Measure:
        if self.classes is None:
            one_of("measure", measure or "squared-error", ["squared-error"])
            return "squared-error"
        one_of("measure", measure or "probability", ["probability", "log-loss"])
        return "log-loss" if measure == "log-loss" else "probability"

    @property
    def _width(self) -> int:
        """The changes of logits of one query."""
        return int(self.theta_without[..., 0].size)

    def _changes(self, queries: Floats, labels: Labels) -> tuple[Floats, Floats]:
        """The log-odds of the labels, (r, 1), and their change without each record, (r, n).

        For numbers: the error of the prediction, and the change of the prediction. Records that are
        the same are computed once: products of matrices round by place.
        """
        base, changes = self._distinct_changes(queries, labels)
        return base, changes[:, self._distinct[1]] if changes.shape[1] < len(self) else changes

    def _distinct_changes(self, queries: Floats, labels: Labels) -> tuple[Floats, Floats]:
        """The same for the distinct records, (r, u)."""
        logits = self._logits(queries)
        weights, intercepts = self._moves
        moved = queries @ weights.T
        moved += intercepts
        if self.classes is None:
            return logits - labels[:, None], moved
        if self.family == "binomial":
            signs = np.where(labels == 1, 1.0, -1.0)[:, None]
            moved *= signs
            return signs * logits, moved
        return odds_against_others(logits, moved.reshape(len(queries), -1, logits.shape[1]), labels)


def _likeliest(logits: Floats) -> Indices:
    """The class number of largest probability, (q,)."""
    if logits.shape[1] == 1:
        return (logits[:, 0] > 0).astype(np.intp)
    best: Indices = logits.argmax(axis=1)
    return best


def _chunks(size: int, width: int) -> list[slice]:
    """Slices of so many queries, each of so many changes of logits, that fit into memory."""
    step = max(1, _NUMBERS // width)
    return [slice(start, start + step) for start in range(0, size, step)]


def _each(work: Callable[[slice], Result], chunks: list[slice]) -> list[Result]:
    """The work on each chunk, by threads if there are several."""
    return [work(rows) for rows in chunks] if len(chunks) <= 1 else list(over_parts(work, chunks))
