"""Reads universal binary JSON, as XGBoost writes it: values after a letter that says their type.

The format is at https://ubjson.org, and the part that XGBoost uses in its "Introduction to model
IO". Nothing is read beyond the end, nor is more memory taken than the bytes that are there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# All numbers have their big end first.
_NUMBERS = {
    b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8",
}  # fmt: skip
_WORDS: dict[bytes, Any] = {b"Z": None, b"T": True, b"F": False}
DEEPEST = 50  # objects within each other; a model of XGBoost has ten


def read_ubjson(content: bytes) -> Any:
    """The value in the bytes: objects as dicts, typed arrays as arrays of numpy, others as lists.

    A ValueError says that it is none, or that an object has one key twice.
    """
    reader = _Reader(content)
    value = reader.value(reader.take(1), DEEPEST)
    if reader.place != len(content):
        raise ValueError("there is more after its end")
    return value


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.content, self.place = content, 0

    def take(self, n: int) -> bytes:
        """The next n bytes."""
        if n < 0 or self.place + n > len(self.content):
            raise ValueError("it ends too early")
        self.place += n
        return self.content[self.place - n : self.place]

    def value(self, kind: bytes, deeper: int) -> Any:
        """A value of the type that a letter says."""
        if not deeper:
            raise ValueError("it is nested too deeply")
        if kind in _WORDS:
            return _WORDS[kind]
        if kind in _NUMBERS:
            return self.numbers(kind, 1)[0].item()
        if kind in (b"S", b"C"):
            return self.take(self.length() if kind == b"S" else 1).decode()
        if kind == b"{":
            return self.object(deeper - 1)
        if kind == b"[":
            return self.array(deeper - 1)
        raise ValueError(f"no type is called {kind!r}")

    def length(self) -> int:
        """A length, which is a whole number with its type."""
        length = self.value(self.take(1), 1)
        if isinstance(length, bool) or not isinstance(length, int) or length < 0:
            raise ValueError(f"{length!r:.40} is no length")
        return length

    def numbers(self, kind: bytes, n: int) -> Any:
        """That many numbers of a type, (n,)."""
        dtype = np.dtype(_NUMBERS[kind])
        return np.frombuffer(self.take(n * dtype.itemsize), dtype)

    def object(self, deeper: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.content[self.place : self.place + 1] != b"}":
            key = self.take(self.length()).decode()
            if key in found:
                raise ValueError(f"it has {key!r:.40} twice")
            found[key] = self.value(self.take(1), deeper)
        self.take(1)
        return found

    def array(self, deeper: int) -> Any:
        start = self.content[self.place : self.place + 1]
        if start == b"$":
            _, kind, count = self.take(1), self.take(1), self.take(1)
            if count != b"#" or kind not in _NUMBERS:
                raise ValueError("an array of one type does not say which, or how long it is")
            return self.numbers(kind, self.length())
        if start == b"#":
            self.take(1)
            return [self.value(self.take(1), deeper) for _ in range(self.length())]
        found = []
        while self.content[self.place : self.place + 1] != b"]":
            found.append(self.value(self.take(1), deeper))
        self.take(1)
        return found
