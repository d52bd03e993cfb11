from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from gated import attacked, audited, report_of
from leakscope.gate import check

FOUND = {0.01: (0.02, 0.01, 0.03)}
OPEN = audited(attacked("loss", 0.58, 0.5, found=FOUND), not_run={"lira": "It needs shadows."})


@pytest.fixture
def folder(tmp_path):
    """A folder with report.json, of an advantage of 0.08 that may be 0.04 to 0.12."""
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "report.json").write_text(report_of(OPEN).to_json(), "utf-8")
    return tmp_path / "made"


@pytest.mark.parametrize(
    ("limit", "code", "word"), [(0.2, 0, "holds"), (0.01, 1, "violated"), (0.1, 3, "cannot decide")]
)
def test_the_exit_code_and_the_table(limit, code, word, run, folder):
    ran = run("check", folder, "--max-advantage", limit)
    assert (ran.code, ran.stderr) == (code, "")
    assert word in ran.stdout
    assert "It needs shadows." in ran.stdout
    assert run("check", folder / "report.json", "--max-advantage", limit).code == code


def test_json(run, folder):
    ran = run(
        "check", folder, "--max-auc", 0.6, "--max-tpr", "0.05@0.01", "--max-tpr", "0.02@0.01",
        "--require", "lira", "--json",
    )  # fmt: skip
    assert ran.code == 3
    expected = check(
        folder, max_auc=0.6, max_tpr=["0.05@0.01", "0.02@0.01"], require=["lira"]
    ).to_dict()
    assert ran.json == expected
    assert [one["decision"] for one in ran.json["limits"]] == [
        "holds", "holds", "undecided", "undecided",
    ]  # fmt: skip


def test_without_a_limit(run, folder):
    ran = run("check", folder)
    assert ran.code == 3
    assert "No limit was given: the advantage is held to 0.1" in ran.stdout


def test_a_baseline(run, folder, tmp_path):
    old = tmp_path / "old.json"
    old.write_text(report_of(audited(attacked("loss", 0.5, 0.5))).to_json(), "utf-8")
    ran = run("check", folder, "--baseline", old, "--json")
    assert ran.code == 1
    assert ran.json["limits"][0]["limit"] == "advantage ≤ baseline"
    assert run("check", old, "--baseline", folder, "--tolerance", 0.1).code == 0
    assert run("check", folder, "--baseline", folder, "--tolerance", 0).code == 0


def test_a_baseline_of_other_records(run, folder, tmp_path):
    other = {"columns": "c0", "members": "m1", "nonmembers": "n1"}
    old = tmp_path / "old.json"
    text = report_of(audited(attacked("loss", 0.5, 0.5), fingerprint=other)).to_json()
    old.write_text(text, "utf-8")
    ran = run("check", old, "--baseline", folder, "--tolerance", 0.1)
    assert (ran.code, ran.stdout) == (2, "")
    assert "--allow-other-records" in ran.stderr
    words = ("check", old, "--baseline", folder, "--tolerance", 0.1, "--allow-other-records")
    assert run(*words).code == 0
    assert "is of other records" in run(*words, "--json").json["notes"][0]


def test_records_recovered(run, tmp_path):
    path = tmp_path / "report.json"
    path.write_text(report_of(audited(attacked(), recovered=(("static", 4),))).to_json(), "utf-8")
    assert run("check", path, "--max-disclosed", 3).code == 1
    assert run("check", path, "--max-disclosed", 4).code == 0


def test_the_files(run, folder, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("Before.\n", "utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    junit, summary = tmp_path / "deep" / "gate.xml", tmp_path / "summary.md"
    words = ("check", folder, "--max-advantage", 0.01, "--junit", junit, "--summary", summary)
    assert run(*words).code == 1
    assert page.read_text("utf-8") == "Before.\n"  # only where it is asked for
    assert run(*words, "--github").code == 1
    found = check(folder, max_advantage=0.01)
    assert summary.read_text("utf-8") == found.to_markdown()
    assert page.read_text("utf-8") == "Before.\n" + found.to_markdown()
    (failure,) = ElementTree.parse(junit).getroot().iter("failure")
    assert failure.get("type") == "violated"


def test_a_file_that_cannot_be_written_is_an_error_and_the_decision_is_shown(run, folder, tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    ran = run("check", folder, "--junit", tmp_path / "file" / "gate.xml", "--json")
    assert ran.code == 2
    assert "cannot be saved" in ran.stderr
    assert ran.json["decision"] == "undecided"


@pytest.mark.parametrize(("place", "why"), [(None, "is not set"), (".", "cannot be appended")])
def test_a_job_page_that_is_not_there(place, why, run, folder, monkeypatch):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    if place is not None:
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", place)
    ran = run("check", folder, "--github")
    assert ran.code == 2
    assert why in ran.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max-tpr", "0.02@"), "such as 0.02@0.01"),
        (("--max-tpr", "0.5@0.02"), "only at 0.01"),
        (("--max-advantage", "7"), "The max_advantage is 7"),
        (("--max-advantage", "many"), "Invalid value for '--max-advantage'"),
        (("--max-auc", "0.4"), "The max_auc is 0.4"),
        (("--max-disclosed", "-1"), "max_disclosed"),
        (("--tolerance", "1"), "The tolerance is 1"),
        (("--require", "los"), "did you mean 'loss'"),
        (("--baseline", "nowhere.json"), "'nowhere.json' cannot be read"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_exit_code_2(words, message, run, folder):
    ran = run("check", folder, *words)
    assert ran.code == 2
    assert message in ran.stderr
    assert ran.stdout == ""
    assert len(ran.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("not json", "is not JSON"),
        ("[1]", "is not a report"),
        ("{}", "is not a report"),
        (json.dumps({"schema_version": 99}), "schema_version is 99"),
    ],
)
def test_what_is_no_report_is_one_sentence_and_exit_code_2(text, message, run, tmp_path):
    path = tmp_path / "x.json"
    if text is not None:
        path.write_text(text, "utf-8")
    ran = run("check", path)
    assert (ran.code, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


def test_a_baseline_of_other_data_is_refused(run, tmp_path):
    for name in ("adult", "digits"):
        text = report_of(audited(attacked(), dataset=name)).to_json()
        (tmp_path / f"{name}.json").write_text(text, "utf-8")
    ran = run("check", "adult.json", "--baseline", "digits.json")
    assert ran.code == 2
    assert "compare audits of the same dataset" in ran.stderr


def test_help_tells_the_exit_codes(run):
    ran = run("check", "--help")
    assert ran.code == 0
    assert "0.02@0.01" in ran.stdout
    for words in ("0 every limit holds", "1 one is violated", "2 an error"):
        assert words in " ".join(ran.stdout.split())
