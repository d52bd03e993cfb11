"""A page opens from disk with the network and scripts off, and nothing in it ever runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from browser.states import EVERY_STATE, HARMFUL, HOSTILE, HOSTILE_STATES

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("state", EVERY_STATE)
def test_a_page_asks_for_nothing_and_complains_of_nothing(
    state: str, visit: Callable, file_of: Callable[[str], Path]
) -> None:
    visited = visit(state, java_script_enabled=False)
    assert visited.requests == [file_of(state).as_uri()]
    assert visited.complaints == []
    assert visited.page.locator("h1").is_visible()


@pytest.mark.parametrize("state", ["leaks", "comparison"])
def test_scripts_change_nothing(state: str, visit: Callable) -> None:
    bare, usual = visit(state, java_script_enabled=False), visit(state)
    assert bare.page.inner_text("body") == usual.page.inner_text("body")
    assert len(usual.requests) == 1
    assert usual.complaints == []


@pytest.mark.parametrize("state", HOSTILE_STATES)
def test_hostile_text_stays_text(
    state: str, visit: Callable, file_of: Callable[[str], Path]
) -> None:
    # Without the page's policy, which would stop scripts also if they were not escaped.
    visited = visit(state, bypass_csp=True)
    page = visited.page
    assert page.evaluate("window.hacked") is None
    assert page.locator("script, img, a, iframe, link").count() == 0
    assert visited.requests == [file_of(state).as_uri()]
    assert visited.complaints == []
    for text in HARMFUL:
        assert text in page.inner_text("main")
        for place in ("table", "svg"):
            assert text in " ".join(page.locator(place).all_text_contents()), place
    assert page.inner_text("pre") in (*HARMFUL, *HOSTILE)
    assert any(text in page.title() for text in (*HARMFUL, *HOSTILE))


@pytest.mark.parametrize("state", ["invalid", "comparison"])
def test_the_policy_stops_what_is_not_escaped(
    state: str, visit: Callable, file_of: Callable[[str], Path], tmp_path: Path
) -> None:
    address = "https://evil.example/beacon.png"
    spoilt = f'{"".join(HARMFUL)}<img src="{address}" alt="">'
    broken = tmp_path / "broken.html"
    broken.write_text(
        file_of(state).read_text(encoding="utf-8").replace("</main>", f"{spoilt}</main>"),
        encoding="utf-8",
    )
    stopped = visit(broken)
    assert stopped.page.evaluate("window.hacked") is None
    assert stopped.requests == [broken.as_uri()]
    assert any("Content Security Policy" in one for one in stopped.complaints)
    # The same without the policy shows that these tests would notice.
    harmed = visit(broken, bypass_csp=True)
    assert harmed.page.evaluate("window.hacked") == 1
    assert address in harmed.requests


@pytest.mark.slow
def test_a_missing_browser_is_skipped_unless_it_is_required(
    absent: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEAKSCOPE_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="there is no chromium"):
        absent("there is no chromium")
    monkeypatch.setenv("LEAKSCOPE_BROWSER", "required")
    with pytest.raises(pytest.fail.Exception, match="no chromium, and LEAKSCOPE_BROWSER=required"):
        absent("there is no chromium")
