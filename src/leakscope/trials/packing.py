"""Models as bytes: the same bytes for the same model, whichever process trained it."""

from __future__ import annotations

import pickle
from io import BytesIO
from typing import Any

import numpy as np

from leakscope.protocols import Model

# Texts, sets, and the types of arrays, of which numpy has a class each.
WRITTEN_OTHERWISE = frozenset(
    {str, set, frozenset, *(getattr(np.dtypes, name) for name in np.dtypes.__all__)}
)


def pack(model: Model) -> memoryview | None:
    """A model for the store; None for one that cannot be written, such as of a notebook's class."""
    file = BytesIO()
    try:
        _Pickler(file, protocol=5).dump(model)
    except Exception:  # whatever a part of it raises that is not made to be written
        return None
    return file.getbuffer()


def unpack(data: bytes | memoryview) -> Model:
    """The model that was packed. Unpickling can run code: the store gives out one's own alone."""
    model: Model = _Unpickler(BytesIO(data)).load()
    return model


class _Pickler(pickle.Pickler):
    """A pickler that takes equal texts and types for one, and sets in one order.

    The usual one refers back to a part it has written only if that is the same object. Which equal
    texts are one object depends on how they came into a process, and so would the bytes; the order
    of a set of texts differs from process to process.
    """

    def __init__(self, file: BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self._first: dict[Any, Any] = {}

    def persistent_id(self, part: Any) -> Any:
        """What is written in place of a part; None where it is written as it is."""
        kind = type(part)
        if kind not in WRITTEN_OTHERWISE:  # of ten thousand parts of a forest, all but texts
            return None
        if kind is set or kind is frozenset:
            return kind, sorted(part, key=repr)
        return self._first.setdefault(part, part)


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, written: Any) -> Any:
        if isinstance(written, tuple):
            kind, parts = written
            return kind(parts)
        return written
