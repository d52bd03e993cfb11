"""Images that lie in a folder, one sub-folder per class, as ImageNet is unpacked."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.datasets.catalog import DataFolder, about
from leakscope.datasets.files import LIMIT, reading
from leakscope.errors import InputError, MissingDataError
from leakscope.options import whole_number
from leakscope.records import Records
from leakscope.registry import register

ENDINGS = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")

# What is cut off at each end of the shorter side, as usual with ImageNet: 224 of 256 are kept.
EDGE = 1 / 16


@register("dataset", "image-folder", paper="layout of Russakovsky et al. 2015 (IJCV), ImageNet")
@about(
    source="your own images, or ImageNet from https://image-net.org, by the option path",
    license="yours; ImageNet's is for non-commercial research",
    files=("FOLDER/CLASS/IMAGE",),
)
def image_folder(
    folder: DataFolder,
    *,
    path: str | None = None,
    size: int = 224,
    classes: int | None = None,
    n: int | None = None,
    seed: int = 0,
) -> Records:
    """Images of a folder that has a sub-folder for each class, as ImageNet's train folder.

    path: of the folder, or its name in the data folder. size: the height and width that the square
    in the middle of an image, 7/8 of its shorter side, is brought to. classes: the first so many
    sub-folders alone, by name. n: that many images, drawn by the seed. Features are 32-bit numbers
    in [0, 1], (n, size, size, 3); classes are numbered from 0 in the order of their names.
    """
    whole_number("size", size, 1)
    files, labels = _listed(_place(folder, path), classes)
    if n is not None:
        whole_number("n", n, 1, len(files))
        rows = np.random.default_rng(whole_number("seed", seed, 0)).permutation(len(files))[:n]
        rows.sort()
        files, labels = [files[row] for row in rows], labels[rows]
    _refuse_too_much(len(files), size)
    X = np.empty((len(files), size, size, 3), np.float32)
    for image, file in zip(X, files, strict=True):
        image[:] = _read(file, size)
    return Records(X=X, y=labels, name="images")


def _place(folder: DataFolder, path: str | None) -> Path:
    if path is None:
        raise InputError(
            "The data set 'image-folder' needs the option path; name a folder that has a "
            "sub-folder of images for each class"
        )
    given = Path(path).expanduser()
    places = [given] if folder.path is None else [given, folder.path / path]
    for place in places:
        if place.is_dir():
            return place
    raise MissingDataError(
        f"There is no folder {given}; name one that has a sub-folder of images for each class, by "
        "its path or by its name in the folder that folder= or LEAKSCOPE_DATA names"
    )


def _listed(place: Path, classes: int | None) -> tuple[list[Path], NDArray[np.int64]]:
    """The image files of the first so many classes, and the number of the class of each."""
    with reading(place):
        within = sorted(one for one in place.iterdir() if one.is_dir())
        if classes is not None:
            within = within[: whole_number("classes", classes, 1, len(within))]
        files = [
            sorted(one for one in each.iterdir() if one.suffix.lower() in ENDINGS)
            for each in within
        ]
    if not within or not all(files):
        empty = within[[bool(some) for some in files].index(False)] if within else place
        raise InputError(
            f"The folder {empty} has no {'image' if within else 'sub-folder'}; images "
            f"({', '.join(ENDINGS)}) are looked for in one sub-folder for each class"
        )
    numbers = np.repeat(np.arange(len(files)), [len(some) for some in files])
    return [file for some in files for file in some], numbers


def _refuse_too_much(images: int, size: int) -> None:
    most = LIMIT // (12 * size * size)
    if images > most:
        raise InputError(
            f"{images} images of {size} × {size} would take more than {LIMIT // 2**30} GiB; ask "
            f"for {most} at most with the option n, or for smaller ones with size"
        )


def _read(file: Path, size: int) -> NDArray[Any]:
    """The middle of an image, (size, size, 3) in [0, 1]."""
    # Pillow comes with matplotlib; it is needed here alone.
    from PIL import Image, ImageOps

    with reading(file), warnings.catch_warnings():
        # An image made to fill the memory when it is unpacked.
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(file) as image:
                image.draft("RGB", (2 * size, 2 * size))  # a JPEG is unpacked no larger than needed
                square = ImageOps.fit(
                    image.convert("RGB"), (size, size), Image.Resampling.BILINEAR, bleed=EDGE
                )
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            raise InputError(
                f"The image {file} has too many pixels ({error}); leave it out or make it smaller"
            ) from error
    return np.asarray(square, np.float32) / 255
