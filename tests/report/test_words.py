from __future__ import annotations

from typing import Any

import pytest

from leakscope.report import words

EMPTY = {"value": None, "low": None, "high": None}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (words.count(1985), "1,985"),
        (words.count(-1200), "−1,200"),
        (words.count(None), "unknown"),
        (words.number(0.12345), "0.123"),
        (words.number(-0.0123), "−0.012"),
        (words.number(-0.0001), "0.000"),
        (words.number(0.5, 2), "0.50"),
        (words.number(None), "unknown"),
        (words.figure(0.000316228), "0.0003162"),
        (words.figure(-12.3456), "−12.35"),
        (words.figure(None), "unknown"),
        (words.small(0.05), "0.05"),
        (words.small(1e-5), "10⁻⁵"),
        (words.small(2.5e-12), "2.5 × 10⁻¹²"),
        (words.percent(0.0312), "3.1%"),
        (words.percent(-0.5, 0), "−50%"),
        (words.percent(None), "unknown"),
        (words.span({"low": -0.1, "high": 0.25}, 2), "−0.10 to 0.25"),
        (words.span(EMPTY), "interval unknown"),
        (words.percent_span({"low": 0.019, "high": 0.044}), "1.9% to 4.4%"),
        (words.percent_span(EMPTY), "interval unknown"),
        (words.p_value(0.0004), "< 0.001"),
        (words.p_value(0.001), "0.001"),
        (words.p_value(None), "unknown"),
        (words.of(0.031, 100), "3"),
        (words.of(0.004, 100), "fewer than 1"),
        (words.of(0.0, 100), "0"),
        (words.of(0.69, 200), "138"),
        (words.one_in(0.001), "1 in 1,000"),
        (words.one_in(0.05), "1 in 20"),
        (words.one_in(0.003), "3 in 1,000"),
        (words.one_in(0.00003), "1 in 33,333"),
        (words.one_in(0.0), "none"),
        (words.moment("2026-11-15T21:30:00+02:00"), "15 November 2026, 19:30 UTC"),
        (words.moment("2026-01-05T08:00:00"), "5 January 2026, 08:00"),
        (words.moment("yesterday"), "yesterday"),
        (words.clean("a\x00b\x1b[2Jc\u202ed\ud800\ttab\n"), "a�b�[2Jc�d�\ttab\n"),
        (words.clean(7), "7"),
        (words.shorten("  two \n words ", 20), "two words"),
        (words.shorten("abcdefghijklmnop", 10), "abcdef…nop"),
        (words.shorten("abcdefghij", 10), "abcdefghij"),
    ],
)
def test_numbers_and_texts_read_as_they_should(made: str, expected: str) -> None:
    assert made == expected


def test_the_headline_is_the_verdicts_attack_else_the_largest_advantage() -> None:
    def outcome(name: str, value: float | None) -> dict[str, Any]:
        return {"attack": name, "advantage": {"value": value}}

    outcomes = [outcome("a", 0.1), outcome("b", 0.3), outcome("c", None)]
    found = words.headline_outcome({"verdict": {"attack": "a"}, "outcomes": outcomes})
    assert found is outcomes[0]
    found = words.headline_outcome({"verdict": {"attack": None}, "outcomes": outcomes})
    assert found is outcomes[1]
    found = words.headline_outcome({"verdict": {"attack": None}, "outcomes": outcomes[2:]})
    assert found is outcomes[2]
    assert words.headline_outcome({"verdict": {"attack": None}, "outcomes": []}) is None


def test_what_was_not_run_for_one_reason_stands_in_one_line() -> None:
    not_run = [
        {"attack": "a", "reason": "No shadow models."},
        {"attack": "b", "reason": "Not asked for."},
        {"attack": "c", "reason": "No shadow models."},
    ]
    assert words.by_reason(not_run) == [("a, c", "No shadow models."), ("b", "Not asked for.")]
    assert words.by_reason([]) == []


def test_no_line_can_be_taken_for_a_command_of_github() -> None:
    shown = words.clean("::error::gone\n  ::stop-commands::x and a::b")
    assert "::" not in shown
    assert (
        shown.replace("\N{ZERO WIDTH SPACE}", "") == "::error::gone\n  ::stop-commands::x and a::b"
    )
    assert words.clean("12::30, : :, ::") == "12::30, : :, ::"
