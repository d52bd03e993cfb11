"""Data sets: bundled, made on the spot, read from a folder, or downloaded when that is asked for.

A data set is one function that takes a DataFolder and its options and returns Records, registered
where it stands; `load_dataset` and `describe_datasets` find it there.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leakscope.datasets.catalog import DataFolder, about_of
from leakscope.datasets.options import check_options
from leakscope.records import Records
from leakscope.registry import entries, lookup

__all__ = ["DatasetCard", "describe_datasets", "load_dataset"]


@dataclass(frozen=True)
class DatasetCard:
    """What there is to know of a data set before it is loaded.

    files: what is looked for in the data folder, any one of which will do; empty if none is needed.
    download: whether it can be downloaded instead. options: each with its default.
    """

    name: str
    summary: str
    paper: str
    source: str
    license: str
    files: tuple[str, ...]
    download: bool
    options: Mapping[str, Any]


def load_dataset(
    name: str,
    *,
    download: bool = False,
    folder: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Records:
    """The data set of this name, as Records.

    folder: where data files are, the environment variable LEAKSCOPE_DATA if not given. download:
    whether a data set that is not there may be fetched from openml.org; nothing is ever fetched
    otherwise. options: the data set's own, which `describe_datasets` lists.
    """
    loader = lookup("dataset", name).thing
    check_options(name, options, _options(loader))
    place = folder if folder is not None else os.environ.get("LEAKSCOPE_DATA") or None
    path = None if place is None else Path(place).expanduser()
    records: Records = loader(DataFolder(name, about_of(loader), path, download), **options)
    return records


def describe_datasets() -> list[DatasetCard]:
    """What there is: a card per data set, by name."""
    return [
        DatasetCard(
            name=entry.name,
            summary=entry.summary,
            paper=entry.paper,
            source=about_of(entry.thing).source,
            license=about_of(entry.thing).license,
            files=about_of(entry.thing).files,
            download=about_of(entry.thing).openml is not None,
            options=_options(entry.thing),
        )
        for entry in entries("dataset")
    ]


def _options(loader: Callable[..., Any]) -> dict[str, Any]:
    return {
        parameter.name: parameter.default
        for parameter in inspect.signature(loader).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
