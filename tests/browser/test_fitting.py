"""A page fits a phone and sheets of A4: nothing is cut off, and nobody scrolls sideways."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from browser.states import EVERY_STATE, STATES

pytestmark = pytest.mark.browser

# A sheet of A4 within the margins of the style sheet, 178 mm × 262 mm, in CSS pixels.
SHEET = {"width": 672, "height": 990}
FOOT = 18 / 25.4 * 72  # the margin below it, in points
LEAST_ROOM = 30  # points that a heading and the line after it take

# What reaches over the edge of the window, of a box that hides what is too much, or of a figure.
CUT_OFF = """() => {
    const box = one => one.getBoundingClientRect();
    // The heads of tables are for ears alone on a phone, where each cell has its own label.
    const unseen = one => one.closest("thead") && getComputedStyle(one.closest("thead")).clipPath !== "none";
    const seen = selector => [...document.querySelectorAll(selector)]
        .filter(one => one.getClientRects().length > 0 && !unseen(one));
    const width = document.documentElement.clientWidth;
    const outside = seen("body *").filter(one => box(one).left < -1 || box(one).right > width + 1);
    const hidden = seen("body :not(svg, svg *)")
        .filter(one => getComputedStyle(one).overflowX !== "visible")
        .filter(one => one.scrollWidth > one.clientWidth + 1);
    const cut = seen("svg text").filter(one => {
        const [inner, outer] = [box(one), box(one.ownerSVGElement)];
        return getComputedStyle(one.ownerSVGElement).overflow !== "visible"
            && (inner.left < outer.left - 1 || inner.right > outer.right + 1);
    });
    return [...outside, ...hidden, ...cut].map(one => `${one.tagName}: ${one.textContent}`);
}"""  # noqa: E501


def sideways(page: Any) -> int:
    """By how many pixels the page is wider than its window."""
    return page.evaluate("document.scrollingElement.scrollWidth - innerWidth")


@pytest.mark.parametrize("state", EVERY_STATE)
def test_a_page_fits_a_phone_and_whatever_is_wider(state: str, page_of: Callable) -> None:
    page = page_of(state)
    # 320 pixels are what WCAG 2.2 asks for (1.4.10); 705 are the narrowest with whole tables.
    for width in (320, 360, 705, 1000):
        page.set_viewport_size({"width": width, "height": 740})
        assert sideways(page) == 0, width
        assert page.evaluate(CUT_OFF) == [], width
        # Of the two drawings of a figure one is shown.
        phone = width < 704
        for name, shown in ((".wide", not phone), (".narrow", phone)):
            drawings = page.locator(name).all()
            assert [one.is_visible() for one in drawings] == [shown] * len(drawings), width


@pytest.mark.parametrize(
    "mistake",
    [
        "main { min-width: 400px }",
        "table { overflow: hidden; white-space: nowrap }",
        "svg { overflow: hidden !important } svg text { font-size: 40px !important }",
    ],
)
def test_what_does_not_fit_is_noticed(mistake: str, visit: Callable) -> None:
    page = visit("comparison", viewport={"width": 360, "height": 740}).page
    page.add_style_tag(content=mistake)
    assert page.evaluate(CUT_OFF)


@pytest.mark.parametrize("state", EVERY_STATE)
def test_nothing_is_cut_off_on_paper(state: str, page_of: Callable) -> None:
    page = page_of(state)
    page.set_viewport_size(SHEET)
    page.emulate_media(media="print", color_scheme="dark")
    assert sideways(page) == 0
    assert page.evaluate(CUT_OFF) == []
    # What must not break over two sheets is shorter than one.
    heights = page.evaluate(
        """[...document.querySelectorAll("figure, tr, pre, .findings > div")]
            .map(one => one.getBoundingClientRect().height)"""
    )
    assert max(heights) <= SHEET["height"]
    # Paper is white, whatever the screen was.
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.fixture(scope="module")
def read_pdf(absent: Callable) -> Callable[[bytes], Any]:
    try:
        from pypdf import PdfReader
    except ImportError:
        absent("pypdf is not installed: pip install pypdf")
    return lambda printed: PdfReader(io.BytesIO(printed))


def headings(outline: list[Any]) -> Iterator[Any]:
    """The headings of a document and of its parts."""
    for one in outline:
        if isinstance(one, list):
            yield from headings(one)
        else:
            yield one


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_it_prints_on_few_sheets_and_no_heading_stands_alone(
    state: str, page_of: Callable, read_pdf: Callable
) -> None:
    page = page_of(state)
    # Figures of an invalid audit stay folded away on paper, too.
    folded = page.locator("details :is(h1, h2, h3)").count()
    told = page.locator("h1, h2, h3").count() - folded
    # Further down, the headings of the longest page are at other places of their sheets.
    for moved in (40, 0) if state == "leaks" else (0,):
        page.evaluate("moved => { document.body.style.paddingTop = `${moved}px` }", moved)
        document = read_pdf(page.pdf(prefer_css_page_size=True, tagged=True, outline=True))
        assert 1 <= len(document.pages) <= (12 if state == "leaks" else 8)
        for sheet in document.pages:
            assert [float(one) for one in sheet.mediabox[2:]] == pytest.approx([595, 842], abs=1)
        found = list(headings(document.outline))
        assert len(found) == told
        for one in found:
            assert float(one.top) - FOOT >= LEAST_ROOM, (one.title, moved)
