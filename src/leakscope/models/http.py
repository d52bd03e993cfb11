"""A model behind HTTP as a plain function of records, which asks about none of them twice."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.errors import ModelError, RecordsError
from leakscope.models.answers import first_line
from leakscope.models.service import Service
from leakscope.options import one_of
from leakscope.protocols import Floats

Form = Literal["lists", "objects"]


@dataclass(frozen=True, eq=False, repr=False)
class HttpModel(Service):
    """A model behind HTTP: records go out as JSON, and their probabilities (or numbers) come back.

    It POSTs ``{"instances": [[…], …]}`` and reads ``{"predictions": [[…], …]}``, as TensorFlow
    Serving and KServe (version 1) have it. predictions: the key of the answers, "" for a bare list.
    form: a record as a list of its features, or as an object of them by the names of a DataFrame's
    columns. All other options are those of a Service. A missing value is sent as null.
    """

    _: KW_ONLY
    predictions: str = "predictions"
    form: Form = "lists"
    _known: dict[bytes, Floats] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("form", self.form, get_args(Form))

    def __call__(self, X: Any) -> Floats:
        """The answers for records (n, …): one number each, (n,), or one per class, (n, k)."""
        texts = self._texts(X)
        keys = [_digest(text) for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        places = {text: key for key, text in new.items()}
        for batch, answer in self.send(list(new.values())):
            rows = self._checked(self.listed_under(answer, self.predictions, len(batch)))
            self._known.update(zip(map(places.__getitem__, batch), rows, strict=True))
        return np.array([self._known[key] for key in keys])

    def unasked(self, *several: Any) -> int:
        """How many different records among these it was not asked about yet; none is sent."""
        keys = {_digest(text) for X in several for text in self._texts(X)}
        return len(keys - self._known.keys())

    def _texts(self, X: Any) -> list[str]:
        """Each record as JSON."""
        if isinstance(X, pd.DataFrame):
            columns = [_values(X[name]) for name in X.columns]
            rows: Iterable[Any] = zip(*columns, strict=True)
            if self.form == "objects":
                rows = (dict(zip(map(str, X.columns), row, strict=True)) for row in rows)
        elif self.form == "objects":
            raise RecordsError(
                f"Records are sent to {self.__name__} as objects, which need the names of their "
                "features; give a DataFrame, or form='lists'"
            )
        else:
            rows = _without_gaps(np.asarray(X))
        try:
            return [json.dumps(row, allow_nan=False) for row in rows]
        except (TypeError, ValueError) as error:
            raise RecordsError(
                f"A record cannot be sent to {self.__name__} as JSON ({first_line(error)}); give "
                "numbers, texts and truth values"
            ) from error

    def _checked(self, answers: list[Any]) -> Floats:
        """The answers to a batch as numbers, in the shape of all that came before."""
        try:
            found = np.asarray(answers)
        except ValueError:
            found = np.empty(0, dtype=object)  # rows of unequal length
        if found.dtype.kind not in "iuf" or found.ndim not in (1, 2):
            wrong = next((one for one in answers if not _is_answer(one)), answers[0])
            raise ModelError(
                f"{self.__name__} answered {self.quote(json.dumps(wrong))} for a record, where one "
                "number or a list of as many numbers as for the others is needed; let it answer "
                "with probabilities"
            )
        if not np.isfinite(found).all():
            raise ModelError(f"{self.__name__} answered with a number too large to be one")
        known = next(iter(self._known.values()), found[0])
        if np.shape(known) != found.shape[1:]:
            raise ModelError(
                f"{self.__name__} answered with {_size(found[0])} for a record and with "
                f"{_size(known)} for those before; it must give as many for each"
            )
        return found.astype(np.float64)


def _values(column: pd.Series[Any]) -> list[Any]:
    """A column as what JSON has; None where it is missing."""
    missing = column.isna().to_list()
    return [None if gap else one for one, gap in zip(column.to_list(), missing, strict=True)]


def _without_gaps(array: NDArray[Any]) -> list[Any]:
    if array.dtype.kind == "f" and np.isnan(array).any():
        gaps = np.isnan(array)
        array = array.astype(object)
        array[gaps] = None
    rows: list[Any] = array.tolist()
    return rows


_digest_of = partial(blake2b, digest_size=16)


def _digest(text: str) -> bytes:
    return _digest_of(text.encode()).digest()


def _is_answer(one: Any) -> bool:
    numbers = one if isinstance(one, list) else [one]
    return all(isinstance(x, int | float) and not isinstance(x, bool) for x in numbers)


def _size(answer: Any) -> str:
    return f"{np.size(answer)} numbers" if np.ndim(answer) else "one number"
