from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest

from leakscope.errors import InputError
from leakscope.report import Report, load_schema

Run = Callable[..., Any]
Files = tuple[Path, Path]
FILES = {"records.csv", "report.html", "report.json"}


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def command(*words: object, folder: Path, **more: Any) -> subprocess.Popen[str]:
    """The command in a process of its own, standing in the folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **more.pop("env", {})}
    return subprocess.Popen(
        [sys.executable, "-m", "leakscope", *map(str, words)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment,
        **more,
    )


def test_the_summary_is_on_stdout_and_the_files_are_where_it_says(
    run: Run, calls: list[Any], tmp_path: Path
) -> None:
    ran = run("audit", "--dataset", "iris", "--recipe", "tree")
    assert ran.code == 0
    assert ran.stdout.splitlines()[-3:] == [
        f"leakscope-report/{name}" for name in ("report.html", "report.json", "records.csv")
    ]
    assert names_in(tmp_path / "leakscope-report") == FILES
    assert "training" not in ran.stdout
    assert "report" not in ran.stderr


def test_json_is_all_of_stdout_and_the_folder_is_told_on_stderr(
    run: Run, calls: list[Any], small_report: Report, tmp_path: Path
) -> None:
    ran = run("audit", "--dataset", "iris", "--recipe", "tree", "--json", "--out", "deep/er")
    assert ran.code == 0
    assert ran.json == small_report.to_dict()
    assert ran.stderr.splitlines()[-1] == "The report is in deep/er."
    assert names_in(tmp_path / "deep" / "er") == FILES


@pytest.mark.parametrize("out", ["file", "file/below", "x" * 300])
def test_a_folder_that_cannot_be_written_is_refused_before_any_work(
    run: Run, calls: list[Any], tmp_path: Path, out: str
) -> None:
    (tmp_path / "file").write_text("in the way")
    ran = run("audit", "--out", out)
    assert (ran.code, ran.stdout, calls) == (2, "", [])
    assert ran.stderr.startswith(f"Error: The results cannot be saved in '{out}' (")
    assert ran.stderr.count("\n") == 1
    assert names_in(tmp_path) == {"file"}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_a_folder_without_permission_is_refused(run: Run, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    ran = run("audit", "--out", locked)
    assert ran.code == 2
    assert "Permission denied" in ran.stderr


def test_a_refused_audit_leaves_no_folder(run: Run, tmp_path: Path) -> None:
    assert run("audit", "--dataset", "none", "--out", "new").code == 2
    assert names_in(tmp_path) == set()


def test_a_result_that_cannot_be_saved_is_shown_all_the_same(
    run: Run, calls: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(place: Path, texts: object) -> None:
        raise InputError(f"The results cannot be saved in {str(place)!r} (No space left on device)")

    monkeypatch.setattr("leakscope.report.build.write_together", full)
    ran = run("audit", "--dataset", "iris", "--recipe", "tree", "--out", "full", "--json")
    assert ran.code == 2
    assert ran.json["verdict"]
    assert ran.stderr.splitlines()[-1].startswith("Error: The results cannot be saved in 'full'")
    ran = run("audit", "--dataset", "iris", "--recipe", "tree", "--out", "full")
    assert ran.code == 2
    assert "report.html" not in ran.stdout
    assert "advantage" in ran.stdout


@pytest.mark.slow
def test_a_whole_audit_of_the_bundled_data(tmp_path: Path) -> None:
    words = ("audit", "--records", 600, "--out", "run", "--json")
    process = command(*words, folder=tmp_path)
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    report = json.loads(stdout)
    jsonschema.validate(report, load_schema())
    saved = json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))
    # The file alone says which table lies beside it.
    digest = hashlib.sha256((tmp_path / "run" / "records.csv").read_bytes()).hexdigest()
    assert saved == report | {"records_sha256": digest}
    assert names_in(tmp_path / "run") == FILES | {"trials"}
    assert report["trials"]["models"] == 32
    assert report["trials"]["recipe"] == "forest"
    models = {one["attack"]: one["models"] for one in report["outcomes"]}
    assert models["loss"] == 1
    assert models["lira"] == models["rmia"] == models["shadow"] == 33
    assert report["cost"]["models"] == 33
    assert "training 32 models with" in stderr
    assert report["command"] == "leakscope " + shlex.join(map(str, words))
    assert report["target"]["dataset"] == "adult"
    assert report["target"]["randomized"] is True
    assert report["target"]["members"] + report["target"]["nonmembers"] == pytest.approx(600, abs=5)
    assert {one["group"] for one in report["outcomes"][0]["groups"]} == {"sex", "race", "age"}
    # A forest grown to the end knows its records by heart.
    assert report["verdict"]["level"] == "leaks"
    assert "Traceback" not in stderr
    assert "reading the data set adult" in stderr.splitlines()


QUICK = ("--attacks", "loss,label-gap")


@pytest.mark.slow
def test_hostile_names_pass_through_unharmed(run: Run, tmp_path: Path) -> None:
    hostile = '<script>alert("x, y")</script>[bold]\x1b[31m{{7*7}}\n=1+1'
    rng = np.random.default_rng(0)
    for side in ("a", "b"):
        table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["x", "[/]"])
        table[hostile] = rng.choice(["<b>u</b>", "\x1b[2J[red]"], 60)
        table["y"] = rng.choice(["<i>no</i>", "'; --"], 60)
        table.to_csv(tmp_path / f"{side}.csv", index=False)
    quoted = '"' + hostile.replace('"', '""') + '"'
    words = ("audit", "--members", "a.csv", "--nonmembers", "b.csv", "--label", "y")
    ran = run(*words, "--recipe", "tree", "--groups", quoted, *QUICK)
    assert ran.code == 0, ran.stderr
    assert "\x1b" not in ran.stdout + ran.stderr
    report = json.loads((tmp_path / "leakscope-report" / "report.json").read_text("utf-8"))
    jsonschema.validate(report, load_schema())
    assert {one["group"] for one in report["outcomes"][0]["groups"]} == {hostile}
    assert shlex.split(report["command"])[-3] == quoted
    page = (tmp_path / "leakscope-report" / "report.html").read_text("utf-8")
    assert "<script" not in page
    refused = run(*words, "--recipe", "tree", "--groups", '"\x1b[31m\nred"')
    assert refused.code == 2
    assert "\x1b" not in refused.stderr
    assert len([line for line in refused.stderr.splitlines() if line.startswith("Error: ")]) == 1


def test_the_same_person_on_two_sides_is_found_by_the_unit(run: Run, tables: Files) -> None:
    both = pd.read_csv(tables[0])
    pd.read_csv(tables[1]).assign(person=both["person"]).to_csv(tables[1], index=False)
    words = ("audit", "--members", tables[0], "--nonmembers", tables[1], "--label", "answer")
    ran = run(*words, "--recipe", "tree", "--unit", "person", "--json", *QUICK)
    # A finished audit is a success whatever it found.
    assert ran.code == 0, ran.stderr
    assert ran.json["verdict"]["level"] == "invalid"
    overlap = next(one for one in ran.json["controls"] if one["name"] == "overlap")
    assert overlap["passed"] is False


def test_predictions_are_audited_without_a_model(run: Run, predictions: Files) -> None:
    words = ("audit", "--member-predictions", predictions[0])
    words = (*words, "--nonmember-predictions", predictions[1], "--groups", "town")
    ran = run(*words, "--unit", "person", "--json", *QUICK)
    assert ran.code == 0, ran.stderr
    jsonschema.validate(ran.json, load_schema())
    assert ran.json["target"]["classes"] == ["no", "yes"]
    assert {one["attack"] for one in ran.json["outcomes"]} == {"loss", "label-gap"}


@pytest.mark.slow
def test_a_pipe_that_closes_early_is_no_error(tmp_path: Path) -> None:
    with command("datasets", "--json", folder=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


@pytest.mark.slow
def test_a_terminal_without_the_letters_gets_others(tmp_path: Path) -> None:
    process = command("channels", folder=tmp_path, env={"PYTHONIOENCODING": "ascii"})
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (0, "")
    assert "log p ? log(1 ? p)" in stdout
    process = command("channels", "--json", folder=tmp_path, env={"PYTHONIOENCODING": "ascii"})
    stdout, _ = process.communicate(timeout=60)
    assert any("log p − log(1 − p)" in row["summary"] for row in json.loads(stdout))


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are of another kind there")
def test_an_interrupted_audit_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    process = command("audit", folder=tmp_path)
    assert process.stderr is not None
    assert process.stderr.readline() == "reading the data set adult\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stdout == ""
    assert stderr.splitlines()[-1] == "Interrupted."
    assert "Traceback" not in stderr
    assert names_in(tmp_path) == set()


def test_help_waits_for_no_library(tmp_path: Path) -> None:
    program = (
        "import sys; from leakscope.cli import main; code = main(['audit', '--help']); "
        "heavy = {'numpy', 'pandas', 'sklearn', 'scipy', 'matplotlib'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else code)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.slow
def test_explanations_by_records_are_audited_from_files(run: Run, tables: Files) -> None:
    ran = run(
        "audit", "--members", tables[0], "--nonmembers", tables[1], "--label", "answer",
        "--unit", "person", "--groups", "town", "--recipe", "logistic", "--channels", "records",
    )  # fmt: skip
    assert ran.code == 0, ran.stderr
    assert "self-reveal, 5 records" in ran.stdout
    assert "reading records out of explanations: reconstruction at k = 1" in ran.stderr
    saved = json.loads(Path("leakscope-report/report.json").read_text())
    jsonschema.validate(saved, load_schema())
    assert [one["attack"] for one in saved["outcomes"]] == ["shown"]
    shares = saved["disclosures"][0]["groups"]
    assert {(one["group"], one["k"]) for one in shares} == {
        (group, k) for group in ("all", "town") for k in (1, 5, 10)
    }
    assert "Records that were brought back" in Path("leakscope-report/report.html").read_text()
