from __future__ import annotations

import re
import warnings
from http.client import IncompleteRead
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import pandas as pd
import pytest
import sklearn.datasets

from leakscope.datasets.catalog import About, DataFolder, about, about_of
from leakscope.errors import MissingDataError

HERE = About("example.org", "CC0", ("a.csv", "a.csv.xz"), ("a-data", 2))


def place(path: Path | None, *, download: bool = False, said: About = HERE) -> DataFolder:
    return DataFolder("a", said, path, download)


def test_what_is_said_of_a_data_set_is_kept() -> None:
    @about(source="example.org", license="CC0", files=("a.csv", "a.csv.xz"), openml=("a-data", 2))
    def said() -> None: ...

    def unsaid() -> None: ...

    assert about_of(said) == HERE
    assert about_of(unsaid) == About()


def test_the_first_file_that_is_there_is_found(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "b").touch()
    (tmp_path / "c").touch()
    folder = place(tmp_path)
    assert folder.find("a", "inner/b", "c") == tmp_path / "inner" / "b"
    assert folder.need("a", "c") == tmp_path / "c"
    assert folder.find("inner") is None  # a folder is not a file
    assert place(None).find("c") is None


def test_a_missing_file_says_which_where_to_get_it_and_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError) as caught:
        place(tmp_path).need("a.csv")
    assert str(caught.value) == (
        f"The data set 'a' needs a.csv or a.csv.xz, not found in {tmp_path}; get it from "
        "example.org and put it there, or let it be downloaded with download=True (--download)"
    )
    with pytest.raises(MissingDataError) as caught:
        place(None, said=About("example.org", "", ("a.csv",))).need("a.csv")
    assert str(caught.value) == (
        "The data set 'a' needs a.csv, and no data folder is named; get it from example.org and "
        "put it into a folder that folder= or LEAKSCOPE_DATA names"
    )


def test_nothing_is_fetched_unless_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)
    with pytest.raises(MissingDataError, match="download=True"):
        place(None).fetch()
    with pytest.raises(MissingDataError, match="put it into a folder"):
        place(None, download=True, said=About("example.org", "", ("a.csv",))).fetch()


def test_what_openml_has_is_fetched_by_name_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    data, target = pd.DataFrame({"x": [1.0]}), pd.Series(["b"], name="class")
    calls = []

    def fetch(*arguments: Any, **options: Any) -> SimpleNamespace:
        calls.append((arguments, options))
        return SimpleNamespace(data=data, target=target)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    found = place(None, download=True).fetch()
    assert found[0] is data
    assert found[1] is target
    assert calls == [(("a-data",), {"version": 2, "as_frame": True})]


@pytest.mark.parametrize(
    "error", [URLError("no route"), ValueError("no such data"), IncompleteRead(b"")]
)
def test_a_failed_download_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        warnings.warn("A network error occurred. Retrying...", UserWarning, stacklevel=1)
        raise error

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fail)
    message = (
        f"The data set 'a' could not be downloaded from openml.org ({error}); get a.csv or a.csv.xz"
        " from example.org and put it into a folder that folder= or LEAKSCOPE_DATA names"
    )
    with pytest.raises(MissingDataError, match=re.escape(message)):
        place(None, download=True).fetch()
