"""Writing a run's files into a folder, each whole, or a sentence that says why not."""

from __future__ import annotations

import errno
import os
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from leakscope.errors import InputError

FILES = ("records.csv", "report.html", "report.json")


def check_folder(folder: str | Path, files: Iterable[str] = FILES) -> None:
    """Refuse a folder these files cannot be written to, before the long work; nothing is left."""
    folder = Path(folder)
    with _saying_why(folder):
        with suppress(FileNotFoundError):
            folder.stat()  # a name that is too long shows here only
        with tempfile.TemporaryFile(dir=_nearest(folder)):
            pass
        for name in files:
            if (folder / name).is_dir():
                raise IsADirectoryError(errno.EISDIR, f"{name} is a folder there")


def write_together(folder: Path, texts: Mapping[str, str | Iterable[str]]) -> None:
    """Write every text, or its parts, to a temporary file, then move each into place, whole."""
    made: dict[Path, Path] = {}
    with _saying_why(folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                made[folder / name] = temporary = folder / f".{name}.{uuid.uuid4().hex}.tmp"
                with temporary.open("x", encoding="utf-8", newline="") as file:
                    file.writelines([text] if isinstance(text, str) else text)
                    file.flush()
                    os.fsync(file.fileno())
            for place, temporary in made.items():
                temporary.replace(place)
        finally:
            for temporary in made.values():
                temporary.unlink(missing_ok=True)


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest of those above it that exists."""
    # Path.exists raises where a name is too long; this says that it is not there.
    above = (folder, *folder.parents)
    return next((one for one in above if os.path.exists(one)), folder)  # noqa: PTH110


@contextmanager
def _saying_why(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        in_the_way = _nearest(folder).is_file()
        why = "a file is in the way" if in_the_way else error.strerror or str(error)
        raise InputError(
            f"The results cannot be saved in {str(folder)!r} ({why}); "
            "choose a folder that can be written to"
        ) from error
