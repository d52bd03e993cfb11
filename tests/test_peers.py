"""The comparison with other tools: all of it that needs none of them installed."""

from __future__ import annotations

import ast
import importlib
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pages import ROOT, text_of

FOLDER = ROOT / "benchmarks"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("peers")


def part(name: str) -> ModuleType:
    return importlib.import_module(f"_peers.{name}")


def row(tool: str, seconds: float, **options: Any) -> dict[str, Any]:
    base = {
        "tool": tool,
        "seconds": seconds,
        "processor": seconds / 2,
        "megabytes": 99.6,
        "lines": 7,
    }
    return base | {"shows": "LiRA", "rival": True, "reason": "", "problem": ""} | options


def results(*rows: dict[str, Any], compared: str = "auc") -> dict[str, Any]:
    task = {
        "title": "A task",
        "machine": "a machine",
        "repeats": 2,
        "compared": compared,
        "rows": [*rows],
    }
    tool = {"version": "1.2", "megabytes": 310.4, "packages": 12, "shared": {"numpy": "2.4"}}
    return {
        "tasks": {"task": task},
        "environments": {"tool": tool | {"note": "needs packaging", "problem": ""}},
    }


# --- lines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("", 0),
        ('"""What it is."""\n\n# why\nx = 1  # one\n', 1),
        ("from given import X_in, model\nimport a\n", 1),
        ("from given_up import a\n", 1),
        ("f(\n    1,\n    2,\n)\n", 4),
        ("def f():\n    '''What it does.'''\n\n    return 1\n", 2),
        ('text = """two\nlines"""\n', 2),
        ("x = 1\n# what is compared, which it hides\nscores = x\n", 1),
    ],
)
def test_lines_of_user_code_are_counted(peers: ModuleType, source: str, lines: int) -> None:
    assert part("runs").count_lines(source) == lines


def test_files_that_users_have_to_write_too_are_counted(peers: ModuleType) -> None:
    tasks, runs = part("tasks"), part("runs")
    alone = tasks.Entry("tool", "tool", "network_shadows_sacroml.py", "")
    both = tasks.Entry("tool", "tool", alone.code, "", beside=("training.py",))
    extra = runs.count_lines((tasks.CODE / "training.py").read_text("utf-8"))
    assert runs.lines_of(both) == runs.lines_of(alone) + extra > runs.lines_of(alone) > 10


# --- tasks ---------------------------------------------------------------------------------------


def test_every_task_has_code_and_environments_and_leakscope_in_it(peers: ModuleType) -> None:
    tasks, used = part("tasks"), {"given.py", "_run.py", "architecture.py"}
    for task in tasks.TASKS:
        assert task.entries[0].tool == "Leakscope"
        assert task.compared in part("table").COMPARED
        if task.compared != "auc":
            assert [one.tool for one in task.entries].count(task.reference) == 1
        for entry in task.entries:
            assert entry.environment in part("environments").ENVIRONMENTS
            used |= {entry.code, *entry.beside}
            tree = ast.parse((tasks.CODE / entry.code).read_text("utf-8"))
            left = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}
            wanted = {"scores", "membership"} if task.compared == "auc" else {"values"}
            assert wanted <= left, entry.code
    assert {path.name for path in tasks.CODE.glob("*.py")} == used


def test_tools_are_asked_for_by_name(peers: ModuleType) -> None:
    assert len(peers.chosen(None)) == len(part("tasks").TASKS)
    assert [task.name for task in peers.chosen("gradients,adult-one")] == ["gradients", "adult-one"]
    with pytest.raises(SystemExit, match="no task 'nothing'; give some of cancer-one"):
        peers.chosen("adult-one,nothing")


def test_what_was_measured_is_kept_in_the_order_of_the_tasks(peers: ModuleType) -> None:
    assert [*peers.in_order({"gradients": 1, "gone": 2, "adult-one": 3})] == [
        "adult-one",
        "gradients",
    ]


