"""The page of errata: its code runs, and its table is what the experiment computes."""

from __future__ import annotations

import re

import pytest

from leakscope.papers.experiment import Setting
from leakscope.papers.farokhi_errata import list_errata
from pages import blocks_of, run, text_of

PAGE = text_of("docs/errata.md")
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)


@pytest.mark.slow
def test_the_code_of_the_page_runs() -> None:
    run("docs/errata.md")


def test_a_wrong_number_on_the_page_would_be_noticed() -> None:
    wrong = blocks_of(SECTIONS[1])[0].replace("0.8069", "0.8169")
    with pytest.raises(AssertionError):
        run("docs/errata.md", blocks_of(SECTIONS[0])[0], wrong)


@pytest.mark.parametrize("section", SECTIONS[1:], ids=lambda section: section.partition("\n")[0])
def test_every_section_computes_and_asserts(section: str) -> None:
    assert blocks_of(section)
    assert all("assert" in block for block in blocks_of(section))


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
