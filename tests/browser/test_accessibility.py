"""Everybody can read a page: axe finds nothing, in light and in dark, and no pointer is needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from browser.states import STATES

pytestmark = pytest.mark.browser

PHONE = {"width": 360, "height": 740}

# Least contrast of small text (WCAG 2.2, success criterion 1.4.3).
CONTRAST = 4.5


@pytest.fixture(scope="module")
def check(absent: Callable) -> Callable[..., dict[str, Any]]:
    """axe's findings on a page: what is wrong, and what it cannot judge."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        absent("axe is not installed: pip install axe-playwright-python")

    def run(page: Any, **options: Any) -> dict[str, Any]:
        options |= {"resultTypes": ["violations", "incomplete"]}
        return Axe().run(page, options=options).response

    return run


def nodes(findings: list[dict[str, Any]]) -> list[str]:
    return [f"{one['id']}: {node['html']}" for one in findings for node in one["nodes"]]


@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing(state: str, page_of: Callable, check: Callable) -> None:
    found = check(page_of(state))
    assert nodes(found["violations"]) == []
    assert len(found["passes"]) > 20
    # Contrast in figures is measured below. A heading above the rows of a group has no cells of
    # its own, as scope="rowgroup" says.
    unjudged = [one for one in nodes(found["incomplete"]) if "color-contrast: <text" not in one]
    assert {one.split(":")[0] for one in unjudged} <= {"th-has-data-cells"}


@pytest.mark.parametrize("state", STATES)
def test_text_stands_out_in_the_dark(state: str, page_of: Callable, check: Callable) -> None:
    page = page_of(state)
    page.emulate_media(color_scheme="dark")
    found = check(page, runOnly=["color-contrast"])
    assert nodes(found["violations"]) == []
    assert found["passes"]


@pytest.mark.parametrize("state", ["leaks", "comparison"])
def test_axe_finds_nothing_on_a_phone(state: str, page_of: Callable, check: Callable) -> None:
    page = page_of(state)
    page.set_viewport_size(PHONE)
    assert nodes(check(page)["violations"]) == []


def luminance(colour: str) -> float:
    """Relative luminance of rgb(r, g, b), as WCAG 2.2 defines it."""
    shares = [int(one) / 255 for one in re.findall(r"\d+", colour)]
    red, green, blue = (
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21)
    assert contrast("rgb(119, 119, 119)", "rgb(255, 255, 255)") == pytest.approx(4.478, abs=1e-3)


@pytest.mark.parametrize("state", ["leaks", "comparison"])
def test_text_in_figures_stands_out(state: str, page_of: Callable) -> None:
    page = page_of(state)
    for media in ({"color_scheme": "light"}, {"color_scheme": "dark"}, {"media": "print"}):
        page.emulate_media(**media)
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        colours = page.evaluate(
            """[...document.querySelectorAll("svg text")].map(getComputedStyle)
                .map(style => [style.fill, style.opacity, style.fillOpacity])"""
        )
        assert colours
        for fill, *opacities in {tuple(one) for one in colours}:
            assert opacities == ["1", "1"]
            assert contrast(fill, paper) >= CONTRAST, (media, fill, paper)


@pytest.mark.slow
def test_nothing_on_a_page_needs_a_pointer(visit: Callable) -> None:
    # Waiting is a script, which the policy would stop.
    page = visit("leaks", viewport=PHONE, bypass_csp=True).page
    page.bring_to_front()
    # Nothing that opens, follows or shows itself to a pointer, so keys that scroll are enough.
    assert page.locator("a, button, details, input, [tabindex], [title], [onclick]").count() == 0
    page.keyboard.press("End")
    page.wait_for_function(
        "Math.abs(innerHeight + scrollY - document.scrollingElement.scrollHeight) < 2"
    )
    assert page.evaluate("scrollY") > 1000
    page.keyboard.press("Home")
    page.wait_for_function("scrollY === 0")
