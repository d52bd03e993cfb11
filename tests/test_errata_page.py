"""The page of errata: its code runs, and its table is what the experiment computes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from leakscope.papers.experiment import Setting
from leakscope.papers.farokhi_errata import list_errata

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "errata.md").read_text("utf-8")
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)


def blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_code_of_the_page_runs() -> None:
    namespace: dict[str, Any] = {}
    for number, block in enumerate(blocks(PAGE), start=1):
        exec(compile(block, f"errata.md, block {number}", "exec"), namespace)


def test_a_wrong_number_on_the_page_would_be_noticed() -> None:
    wrong = blocks(SECTIONS[1])[0].replace("0.8069", "0.8169")
    namespace: dict[str, Any] = {}
    exec(blocks(SECTIONS[0])[0], namespace)
    with pytest.raises(AssertionError):
        exec(wrong, namespace)


@pytest.mark.parametrize("section", SECTIONS[1:], ids=lambda section: section.partition("\n")[0])
def test_every_section_computes_and_asserts(section: str) -> None:
    assert blocks(section)
    assert all("assert" in block for block in blocks(section))


def test_the_errata_are_numbered_as_in_the_experiment() -> None:
    numbers = [int(section.partition(".")[0]) for section in SECTIONS[1:] if section[0].isdigit()]
    assert numbers == [row["erratum"] for row in list_errata(Setting()).rows]


def test_the_table_is_what_the_experiment_computes() -> None:
    cells = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
    shown = [row for row in cells if row[0].isdigit()]
    computed = [
        [
            str(row["erratum"]),
            *(f"{row[key]:.4f}" for key in ("printed_value", "right_value", "truth")),
        ]
        for row in list_errata(Setting()).rows
    ]
    assert [[row[0], *row[3:]] for row in shown] == computed
