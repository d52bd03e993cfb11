"""Models that answer with what is no answer, and files that hold them."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from bad_input.cases import A


def half(n: int) -> Any:
    return np.full((n, 2), 0.5)


def with_row(n: int, *row: float) -> Any:
    """Good answers but for one record."""
    answers = half(n)
    answers[min(3, n - 1)] = row
    return answers


def refusing(n: int) -> Any:
    raise RuntimeError("the weights are gone.\nsee the log of last night")


def silent(n: int) -> Any:
    raise RuntimeError


def leaving(n: int) -> Any:
    raise SystemExit("goodbye")


ANSWERS: dict[str, Callable[[int], Any]] = {
    "raises": refusing,
    "raises-nothing": silent,
    "leaves": leaving,
    "nan": lambda n: with_row(n, np.nan, 0.5),
    "infinite": lambda n: with_row(n, np.inf, 0.5),
    "negative": lambda n: with_row(n, -0.5, 1.5),
    "unnormalized": lambda n: with_row(n, 0.9, 0.9),
    "shorter": lambda n: half(n - 1),
    "one-row": lambda n: half(1),
    "cube": lambda n: np.full((n, 2, 2), 0.25),
    "three-classes": lambda n: np.full((n, 3), 1 / 3),
    "texts": lambda n: [["much", "little"]] * n,
    "ragged": lambda n: [[0.5, 0.5]] * (n - 1) + [[1.0]],
    "nothing": lambda n: None,
    "complex": lambda n: half(n) + 1j,
    "a-mapping": lambda n: {"yes": 0.5},
}


@dataclass
class Answering:
    """A function from records to what is called so."""

    kind: str

    def __call__(self, X: Any) -> Any:
        return ANSWERS[self.kind](len(X))


class Stubborn(ClassifierMixin, BaseEstimator):
    """A classifier that can be fitted, or not, and answers like that."""

    def __init__(self, kind: str = "nan") -> None:
        self.kind = kind

    def fit(self, X: Any, y: Any) -> Stubborn:
        if self.kind == "unfit":
            raise RuntimeError("no convergence.")
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        return ANSWERS[self.kind](len(X))

    def predict(self, X: Any) -> Any:
        return self.classes_[np.zeros(len(X), dtype=int)]


@cache
def fitted() -> Any:
    """A good model of the numbers in the good tables."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression().fit(A[["x", "z"]], A["y"])


@cache
def skops_file() -> bytes:
    from skops.io import dumps

    return bytes(dumps(fitted()))


@cache
def foreign_skops_file() -> bytes:
    """A skops file of a type that nobody knows."""
    from skops.io import dumps

    return bytes(dumps(Stubborn()))


def joblib_file(thing: Any) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        import joblib

        joblib.dump(thing, path)

    return write


def answering_file(kind: str) -> bytes:
    return pickle.dumps(Answering(kind))


def weights() -> dict[str, Any]:
    """Those of a network of 2 features, 3 hidden units and 2 classes."""
    from leakscope.networks import MLP

    return dict(MLP((2, 3, 2)).state_dict())


def torch_file(make: Callable[[], Any]) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        import torch

        file = io.BytesIO()
        torch.save(make(), file)
        path.write_bytes(file.getvalue())

    return write


def safetensors_file(path: Path) -> None:
    from safetensors.torch import save_file

    save_file(weights(), path)


def compact_file(change: Callable[[bytes], bytes] = bytes) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        from leakscope.networks.sparse import packed

        path.write_bytes(change(packed(weights())))

    return write
