"""The picture in README.md, taken of a report: python picture.py report.html report.png."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image

# A page has few colours, and the edges of its letters are mixtures of two of them.
COLOURS = 64
FIRST_SCREEN = {"width": 1000, "height": 1500}


def keep_small(png: bytes, path: Path) -> None:
    """Write a picture with few colours, a third as large."""
    with Image.open(io.BytesIO(png)) as taken:
        few = taken.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def main(report: str, path: str) -> None:
    """Take the picture of the first screen of a page, from its file."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport=FIRST_SCREEN)
        page.goto(Path(report).resolve().as_uri())
        keep_small(page.screenshot(), Path(path))
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
