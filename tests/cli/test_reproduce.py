from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from matplotlib.figure import Figure
from rich.console import Console
from rich.text import Text

from leakscope import registry
from leakscope.cli.reproduce import reproduce_command
from leakscope.cli.session import Session
from leakscope.papers.experiment import Experiment, Setting
from leakscope.registry import Entry, entries

Run = Callable[..., Any]
Asked = list[Setting]


def toy_figure(setting: Setting) -> Experiment:
    """A toy that shows nothing."""
    setting.progress("playing", 0, 1)
    return Experiment(
        experiment="toy",
        paper="Nobody 2020, figure 9",
        setup={"seed": setting.seed},
        rows=[
            {"n": 10, "rho": 0.25, "rho_low": 0.2, "rho_high": 0.3, "box_median": 0.5, "box_q1": 0,
             "box_q3": 1.0},
            {"n": 30, "rho": None, "rho_low": None, "rho_high": None, "box_median": -0.5,
             "box_q1": -1.0, "box_q3": 0.0},
        ],
        paper_rows=[{"n": 10, "rho": "falls"}],
        notes=["It [bold]falls[/bold]."],
        draw=Figure,
    )  # fmt: skip


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """An experiment named toy, and the settings it was asked with."""
    asked: Asked = []

    def figure(setting: Setting) -> Experiment:
        asked.append(setting)
        return toy_figure(setting)

    figure.__doc__ = toy_figure.__doc__
    list(entries("experiment"))
    monkeypatch.setitem(
        registry._ENTRIES["experiment"], "toy", Entry("experiment", "toy", figure, "Nobody 2020")
    )
    return asked


def test_rows_stand_beside_the_papers_with_notes_and_paths(
    run: Run, toy: Asked, tmp_path: Path
) -> None:
    ran = run("reproduce", "toy")
    assert ran.code == 0
    assert ran.stderr.splitlines() == ["playing"]
    lines = ran.stdout.splitlines()
    assert lines[0] == "toy: Nobody 2020, figure 9"
    assert lines[2].split() == ["n", "rho", "box", "median"]
    assert " ".join(lines[4].split()) == "10 0.25 (0.2 to 0.3) 0.5 (0 to 1)"
    assert " ".join(lines[5].split()) == "30 – −0.5 (−1 to 0)"
    assert lines[lines.index("In the paper") + 3].split() == ["10", "falls"]
    assert "• It [bold]falls[/bold]." in lines
    assert lines[-3:] == [f"reproduce/toy.{suffix}" for suffix in ("json", "csv", "svg")]
    assert all((tmp_path / line).is_file() for line in lines[-3:])
    assert toy == [Setting(store=Path("reproduce") / "trials")]


def test_a_table_that_is_not_in_the_paper_stands_alone(
    run: Run, toy: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bare(setting: Setting) -> Experiment:
        return replace(toy_figure(setting), experiment="bare", paper_rows=[], draw=None)

    entry = Entry("experiment", "bare", bare, "Nobody 2020")
    monkeypatch.setitem(registry._ENTRIES["experiment"], "bare", entry)
    lines = run("reproduce", "bare").stdout.splitlines()
    assert "In the paper" not in lines
    assert lines[-3:] == ["", "reproduce/bare.json", "reproduce/bare.csv"]


def test_json_is_all_of_stdout_and_the_paths_are_on_stderr(
    run: Run, toy: Asked, tmp_path: Path
) -> None:
    ran = run("reproduce", "toy", "--json", "--seed", 7, "--out", "here")
    assert ran.code == 0
    assert ran.json == toy_figure(Setting(seed=7)).to_dict()
    assert ran.json == json.loads((tmp_path / "here" / "toy.json").read_text("utf-8"))
    assert "Saved here/toy.json." in ran.stderr


def test_options_reach_the_experiment(run: Run, toy: Asked, tmp_path: Path) -> None:
    words = ["--scale", "full", "--seeds", 3, "--seed", 2, "--workers", 1, "--data", tmp_path]
    assert run("reproduce", "toy", *words, "--out", "there").code == 0
    assert toy == [
        Setting("full", seed=2, seeds=3, data=tmp_path, store=Path("there") / "trials", workers=1)
    ]


def test_everything_registered_is_listed(run: Run, toy: Asked) -> None:
    ran = run("reproduce", "--list", "--json")
    assert (ran.code, ran.stderr) == (0, "")
    assert [row["name"] for row in ran.json] == [entry.name for entry in entries("experiment")]
    told = next(row for row in ran.json if row["name"] == "toy")
    assert told == {"name": "toy", "summary": "A toy that shows nothing.", "paper": "Nobody 2020"}
    line = next(
        line for line in run("reproduce", "--list").stdout.splitlines() if line.startswith("toy ")
    )
    assert "A toy that shows nothing." in line
    assert "Nobody 2020" in line
    assert toy == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["toi"], "There is no experiment named 'toi'; did you mean 'toy'?"),
        ([], "Nothing says which figure or table to compute; give its ID, one of those that "
             "`leakscope reproduce --list` lists"),
        (["toy", "--list"], "--list lists everything, and 'toy' is given beside it; leave one out"),
    ],
)  # fmt: skip
def test_an_error_is_one_sentence(
    run: Run, toy: Asked, words: list[str], sentence: str, tmp_path: Path
) -> None:
    ran = run("reproduce", *words)
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr == f"Error: {sentence}\n"
    assert toy == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "value"), [("--seeds", 0), ("--seed", -1), ("--workers", 0), ("--scale", "large")]
)
def test_a_value_out_of_range_is_refused(run: Run, toy: Asked, option: str, value: object) -> None:
    ran = run("reproduce", "toy", option, value)
    assert ran.code == 2
    assert option in ran.stderr
    assert toy == []


def test_a_place_that_cannot_be_written_to_is_refused_before_the_work(
    run: Run, toy: Asked, tmp_path: Path
) -> None:
    (tmp_path / "reproduce").write_text("mine")
    ran = run("reproduce", "toy")
    assert ran.code == 2
    assert "a file is in the way" in ran.stderr
    assert toy == []


def test_results_that_cannot_be_saved_after_all_are_printed(
    run: Run, toy: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("leakscope.papers.saving.save", full)
    ran = run("reproduce", "toy")
    assert ran.code == 2
    assert "the disk is full" in ran.stderr
    assert "0.25 (0.2 to 0.3)" in ran.stdout
    assert "reproduce/toy.json" not in ran.stdout


def test_debug_shows_where(run: Run, toy: Asked) -> None:
    assert "Traceback" in run("reproduce", "toi", "--debug").stderr


@pytest.mark.usefixtures("toy")
def test_a_narrow_terminal_gets_lines_that_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = io.StringIO()
    session = Session((), stdout=Console(file=file, force_terminal=True, width=40))
    context = typer.Context(typer.main.get_command(typer.Typer(callback=print)), obj=session)
    reproduce_command(context, name="toy")
    plain = Text.from_ansi(file.getvalue()).plain
    assert all(len(line) <= 40 for line in plain.splitlines())
    assert "reproduce/toy.svg" in plain
