"""Writing a run's files into a folder, each whole, or a sentence that says why not."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from leakscope.errors import InputError
from leakscope.temporary import locked, sweep_files, sweep_folders, temporary_name

FILES = ("records.csv", "report.html", "report.json")


def check_folder(folder: str | Path, files: Iterable[str] = FILES) -> None:
    """Refuse a folder these files cannot be written to, before the long work; nothing is left.

    What runs that were killed left there, or in the folder for temporary files, is removed.
    """
    folder, files = Path(folder), tuple(files)
    sweep_folders()
    sweep_files(folder, files)
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
    with _saying_why(folder), ExitStack() as files:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            sweep_files(folder, texts)
            for name, text in texts.items():
                made[folder / name] = temporary = folder / temporary_name(name)
                file = files.enter_context(temporary.open("x", encoding="utf-8", newline=""))
                locked(file.fileno())  # until it is in its place: it is no killed run's
                file.writelines([text] if isinstance(text, str) else text)
                file.flush()
                os.fsync(file.fileno())
            if sys.platform == "win32":
                files.close()  # which moves no open file
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