def test_what_is_prepared_is_what_user_code_reads(
    peers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = part("tasks")
    monkeypatch.syspath_prepend(str(tasks.CODE))
    given = importlib.import_module("given")
    monkeypatch.setattr(given, "FOLDER", tmp_path)
    prepared = tasks.cancer(7)(tmp_path)
    tasks.save(prepared, tmp_path)
    np.testing.assert_array_equal(given.X_out, prepared["X_out"])
    np.testing.assert_array_equal(
        given.model.predict(given.X_in), prepared["model"].predict(prepared["X_in"])
    )
    assert given.shadows == 7
    with pytest.raises(AttributeError):
        _ = given.nothing


def test_constraints_are_those_that_are_shared(peers: ModuleType) -> None:
    text = "# numpy==1\nnumpy==2.4.6\nnumpy-typing==3\n torch==2.13.0\npandas==3.1\n"
    assert part("environments").constraints(text) == ["numpy==2.4.6", "torch==2.13.0"]
    assert part("environments").constraints(text, ("numpy",)) == ["torch==2.13.0"]


# --- runs ----------------------------------------------------------------------------------------


@pytest.fixture
def code(peers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of user code, and in it the data that is given."""
    for name in ("_run.py", "given.py"):
        shutil.copy(part("tasks").CODE / name, tmp_path)
    np.save(tmp_path / "X_in.npy", np.arange(6.0).reshape(3, 2))
    monkeypatch.setattr(part("runs"), "CODE", tmp_path)
    return tmp_path


def run_it(code: Path, source: str) -> Any:
    (code / "user.py").write_text(source, "utf-8")
    entry = part("tasks").Entry("tool", "tool", "user.py", "")
    return part("runs").run(entry, Path(sys.executable), code)


def test_a_run_gives_its_scores_time_and_memory(code: Path) -> None:
    done = run_it(
        code,
        "import time\nfrom given import X_in\ntime.sleep(0.3)\nscores = X_in[:, 1]\nother = 1\n"
        "from pathlib import Path\nPath('left').write_text('x')\n",
    )
    assert done.problem == ""
    assert [*done.found] == ["scores"]
    assert done.found["scores"].tolist() == [1, 3, 5]
    assert 0.3 < done.seconds < 300
    assert done.processor > 0
    assert done.imports < done.seconds - 0.3
    assert 10 < done.megabytes < 2000
    assert not (code / "left").exists()


def test_a_run_that_fails_says_how(code: Path) -> None:
    done = run_it(code, "raise ValueError('no such luck')\n")
    assert done.problem == "ended with 1: ValueError: no such luck"
    assert done.found is None


def test_values_are_compared_with_the_reference(peers: ModuleType) -> None:
    values = np.array([1.0, 2.0, 4.0])
    assert peers.compare("difference", values, values + np.array([0, 0.5, -1.0])) == 1.0
    assert peers.compare("correlation", values, 3 - 2 * values) == pytest.approx(-1.0)
    with pytest.raises(SystemExit, match="shape"):
        peers.compare("difference", values, values[:2])


# --- the table -----------------------------------------------------------------------------------


def test_the_table_has_a_row_for_each_tool(peers: ModuleType) -> None:
    auc = {"value": 0.7, "low": 0.65, "high": 0.75}
    found = results(
        row("Leakscope", 2.0, auc=auc),
        row("ART", 3.0, auc=auc),
        {"tool": "auditml", "lines": 4, "rival": True, "problem": "ended with 1: oh"},
    )
    lines = part("table").markdown(found).splitlines()
    assert "| Leakscope | 2.00 | 1.00 | 1.00 | 100 | 0.700 (0.650 to 0.750) | 7 | LiRA |" in lines
    assert "| ART | 3.00 | 1.50 | 1.50 | 100 | 0.700 (0.650 to 0.750) | 7 | LiRA |" in lines
    assert "| auditml | – |  |  |  |  | 4 | failed: ended with 1: oh |" in lines
    assert "| tool | 1.2 | 310 | 12 | numpy 2.4; needs packaging |" in lines
    widths = {line.count("|") for line in lines if line.startswith("|")}
    assert widths == {9, 6}
    assert lines[0] == "**A task** (a machine; 2 runs each)"


def test_agreement_stands_where_there_is_no_auc(peers: ModuleType) -> None:
    one = row("Leakscope", 2.0, difference=1.5e-7)
    two = row("Leakscope", 2.0, correlation=0.99994)
    assert "| 1.5e-07 |" in part("table").markdown(results(one, compared="difference"))
    assert "| 0.9999 |" in part("table").markdown(results(two, compared="correlation"))


def test_who_is_faster_is_named(peers: ModuleType) -> None:
    slower = part("table").slower
    ours = row("Leakscope", 2.0)
    assert slower(results(ours, row("ART", 2.0), row("SACRO-ML", 9.0))) == []
    told = "task: 2.00 times as long as ART: "
    assert slower(results(ours, row("ART", 1.0))) == [told + "the reason is not known"]
    ours["reason"] = "it imports more"
    assert slower(results(ours, row("ART", 1.0))) == [told + "it imports more"]
    told = part("table").markdown(results(ours, row("ART", 1.0)))
    assert "\nLeakscope takes 2.00 times as long as ART: it imports more.\n" in told
    assert slower(results(ours, row("Leakscope, all", 1.0, rival=False))) == []
    failed = {"tool": "ART", "rival": True, "problem": "ended with 1"}
    assert slower(results(ours, failed)) == []


def test_the_tables_are_put_between_their_marks(peers: ModuleType, tmp_path: Path) -> None:
    table, page = part("table"), tmp_path / "page.md"
    page.write_text(f"before\n{table.MARKS[0]}\nold\n{table.MARKS[1]}\nafter\n", "utf-8")
    table.write("new", page)
    table.write("newer", page)
    marked = f"{table.MARKS[0]}\n\nnewer\n\n{table.MARKS[1]}"
    assert page.read_text("utf-8") == f"before\n{marked}\nafter\n"
    page.write_text("no marks", "utf-8")
    with pytest.raises(SystemExit, match="no place"):
        table.write("new", page)


def test_the_page_shows_the_figures_that_were_kept(peers: ModuleType) -> None:
    kept = json.loads((FOLDER / "peers.json").read_text("utf-8"))
    page = text_of("docs/peers.md")
    assert part("table").markdown(kept) in page
    assert [*kept["tasks"]] == [task.name for task in part("tasks").TASKS]
