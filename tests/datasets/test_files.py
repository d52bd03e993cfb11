from __future__ import annotations

import gzip
import hashlib
import io
import logging
import lzma
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leakscope.datasets import files
from leakscope.errors import InputError, MissingDataError, UntrustedFileError
from leakscope.records import unpacking


def test_the_bundled_files_are_those_published() -> None:
    for name in files.BUNDLED_SHA256:
        assert b"Bachelors" in files.read_bundled(name)


def test_a_damaged_bundled_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(files.BUNDLED_SHA256, "adult.data.xz", "0" * 64)
    with pytest.raises(MissingDataError, match=r"adult\.data\.xz is damaged.*install leakscope"):
        files.read_bundled("adult.data.xz")


@pytest.mark.parametrize(
    ("name", "pack"), [("a.csv", bytes), ("a.csv.gz", gzip.compress), ("a.csv.xz", lzma.compress)]
)
def test_files_are_unpacked_by_their_suffix(tmp_path: Path, name: str, pack: Any) -> None:
    path = tmp_path / name
    path.write_bytes(pack(b"1,2\n3,4\n"))
    assert files.read_bytes(path) == b"1,2\n3,4\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.gz", b"not packed at all"),
        ("a.gz", gzip.compress(b"x" * 99)[:-9]),
        ("a.xz", b""),
        ("a.xz", b"not packed at all"),
        ("a.xz", lzma.compress(b"x" * 99)[:-9]),
    ],
    ids=["gz-other", "gz-cut", "xz-empty", "xz-other", "xz-cut"],  # gzip's bytes hold the time
)
def test_a_damaged_packed_file_is_one_sentence(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"{re.escape(str(path))} cannot be read \(.+\); check"):
        files.read_bytes(path)


@pytest.mark.parametrize(
    ("name", "pack"), [("a", bytes), ("a.gz", gzip.compress), ("a.xz", lzma.compress)]
)
def test_a_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, pack: Any
) -> None:
    monkeypatch.setattr(files, "LIMIT", 1000)
    path = tmp_path / name
    path.write_bytes(pack(bytes(1000)))
    assert len(files.read_bytes(path)) == 1000
    path.write_bytes(pack(bytes(1001)))
    with pytest.raises(InputError, match=r"unpacks to more than .* GiB.*; save a part of it"):
        files.read_bytes(path)


def test_large_files_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_CHUNK", 7)
    content = bytes(range(256))
    (tmp_path / "a.gz").write_bytes(gzip.compress(content))
    assert files.read_bytes(tmp_path / "a.gz") == content


def test_another_content_under_a_known_name_is_read_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "location30.csv.xz"
    path.write_bytes(lzma.compress(b"own"))
    with caplog.at_level(logging.WARNING):
        assert files.read_bytes(path) == b"own"
    assert "is not the usual location30.csv" in caplog.text
    assert hashlib.sha256(b"own").hexdigest() in caplog.text

    caplog.clear()
    monkeypatch.setitem(files.KNOWN_SHA256, "location30.csv", hashlib.sha256(b"own").hexdigest())
    files.read_bytes(path)
    assert not caplog.records


