from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from leakscope.datasets.unpickle import unpickle_bytes
from leakscope.errors import InputError, UntrustedFileError


def as_python_2_wrote_it(array: NDArray[np.uint8], labels: list[int], by_column: bool) -> bytes:
    """The opcodes of the published files: bytes as strings, numpy's old module."""

    def string(text: bytes) -> bytes:
        return b"U" + bytes([len(text)]) + text

    raw = array.tobytes("F" if by_column else "C")
    shape = b"".join(b"J" + size.to_bytes(4, "little") for size in array.shape)
    return b"".join(
        [
            b"\x80\x02}(",
            string(b"fine_labels") + b"](" + b"".join(b"K" + bytes([i]) for i in labels) + b"e",
            string(b"data") + b"cnumpy.core.multiarray\n_reconstruct\n",
            b"cnumpy\nndarray\nK\x00\x85" + string(b"b") + b"\x87R",
            b"(K\x01(" + shape + b"tcnumpy\ndtype\n" + string(b"u1") + b"K\x00K\x01\x87R",
            b"(K\x03" + string(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb",
            (b"\x88" if by_column else b"\x89") + b"T" + len(raw).to_bytes(4, "little") + raw,
            b"tbu.",
        ]
    )


@pytest.mark.parametrize("by_column", [False, True])
def test_a_pickle_of_python_2_is_read(tmp_path: Path, by_column: bool) -> None:
    array = np.random.default_rng(0).integers(0, 256, (3, 7), dtype=np.uint8)
    content = as_python_2_wrote_it(array, [4, 9, 1], by_column)
    np.testing.assert_array_equal(pickle.loads(content, encoding="bytes")[b"data"], array)
    (tmp_path / "train").write_bytes(content)
    found = unpickle_bytes(tmp_path / "train")
    assert found["fine_labels"] == [4, 9, 1]
    np.testing.assert_array_equal(found["data"], array)


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_a_pickle_of_python_3_is_read(tmp_path: Path, protocol: int) -> None:
    array = np.random.default_rng(0).integers(0, 256, (3, 7), dtype=np.uint8)
    content: dict[Any, Any] = {"data": array, b"coarse_labels": [1, 2], "batch_label": "x"}
    (tmp_path / "train").write_bytes(pickle.dumps(content, protocol=protocol))
    found = unpickle_bytes(tmp_path / "train")
    np.testing.assert_array_equal(found.pop("data"), array)
    assert found == {"coarse_labels": [1, 2], "batch_label": "x"}


class Harmful:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_in_a_pickle_is_run(tmp_path: Path, protocol: int) -> None:
    content = pickle.dumps({"data": Harmful(tmp_path / "made")}, protocol=protocol)
    (tmp_path / "train").write_bytes(content)
    with pytest.raises(
        UntrustedFileError, match=r"asks for (posix|nt)\.mkdir, which could run code"
    ):
        unpickle_bytes(tmp_path / "train")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "name", ["builtins\neval", "numpy\nload", "numpy._core.multiarray\nscalar", "_codecs\ndecode"]
)
def test_names_beside_the_allowed_ones_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "train").write_bytes(b"c" + name.encode() + b"\n.")
    with pytest.raises(UntrustedFileError, match=name.replace("\n", r"\.")):
        unpickle_bytes(tmp_path / "train")


def test_an_array_that_promises_more_than_there_is_takes_no_memory(tmp_path: Path) -> None:
    array = np.zeros((2, 2), np.uint8)
    content = as_python_2_wrote_it(array, [1], by_column=False)
    small, huge = (b"J" + size.to_bytes(4, "little") for size in (2, 2**31 - 1))
    (tmp_path / "train").write_bytes(content.replace(small, huge))
    with pytest.raises(InputError, match=r"an array of u1 of shape \(2147483647, .* in 4 bytes"):
        unpickle_bytes(tmp_path / "train")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read"),
        (b"not a pickle", "cannot be read"),
        (pickle.dumps([1, 2]), "holds no dictionary of arrays"),
        (pickle.dumps({"data": np.zeros(3)}, protocol=2), "an array of f8 of shape"),
        (
            b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00hex\x86R.",
            "encoding 'hex'",
        ),
    ],
)
def test_other_content_is_one_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "train").write_bytes(content)
    with pytest.raises(InputError, match=message):
        unpickle_bytes(tmp_path / "train")
