from __future__ import annotations

import pytest

from leakscope.report.comparison import Comparison

QUICK = ("--records", 180, "--attacks", "loss,label-gap", "--seeds", 2, "--workers", 1)


@pytest.fixture
def table(tables):
    return tables[0]


@pytest.mark.slow
def test_a_table_on_stdout_and_the_files(run, tmp_path):
    ran = run("compare", "--recipe", "logistic", "--defenses", "noise:2,round:1", *QUICK)
    assert ran.code == 0
    assert "Advice" in ran.stdout
    assert "? none" in ran.stdout  # two seeds cannot show that it is on the frontier
    assert "2 seeds cannot resolve the frontier" in ran.stdout
    assert "noise:2" in ran.stdout
    assert "noise:2: training" in ran.stderr
    assert "noise:2, seed 1: running loss" in ran.stderr
    found = Comparison.load(tmp_path / "leakscope-compare")
    assert [one["defense"] for one in found.summary] == ["none", "noise:2", "round:1"]
    setup = found.to_dict()["setup"]
    assert setup["dataset"] == "adult"
    assert setup["members"] == [60, 60]
    assert found.to_dict()["command"].startswith("leakscope compare --recipe logistic")
    again = run("compare", "--recipe", "logistic", "--defenses", "noise:2,round:1", *QUICK)
    assert "running loss" in again.stderr
    assert "training" not in again.stderr


def test_json_on_stdout(run, tmp_path):
    ran = run(
        "compare", "--defenses", "round:1", "--recipe", "tree", "--dataset", "digits", "--json",
        "--out", tmp_path / "x", *QUICK,
    )  # fmt: skip
    assert ran.json == Comparison.load(tmp_path / "x").to_dict()
    assert f"The comparison is in {tmp_path / 'x'}" in ran.stderr.replace("\n", "")


def test_ones_own_table(run, table, tmp_path):
    ran = run(
        "compare", "--table", table, "--label", "answer", "--unit", "person", "--recipe", "tree",
        "--defenses", "round:0", "--attacks", "label-gap", "--seeds", 1, "--workers", 1,
    )  # fmt: skip
    assert ran.code == 2
    assert "persons, and a comparison needs 20" in ran.stderr
    ran = run(
        "compare", "--table", table, "--label", "answer", "--recipe", "tree", "--records", 75,
        "--defenses", "round:0", "--attacks", "label-gap", "--seeds", 1, "--workers", 1,
    )  # fmt: skip
    assert ran.code == 0
    setup = Comparison.load(tmp_path / "leakscope-compare").to_dict()["setup"]
    assert setup["dataset"] == str(table)
    assert setup["records"] == 75


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--defenses", "nois:1"), "did you mean 'noise'"),
        (("--defenses", "noise:1,,"), "names separated by commas"),
        (("--defenses", "none"), "no defense to compare"),
        (("--defenses", "noise:1", "--attacks", "los"), "did you mean 'loss'"),
        (("--defenses", "early-stop:3"), "give a TorchRecipe"),
        (("--defenses", "noise:1", "--recipe", "nowhere"), "no recipe named 'nowhere'"),
        (("--defenses", "noise:1", "--dataset", "adul"), "did you mean 'adult'"),
        (("--defenses", "noise:1", "--table", "a.csv"), "without --label"),
        (("--defenses", "noise:1", "--label", "y"), "--label is given without --table"),
        (("--defenses", "noise:1", "--unit", "y"), "--unit is given without --table"),
        (("--defenses", "noise:1", "--table", "a.csv", "--dataset", "adult"), "contradict"),
        (("--defenses", "noise:1", "--table", "a.csv", "--download"), "contradict"),
        (("--defenses", "noise:1", "--members", "9000"), "ask for 1000 members at most"),
        (("--defenses", "noise:1", "--limit", "7"), "The limit is 7"),
        ((), "Missing option '--defenses'"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_exit_code_2(words, message, run):
    ran = run("compare", *words)
    assert ran.code == 2
    assert message in ran.stderr
    assert ran.stdout == ""
    assert len(ran.stderr.strip().splitlines()) <= 2  # what was read, and what is wrong


def test_help_says_how_defenses_are_written(run):
    ran = run("compare", "--help")
    assert ran.code == 0
    assert "prune:16+minmax:0.3" in ran.stdout
