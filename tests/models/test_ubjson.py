from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakscope.models.ubjson import DEEPEST, read_ubjson


def key(name: str) -> bytes:
    return b"L" + len(name).to_bytes(8, "big") + name.encode()


def test_values_of_each_type() -> None:
    content = (
        b"{" + key("a") + b"i\xff" + key("b") + b"U\xff" + key("c") + b"I\x01\x00"
        + key("d") + b"S" + key("text") + key("e") + b"[" + b"T" + b"F" + b"Z" + b"]"
        + key("f") + b"[$l#i\x02\x00\x00\x00\x07\xff\xff\xff\xff" + key("g") + b"[#i\x01Cx" + b"}"
    )  # fmt: skip
    found = read_ubjson(content)
    np.testing.assert_array_equal(found.pop("f"), [7, -1])
    assert found == {"a": -1, "b": 255, "c": 256, "d": "text", "e": [True, False, None], "g": ["x"]}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "ends too early"),
        (b"{", "ends too early"),
        (b"[", "ends too early"),
        (b"{" + key("a") + b"T" + key("a") + b"F}", "has 'a' twice"),
        (b"[$l#L" + b"\x7f" + b"\xff" * 7, "ends too early"),
        (b"[$l#i\xff", "is no length"),
        (b"[$T#i\x09", "does not say which"),
        (b"[$", "does not say which|ends too early"),
        (b"SD" + bytes(8), "is no length"),
        (b"TT", "more after its end"),
        (b"?", "no type is called"),
        (b"[" * (DEEPEST + 1), "nested too deeply"),
        (b"[#L" + b"\x7f" + b"\xff" * 7, "ends too early"),
    ],
)
def test_what_is_no_such_json(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_ubjson(content)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with contextlib.suppress(ValueError):
        read_ubjson(b"{" + content)
