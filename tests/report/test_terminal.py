from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from leakscope.report import Report
from leakscope.report.terminal import print_summary
from leakscope.report.words import clean


def shown(
    report: dict[str, Any], width: int = 80, folder: Path | None = None, colour: bool = False
) -> str:
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, force_terminal=colour, legacy_windows=False)
    print_summary(report, console, folder=folder)
    return buffer.getvalue()


def flat(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


def test_the_summary_has_the_verdict_the_attacks_and_what_was_not_run(leak: dict[str, Any]) -> None:
    text = flat(shown(leak))
    assert "! Leaks" in text
    assert leak["verdict"]["headline"] in text
    assert leak["verdict"]["reason"] in text
    assert "gradient-boosting 0.760 0.383 9.2% < 0.001" in text
    assert "0.742 to 0.778 0.352 to 0.414 7.3% to 11.1%" in text
    assert "Not run gaussian-error: It needs a model that predicts numbers" in text
    assert "Controls that failed" not in text


def test_each_level_has_a_sign_beside_its_colour(
    make_report: Callable[[str], dict[str, Any]],
) -> None:
    signs = {
        "leaks": "! Leaks",
        "no_leak_found": "✓ No leak found",
        "undecided": "? Undecided",
        "invalid": "× Audit invalid",
    }
    for level, sign in signs.items():
        assert sign in shown(make_report(level))


def test_failed_controls_are_named_and_an_empty_audit_has_no_table(
    make_report: Callable[[str], dict[str, Any]],
) -> None:
    text = flat(shown(make_report("invalid")))
    assert "Controls that failed number of records: 60 members" in text
    assert "blind baseline: A classifier that sees the records" in text
    assert "advantage" not in text


def test_an_invalid_audit_shows_no_figures(make_report: Callable[[str], dict[str, Any]]) -> None:
    report = make_report("leaks") | {"verdict": make_report("invalid")["verdict"]}
    text = flat(shown(report))
    assert "Figures of 6 attacks are in report.json. Do not rely on them." in text
    assert "0.383" not in text


def test_a_leak_within_the_limits_is_shown_calmly(leak: dict[str, Any]) -> None:
    loud = shown(leak, colour=True)
    leak["verdict"]["within_limit"] = True
    calm = shown(leak, colour=True)
    assert "! Leaks, within the limits" in calm
    assert "\x1b[31m" in loud
    assert "\x1b[31m" not in calm


def test_rates_that_cannot_be_told_are_said(make_report: Callable[[str], dict[str, Any]]) -> None:
    report = make_report("undecided")
    assert flat(shown(report)).count("too few") == len(report["outcomes"])


def test_it_fits_eighty_columns(report: dict[str, Any]) -> None:
    for width in (80, 60):
        assert max(len(line) for line in shown(report, width).splitlines()) <= width
    for one in report["outcomes"]:
        assert one["attack"] in shown(report)


def test_the_longest_name_stays_whole_beside_the_longest_intervals(leak: dict[str, Any]) -> None:
    one = leak["outcomes"][0]
    one["attack"] = "gradient-boosting"
    one["advantage"] = {"value": -0.155, "low": -0.259, "high": -0.062}
    one["tpr_at_fpr"] = [
        {"fpr": 0.01, "value": 0.281, "low": 0.229, "high": 0.335, "resolved": True}
    ]
    text = shown(leak)
    for whole in ("gradient-boosting ", "−0.259 to −0.062", "22.9% to 33.5%"):
        assert whole in text


def test_of_many_attacks_that_were_left_out_the_first_are_named(leak: dict[str, Any]) -> None:
    leak["not_run"] = [{"attack": f"one-{i}", "reason": "On request."} for i in range(9)]
    assert "one-4, one-5 and 3 more: On request." in flat(shown(leak))


def test_text_of_data_is_not_interpreted(hostile: tuple[str, dict[str, Any]]) -> None:
    text, report = hostile
    output = shown(Report(report).to_dict(), width=2000, colour=True)
    # Colours are all that may reach the terminal: no other sequence, no control character.
    plain = re.sub(r"\x1b\[[\d;]*m", "", output)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", plain)
    assert clean(text.encode("utf-8", "replace").decode()) in plain


def test_files_that_were_written_are_named_whole(leak: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 20) / "[bold]run"
    folder.mkdir(parents=True)
    for name in ("report.html", "report.json"):
        (folder / name).touch()
    lines = shown(leak, folder=folder).splitlines()
    assert lines[-2:] == [str(folder / "report.html"), str(folder / "report.json")]


@pytest.mark.parametrize("empty", ["not_run", "outcomes"])
def test_nothing_is_printed_of_what_is_empty(leak: dict[str, Any], empty: str) -> None:
    heading = {"not_run": "Not run", "outcomes": "AUC"}[empty]
    assert heading in shown(leak)
    leak[empty] = []
    assert heading not in shown(leak)


def test_leakage_is_one_line(leak: dict[str, Any], leakage: list[dict[str, Any]]) -> None:
    assert "Information leakage" not in shown(leak)
    leak["leakage"] = leakage
    line = (
        "Information leakage mutual information: 0.112 nats (0.099 to 0.154), p 0.020; "
        "allows an advantage of 0.464"
    )
    assert f"{line}, where lira has 0.377 on this model" in flat(shown(leak))
    leak["leakage"][0]["best_attack"] = None
    assert f"{line} Not run" in flat(shown(leak))


def test_what_explanations_add_is_a_list(
    leak: dict[str, Any], additions: list[dict[str, Any]]
) -> None:
    assert "add to predictions" not in shown(leak)
    leak["additions"] = additions
    assert (
        "What explanations add to predictions all of these: 0.062 (0.021 to 0.103) in advantage, "
        "gradient-forest against loss gradient: 0.062"
    ) in flat(shown(leak))


def test_what_was_brought_back_is_a_table(
    leak: dict[str, Any], disclosures: list[dict[str, Any]]
) -> None:
    assert "explanations" not in shown(leak)
    leak["disclosures"] = disclosures
    text = flat(shown(leak))
    for line in (
        "Records read out of explanations extraction, explained by records of members of "
        "non-members queries",
        "self-reveal, 1 record 200 10.0% 0.5% 2,000 8.7% to 11.3% 0.0% to 1.0%",
        "self-reveal, 10 records 540 27.0% 1.5% 2,000 25.1% to 28.9% 1.0% to 2.0%",
        "it tells of membership only by what members have more",
        "static, 5 records 374 18.7% 1,969",
        "reconstruction, 1 record 130 6.5% 10,000",
    ):
        assert line in text, line
    assert max(len(line) for line in shown(leak, 60).splitlines()) <= 60
    leak["disclosures"] = disclosures[2:3]
    leak["disclosures"][0]["groups"] = []
    assert "static, 5 records 374 1,969" in flat(shown(leak))
