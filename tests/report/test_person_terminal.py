from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from leakscope.report import RecordTable, Report
from leakscope.report.person_terminal import print_record

N = 150  # of each side: 5 % is resolved, 1 % is not


def printed(data: dict[str, Any], scores: dict[str, Any], row: int = 0, **parts: Any) -> str:
    usual: dict[str, Any] = {
        "row": np.r_[np.arange(N), np.arange(N)],
        "side": np.repeat(["member", "nonmember"], N),
        "label": np.repeat(["yes", "no"], N),
        "scores": scores,
        "vulnerable": [False] * 2 * N,
    }
    file = io.StringIO()
    report = Report(data, RecordTable.from_parts(**(usual | parts)))
    print_record(report.record(row), Console(file=file, width=100))
    return file.getvalue()


@pytest.fixture
def data(leak: dict[str, Any]) -> dict[str, Any]:
    leak["target"] |= {"members": N, "nonmembers": N}
    leak["verdict"]["attack"] = "loss"
    for one in leak["outcomes"]:
        for rate in one["tpr_at_fpr"]:
            rate["resolved"] = rate["fpr"] * N >= 5
    return leak


def rising() -> np.ndarray:
    """The first member is above everybody, the second below."""
    scores = np.arange(2.0 * N)
    scores[:2] = 1000, -1
    return scores


def test_each_attack_has_a_line(data: dict[str, Any]) -> None:
    missing = np.where(np.arange(2 * N) == 0, np.nan, rising())
    scores = {"loss": rising(), "entropy": -rising(), "confidence": missing}
    text = printed(data, scores, groups={"sex": np.repeat(["Female", "Male"], N)})
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert lines["loss"][1:] == ["1000", "0.0%", "100.0%", "5%"]
    assert lines["entropy"][1:] == ["−1000", "100.0%", "0.0%", "no"]
    assert lines["confidence"][1:] == ["none"] * 4
    assert "0.0% to 2.4%" in text
    assert text.startswith("This is record 0 of the members, counting from 0, with the label yes.")
    assert "The attack loss gives it 1000" in " ".join(text.split())
    assert "It belongs to sex = Female" in text
    assert "What would help" in text
    assert "- Reduce the leak" in text


def test_too_few_non_members_are_said_so(data: dict[str, Any]) -> None:
    for one in data["outcomes"]:
        for rate in one["tpr_at_fpr"]:
            rate["resolved"] = False
    assert "too few" in printed(data, {"loss": rising()})


def test_without_attacks_there_is_no_table(data: dict[str, Any]) -> None:
    data["outcomes"] = []
    text = printed(data, {})
    assert "false alarms" not in text
    assert "What would help" in text


def test_data_cannot_drive_the_terminal(
    data: dict[str, Any], hostile_texts: tuple[str, ...]
) -> None:
    for text in hostile_texts:
        found = printed(
            data, {"loss": rising()}, label=[text] * 2 * N, groups={"sex": [text] * 2 * N}
        )
        assert not {"\x1b", "\x00", "\u202e"} & {*found}
    assert "[bold red]loud[/bold red]" in printed(
        data, {"loss": rising()}, label=["[bold red]loud[/bold red]"] * 2 * N
    )
