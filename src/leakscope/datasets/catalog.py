"""What is said of a data set, and where its files are looked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from leakscope.errors import MissingDataError

Loader = TypeVar("Loader", bound=Callable[..., Any])


@dataclass(frozen=True)
class About:
    """Where a data set comes from.

    files: the names it is looked for under, any one of which will do. openml: the name and version
    it has on openml.org, if it can be downloaded from there.
    """

    source: str = ""
    license: str = ""
    files: tuple[str, ...] = ()
    openml: tuple[str, int] | None = None


_ABOUT: dict[Callable[..., Any], About] = {}


def about(
    *,
    source: str,
    license: str,
    files: tuple[str, ...] = (),
    openml: tuple[str, int] | None = None,
) -> Callable[[Loader], Loader]:
    """Say of a data set, above its function, where it comes from."""

    def note(loader: Loader) -> Loader:
        _ABOUT[loader] = About(source, license, files, openml)
        return loader

    return note


def about_of(loader: Callable[..., Any]) -> About:
    """What was said of this data set; nothing for one that said nothing."""
    return _ABOUT.get(loader, About())


@dataclass(frozen=True)
class DataFolder:
    """Where a data set may take its files from: a folder, or the network if that is allowed."""

    dataset: str
    about: About
    path: Path | None
    download: bool

    def find(self, *names: str) -> Path | None:
        """The first of these files that is in the folder."""
        if self.path is None:
            return None
        return next((self.path / name for name in names if (self.path / name).is_file()), None)

    def need(self, *names: str) -> Path:
        """The first of these files that is in the folder, or an error that says where to get it."""
        path = self.find(*names)
        if path is None:
            raise self.missing()
        return path

    def fetch(self) -> tuple[pd.DataFrame, pd.Series[Any]]:
        """Features and label from openml.org, if downloading is allowed."""
        if self.about.openml is None or not self.download:
            raise self.missing()
        from sklearn.datasets import fetch_openml

        name, version = self.about.openml
        try:
            with warnings.catch_warnings():
                # One warning per failed attempt; the error below says it once.
                warnings.simplefilter("ignore", UserWarning)
                bunch = fetch_openml(name, version=version, as_frame=True)
        except (OSError, ValueError, HTTPException) as error:
            raise MissingDataError(
                f"The data set {self.dataset!r} could not be downloaded from openml.org ({error}); "
                f"get {self._files()} from {self.about.source} and put it into a folder that "
                "folder= or LEAKSCOPE_DATA names"
            ) from error
        return bunch.data, bunch.target

    def missing(self) -> MissingDataError:
        """The error that says which file is missing, where to get it and where to put it."""
        if self.path is None:
            absent = "and no data folder is named"
            place = "put it into a folder that folder= or LEAKSCOPE_DATA names"
        else:
            absent, place = f"not found in {self.path}", "put it there"
        advice = f"get it from {self.about.source} and {place}"
        if self.about.openml is not None:
            advice += ", or let it be downloaded with download=True (--download)"
        return MissingDataError(
            f"The data set {self.dataset!r} needs {self._files()}, {absent}; {advice}"
        )

    def _files(self) -> str:
        return " or ".join(self.about.files)
