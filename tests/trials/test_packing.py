from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from toys import Centroids

from leakscope.models.sklearn import SklearnModel
from leakscope.trials.packing import pack, unpack

X, y = make_classification(60, random_state=0)


def packed(thing: Any) -> bytes:
    parts = pack(thing)
    assert parts is not None
    return b"".join(parts)


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(3, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=["forest", "pipeline"],
)
def test_a_model_comes_back_as_it_was(estimator: Any) -> None:
    model = SklearnModel(estimator.fit(X, y))
    again = unpack(packed(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert packed(again) == packed(model)


def test_a_model_of_ones_own_class_comes_back() -> None:
    model = Centroids(X, y, 0, 1.0)
    assert np.array_equal(unpack(packed(model)).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_come_back_as_they_were_and_can_be_written_to(order: Any) -> None:
    arrays = [
        np.arange(6.0).reshape((2, 3), order=order),
        np.zeros((0, 4)),
        np.arange(20)[::3],
        np.array(["a", "bc"]),
        np.array([{"an": "object"}, None]),
        np.ma.masked_array([1.0, 2.0], [True, False]),
    ]
    again: Any = unpack(packed([*arrays, arrays[0]]))
    for array, back in zip(arrays, again[:-1], strict=True):
        assert (type(back), back.dtype, back.shape) == (type(array), array.dtype, array.shape)
        assert np.array_equal(back, array)
        assert back.flags.writeable
        assert back.flags.aligned
    assert again[-1] is again[0]


def test_arrays_are_written_from_where_they_are() -> None:
    array = np.arange(1000.0)
    parts = pack([array])  # type: ignore[arg-type]
    assert parts is not None
    assert np.shares_memory(np.frombuffer(parts[-1]), array)
    assert sum(map(len, parts[:-1])) < 300


def test_a_read_only_array_stays_so() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    (again,) = unpack(packed([array]))  # type: ignore[misc]
    assert not again.flags.writeable


def test_equal_texts_are_one_whether_or_not_they_are_the_same_object() -> None:
    text = "a text that is long enough not to be interned"
    copy = "".join(list(text))
    assert copy is not text
    assert packed([text, text]) == packed([text, copy])
    first, second = unpack(packed([text, copy]))  # type: ignore[misc]
    assert first is second


def test_equal_types_of_numbers_are_one() -> None:
    kind = np.dtype([("left", "<i8"), ("right", "<f8")])
    copy = np.dtype([("left", "<i8"), ("right", "<f8")])
    assert packed([kind, kind]) == packed([kind, copy])


@pytest.mark.parametrize("kind", [set, frozenset])
def test_sets_come_back(kind: Any) -> None:
    thing = [kind("abc"), kind(), kind([1, "1", (2, "b")]), ("a", "tuple")]
    again: Any = unpack(packed(thing))
    assert again == thing
    assert [type(one) for one in again] == [kind, kind, kind, tuple]


@pytest.mark.slow
def test_the_order_of_a_set_does_not_matter_in_any_process(environment: dict[str, str]) -> None:
    code = (
        "from leakscope.trials.packing import pack;"
        "parts = pack({name: set('abcdefghij') | {'a longer one', name} for name in 'xyz'});"
        "print(b''.join(parts).hex())"
    )
    written = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=environment | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(written) == 1


class NotOnItsOwn:
    """An object that holds what no file can hold."""

    def __init__(self) -> None:
        self.stream = sys.stdout


class Hidden:
    """A class that is found nowhere under its name."""


Hidden.__qualname__ = "Nowhere"


@pytest.mark.parametrize(
    "thing", [lambda: 0, NotOnItsOwn(), Hidden()], ids=["lambda", "stream", "hidden"]
)
def test_what_cannot_be_written(thing: Any) -> None:
    assert pack(thing) is None
