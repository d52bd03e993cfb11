"""Temporary files and folders with an owner: what a killed run left behind is removed by the next.

The owner holds a lock on its file or folder, which the system releases however the owner ends.
Something with one of our names, with content and without such a lock is nobody's any more. What is
still empty may be about to be locked, and holds nothing that anybody could want.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PREFIX = "leakscope-trials-"
RANDOM = "[0-9a-f]{32}"
# The folders that this process holds.
_OWN = set[Path]()


class TemporaryFolder:
    """A folder that lasts as long as somebody holds this; nobody else can look into it."""

    def __init__(self) -> None:
        sweep_folders()
        self.folder = Path(tempfile.gettempdir()) / f"{PREFIX}{secrets.token_hex(16)}"
        self.folder.mkdir(mode=0o700)
        handle = os.open(self.folder, os.O_RDONLY) if sys.platform != "win32" else None
        if handle is not None:
            locked(handle)
        weakref.finalize(self, _remove, self.folder, handle)
        _OWN.add(self.folder)


def is_temporary(folder: Path) -> bool:
    """Whether it is a TemporaryFolder of this process, or of the one that leads it."""
    return re.fullmatch(PREFIX + RANDOM, folder.name) is not None


def remove_folders() -> None:
    """Remove the temporary folders of this process, which is about to end without ceremony."""
    for folder in [*_OWN]:
        shutil.rmtree(folder, ignore_errors=True)


def _remove(folder: Path, handle: int | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _OWN.discard(folder)
    if handle is not None:
        os.close(handle)


def locked(handle: int) -> bool:
    """Hold the lock until the handle is closed, or the process is gone; False: another holds it."""
    try:
        import fcntl
    except ImportError:  # a system without it: nothing is swept there
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def sweep_folders() -> None:
    """Remove the temporary folders of runs that were killed."""
    _sweep(Path(tempfile.gettempdir()), PREFIX + RANDOM)


def temporary_name(name: str) -> str:
    """Under which a file is written, beside the place it is moved to when it is whole."""
    return f".{name}.{secrets.token_hex(16)}.tmp"


def sweep_files(folder: Path, names: Iterable[str]) -> None:
    """Remove what killed runs left of files that were to have these names."""
    _sweep(folder, rf"\.(?:{'|'.join(map(re.escape, names))})\.{RANDOM}\.tmp")


def _sweep(folder: Path, ours: str) -> None:
    if sys.platform == "win32":
        return
    with suppress(OSError):  # what is in nobody's way may stay
        for path in folder.iterdir():
            if re.fullmatch(ours, path.name):
                with suppress(OSError):
                    _remove_if_left(path)


def _remove_if_left(path: Path) -> None:
    import fcntl

    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(handle)
        is_folder = stat.S_ISDIR(status.st_mode)
        if status.st_uid != os.geteuid() or not (is_folder or stat.S_ISREG(status.st_mode)):
            return
        # Not locked() above: where there are no locks, nobody knows whose it is.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_folder and any(path.iterdir()):
            shutil.rmtree(path, ignore_errors=True)
        elif not is_folder and status.st_size:
            path.unlink()
    finally:
        os.close(handle)
