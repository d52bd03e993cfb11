"""Whatever stands in a table, in the name of a file or of a recipe, is shown and does nothing."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd

Run = Callable[..., Any]

TEXTS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7331*7}}",
    "two\nlines",
    "\u202eright to left",
    "nul\0byte",
    "=HYPERLINK(1)",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\tindented",
    "[bold red]loud[/bold red]",
)
LABELS = ("<b onclick=alert(1)>yes</b>", "=no")
FILE = "<img src=x onerror=alert(1)>"


class Page(HTMLParser):
    """The tags, attributes and texts of a page, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.text += data


def check_page(path: Path) -> Page:
    html = path.read_text("utf-8")
    page = Page(html)
    assert not page.tags & {"script", "img", "b onclick", "iframe", "object", "embed", "a", "form"}
    assert not [name for name in page.attributes if name.startswith("on")]
    assert all(link.startswith("#") for link in page.links)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202e]", html)
    figures = re.findall(r"<svg xmlns.*?</svg>", html, flags=re.DOTALL)
    assert figures
    for one in figures:
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(one).iter()}
        assert tags <= {"svg", "title", "g", "path", "defs", "use", "clipPath", "rect", "text"}
    return page


def table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            TEXTS[0]: x,
            TEXTS[1]: rng.normal(size=n),
            TEXTS[2]: rng.permutation(np.resize(TEXTS, n)),
            "=label": np.where(x > 0, *LABELS),
        }
    )


def test_an_audit_of_hostile_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine_hostile.py").write_text(
        "from sklearn.dummy import DummyClassifier\n"
        f"globals()[{FILE!r}] = DummyClassifier(strategy='stratified', random_state=0)\n"
    )
    for seed, side in enumerate(("a", "b")):
        table(600, seed).to_csv(tmp_path / f"{FILE}{side}.csv", index=False)
    ran = run(
        *("audit", "--members", f"{FILE}a.csv", "--nonmembers", f"{FILE}b.csv"),
        *("--label", "=label", "--groups", TEXTS[2], "--recipe", f"mine_hostile:{FILE}"),
        *("--shadows", 4, "--workers", 1, "--attacks", "loss,label-gap,lira-offline"),
        *("--out", tmp_path / "out"),
    )
    assert ran.code == 0, ran.stderr
    assert not re.search("[\x00\x1b\u202e]", ran.stdout)
    page = check_page(tmp_path / "out" / "report.html")
    for text in (*TEXTS[:3], *TEXTS[6:10], *LABELS, FILE):
        assert text in page.text, text
    assert "51317" not in page.text
    with (tmp_path / "out" / "records.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert len(rows) == 1200
    assert {len(row) for row in rows} == {len(header)}
    number = re.compile(r"-?\d+(\.\d+)?(e[+-]\d+)?")
    for cell in {cell for row in (header, *rows) for cell in row}:
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r")) or number.fullmatch(cell)
        assert "\0" not in cell
    assert {"'=no", LABELS[0]} == {row[2] for row in rows}


def test_a_comparison_of_hostile_files(run: Run, tmp_path: Path) -> None:
    table(240, 0).drop(columns=TEXTS[2]).to_csv(tmp_path / f"{FILE}.csv", index=False)
    ran = run(
        *("compare", "--table", f"{FILE}.csv", "--label", "=label", "--recipe", "logistic"),
        *("--defenses", "round:1", "--seeds", 1, "--attacks", "loss", "--workers", 1),
        *("--out", tmp_path / "out"),
    )
    assert ran.code == 0, ran.stderr
    page = check_page(tmp_path / "out" / "compare.html")
    assert f"{FILE}.csv" in page.text
