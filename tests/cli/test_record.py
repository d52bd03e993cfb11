from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leakscope.report import RecordTable, Report

Run = Callable[..., Any]


@pytest.fixture
def folder(small_report: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose page is not drawn, which would take longer than all else here."""
    monkeypatch.setattr("leakscope.report.Report.to_html", lambda report: "")
    saved: Path = small_report.save(tmp_path / "run")
    return saved


def test_a_record_is_told_of_in_words(run: Run, folder: Path) -> None:
    ran = run("record", folder, "--row", 3)
    assert (ran.code, ran.stderr) == (0, "")
    told = " ".join(ran.stdout.split())
    assert told.startswith("This is record 3 of the members, counting from 0, with the label")
    assert "The attack label-gap gives it" in told
    assert " loss " in told


def test_a_record_of_the_other_side_as_json(run: Run, folder: Path, small_report: Any) -> None:
    ran = run("record", folder / "report.json", "--row", 59, "--side", "nonmembers", "--json")
    assert (ran.code, ran.stderr) == (0, "")
    expected = json.loads(json.dumps(small_report.record(59, "nonmembers").to_dict()))
    # records.csv is text.
    assert ran.json | {"label": expected["label"]} == expected
    assert ran.json["label"] == str(expected["label"])
    assert {one["attack"] for one in ran.json["attacks"]} == {"loss", "label-gap"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--row", 60], "There is no row 60 of the members, counting from 0: the last is row 59"),
        (["--row", -1], "Invalid value for '--row'"),
        (["--row", "x"], "Invalid value for '--row'"),
        ([], "Missing option '--row'"),
        (["--row", 0, "--side", "others"], "Invalid value for '--side'"),
    ],
)
def test_what_is_not_there_is_one_sentence(
    run: Run, folder: Path, words: list[Any], sentence: str
) -> None:
    ran = run("record", folder, *words)
    assert (ran.code, ran.stdout) == (2, "")
    assert sentence in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize("stays", ["records.csv", "report.json"])
def test_files_of_two_runs_are_not_mixed(
    run: Run, folder: Path, small_report: Any, tmp_path: Path, stays: str
) -> None:
    """As many records on each side, but other scores: only the digest tells them apart."""
    table = small_report.records.columns
    scores = {name: table[name] for name in table} | {"score_loss": table["score_loss"] + 1}
    other = Report(small_report.data, RecordTable(scores)).save(tmp_path / "other")
    assert run("record", other, "--row", 3).code == 0
    (other / stays).write_bytes((folder / stays).read_bytes())
    ran = run("record", other, "--row", 3)
    assert (ran.code, ran.stdout) == (2, "")
    assert "is not of the same run as the report beside it" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_a_kill_between_two_files_is_noticed(
    run: Run, folder: Path, small_report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = small_report.records.columns
    other = RecordTable({name: table[name] for name in table} | {"score_loss": table["row"]})

    def killed(self: Path, target: Path) -> Path:
        if target.name == "report.html":
            raise KeyboardInterrupt
        return move(self, target)

    move = Path.replace
    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        Report(small_report.data, other).save(folder)
    ran = run("record", folder, "--row", 3)
    assert ran.code == 2
    assert "is not of the same run" in ran.stderr


def test_a_report_without_a_table_does_not_take_the_one_beside_it(
    run: Run, folder: Path, small_report: Any
) -> None:
    Report(small_report.data).save(folder)
    ran = run("record", folder, "--row", 3)
    assert ran.code == 2
    assert "the report was saved without one" in ran.stderr


def test_a_run_without_records_is_one_sentence(run: Run, folder: Path) -> None:
    (folder / "records.csv").unlink()
    ran = run("record", folder, "--row", 0)
    assert ran.code == 2
    assert "has no records.csv" in ran.stderr
    assert "audit again without --redact" in ran.stderr


def test_a_folder_without_a_run_is_one_sentence(run: Run, tmp_path: Path) -> None:
    ran = run("record", tmp_path, "--row", 0)
    assert ran.code == 2
    assert "cannot be read" in ran.stderr
