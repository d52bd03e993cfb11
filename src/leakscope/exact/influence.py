"""What every training record does to a model: the models without it, and what they change.

Influence is I = L(query, model without the record) − L(query, model) of Shokri, Strobel & Zick
(2021, sections 2 and 5), with L = 1 − P(label), as they have it, or the log-loss, or for a ridge
regression the squared error. The explanation of a prediction is the k records of largest |I|.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logsumexp, softmax

from leakscope.errors import InputError
from leakscope.exact.families import FamilyName
from leakscope.exact.labels import feature_matrix
from leakscope.exact.ordering import (
    Measure,
    influence_of,
    influence_order,
    most_influential,
    ranks_of,
)
from leakscope.exact.screening import Screen
from leakscope.exact.threads import over_parts
from leakscope.options import one_of, whole_number
from leakscope.protocols import Floats, Indices, Labels

Method = Literal["exact", "one-step-newton", "koh-liang"]
Result = TypeVar("Result")

_NUMBERS = 2**18  # changes of logits held at a time, 2 MB in each array of that size
_WIDE = 512  # features from which on explanations are looked for in single precision first


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
        for rows in self._chunks(len(queries)):
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

        def explained(rows: slice) -> tuple[Indices, Floats]:
            if self._screen is not None and 2 * k < len(self):
                return self._screened(chosen, queries[rows], labels[rows], k)
            base, changes = self._changes(queries[rows], labels[rows])
            indices = most_influential(chosen, base, changes, k)
            return indices, influence_of(chosen, base, np.take_along_axis(changes, indices, 1))

        parts = _each(explained, self._chunks(len(queries)))
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

        return np.concatenate(_each(ranked, self._chunks(len(self))))

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

    def _screened(
        self, measure: Measure, queries: Floats, labels: Labels, k: int
    ) -> tuple[Indices, Floats]:
        """The k most influential records of each query (q, d) and their influence, both (q, k)."""
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
        return feature_matrix(X, self.theta.shape[-1] - 1)

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

    def _chunks(self, size: int) -> list[slice]:
        step = max(1, _NUMBERS // self.theta_without[..., 0].size)
        return [slice(start, start + step) for start in range(0, size, step)]

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
        return _odds_against_others(
            logits, moved.reshape(len(queries), -1, logits.shape[1]), labels
        )


def _likeliest(logits: Floats) -> Indices:
    """The class number of largest probability, (q,)."""
    if logits.shape[1] == 1:
        return (logits[:, 0] > 0).astype(np.intp)
    best: Indices = logits.argmax(axis=1)
    return best


def _odds_against_others(logits: Floats, moved: Floats, labels: Labels) -> tuple[Floats, Floats]:
    """Log-odds (r, 1) of each label against all others, and their changes (r, n).

    logits (r, C), and what is added to them without each record, (r, n, C).
    """
    rows = np.arange(len(logits))
    others = logits - logits[rows, labels][:, None]
    others[rows, labels] = -np.inf
    base = -logsumexp(others, axis=1)[:, None]
    moved = moved - moved[rows, :, labels][..., None]
    shares = softmax(others, axis=1)
    with np.errstate(over="ignore"):
        total = np.einsum("rc,rnc->rn", shares, np.expm1(moved))
    changes = -np.log1p(np.where(np.abs(total) < 0.5, total, 0.0))
    far = np.nonzero(~(np.abs(total) < 0.5))
    changes[far] = -logsumexp((others + base)[far[0]] + moved[far], axis=1)
    return base, changes


def _each(work: Callable[[slice], Result], chunks: list[slice]) -> list[Result]:
    """The work on each chunk, by threads if there are several."""
    return [work(rows) for rows in chunks] if len(chunks) <= 1 else list(over_parts(work, chunks))
