"""Reading data files that somebody else made: sizes are bounded, and nothing in them is run."""

from __future__ import annotations

import gzip
import hashlib
import io
import logging
import lzma
import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from leakscope.errors import InputError, LeakscopeError, MissingDataError, UntrustedFileError
from leakscope.records.unpacking import array_size, most_unpacked, npy_header

# More than any data set here unpacks to (Texas-100 as 64-bit numbers takes 3.1 GiB), and little
# enough that a small file made to unpack to a huge one is refused before it fills the memory.
LIMIT = 4 * 2**30
_CHUNK = 2**24

LONGEST = 200  # characters of a reader's own message, which may quote the file

# The kinds of numpy's types that an array of records may have: truth values, numbers, text, times.
PLAIN = "biufcSUmM"

# The files inside the package, as they are packed: anything else there is damage.
BUNDLED_SHA256 = {
    "adult.data.xz": "bbb1230d2714d4a2008a7de7bab2b40eb1883968da04a494fdbdde428737293a",
    "adult.test.xz": "8d254fd7490bbb3f1b6b1d054a771a546bc835065050210d4d7efbafbff1c962",
}

# The usual content of other files, unpacked: packing again changes a file and not its content.
# Another content under such a name may be somebody's own variant, so it is read, and said.
KNOWN_SHA256 = {
    "diabetic_data.csv": "0689e7ec031237dc63031b938805c48377748761a3b26acab621567afa24df97",
    "location30.csv": "2ca8f7fc231251e089823e44d39f2d1eed124574cc351c7f80368cfe631dd718",
    "mnist.npz": "06af5dfe73b70e3bc1c36439982b18a8d76803db9b544f6fdf838a37fbb01b64",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
}

# What Python's readers raise on damaged input.
_DAMAGE = (
    ArithmeticError, AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError,
    ValueError, lzma.LZMAError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip

# What unpacks a file, by the ending of its name.
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}

_LOG = logging.getLogger(__name__)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say in one sentence that a file is damaged, whatever its reader raised."""
    try:
        yield
    except LeakscopeError:
        raise
    except _DAMAGE as error:
        told = (error.strerror if isinstance(error, OSError) else None) or str(error)
        reason = told.partition("\n")[0][:LONGEST] or type(error).__name__
        raise InputError(
            f"The file {path} cannot be read ({reason}); check it, or get it again"
        ) from error


def read_bundled(name: str) -> bytes:
    """The unpacked content of a file inside the package, its checksum verified."""
    packed = files("leakscope").joinpath("data", name).read_bytes()
    if hashlib.sha256(packed).hexdigest() != BUNDLED_SHA256[name]:
        raise MissingDataError(
            f"The bundled file {name} is damaged: its sha256 is not {BUNDLED_SHA256[name]}; "
            "install leakscope again"
        )
    return lzma.decompress(packed)


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if its name ends in .gz or .xz; refused above LIMIT."""
    with opened(path) as stream:
        content = bytearray()
        while chunk := stream.read(_CHUNK):
            content += chunk
    packing = path.suffix if path.suffix in _OPENERS else ""
    _note_other_content(path, path.name.removesuffix(packing), content)
    return bytes(content)


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A file to read from, unpacked as it is read; the read that goes beyond its limit fails.

    So does one that comes upon damage, each with one sentence.
    """
    with reading(path):
        stream = _OPENERS.get(path.suffix, open)(path, "rb")
        packed = path.suffix in _OPENERS
        most = min(LIMIT, most_unpacked(path.stat().st_size)) if packed else LIMIT
    with stream:
        yield io.BufferedReader(_Bounded(stream, most, path), buffer_size=2**20)


class _Bounded(io.RawIOBase):
    """What a stream holds, up to a number of bytes."""

    def __init__(self, stream: Any, most: int, path: Path) -> None:
        self._stream, self._path = stream, path
        self._most = self._left = most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with reading(self._path):
            found: int = self._stream.readinto(buffer)
        self._left -= found
        if self._left < 0:
            raise _too_large(self._path, self._most)
        return found


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array of bytes in an idx file, the format of MNIST; (n,) labels or (n, h, w) images."""
    content = read_bytes(path)
    start = 4 + 4 * dimensions
    # Two zeros, 8 for unsigned bytes, the number of dimensions; then each of them, big end first.
    if content[:4] != bytes([0, 0, 8, dimensions]) or len(content) < start:
        raise InputError(
            f"The file {path} is not an idx file of bytes in {dimensions} dimensions; get it again"
        )
    shape = tuple(int(size) for size in np.frombuffer(content[4:start], ">u4"))
    if math.prod(shape) != len(content) - start:
        raise InputError(
            f"The file {path} says it holds {shape} bytes and has {len(content) - start}; "
            "get it again"
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def npz_names(path: Path) -> list[str]:
    """The names of the arrays in an .npz file."""
    with reading(path), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def read_npz(path: Path, *names: str) -> list[NDArray[Any]]:
    """These arrays of an .npz file; objects, and sizes no honest file has, are refused unread."""
    if path.name in KNOWN_SHA256:
        _note_other_content(path, path.name, path.read_bytes())
    with reading(path), zipfile.ZipFile(path) as archive:
        most = min(LIMIT, most_unpacked(path.stat().st_size))
        if sum(_declared_size(archive, path, name) for name in names) > most:
            raise _too_large(path, most)
        return [_read_member(archive, name) for name in names]


def _declared_size(archive: zipfile.ZipFile, path: Path, name: str) -> int:
    """How many bytes an array says it has, which its member of the archive must bear out."""
    if f"{name}.npy" not in archive.namelist():
        have = ", ".join(member.removesuffix(".npy") for member in archive.namelist())
        raise InputError(f"The file {path} has no array {name!r}; it has: {have}")
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as stream:
        shape, dtype = npy_header(stream)
    if dtype.hasobject:
        raise UntrustedFileError(
            f"The array {name!r} of {path} holds pickled objects, which could run code when "
            "loaded; save it as numbers or text"
        )
    if dtype.kind not in PLAIN or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise InputError(
            f"The array {name!r} of {path} says it holds {dtype!s:.60} of shape "
            f"{shape!s:.60}; save it as numbers or text"
        )
    size = array_size(shape, dtype)
    if size > member.file_size:
        raise InputError(
            f"The array {name!r} of {path} says it has {size} bytes where there are "
            f"{member.file_size}; get the file again"
        )
    return max(size, member.file_size)


def _read_member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as stream:
        array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _note_other_content(path: Path, name: str, content: bytes | bytearray) -> None:
    usual = KNOWN_SHA256.get(name)
    found = None if usual is None else hashlib.sha256(content).hexdigest()
    if found != usual:
        _LOG.warning(
            "%s is not the usual %s (sha256 %s, usually %s): it is read all the same",
            path, name, found, usual,
        )  # fmt: skip


def _too_large(path: Path, most: int) -> InputError:
    if most < LIMIT:
        return InputError(
            f"The file {path} unpacks to more than {most / 2**30:.2g} GiB, which no honest file of "
            f"{path.stat().st_size:,} bytes does; save it again, unpacked or in smaller types"
        )
    return InputError(
        f"The file {path} unpacks to more than {LIMIT / 2**30:g} GiB, the most that is read at "
        "once; save a part of it"
    )
