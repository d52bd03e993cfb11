"""CIFAR's own files are pickles: read here with nothing of them run.

A pickle names functions to call. Only the four that rebuild an array of bytes are answered, and not
with numpy's: with stand-ins that keep what the file says. Any other name is refused.
"""

from __future__ import annotations

import math
import pickle
import pickletools
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.datasets.files import read_bytes, reading
from leakscope.errors import InputError, UntrustedFileError


def unpickle_bytes(path: Path) -> dict[str, Any]:
    """The dictionary in a pickle that holds numbers, text and arrays of bytes, and nothing else."""
    content = read_bytes(path)
    with reading(path):
        _refuse_room(content, path)
        try:
            found = _Unpickler(BytesIO(content), encoding="bytes").load()
        except pickle.UnpicklingError as error:
            raise InputError(f"The file {path} cannot be read ({error}); get it again") from error
        if not isinstance(found, dict):
            raise InputError(f"The file {path} holds no dictionary of arrays; get it again")
        return {_text(key): _array(value) for key, value in found.items()}


def _refuse_room(content: bytes, path: Path) -> None:
    """Refuse a pickle that numbers its parts otherwise than one after the other.

    The reader makes room for as many parts as the largest number says, and a file of nine bytes may
    say four thousand million.
    """
    for place, (code, number, _) in enumerate(pickletools.genops(content)):
        if code.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(number or 0) > place:
            raise InputError(
                f"The file {path} has a part numbered {number} after {place} steps, which no "
                "honest file has; get it again"
            )


class _Array:
    """Stands in for an array: shape, order and bytes, as the file says them."""

    def __init__(self, *_: Any) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state


class _DType:
    """Stands in for the type of an array's numbers."""

    def __init__(self, code: str | bytes, *_: Any) -> None:
        self.code = _text(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Byte order and fields, of which bytes have none."""


def _encode(text: str, encoding: str | bytes = "latin1") -> bytes:
    """Stands in for the call by which Python 3 writes bytes in Python 2's format."""
    if _text(encoding) != "latin1":
        raise pickle.UnpicklingError(f"text in the encoding {encoding!r}")
    return text.encode("latin1")


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _DType,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("_codecs", "encode"): _encode,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise UntrustedFileError(
                f"The pickle asks for {module}.{name}, which could run code, where only arrays of "
                "bytes belong; it was refused: get the file from where it was first published"
            )
        return _STAND_INS[module, name]


def _array(value: Any) -> Any:
    if not isinstance(value, _Array):
        return value
    _, shape, dtype, by_column, content = value.state
    if dtype.code != "u1" or math.prod(shape) != len(content):
        raise ValueError(f"an array of {dtype.code} of shape {shape} in {len(content)} bytes")
    array: NDArray[np.uint8] = np.frombuffer(content, np.uint8)
    return array.reshape(shape, order="F" if by_column else "C")


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)
