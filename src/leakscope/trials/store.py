"""The store: every finished model and what was seen of it, so that no model is trained twice.

A model has a folder named by its key::

    KEY/model.bin           the model, as packing.py writes it
    KEY/margin-1f0c….npy    what a channel shows of every record, (n, w)
    KEY/done.json           its key, and the checksums of those files

Each file is written beside its place, synced, and renamed into it; ``done.json`` comes last, so
that what it does not list is not there. A run that is killed at any moment leaves whole files.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from leakscope.errors import StoreError
from leakscope.protocols import Floats
from leakscope.temporary import is_temporary, locked

SCHEMA = 1
MODEL, DONE, MANIFEST, LOCK = "model.bin", "done.json", "manifest.json", "lock"
UNFINISHED = ".tmp"

# The folder of a model, and a file that was begun: see engine's keys and _write_atomically.
OWN_FOLDER = re.compile(r"[0-9a-f]{32}")
OWN_FILE = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")

# No room: on the disk, in the quota, or for a file of this size.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Bytes to collect before they are hashed and written: a model may have hundreds of small arrays.
AT_ONCE = 1 << 18

# How a file is opened that must not be there yet; O_BINARY where line ends would be translated.
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)

# The name of a file to its checksum.
Digests = dict[str, str]


@dataclass(frozen=True)
class Store:
    """A folder of finished models; several processes may write to it, one run may lead them."""

    folder: Path

    def path(self, key: str, name: str) -> Path:
        """Where a file of a model is, or will be."""
        return self.folder / key / name

    def listed(self, key: str) -> Digests:
        """The files of a finished model; empty if there is none, or its list cannot be read."""
        return self._list(key) or {}

    def spoiled(self, key: str) -> bool:
        """Whether a model has a list of files that cannot be read."""
        return self._list(key) is None and self.path(key, DONE).exists()

    def has(self, key: str, names: Iterable[str]) -> bool:
        """Whether a model is finished with these files."""
        return self.listed(key).keys() >= set(names)

    def begun(self) -> set[str]:
        """The keys of the models of which there may be something."""
        with os.scandir(self.folder) as entries:
            return {entry.name for entry in entries}

    def sound(self, key: str, name: str) -> bool:
        """Whether a file is listed, is there, and is what was written."""
        digest = self.listed(key).get(name)
        try:
            with self.path(key, name).open("rb") as file:
                return digest == hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return False

    def model(self, key: str) -> bytes | None:
        """The packed model, if it is sound and nobody else can have written it.

        To unpack a model may run code that it holds. A file that another user owns, or could have
        written, is not taken; but a folder that was unpacked from an archive is one's own, so
        never go on with one that was given to you. What is judged is what is read, so that nobody
        can exchange the file in between.
        """
        try:
            handle = os.open(self.path(key, MODEL), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            with os.fdopen(handle, "rb") as file:
                if not _own(os.fstat(file.fileno())):
                    return None
                data = file.read()
        except OSError:
            return None
        return data if self.listed(key).get(MODEL) == hashlib.sha256(data).hexdigest() else None

    def write_model(self, key: str, parts: Sequence[bytes | memoryview]) -> Digests:
        """Write a packed model that nobody else may read or write."""
        return {MODEL: self._write(self.path(key, MODEL), *parts, private=True)}

    def write_observations(self, key: str, name: str, seen: Floats) -> Digests:
        """Write what a channel shows, (n, w)."""
        file = BytesIO()
        np.save(file, seen)
        return {name: self._write(self.path(key, name), file.getbuffer())}

    def finish(self, key: str, written: Digests) -> None:
        """Enter the files of a model that have been written, beside those it had."""
        self._write_done(key, self.listed(key) | written)

    def unlist(self, key: str, names: Iterable[str] | None = None) -> None:
        """Take these files, by default all of a model, for ones that were never finished."""
        if listed := self.listed(key):
            gone = set(listed if names is None else names)
            left = {name: digest for name, digest in listed.items() if name not in gone}
            self._write_done(key, left)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Say what the models of the last run are, for people and other programs to read."""
        path, data = self.folder / MANIFEST, _json(dict(manifest))
        # A finished run can be read again where nothing more can be written.
        if not path.is_file() or path.read_bytes() != data:
            self._write(path, data)

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Lead a run: no other may at the same time; what killed ones left half written goes.

        A run that fails before it has finished a model leaves no folder that was not there before.
        """
        made = [one for one in (self.folder, *self.folder.parents) if not one.exists()]
        with self._opened_lock() as lock:
            if not locked(lock.fileno()):
                raise StoreError(
                    f"Another run is training models in {str(self.folder)!r}; wait for it, or "
                    "choose another folder"
                )
            self._clean()
            try:
                yield
            except Exception:
                if made and self.begun() <= {LOCK, MANIFEST}:
                    self._remove(made)
                raise
            finally:
                # After workers that were ended, or died while others finished their models.
                with suppress(OSError):  # the folder may be gone
                    self._clean()

    def _list(self, key: str) -> Digests | None:
        """The files of a model; None where there is no list that can be read."""
        try:
            done = json.loads(self.path(key, DONE).read_bytes())
            if done["key"] != key:  # somebody moved or copied the folder
                return None
            return {str(name): str(digest) for name, digest in done["files"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def _clean(self) -> None:
        """Remove what this class began to write, and nothing else that may be in the folder."""
        folders = [one for one in self.folder.iterdir() if OWN_FOLDER.fullmatch(one.name)]
        for folder in (self.folder, *folders):
            for left in folder.glob(f".*{UNFINISHED}"):
                if OWN_FILE.fullmatch(left.name):
                    with suppress(OSError):  # it is in nobody's way
                        left.unlink()

    def _remove(self, made: Sequence[Path]) -> None:
        """Remove these folders, the innermost first, in which there is no model."""
        with suppress(OSError):  # as where somebody else has put something there
            for name in (MANIFEST, LOCK):
                (self.folder / name).unlink(missing_ok=True)
            for folder in made:
                folder.rmdir()

    def _opened_lock(self) -> BinaryIO:
        lock = self.folder / LOCK
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                return lock.open("ab")
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EROFS):
                    raise
                # A finished run can be read also where nothing can be written.
                return lock.open("rb")
        except OSError as error:
            raise _refused(error, self.folder) from error

    def _write_done(self, key: str, files: Digests) -> None:
        done = {"schema": SCHEMA, "key": key, "files": dict(sorted(files.items()))}
        self._write(self.path(key, DONE), _json(done))

    def _write(self, path: Path, *parts: bytes | memoryview, private: bool = False) -> str:
        try:
            return _write_atomically(path, parts, private=private)
        except OSError as error:
            raise _refused(error, self.folder) from error


def _write_atomically(path: Path, parts: Iterable[bytes | memoryview], *, private: bool) -> str:
    """Write a file that is whole or not there, and give its checksum.

    With as few calls of the system as it takes, and no file object: around each of them the writer
    and the trainer hand Python's lock to each other.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{UNFINISHED}")
    digest, mode = hashlib.sha256(), 0o600 if private else 0o666
    try:
        try:
            handle = os.open(temporary, NEW, mode)
        except FileNotFoundError:  # the first file of its folder
            # Not its parents: of a run that has ended, the folder may be gone.
            path.parent.mkdir(exist_ok=True)
            handle = os.open(temporary, NEW, mode)
        try:
            for block in _blocks(parts):
                digest.update(block)
                rest = memoryview(block)
                while rest:  # a system may write less than it was given
                    rest = rest[os.write(handle, rest) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(temporary, path)  # noqa: PTH105 - see above
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    return digest.hexdigest()


def _blocks(parts: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """The same bytes in fewer pieces: small parts are joined, large ones are not copied."""
    small, size = list[bytes | memoryview](), 0
    for part in parts:
        if len(part) < AT_ONCE:
            small.append(part)
            size += len(part)
        if size >= AT_ONCE or len(part) >= AT_ONCE:
            yield b"".join(small)
            small, size = [], 0
        if len(part) >= AT_ONCE:
            yield part
    yield b"".join(small)


def _own(status: os.stat_result) -> bool:
    """Whether this user wrote the file, and no other could have."""
    if not hasattr(os, "geteuid"):
        return True  # a system without such owners
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _refused(error: OSError, folder: Path) -> StoreError:
    if error.errno in FULL and is_temporary(folder):
        return StoreError(
            f"The folder for temporary files {str(folder.parent)!r} is full ({error.strerror}); "
            "make room there, or name another folder in the environment variable TMPDIR"
        )
    if error.errno in FULL:
        return StoreError(
            f"The disk of {str(folder)!r} is full ({error.strerror}); make room and run the same "
            "again: the models that are finished are kept"
        )
    return StoreError(
        f"The folder {str(folder)!r} cannot be written to ({error.strerror or error}); give "
        "another one"
    )


def _json(thing: dict[str, Any]) -> bytes:
    return (json.dumps(thing, indent=1) + "\n").encode()
