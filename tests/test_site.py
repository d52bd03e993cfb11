"""The documentation as a site: every page is reached, and every link leads somewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

import leakscope
from leakscope.registry import entries
from pages import ROOT, all_blocks, anchors_of, every_page, links_of, text_of, without_blocks

PAGES = every_page()
SITE = [page for page in PAGES if page.startswith("docs/")]


def nav_files(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for one in entry.values() if isinstance(entry, dict) else entry:
            yield from nav_files(one)


def config() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text_of("mkdocs.yml"))
    return found


# --- pages and links -----------------------------------------------------------------------------


def test_every_page_is_in_the_navigation_once() -> None:
    assert sorted(f"docs/{name}" for name in nav_files(config()["nav"])) == SITE


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page: str) -> None:
    here = ROOT / page
    for link in links_of(text_of(page)):
        if re.match(r"https?://|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (here.parent / path).resolve() if path else here
        assert target.is_file(), f"{page}: {link} leads nowhere"
        if page in SITE:
            assert target.is_relative_to(ROOT / "docs"), f"{page}: {link} leaves the site"
        if anchor:
            there = anchors_of(target.read_text("utf-8"))
            assert anchor in there, f"{page}: {link}, where there are {sorted(there)}"


@pytest.mark.parametrize("page", SITE)
def test_a_page_has_one_title_and_lists_and_tables_that_every_reader_knows(page: str) -> None:
    lines = without_blocks(text_of(page)).splitlines()
    assert lines[0].startswith("# ")
    assert sum(line.startswith("# ") for line in lines) == 1
    for before, line in pairwise(lines):
        # Python-Markdown takes a list or a table that follows a line of text for more text.
        for begins in (r"(?:[-*]|\d+\.) ", r"\|"):
            if re.match(begins, line):
                known = not before.strip() or re.match(begins + r"| {2,}\S|<!--", before)
                assert known, f"{page}: an empty line is missing before {line!r}"


def test_the_links_of_a_page_are_found() -> None:
    text = '[a](b.md#c) `[x](y)` ![p](i.svg)\n```python\nz[0](1)\n```\n<img src="j.png">'
    assert links_of(text) == ["b.md#c", "i.svg", "j.png"]
    assert anchors_of("# A `b`, c\n## d – e\n## f\n## f\n```\n# g\n```") == {"a-b-c"}


# --- what pages say of the code ------------------------------------------------------------------


def test_the_page_about_reports_has_every_section_of_a_report() -> None:
    sections = re.findall(r"<h2[^>]*>([^<{]+)</h2>", text_of("src/leakscope/report/report.html"))
    headings = re.findall(r"^## (.+)$", text_of("docs/report.md"), re.MULTILINE)
    assert len(sections) > 10
    joined = " · ".join(headings).lower()
    assert [one for one in sections if one.lower() not in joined] == []


def test_the_figures_of_the_page_about_statistics_are_those_of_validity() -> None:
    def rows(page: str) -> dict[str, list[str]]:
        cells = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in text_of(page).splitlines()
            if line.startswith("| ")
        ]
        # Rows of three cells say how an interval is made, under the same names.
        return {row[0]: row[1:] for row in cells if len(row) > 3}

    told, measured = rows("docs/statistics.md"), rows("docs/validity.md")
    for name in ("AUC", "advantage", "PPV", *(f"TPR at {fpr}% FPR" for fpr in (0.1, "1.0", "5.0"))):
        _, cells, mean, lowest, highest, *_ = measured[name]
        assert told[name] == [cells, mean, lowest.split()[0], highest.split()[0]]
    for name in ("simulated", "real", "shadowed", "nearest"):
        assert told[name] == measured[name][:3]


def test_the_map_of_the_code_has_every_module_and_the_layers_of_the_contracts() -> None:
    text = text_of("docs/architecture.md")
    tree = next(block.code for block in all_blocks(text) if block.code.startswith("src/"))
    named = set(re.findall(r"^  (\w+)(?:/|\.py) ", tree, re.MULTILINE))
    there = {one.stem for one in (ROOT / "src/leakscope").iterdir() if not one.name.startswith("_")}
    assert named - {"__init__"} == there - {"py"}
    shown = [block.code for block in all_blocks(text)][-1]
    layers = [re.findall(r"\w+", line.partition("(")[0]) for line in shown.splitlines()]
    contract = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"][0]
    stated = [re.findall(r"\w+", layer) for layer in contract["layers"]]
    assert [set(one) for one in layers] == [set(one) for one in stated if one != ["__main__"]]


@pytest.mark.parametrize(
    ("page", "kind", "column"),
    [("docs/ideas/channels.md", "channel", 0), ("docs/choose_a_defense.md", "defense", 1)],
)
def test_what_is_named_in_a_table_is_registered(page: str, kind: str, column: int) -> None:
    registered = {entry.name for entry in entries(kind)}
    rows = [line.split("|")[1:] for line in text_of(page).splitlines() if line.startswith("| ")]
    named = [name for row in rows for name in re.findall(r"`([a-z0-9-]+)`", row[column])]
    assert len(named) > 8
    assert set(named) <= registered


def test_every_public_name_is_in_the_reference() -> None:
    listed = set(re.findall(r"^::: (\S+)$", text_of("docs/api.md"), re.MULTILINE))
    for name in leakscope.__all__:
        if name.startswith("_") or name == "LeakscopeError":
            continue
        known = any(
            one == f"leakscope.{name}" or one.startswith(f"leakscope.{name}.") for one in listed
        )
        assert known, name


def test_the_build_is_strict() -> None:
    built = re.findall(r"mkdocs build(.*)", text_of("Makefile"))
    assert built == [" --strict"]  # with --quiet warnings are not counted, and nothing is strict
    found = config()
    assert set(found["validation"]["links"].values()) == {"warn"}
    assert set(found["validation"]["nav"].values()) == {"warn"}


# --- the site ------------------------------------------------------------------------------------


class Requests(HTMLParser):
    """What a page makes a browser ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"link", "script", "img", "iframe", "source", "video", "audio", "object"}:
            self.found += [value for name, value in attrs if name in {"href", "src"} and value]


@pytest.mark.slow
def test_the_site_is_built_and_asks_nobody_for_anything(tmp_path: Path) -> None:
    for needed in ("mkdocs", "material", "mkdocstrings_handlers"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed; make docs installs it")
    made = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert made.returncode == 0, made.stderr[-3000:]
    built = sorted(tmp_path.rglob("*.html"))
    assert len(built) >= len(SITE)
    for page in built:
        parser = Requests()
        parser.feed(page.read_text("utf-8"))
        outside = [one for one in parser.found if re.match(r"(?:https?:)?//", one)]
        assert parser.found
        assert not outside, f"{page.name} asks for {outside}"
    for sheet in tmp_path.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", sheet.read_text("utf-8"))
    reference = (tmp_path / "api.html").read_text("utf-8")
    for name in ("leakscope.audit", "leakscope.metrics.roc", "leakscope.protocols.Attack"):
        assert f'id="{name}"' in reference
