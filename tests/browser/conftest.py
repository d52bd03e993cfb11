"""A real browser, and how to visit a page with it.

Where Chromium or playwright is missing these tests are skipped; with LEAKSCOPE_BROWSER=required
they fail instead, so that a build never passes without having looked.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from browser.states import EVERY_STATE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

DESK = {"width": 1000, "height": 1400}


@dataclass(frozen=True)
class Visit:
    """An opened page, what it asked the network for and what it complained of."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


def absent(what: str) -> NoReturn:
    """Skip the test, or fail it where a browser is required."""
    if os.environ.get("LEAKSCOPE_BROWSER") == "required":
        pytest.fail(f"{what}, and LEAKSCOPE_BROWSER=required asks for it")
    pytest.skip(what)


@pytest.fixture(scope="session", name="absent")
def absent_fixture() -> Callable[[str], NoReturn]:
    return absent


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium without a window, one for each file of tests.

    Not one for the session: while it is open this thread has a running event loop, and tests of
    other folders start their own.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        absent("playwright is not installed: pip install playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        absent("there is no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        # On a busy machine a key that is pressed while the page still glides to its end is lost.
        opened = playwright.chromium.launch(
            executable_path=chromium, args=["--disable-smooth-scrolling"]
        )
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def file_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file with the page of a state, written when it is first asked for."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def write(state: str) -> Path:
        path = folder / f"{state}.html"
        path.write_bytes(EVERY_STATE[state]().encode())
        return path

    return write


@pytest.fixture(scope="module")
def visit(browser: Browser, file_of: Callable[[str], Path]) -> Callable[..., Visit]:
    """Open a state, or a file, with the network off; options are those of a browser's context."""

    def open_page(what: str | Path, **options: Any) -> Visit:
        address = (what if isinstance(what, Path) else file_of(what)).as_uri()
        context = browser.new_context(**{"viewport": DESK, "offline": True} | options)
        visited = Visit(context.new_page())

        def answer(route: Route) -> None:
            visited.requests.append(route.request.url)
            # Files can be read offline, so whatever is not the page itself is stopped here.
            route.continue_() if route.request.url == address else route.abort()

        context.route("**/*", answer)
        page, told = visited.page, visited.complaints
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("dialog", lambda dialog: (told.append(dialog.message), dialog.dismiss()))
        page.goto(address)
        return visited

    return open_page


@pytest.fixture(scope="module")
def _opened(visit: Callable[..., Visit]) -> Callable[[str], Page]:
    return cache(lambda state: visit(state).page)


@pytest.fixture
def page_of(_opened: Callable[[str], Page]) -> Callable[[str], Page]:
    """The page of a state as it is on a light screen, opened once for tests that only look."""

    def as_new(state: str) -> Page:
        page = _opened(state)
        page.set_viewport_size(DESK)
        # "null" is the screen here, and paper for a PDF.
        page.emulate_media(media="null", color_scheme="light")
        return page

    return as_new
