from __future__ import annotations

import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from leakscope.datasets import image_folder, load_dataset
from leakscope.errors import InputError, MissingDataError


def picture(path: Path, width: int, height: int, colour: Any = (255, 0, 51), **how: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (width, height), colour).save(path, **how)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two cats, three dogs, one fish, and what is no image."""
    for name, number in (("cat", 2), ("dog", 3), ("fish", 1)):
        for each in range(number):
            picture(tmp_path / "pets" / name / f"{each}.PNG", 20, 12, (each, 51 * number, 255))
    (tmp_path / "pets" / "cat" / "notes.txt").write_text("a good cat")
    (tmp_path / "pets" / "README").write_text("pets")
    (tmp_path / "pets-too" / "none").mkdir(parents=True)
    return tmp_path


def test_classes_are_numbered_by_the_names_of_their_folders(place: Path) -> None:
    records = load_dataset("image-folder", folder=place, path="pets", size=8)
    assert records.y.tolist() == [0, 0, 1, 1, 1, 2]
    X = records.X
    assert X.shape == (6, 8, 8, 3)
    assert X.dtype == np.float32
    np.testing.assert_allclose(X[4], np.broadcast_to([2 / 255, 0.6, 1], (8, 8, 3)), rtol=1e-6)
    by_path = load_dataset("image-folder", path=str(place / "pets"), size=8)
    np.testing.assert_array_equal(by_path.X, X)


def test_the_middle_square_is_taken(tmp_path: Path) -> None:
    """Of 32 × 16 pixels the square of 14 (7/8 of the shorter side) that has columns 9 to 22."""
    pixels = np.zeros((16, 32, 3), np.uint8)
    pixels[1:15, 9:23] = np.arange(14 * 14 * 3).reshape(14, 14, 3) % 251
    (tmp_path / "one").mkdir()
    Image.fromarray(pixels).save(tmp_path / "one" / "a.png")
    X = load_dataset("image-folder", path=str(tmp_path), size=14).X
    np.testing.assert_array_equal(np.rint(X[0] * 255), pixels[1:15, 9:23])


@pytest.mark.parametrize(
    ("mode", "ending"), [("L", "png"), ("RGBA", "png"), ("P", "bmp"), ("CMYK", "jpg"), ("1", "tif")]
)
def test_every_kind_of_image_has_three_colours(tmp_path: Path, mode: str, ending: str) -> None:
    (tmp_path / "one").mkdir()
    Image.new("RGB", (9, 9), "white").convert(mode).save(tmp_path / "one" / f"a.{ending}")
    X = load_dataset("image-folder", path=str(tmp_path), size=4).X
    np.testing.assert_array_equal(X, np.ones((1, 4, 4, 3)))


def test_a_large_photograph_is_unpacked_small(tmp_path: Path) -> None:
    picture(tmp_path / "one" / "a.jpg", 4000, 3000, quality=90)
    X = load_dataset("image-folder", path=str(tmp_path), size=32).X
    np.testing.assert_allclose(X[0].mean((0, 1)), [1, 0, 0.2], atol=0.02)


def test_some_are_drawn_by_the_seed(place: Path) -> None:
    def drawn(**options: Any) -> list[int]:
        records = load_dataset("image-folder", folder=place, path="pets", size=4, **options)
        return [int(one) for one in records.X[:, 0, 0, 0] * 255 + 10 * records.y]

    everyone = drawn()
    assert drawn(n=6, seed=3) == everyone
    some = {tuple(drawn(n=4, seed=seed)) for seed in range(20)}
    assert len(some) > 5
    assert all(set(one) < set(everyone) and len(set(one)) == 4 for one in some)
    assert drawn(n=4, seed=1) == drawn(n=4, seed=1)
    assert drawn(classes=2) == everyone[:5]


def test_only_what_was_drawn_is_read(place: Path) -> None:
    (place / "pets" / "dog" / "3.png").write_bytes(b"no image")
    read = load_dataset("image-folder", folder=place, path="pets", size=4, classes=1)
    assert len(read) == 2
    with pytest.raises(InputError, match=r"dog/3\.png cannot be read \(cannot identify image"):
        load_dataset("image-folder", folder=place, path="pets", size=4)


def test_a_truncated_image_is_named(tmp_path: Path) -> None:
    path = tmp_path / "one" / "a.jpg"
    picture(path, 64, 64)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(InputError, match=r"one/a\.jpg cannot be read \("):
        load_dataset("image-folder", path=str(tmp_path))


def test_an_image_made_to_fill_the_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one" / "a.png"
    picture(path, 10, 10)
    content = bytearray(path.read_bytes())
    content[16:24] = (20_000).to_bytes(4, "big") * 2  # the width and height that it says it has
    content[29:33] = zlib.crc32(content[12:29]).to_bytes(4, "big")
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"The image .*a\.png has too many pixels"):
            load_dataset("image-folder", path=str(tmp_path))
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


def test_more_than_fits_is_refused_before_any_image_is_read(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_folder, "LIMIT", 5 * 12 * 8 * 8)
    with pytest.raises(InputError, match=r"6 images of 8 × 8 would take .* ask for 5 at most"):
        load_dataset("image-folder", folder=place, path="pets", size=8)
    assert len(load_dataset("image-folder", folder=place, path="pets", size=8, n=5)) == 5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "The data set 'image-folder' needs the option path; name a folder"),
        ({"path": "pets", "size": 0}, "The option size must be a whole number of at least 1"),
        ({"path": "pets", "n": 7}, "The option n must be a whole number from 1 to 6, got 7"),
        ({"path": "pets", "classes": 4}, "The option classes must be a whole number from 1 to 3"),
        ({"path": "pets", "n": 2, "seed": -1}, "The option seed must be a whole number of at"),
        ({"path": "pets/cat"}, "pets/cat has no sub-folder; images"),
        ({"path": "pets-too"}, "pets-too/none has no image; images"),
    ],
)
def test_bad_options_are_one_sentence(place: Path, options: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        load_dataset("image-folder", folder=place, **options)


def test_a_missing_folder_is_one_sentence(place: Path) -> None:
    for folder in (place, None):
        with pytest.raises(MissingDataError, match="There is no folder birds; name one that has"):
            load_dataset("image-folder", folder=folder, path="birds")
