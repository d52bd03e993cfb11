"""A released model behind HTTP whose answers show training records: an oracle from afar."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, get_args

import numpy as np

from leakscope.errors import InputError, ModelError
from leakscope.models.service import Service
from leakscope.options import one_of, whole_number
from leakscope.protocols import Answers, Floats, Labels, Log, Show


@dataclass(frozen=True)
class _Shown:
    """A record in an explanation: its number, features (d,), label and influence."""

    number: int
    features: list[float]
    label: Any
    influence: float


@dataclass(frozen=True, eq=False, repr=False)
class RemoteOracle(Service):
    """A model behind HTTP that explains each prediction by training records.

    It is asked for predictions like an HttpModel, and answers beside them, under the key
    explanations, a list of at most k records for each query, the most influential first:
    ``{"features": […], "label": …, "influence": …}``, with an ``"id"`` where it has one. Records
    are told apart by that, else by their features and label, so that equal ones are one. width:
    how many features a query has. show: what it tells of influence; for "records" none is read.
    The budget counts queries. All other options are those of a Service.
    """

    _: KW_ONLY
    width: int
    k: int = 5
    show: Show = "signed"
    predictions: str = "predictions"
    explanations: str = "explanations"
    _numbers: dict[Hashable, int] = field(default_factory=dict, init=False)
    _first: list[int] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("width", self.width, 1)
        whole_number("k", self.k, 1)
        one_of("show", self.show, get_args(Show))

    @property
    def log(self) -> Log:
        """Every record shown so far, in order, with the query at which it was first shown."""
        first = np.array(self._first, dtype=np.int64)
        return Log(self.spent.records, np.arange(len(first), dtype=np.int64), first)

    def ask(self, X: Floats) -> Answers:
        """The answers to the queries (q, d), all of them or, beyond the budget, none."""
        queries = np.asarray(X, dtype=np.float64)
        if queries.ndim != 2 or queries.shape[1] != self.width or not np.isfinite(queries).all():
            raise InputError(
                f"Queries must be finite numbers of shape (q, {self.width}), got {queries.shape}"
            )
        predicted, shown = list[Any](), list[list[_Shown]]()
        start = self.spent.records
        for batch, answer in self.send([json.dumps(query) for query in queries.tolist()]):
            predicted += self.listed_under(answer, self.predictions, len(batch))
            for entry in self.listed_under(answer, self.explanations, len(batch)):
                shown.append(self._read(entry, start + len(shown) + 1))
        return self._arranged(self._checked(predicted), shown)

    def _read(self, entry: Any, query: int) -> list[_Shown]:
        """The records of one explanation; those never seen before are numbered and logged."""
        if not isinstance(entry, list) or len(entry) > self.k:
            raise ModelError(
                f"{self.__name__} explained a prediction by what is not a list of at most {self.k} "
                "records; give k as many as it shows"
            )
        found = [self._record(one, query) for one in entry]
        if len({one.number for one in found}) < len(found):
            raise ModelError(f"{self.__name__} showed a record twice in one explanation")
        return found

    def _record(self, one: Any, query: int) -> _Shown:
        known = one if isinstance(one, dict) else {}
        features, label = known.get("features"), known.get("label")
        influence: Any = 0.0 if self.show == "records" else known.get("influence")
        if (
            not isinstance(features, list)
            or len(features) != self.width
            or not all(map(_is_number, [*features, influence]))
            or not isinstance(label, int | float | str)
        ):
            more = "" if self.show == "records" else " and its influence"
            raise ModelError(
                f"{self.__name__} showed {self.quote(json.dumps(one))} for a record, where an "
                f"object with {self.width} features, a label{more} is needed"
            )
        name = known.get("id")
        content = (tuple(features), label)
        key: Hashable = content if name is None else (type(name).__name__, json.dumps(name))
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            self._first.append(query)
        return _Shown(self._numbers[key], features, label, influence)

    def _checked(self, predicted: list[Any]) -> Floats:
        try:
            found = np.array(predicted)
        except ValueError:
            found = np.empty(0, dtype=object)  # rows of unequal length
        if predicted and (found.dtype.kind not in "iuf" or found.ndim not in (1, 2)):
            raise ModelError(
                f"{self.__name__} answered {self.quote(json.dumps(predicted[0]))} for a query, "
                "where one number or a list of numbers is needed"
            )
        return found.astype(np.float64)

    def _arranged(self, predictions: Floats, shown: list[list[_Shown]]) -> Answers:
        """The answers as arrays; −1 and zeros where fewer than k records were shown."""
        shape = (len(shown), self.k)
        numbers, values = np.full(shape, -1, dtype=np.int64), np.zeros(shape)
        features = np.zeros((*shape, self.width))
        labels = np.zeros(shape, dtype=_kind_of([one.label for row in shown for one in row]))
        for place, row in enumerate(shown):
            for at, one in enumerate(row):
                numbers[place, at], values[place, at] = one.number, one.influence
                features[place, at], labels[place, at] = one.features, one.label
        told = None if self.show == "records" else values
        return Answers(
            predictions,
            numbers,
            features,
            labels,
            np.abs(told) if told is not None and self.show == "absolute" else told,
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _kind_of(labels: list[Any]) -> Labels | Any:
    """The type of an array that holds these labels: numbers, or texts of any length."""
    return np.array(labels).dtype if labels else np.dtype(np.float64)
