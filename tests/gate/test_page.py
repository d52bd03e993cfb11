"""docs/gate.md does what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from leakscope.cli.app import app
from leakscope.gate.result import EXIT_CODES
from pages import all_blocks, run_page, text_of

pytest_plugins = ["pytester"]

PAGE = "docs/gate.md"
BLOCKS = all_blocks(text_of(PAGE))
GITHUB, GITLAB = (yaml.safe_load(one.code) for one in BLOCKS if one.language == "yaml")


def options_of(command: str) -> set[str]:
    found: Any = get_command(app)
    return {option for one in found.commands[command].params for option in one.opts}


@pytest.mark.slow
def test_the_commands_end_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made = run_page(PAGE, tmp_path)
    assert made["found"].decision == "violated"
    said = capsys.readouterr().out
    assert "would decide" in " ".join(said.replace("│", " ").split())


@pytest.mark.slow
def test_the_tests_of_the_page_pass(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (block,) = (one for one in BLOCKS if one.title is not None)
    (pytester.path / block.title).write_text(block.code, "utf-8")
    ran = pytester.runpytest_inprocess("-p", "leakscope.testing.plugin")
    ran.assert_outcomes(passed=2)
    ran.stdout.fnmatch_lines(["*= leakscope =*", "*a_tree*: DecisionTreeClassifier: Violated: *"])


def test_the_workflow_of_github_is_one() -> None:
    assert GITHUB[True] == ["push", "pull_request"]  # YAML reads "on" as true; GitHub does not
    (job,) = GITHUB["jobs"].values()
    assert set(job) == {"runs-on", "permissions", "steps"}
    for step in job["steps"]:
        assert len({"uses", "run"} & set(step)) == 1
    assert job["steps"][-1]["if"] == "always()"
    assert "records.csv" not in job["steps"][-1]["with"]["path"]


def test_the_workflow_of_gitlab_is_one() -> None:
    (job,) = GITLAB.values()
    assert job["allow_failure"] == {"exit_codes": [3]}
    assert job["artifacts"]["reports"]["junit"] in job["script"][-1]
    assert "run" not in job["artifacts"]["paths"]  # which would publish records.csv


def test_the_workflows_use_options_that_there_are() -> None:
    (github,), (gitlab,) = GITHUB["jobs"].values(), GITLAB.values()
    lines = [step["run"] for step in github["steps"] if "run" in step] + gitlab["script"]
    typed = [shlex.split(line) for line in lines if line.startswith("leakscope ")]
    assert [words[1] for words in typed] == ["audit", "check"] * 2
    for _, command, *words in typed:
        assert {word for word in words if word.startswith("--")} <= options_of(command)


def test_the_table_has_every_limit_and_every_exit_code() -> None:
    text = text_of(PAGE)
    limits = options_of("check") - {
        "--tolerance", "--allow-other-records", "--junit",
        "--summary", "--github", "--json", "--debug", "report",
    }  # fmt: skip
    assert set(re.findall(r"^\| `(--[\w-]+)", text, re.MULTILINE)) == limits
    rows = dict(re.findall(r"^\| (\d) \| \*\*(\w+)\*\*", text, re.MULTILINE))
    assert rows == {str(code): decision.value for decision, code in EXIT_CODES.items()}
