"""A model and its training records behind queries: the one place that counts what was revealed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError, ModelError, OracleBudgetError
from leakscope.options import one_of, whole_number
from leakscope.protocols import Answers, Bools, Explainer, Floats, Labels, Log, Show

# The probability of class 1, (q,) or of every class, (q, classes), for queries (q, d).
Predict = Callable[[Floats], Floats]
# The positions of the k most influential records, (q, k), −1 for none, and their influence, (q, k).
Explain = Callable[[Floats, int], tuple[NDArray[Any], Floats]]


@dataclass(eq=False)
class LocalOracle:
    """A model at hand, asked as a stranger would ask it.

    predict, explain: what it answers; X (n, d), y (n,): the training records, which explanations
    show; k: how many of them; show: with their influence, with its size alone, or without; budget:
    how many queries are answered, None for any number. The numbers of records are their positions
    in X, for whoever made the oracle; those who ask it may not rely on that. Where an explanation
    has the position −1 no record is shown: features, label and influence there are zeros (an empty
    text for labels of text), and the log has nothing of it.
    """

    predict: Predict
    explain: Explain
    X: Floats
    y: Labels
    k: int = 5
    show: Show = "signed"
    budget: int | None = None
    _queries: int = field(default=0, init=False, repr=False)
    _seen: Bools = field(init=False, repr=False)
    _shown: list[NDArray[np.int64]] = field(default_factory=list, init=False, repr=False)
    _first: list[NDArray[np.int64]] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def of(
        cls, explainer: Explainer, k: int = 5, show: Show = "signed", budget: int | None = None
    ) -> Self:
        """The oracle of a model whose records and their influence are known, defended or not."""
        return cls(explainer.predict, explainer.explain, explainer.X, explainer.y, k, show, budget)

    def __post_init__(self) -> None:
        self.X, self.y = np.asarray(self.X, dtype=np.float64), np.asarray(self.y)
        if self.X.ndim != 2 or self.y.shape != (len(self.X),):
            raise InputError(
                f"An oracle needs records X (n, d) and labels y (n,), "
                f"got shapes {self.X.shape} and {self.y.shape}"
            )
        whole_number("k", self.k, 1, len(self.X))
        one_of("show", self.show, get_args(Show))
        if self.budget is not None:
            whole_number("budget", self.budget, 0)
        self._seen = np.zeros(len(self.X), dtype=bool)

    @property
    def width(self) -> int:
        """How many features a query has."""
        return int(self.X.shape[1])

    @property
    def remaining(self) -> int | None:
        """How many queries are still answered; None: any number."""
        return None if self.budget is None else self.budget - self._queries

    @property
    def log(self) -> Log:
        """Every record shown so far, in order, with the query at which it was first shown."""
        nothing = [np.empty(0, dtype=np.int64)]
        return Log(
            self._queries,
            np.concatenate(nothing + self._shown),
            np.concatenate(nothing + self._first),
        )

    def ask(self, X: Floats) -> Answers:
        """The answers to the queries (q, d), all of them or, beyond the budget, none."""
        queries = self._checked_queries(X)
        if self.remaining is not None and len(queries) > self.remaining:
            raise OracleBudgetError(
                f"The oracle answers {self.remaining} more of its {self.budget} queries and was "
                f"asked {len(queries)}; ask fewer, or give it a larger budget"
            )
        predictions = self._checked_predictions(self.predict(queries), len(queries))
        positions, values = self._checked_explanations(*self.explain(queries, self.k), len(queries))
        self._write_down(positions)
        features, labels = self.X[positions], self.y[positions]
        nothing = positions < 0
        features[nothing], labels[nothing], values[nothing] = 0, np.zeros((), self.y.dtype), 0
        return Answers(predictions, positions, features, labels, _as_told(values, self.show))

    def _write_down(self, positions: NDArray[np.int64]) -> None:
        numbers, at = np.unique(positions, return_index=True)
        new = (numbers >= 0) & ~self._seen[numbers]
        order = np.argsort(at[new])
        self._shown.append(numbers[new][order])
        self._first.append(self._queries + at[new][order] // self.k + 1)
        self._seen[numbers[new]] = True
        self._queries += len(positions)

    def _checked_queries(self, X: Floats) -> Floats:
        queries = np.asarray(X, dtype=np.float64)
        if queries.ndim != 2 or queries.shape[1] != self.width:
            raise InputError(f"Queries must have shape (q, {self.width}), got {queries.shape}")
        if not np.isfinite(queries).all():
            raise InputError("A query has a feature that is not finite; ask with numbers alone")
        return queries

    def _checked_predictions(self, answered: Any, q: int) -> Floats:
        predictions = np.asarray(answered, dtype=np.float64)
        if predictions.ndim not in (1, 2) or len(predictions) != q:
            raise ModelError(
                f"The model answered {q} queries with predictions of shape {predictions.shape}; "
                f"it must give (q,) or (q, classes)"
            )
        if not np.isfinite(predictions).all():
            raise ModelError("The model predicted a number that is not finite; look at its predict")
        return predictions

    def _checked_explanations(
        self, positions: Any, values: Any, q: int
    ) -> tuple[NDArray[np.int64], Floats]:
        indices, influence = np.asarray(positions), np.array(values, dtype=np.float64)
        if indices.shape != (q, self.k) or influence.shape != (q, self.k):
            raise ModelError(
                f"An explanation of {q} queries must be two arrays of shape {(q, self.k)}, "
                f"got {indices.shape} and {influence.shape}"
            )
        outside = ((indices < -1) | (indices >= len(self.X))).any()
        if indices.dtype.kind not in "iu" or outside:
            raise ModelError(
                f"An explanation named a record that is not one of {len(self.X)}; give positions, "
                f"and −1 where none is shown"
            )
        ordered = np.sort(indices, axis=1)
        if ((np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] >= 0)).any():
            raise ModelError("An explanation named a record twice; the k records must differ")
        if not np.isfinite(influence).all():
            raise ModelError(
                "An explanation gave an influence that is not finite; look at its explain"
            )
        return indices.astype(np.int64), influence


def _as_told(values: Floats, show: Show) -> Floats | None:
    if show == "records":
        return None
    return np.abs(values) if show == "absolute" else values