def test_the_checksum_of_a_known_npz_is_compared(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    np.savez(tmp_path / "mnist.npz", a=np.arange(3))
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    files.read_npz(tmp_path / "other.npz", "a")
    assert not caplog.records
    files.read_npz(tmp_path / "mnist.npz", "a")
    assert "is not the usual mnist.npz" in caplog.text


@pytest.mark.parametrize("name", ["mnist.npz", "diabetic_data.csv.xz", "location30.csv.xz"])
def test_the_known_files_are_recognized(
    data_folder: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = data_folder / name
    if not path.is_file():
        pytest.skip(f"{name} is not in the data folder")
    if name.endswith(".npz"):
        files.read_npz(path, "y_test")
    else:
        files.read_bytes(path)
    assert not caplog.records


def idx(array: np.ndarray[Any, Any]) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (0, 3, 4)])
def test_idx_files_give_back_their_array(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    (tmp_path / "a.gz").write_bytes(gzip.compress(idx(array)))
    np.testing.assert_array_equal(files.read_idx(tmp_path / "a.gz", len(shape)), array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not an idx file of bytes in 1 dimensions"),
        (idx(np.zeros((2, 2), np.uint8)), "is not an idx file of bytes in 1 dimensions"),
        (b"\0\0\x0d\x01\0\0\0\1\0", "is not an idx file of bytes in 1 dimensions"),
        (b"\0\0\x08\x01\0\0", "is not an idx file of bytes in 1 dimensions"),
        (idx(np.zeros(9, np.uint8))[:-1], r"says it holds \(9,\) bytes and has 8"),
    ],
)
def test_other_idx_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(InputError, match=message):
        files.read_idx(tmp_path / "a", 1)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_files_give_back_the_arrays_asked_for(tmp_path: Path, save: Any) -> None:
    arrays = {
        "a": np.arange(6.0).reshape(2, 3),
        "b": np.array(["x", "yz"]),
        "c": np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(3, 2)),
        "unread": np.array([{}], dtype=object),
    }
    save(tmp_path / "f.npz", **arrays)
    assert files.npz_names(tmp_path / "f.npz") == ["a", "b", "c", "unread"]
    read = files.read_npz(tmp_path / "f.npz", "c", "a", "b")
    for name, array in zip("cab", read, strict=True):
        np.testing.assert_array_equal(array, arrays[name])
        assert array.dtype == arrays[name].dtype


def test_a_missing_array_names_those_there_are(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", x=np.zeros(2), y=np.zeros(2))
    with pytest.raises(InputError, match=r"has no array 'features'; it has: x, y"):
        files.read_npz(tmp_path / "f.npz", "features")


def test_pickled_objects_are_refused_unread(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", x=np.array([print], dtype=object))
    with pytest.raises(UntrustedFileError, match=r"'x' of .* holds pickled objects"):
        files.read_npz(tmp_path / "f.npz", "x")


def test_an_npz_that_unpacks_to_too_much_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, a=np.zeros(100_000), b=np.zeros(100_000))
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(files, "LIMIT", 1_000_000)
    assert len(files.read_npz(path, "a")[0]) == 100_000

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr(np.lib.format, "read_array", refuse)
    with pytest.raises(InputError, match=r"unpacks to more than .* GiB"):
        files.read_npz(path, "a", "b")


def npz_with(path: Path, header: bytes, content: bytes = b"") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", header + content)
    return path


def test_a_member_much_larger_than_its_array_counts_as_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(1))
    path = npz_with(tmp_path / "f.npz", buffer.getvalue(), bytes(100_000))
    monkeypatch.setattr(files, "LIMIT", 10_000)
    with pytest.raises(InputError, match="unpacks to more than"):
        files.read_npz(path, "x")


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_an_array_that_promises_more_than_there_is_takes_no_memory(
    tmp_path: Path, version: tuple[int, int]
) -> None:
    header = io.BytesIO()
    write = {
        (1, 0): np.lib.format.write_array_header_1_0,
        (2, 0): np.lib.format.write_array_header_2_0,
    }[version]
    write(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    path = npz_with(tmp_path / "f.npz", header.getvalue())
    with pytest.raises(InputError, match=r"'x' of .* says it has 80000000000000 bytes where"):
        files.read_npz(path, "x")


def npy(header: bytes, version: int = 1) -> bytes:
    """The bytes of an array with this header, whatever it says."""
    length = len(header).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + header


def described(shape: str, descr: str = "'<f8'") -> bytes:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n".encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy(described("(1000000000000,)", "'S0'")), "says it holds .* of shape .*; save it as"),
        (npy(described("(3,)", "'V8'")), "says it holds .* of shape .*; save it as numbers"),
        (npy(described("(3,)", "[('a', '<f8')]")), "says it holds .* of shape .*; save it as"),
        (npy(described("(-1, 3)")), r"says it holds float64 of shape \(-1, 3\); save it as"),
        (npy(described(f"({2**62}, {2**62})")), r"says it has \d{39} bytes where there are"),
        (npy(described("(" + "2**9," * 3 + ")")), "cannot be read"),
        (npy(described("(" + "9" * 5000 + ",)")), "cannot be read"),
        (npy(described("(" * 2000 + ")" * 2000)), "cannot be read"),
        (npy(described("[" * 150 + "]" * 150)), "cannot be read"),
        (npy(described("(2,)") + b" " * 2**20, 2), "cannot be read"),
        (npy(described("(" + "1," * 3000 + ")")), "cannot be read"),
        (npy(described("(" + "1," * 100 + ")")) + bytes(8), "cannot be read"),
        (npy(described("(2,)"), 2)[:9] + b"\xff\xff\xff\xff", "cannot be read"),
    ],
    ids=range(13),
)
def test_headers_that_nobody_writes_are_one_sentence(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = npz_with(tmp_path / "f.npz", content)
    with pytest.raises(InputError, match=message) as caught:
        files.read_npz(path, "x")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("pack", [None, gzip.compress, lzma.compress])
def test_what_swells_like_no_honest_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Any
) -> None:
    monkeypatch.setattr(unpacking, "LARGE", 2**20)
    path = tmp_path / "f.npz"
    if pack is None:
        np.savez_compressed(path, a=np.zeros(2**20))
    else:
        path = tmp_path / ("f.gz" if pack is gzip.compress else "f.xz")
        path.write_bytes(pack(bytes(2**23)))
    assert 100 * path.stat().st_size < 2**23
    with pytest.raises(InputError, match=r"which no honest file of [\d,]+ bytes does; save it aga"):
        files.read_npz(path, "a") if pack is None else files.read_bytes(path)
    monkeypatch.setattr(unpacking, "LARGE", 2**24)
    found = files.read_npz(path, "a")[0] if pack is None else files.read_bytes(path)
    assert not any(found)


