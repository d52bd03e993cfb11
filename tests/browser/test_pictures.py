"""Pictures of the main states, kept in the folder that LEAKSCOPE_SCREENSHOTS names."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from browser.picture import FIRST_SCREEN, keep_small
from browser.states import STATES

ROOT = Path(__file__).resolve().parents[2]
SMALL = 200_000  # bytes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(os.environ.get("LEAKSCOPE_SCREENSHOTS") or tmp_path)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("state", "view"),
    [*((state, "desk") for state in STATES), ("leaks", "dark"), ("leaks", "phone")],
)
def test_a_picture_shows_the_page(state: str, view: str, page_of: Callable, folder: Path) -> None:
    page = page_of(state)
    page.emulate_media(color_scheme="dark" if view == "dark" else "light")
    if view == "phone":
        page.set_viewport_size({"width": 360, "height": 740})
    path = folder / f"{state}-{view}.png"
    page.screenshot(path=path, full_page=True)
    # The bar above the verdict, in its colour, from margin to margin.
    bar = page.locator(".verdict").bounding_box()
    told = page.evaluate("getComputedStyle(document.querySelector('.verdict')).borderTopColor")
    colour = tuple(int(one) for one in re.findall(r"\d+", told))
    with Image.open(path) as picture:
        assert picture.size == (
            page.viewport_size["width"],
            page.evaluate("document.scrollingElement.scrollHeight"),
        )
        for x in (bar["x"] + 2, bar["x"] + bar["width"] / 2, bar["x"] + bar["width"] - 3):
            assert picture.convert("RGB").getpixel((int(x), int(bar["y"]) + 2)) == colour


@pytest.mark.browser
def test_a_picture_of_the_first_screen_is_small(page_of: Callable, tmp_path: Path) -> None:
    page = page_of("leaks")
    page.set_viewport_size(FIRST_SCREEN)
    taken = page.screenshot()
    path = tmp_path / "report.png"
    keep_small(taken, path)
    assert path.stat().st_size < min(SMALL, len(taken) / 2)
    with Image.open(path) as picture:
        assert picture.size == tuple(FIRST_SCREEN.values())


@pytest.mark.slow
def test_the_readme_shows_a_small_picture_and_says_what_is_on_it() -> None:
    path = ROOT / "docs" / "images" / "report.png"
    alternative = re.search(
        rf"!\[([^\]]+)\]\({path.relative_to(ROOT).as_posix()}\)",
        (ROOT / "README.md").read_text(encoding="utf-8"),
    )
    assert alternative is not None
    assert len(alternative[1].split()) >= 10
    assert path.stat().st_size < SMALL
    with Image.open(path) as picture:
        assert picture.size == tuple(FIRST_SCREEN.values())
