"""Every command, given what it cannot use: one sentence, exit code 2, and nothing written."""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import leakscope
from bad_input import audit_files, audit_models, audit_options, comparing, reading
from bad_input.cases import AUDIT, GOOD, A, B, Case, check_refusal, make, snapshot

Run = Callable[..., Any]

TABLES = {
    "audit": [*audit_files.CASES, *audit_models.CASES, *audit_options.CASES],
    "compare": comparing.CASES,
    "others": reading.CASES,
}
CASES = {f"{table}: {one.id}": one for table, cases in TABLES.items() for one in cases}


def test_the_table_is_as_long_as_it_says() -> None:
    assert len(CASES) == sum(map(len, TABLES.values())), "two cases have one name"
    assert len(CASES) > 350


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_one_sentence_and_nothing_written(case: Case, run: Run, place: Path) -> None:
    make({**GOOD, **case.files}, place)
    before = snapshot(place)
    ran = run(*case.words)
    check_refusal(ran.code, ran.stdout, ran.stderr, case.told)
    assert snapshot(place) == before


SHOWN = (
    "audit: utf-16",
    "audit: a model that answers raises",
    "audit: --members and --dataset",
    "audit: a seed of words",
    "compare: the defense 'nois:1'",
    "others: no JSON to check",
    "others: no run",
    "others: a figure nobody knows",
)


@pytest.mark.parametrize("name", SHOWN)
def test_debug_shows_where(name: str, run: Run, place: Path) -> None:
    case = CASES[name]
    make({**GOOD, **case.files}, place)
    ran = run(*case.words, "--debug")
    assert ran.code == 2
    assert "Traceback (most recent call last)" in ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("Error: ")


IN_A_PROCESS = (
    "audit: latin-1",
    "audit: a model that answers leaves",
    "audit: a stray word",
    "compare: a regression",
    "others: a report below a million brackets to check",
    "others: attacks with a stray word",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_A_PROCESS)
def test_the_same_in_a_process_of_its_own(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    make({**GOOD, **case.files}, tmp_path)
    before = snapshot(tmp_path)
    here = Path(__file__).resolve().parents[1]
    source = Path(leakscope.__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-B", "-m", "leakscope", *case.words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(source), str(here)])},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    check_refusal(done.returncode, done.stdout, done.stderr, case.told)
    assert snapshot(tmp_path) == before


def test_without_permission_to_read(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As another user's file would answer; root may read them all."""
    make({**GOOD, "report.json": reading.report_text()}, place)
    opens = io.open

    def refuse(file: Any, *given: Any, **named: Any) -> Any:
        if str(file) in ("a.csv", "report.json"):
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        return opens(file, *given, **named)

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(io, "open", refuse)
    for words, told in ((AUDIT.split(), "a.csv"), (["check", "report.json"], "'report.json'")):
        ran = run(*words)
        check_refusal(ran.code, ran.stdout, ran.stderr, (told, "Permission denied"))
    assert not (place / "out").exists()


@pytest.mark.parametrize("command", ["audit --dataset iris", "compare --defenses round:1"])
def test_without_permission_to_write(
    command: str, run: Run, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any, **named: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    ran = run(*command.split(), "--out", "locked")
    check_refusal(ran.code, ran.stdout, ran.stderr, ("'locked'", "Permission denied"))
    assert snapshot(place) == {}


UNTELLING = {
    "one file twice": (A, A, "overlap"),
    "a tenth on both sides": (A, pd.concat([A[:6], B[6:]]), "overlap"),
    "too few records": (A[:5], B[:5], "number of records"),
}


@pytest.mark.parametrize("name", UNTELLING)
def test_sides_that_cannot_tell_are_an_audit_that_says_so(name: str, run: Run, place: Path) -> None:
    """They are no mistake of form: a report with the verdict invalid, which no limit passes."""
    members, nonmembers, control = UNTELLING[name]
    make({"a.csv": members, "b.csv": nonmembers}, place)
    ran = run(*AUDIT.replace("logistic", "tree").split(), "--json")
    assert ran.code == 0, ran.stderr
    verdict = json.loads(ran.stdout)["verdict"]
    assert verdict["level"] == "invalid"
    assert control in verdict["headline"]
    assert run("check", "out").code == 3


def test_a_byte_order_mark_and_white_space_are_no_mistake(run: Run, place: Path) -> None:
    """Files as spreadsheets save them: the refusals above are not of these."""
    text = A.to_csv(index=False).replace("\n", "\r\n")
    make({"a.csv": text.encode("utf-8-sig"), "b.csv": B}, place)
    ran = run(*AUDIT.split(), "--label", "yy")
    check_refusal(ran.code, ran.stdout, ran.stderr, ("no column 'yy'", "x, z, town"))
    ran = run(*AUDIT.split(), "--json")
    assert ran.code == 0, ran.stderr
    assert json.loads(ran.stdout)["target"]["members"] == 60
