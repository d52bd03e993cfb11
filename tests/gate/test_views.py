"""JUnit XML, Markdown and the terminal: views of one decision, safe whatever a report holds."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

import pytest
from rich.console import Console

from leakscope.gate.deciding import Decided, Decision
from leakscope.gate.markdown import plain
from leakscope.gate.result import Check
from leakscope.gate.terminal import print_check

HOSTILE = (
    "<script>alert(1)</script>",
    "]]></failure></testcase><testcase name='x'>",
    "a | b | c\n| d",
    "[click](https://evil.example) ![](https://evil.example/x.png)",
    "`code` **bold** _under_ ~~gone~~ # heading",
    "@somebody #1 :tada: www.evil.example https://evil.example",
    "[bold red]loud[/bold red]",
    "\x00\x1b[2J\u202eright to left\ud800",
    "</details><h1>",
    "- item",
)
LIMITS = (
    Decided("advantage ≤ 0.1", Decision.holds, "Fine.", "loss", 0.01, -0.02, 0.04),
    Decided("AUC ≤ 0.55", Decision.violated, "Too high.", "lira", 0.7, 0.65, 0.75),
    Decided("TPR at 0.01 FPR ≤ 0.02", Decision.undecided, "Few.", "loss", 0.1, 0.0, 0.2, 500),
    Decided("lira must run", Decision.undecided, "lira did not run.", "lira"),
)
CHECK = Check(
    "run",
    LIMITS,
    {"rmia": "Not asked for.", "shadow": "Not asked for.", "robustness": "It failed."},
    ("A note.",),
    conditions=("no record is on both sides",),
    failed_controls={"accuracy of the target": "Better on non-members."},
)
REMARKS = (
    "Condition, which was not checked: no record is on both sides.",
    "Failed control: accuracy of the target: Better on non-members.",
    "A note.",
)

# What the schema of JUnit files that Jenkins publishes (junit-10.xsd) allows here.
ALLOWED = {
    "testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp",
         "hostname", "id", "package", "file", "log", "url", "version"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "time", "classname", "group", "file", "line", "assertions"},
        {"skipped", "error", "failure", "rerunFailure", "system-out", "system-err"},
    ),
    "failure": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}  # fmt: skip


def hostile(text: str) -> Check:
    one = Decided(text, Decision.violated, f"{text} was bad.", text, 0.1, 0.1, 0.1)
    return Check(text, (one,), {text: text}, (text,), (text,), {text: text})


def follows_the_schema(element: ElementTree.Element) -> None:
    attributes, children = ALLOWED[element.tag]
    assert set(element.attrib) <= attributes
    assert {child.tag for child in element} <= children
    for child in element:
        follows_the_schema(child)


def test_junit_has_a_case_for_each_limit() -> None:
    text = CHECK.to_junit()
    assert text.startswith('<?xml version="1.0" encoding="utf-8"?>\n<testsuites ')
    suites = ElementTree.fromstring(text.encode())
    follows_the_schema(suites)
    (suite,) = suites
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "3", "0")
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases] == [one.limit for one in LIMITS]
    assert {case.get("classname") for case in cases} == {"leakscope.check"}
    types = [[failure.get("type") for failure in case] for case in cases]
    assert types == [[], ["violated"], ["undecided"], ["undecided"]]
    failure = cases[1].find("failure")
    assert failure.get("message") == "Too high."
    assert failure.text == "Too high.\nvalue 0.700\nat least 0.650\nat most 0.750"
    assert cases[3].find("failure").text == "lira did not run."
    said = suite.find("system-out").text
    assert all(remark in said for remark in REMARKS)
    assert "Not run: rmia, shadow: Not asked for." in said
    assert CHECK.sentence in said


@pytest.mark.parametrize("text", HOSTILE)
def test_junit_holds_any_text(text) -> None:
    suites = ElementTree.fromstring(hostile(text).to_junit().encode("utf-8"))
    follows_the_schema(suites)
    (case,) = suites.iter("testcase")
    shown = re.sub("[\x00-\x1f\u202e\ud800]", "\N{REPLACEMENT CHARACTER}", text)
    assert case.get("name").replace(" ", "") == shown.replace(" ", "").replace("\n", "") or (
        "\n" in text
    )
    assert len(list(suites.iter("failure"))) == 1


def test_markdown_has_a_table_of_the_limits() -> None:
    lines = CHECK.to_markdown().splitlines()
    assert lines[0] == "### ❌ Privacy gate"
    told = "Violated, provided that no record is on both sides: AUC ≤ 0.55: too high."
    assert lines[2] == told
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + len(LIMITS)
    assert {line.count("|") for line in table} == {8}
    assert table[4] == (
        "| TPR at 0.01 FPR ≤ 0.02 | cannot decide | loss | 0.100 | 0.000 | 0.200 | about 500 |"
    )
    assert "- rmia, shadow: Not asked for." in lines
    assert all(remark in lines for remark in REMARKS)
    short = Check("run", LIMITS[:1], {}).to_markdown()
    assert short.startswith("### ✅ Privacy gate\n\nHolds: advantage ≤ 0.1: fine.\n")
    assert "Not run" not in short


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_shows_any_text_and_acts_on_none(text) -> None:
    found = hostile(text).to_markdown()
    table = [line for line in found.splitlines() if line.startswith("|")]
    assert len(table) == 3
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 8 for line in table)
    assert found.count("<") == 4  # those of the folded list, and no other
    assert "](" not in found.replace("\\](", "")
    assert "https://" not in found
    assert "www." not in found
    assert not re.search(r"(?<!\\)[@`*~]", found)
    assert "\x1b" not in found


def test_plain_text_stays_readable() -> None:
    assert plain("The loss attack: 0.1 to 0.2 (95%), about 1,000; max-tpr!") == (
        "The loss attack: 0.1 to 0.2 (95%), about 1,000; max-tpr!"
    )
    assert plain("a  b\nc") == "a b c"
    assert plain("- x") == "\\- x"


def printed(check: Check, width: int = 200) -> str:
    file = io.StringIO()
    print_check(check, Console(file=file, width=width))
    return file.getvalue()


def test_the_terminal_shows_the_sentence_the_table_and_what_was_not_run() -> None:
    text = printed(CHECK)
    assert "! Privacy gate" in text
    assert CHECK.sentence in text
    for sign, word in (("✓", "holds"), ("!", "violated"), ("?", "cannot decide")):
        assert f"{sign} {word}" in text
    assert "about 500" in text
    assert "rmia, shadow: Not asked for." in text
    assert all(remark in text for remark in REMARKS)
    assert "Not run" not in printed(Check("run", LIMITS, {}))


def test_the_table_fits_eighty_columns_and_breaks_no_word() -> None:
    wide = Decided(
        "TPR at 0.01 FPR ≤ 0.02", Decision.undecided, "Few.", "gradient-boosting", -0.1, -0.125,
        0.432, 10_710,
    )  # fmt: skip
    text = printed(Check("run", (wide,), {}), width=80)
    assert max(map(len, text.splitlines())) <= 80
    for whole in ("? cannot decide", "gradient-boosting", "−0.125 to 0.432", "about 10,710"):
        assert whole in text


def test_of_many_names_with_one_reason_the_first_are_shown() -> None:
    text = printed(Check("run", LIMITS, {f"one-{i}": "On request." for i in range(9)}))
    assert "one-4, one-5 and 3 more: On request." in text
    assert "one-6" not in text
    assert all(len(line) <= 60 for line in printed(CHECK, 60).splitlines())


@pytest.mark.parametrize("text", HOSTILE)
def test_the_terminal_shows_any_text_and_acts_on_none(text) -> None:
    shown = printed(hostile(text))
    assert "\x1b" not in shown
    assert "\x00" not in shown
    if "[bold" in text:
        assert "[bold red]loud[/bold red]" in shown
