"""Models as bytes: the same bytes for the same model, whichever process trained it.

The bytes are a pickle whose arrays stand after it: they are most of a model, and are written from
where they are instead of being copied into the pickle first. How long each part is comes before
all of them::

    number of parts, length of each     little-endian 64-bit integers
    pickle, array, array, ...
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from io import BytesIO
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from leakscope.protocols import Model

# The parts of a packed model, in the order in which they are written.
Packed = Sequence[bytes | memoryview]
LENGTH = np.dtype("<u8")

# Texts, sets, and the types of arrays, of which numpy has a class each.
WRITTEN_OTHERWISE = frozenset(
    {str, set, frozenset, *(getattr(np.dtypes, name) for name in np.dtypes.__all__)}
)


def pack(model: Model) -> Packed | None:
    """A model for the store; None for one that cannot be written, such as of a notebook's class.

    The arrays are still those of the model: write them before it is changed.
    """
    file, arrays = BytesIO(), list[pickle.PickleBuffer]()
    try:
        _Pickler(file, arrays).dump(model)
    except Exception:  # whatever a part of it raises that is not made to be written
        return None
    # Not its buffer: where Python 3.13 collects both at once, it complains of one still in use.
    parts: list[bytes | memoryview] = [file.getvalue(), *(array.raw() for array in arrays)]
    return [np.array([len(parts), *map(len, parts)], LENGTH).tobytes(), *parts]


def unpack(data: bytes) -> Model:
    """The model that was packed. Unpickling can run code: the store gives out one's own alone."""
    (number,) = np.frombuffer(data, LENGTH, 1).tolist()
    lengths = np.frombuffer(data, LENGTH, number, LENGTH.itemsize).tolist()
    ends = accumulate(lengths, initial=(1 + number) * LENGTH.itemsize)
    # Each array gets memory of its own, which it may write to.
    pickled, *arrays = (bytearray(data[start:end]) for start, end in pairwise(ends))
    model: Model = _Unpickler(BytesIO(pickled), buffers=arrays).load()
    return model


class _Pickler(pickle.Pickler):
    """A pickler that takes equal texts and types for one, and sets in one order.

    The usual one refers back to a part it has written only if that is the same object. Which equal
    texts are one object depends on how they came into a process, and so would the bytes; the order
    of a set of texts differs from process to process.
    """

    def __init__(self, file: BytesIO, arrays: list[pickle.PickleBuffer]) -> None:
        super().__init__(file, protocol=5, buffer_callback=arrays.append)
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
