"""Models as bytes: the same bytes for the same model, whichever process trained it."""

from __future__ import annotations

import pickle
from io import BytesIO
from typing import Any

import numpy as np

from leakscope.protocols import Model


def pack(model: Model) -> bytes | None:
    """A model for the store; None for one that cannot be written, such as of a notebook's class."""
    file = BytesIO()
    try:
        _Pickler(file, protocol=5).dump(model)
    except Exception:  # whatever a part of it raises that is not made to be written
        return None
    return file.getvalue()


def unpack(data: bytes) -> Model:
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
        if type(part) is str or isinstance(part, np.dtype):
            return self._first.setdefault(part, part)
        if type(part) in (set, frozenset):
            return type(part), sorted(part, key=repr)
        return None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, written: Any) -> Any:
        if isinstance(written, tuple):
            kind, parts = written
            return kind(parts)
        return written