def test_a_stream_that_swells_is_stopped_where_the_limit_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "LARGE", 2**20)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(2**26)))
    most = unpacking.most_unpacked(path.stat().st_size)
    read: list[int] = []
    with pytest.raises(InputError, match="no honest file"), files.opened(path) as stream:
        read.extend(len(chunk) for chunk in iter(lambda: stream.read(2**16), b""))
    assert 2**20 < sum(read) <= most < 2**24


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 cut short", b"plain text", lzma.compress(b"xz")]
)
def test_a_file_that_is_no_npz_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f.npz").write_bytes(content)
    for read in (files.npz_names, lambda path: files.read_npz(path, "x")):
        with pytest.raises(InputError, match=r"f\.npz cannot be read \(.+\); check it"):
            read(tmp_path / "f.npz")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x09\x00", b"nothing of numpy's"])
def test_a_member_that_is_no_array_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = npz_with(tmp_path / "f.npz", content)
    with pytest.raises(InputError, match=r"f\.npz cannot be read \(.+\)"):
        files.read_npz(path, "x")


def test_a_damaged_member_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "f.npz"
    np.savez_compressed(path, x=np.random.default_rng(0).random(1000))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"f\.npz cannot be read \(.+\)"):
        files.read_npz(path, "x")


def test_a_reader_s_first_line_is_the_reason(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match=r"a cannot be read \(first\); check it, or get it again"),
        files.reading(Path("a")),
    ):
        raise ValueError("first\nsecond")
    with (
        pytest.raises(InputError, match=r"a cannot be read \(EOFError\)"),
        files.reading(Path("a")),
    ):
        raise EOFError


@pytest.mark.parametrize(
    "shape",
    [b"(-3,)"[:4], b"(3,)[", b"((((", b"'''x", b"\\\n  1"],
    ids=["open", "index", "deep", "text", "indent"],
)
def test_a_header_that_python_stumbles_over_is_one_sentence(shape: bytes, tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.zeros(3))
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", stream.getvalue().replace(b"(3,)", shape))
    with pytest.raises(InputError, match=r"x\.npz cannot be read \(.*\); check it"):
        files.read_npz(path, "a")
