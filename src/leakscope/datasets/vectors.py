"""Records that come as vectors of features: Location-30, Purchase-100, Texas-100, your own."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.datasets.catalog import DataFolder, about
from leakscope.datasets.files import npz_names, read_bytes, read_npz, reading
from leakscope.errors import InputError, MissingDataError
from leakscope.records import Records
from leakscope.registry import register

_SHOKRI = "Shokri et al. 2017 (IEEE S&P), Membership inference attacks"
_SITE = "https://github.com/privacytrustlab/datasets"


@register("dataset", "location30", paper=_SHOKRI)
@about(
    source=f"{_SITE} (label first, then 446 zeros and ones, one line per person)",
    license="not stated; made from Foursquare check-ins by Yang, Zhang & Qu 2016",
    files=("location30.csv", "location30.csv.xz"),
)
def location30(folder: DataFolder) -> Records:
    """Places visited by 5,010 persons: 446 zeros and ones, in 30 classes, numbered from 0."""
    path = folder.need("location30.csv", "location30.csv.xz")
    content = read_bytes(path)
    with reading(path):
        table = pd.read_csv(BytesIO(content), header=None, dtype=np.float32).to_numpy()
    return Records(X=table[:, 1:], y=_numbered(table[:, 0]), name="location30 records")


@register("dataset", "purchase100", paper=_SHOKRI)
@about(
    source=f"{_SITE} (save it with np.savez as features, labels)",
    license="as of Kaggle's competition Acquire Valued Shoppers",
    files=("purchase100.npz",),
)
def purchase100(folder: DataFolder) -> Records:
    """Products bought by 197,324 persons: 600 zeros and ones, in 100 classes, numbered from 0."""
    return _binary_records(folder.need("purchase100.npz"), "purchase100 records")


@register("dataset", "texas100", paper=_SHOKRI)
@about(
    source=f"{_SITE} (save it with np.savez as features, labels)",
    license="as of the Texas hospital inpatient discharge public use data file",
    files=("texas100.npz",),
)
def texas100(folder: DataFolder) -> Records:
    """Hospital stays in Texas: 67,330 by some 6,170 zeros and ones, in 100 classes from 0."""
    return _binary_records(folder.need("texas100.npz"), "texas100 records")


@register("dataset", "features")
@about(source="your own file, the option file", license="yours", files=("FILE.npz",))
def features(folder: DataFolder, *, file: str | None = None) -> Records:
    """Your own features: an .npz file with the arrays features and labels.

    file: its path, or its name in the data folder. features: (n, …) numbers; labels: (n,), or
    (n, classes) with a single 1 in each row. Optional: ``unit`` (n,), the person each row belongs
    to, and ``group_NAME`` (n,), to report by.
    """
    if file is None:
        raise InputError("The data set 'features' needs the option file; name an .npz file")
    given = Path(file).expanduser()
    path = given if given.is_file() else folder.find(str(file))
    if path is None:
        raise MissingDataError(
            f"There is no file {given}; name an .npz file with the arrays features and labels, by "
            "its path or by its name in the folder that folder= or LEAKSCOPE_DATA names"
        )
    X, y = read_npz(path, "features", "labels")
    extra = [name for name in npz_names(path) if name == "unit" or name.startswith("group_")]
    columns = dict(zip(extra, read_npz(path, *extra), strict=True))
    return Records(
        X=X,
        y=_classes(y, path),
        unit=columns.pop("unit", None),
        groups={name.removeprefix("group_"): values for name, values in columns.items()},
        name="records",
    )


def _binary_records(path: Path, name: str) -> Records:
    X, y = read_npz(path, "features", "labels")
    return Records(X=X.astype(np.float32, copy=False), y=_numbered(_classes(y, path)), name=name)


def _classes(labels: NDArray[Any], path: Path) -> NDArray[Any]:
    """Labels (n,) as they are; the position of the 1 where a row has one 1 and zeros."""
    if labels.ndim < 2 or labels.shape[1:] == (1,):
        return labels.reshape(-1)
    one_hot = labels.ndim == 2 and np.isin(labels, (0, 1)).all() and (labels.sum(axis=1) == 1).all()
    if not one_hot:
        raise InputError(
            f"The labels of {path} have shape {labels.shape} and not a single 1 in each row; "
            "save one label per record"
        )
    position: NDArray[Any] = labels.argmax(axis=1)
    return position


def _numbered(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Classes as 0, 1, … in sorted order, which every library takes."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
