"""What is handed out: the wheel and the source distribution, built, looked into and installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

import leakscope

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
NOT_SOURCE = (".*", "build", "dist", "site", "*.egg-info", "__pycache__", "*-report", "htmlcov")
MEGABYTE = 2**20


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution, of a copy: building leaves traces."""
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT, folder / "copy", ignore=shutil.ignore_patterns(*NOT_SOURCE))
    words = [sys.executable, "-W", "error", "-m", "build", "--no-isolation", "--outdir", folder]
    made = subprocess.run([*words, folder / "copy"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert "deprecat" not in (made.stdout + made.stderr).lower()
    return folder


@pytest.fixture(scope="module")
def python(built: Path) -> Path:
    """The interpreter of a fresh environment with the wheel alone, and the libraries of this one.

    It borrows them by a path in a .pth file, from which no other .pth file is read: an editable
    leakscope in this environment is not there.
    """
    home = built / "fresh"
    venv.create(home, with_pip=False)
    inside = {"base": str(home), "platbase": str(home)}
    [wheel] = built.glob("*.whl")
    words = ("-m", "pip", "--python", home, "install", "--no-deps", "--no-index", wheel)
    ran(sys.executable, *words, cwd=built)
    site = Path(sysconfig.get_path("purelib", "venv", inside))
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return Path(sysconfig.get_path("scripts", "venv", inside)) / "python"


def ran(*words: object, cwd: Path, code: int = 0) -> str:
    """What a command prints; it finds what is installed, and not this source."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, words)], cwd=cwd, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def sources(folder: str) -> set[str]:
    """The files of a folder of the project, by their paths in it."""
    found = (ROOT / folder).rglob("*")
    return {
        path.relative_to(ROOT).as_posix()
        for path in found
        if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path)
    }


def test_the_wheel_has_the_package_and_nothing_else(built: Path) -> None:
    [path] = built.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        names = {name for name in wheel.namelist() if not name.endswith("/")}
        metadata = wheel.read(f"leakscope-{leakscope.__version__}.dist-info/METADATA").decode()
    package = {name for name in names if name.startswith("leakscope/")}
    assert package == {name.removeprefix("src/") for name in sources("src/leakscope")}
    assert "leakscope/py.typed" in package
    others = {name.split("/")[0] for name in names - package}
    assert others == {f"leakscope-{leakscope.__version__}.dist-info"}
    assert {"LICENSE", "NOTICE"} <= {name.rpartition("/")[2] for name in names - package}
    assert "Requires-Python: >=3.11" in metadata
    assert "License-Expression: Apache-2.0" in metadata
    assert path.stat().st_size < 2 * MEGABYTE


def test_the_source_distribution_is_the_whole_project(built: Path) -> None:
    [path] = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {one.name.partition("/")[2] for one in archive.getmembers() if one.isfile()}
    for folder in ("src/leakscope", "tests", "docs", "benchmarks"):
        assert sources(folder) <= names
    assert {"LICENSE", "README.md", "CHANGELOG.md", "Makefile", "constraints.txt"} <= names
    assert not {name for name in names if name.endswith(".pyc") or "/." in name}
    assert path.stat().st_size < 8 * MEGABYTE


def test_the_installed_wheel_runs(python: Path, tmp_path: Path) -> None:
    home = ran(python, "-c", "import leakscope; print(leakscope.__file__)", cwd=tmp_path)
    assert Path(home.strip()).is_relative_to(python.parents[1])
    command = python.with_name("leakscope")
    assert ran(command, "--version", cwd=tmp_path) == f"leakscope {leakscope.__version__}\n"
    ran(
        command, "audit", "--records", 400, "--recipe", "tree", "--shadows", 0,
        "--attacks", "loss,label-gap", cwd=tmp_path,
    )  # fmt: skip
    assert {path.name for path in (tmp_path / "leakscope-report").iterdir()} == {
        "report.html",
        "report.json",
        "records.csv",
    }


GOOD = """
import numpy as np
import leakscope as ls

y = np.array([0, 1] * 40)
report: ls.Report = ls.audit_predictions(np.ones((80, 2)) / 2, y, np.ones((80, 2)) / 2, y)
level: str = report.verdict.level
records = ls.Records(np.ones((2, 2)), np.zeros(2))
size: int = len(records)
area: float = ls.metrics.roc(np.arange(4.0), np.array([True, False, True, False])).auc.value
"""
BAD = {
    "report.verdict.nothing\n": "attr-defined",
    "ls.nothing\n": "attr-defined",
    "ls.audit_predictions(seeds=1)\n": "call-arg",
    "wrong: int = report.verdict.level\n": "assignment",
}


# The types of others that the program does not use would take most of a minute to be read.
TYPES = """
[mypy]
strict = True
[mypy-captum.*,dask.*,distributed.*,matplotlib.*,opacus.*,pandas.*,ray.*,scipy.*,torch.*]
follow_imports = skip
"""


def test_types_reach_those_who_use_it(python: Path, tmp_path: Path) -> None:
    (tmp_path / "mypy.ini").write_text(TYPES, "utf-8")
    words = [sys.executable, "-m", "mypy", "--python-executable", python]
    (tmp_path / "mine.py").write_text(GOOD, "utf-8")
    assert "Success" in ran(*words, "mine.py", cwd=tmp_path)
    (tmp_path / "mine.py").write_text(GOOD + "".join(BAD), "utf-8")
    told = ran(*words, "mine.py", cwd=tmp_path, code=1).splitlines()
    first = GOOD.count("\n") + 1
    for line, code in enumerate(BAD.values(), start=first):
        start = f"mine.py:{line}: error"
        assert any(one.startswith(start) and f"[{code}]" in one for one in told), told


def test_numbers_are_those_of_the_source(python: Path, tmp_path: Path) -> None:
    program = (
        "import numpy as np, leakscope as ls; rng = np.random.default_rng(0); "
        "print(repr(ls.metrics.roc(rng.normal(size=50), rng.random(50) < 0.5).auc.value))"
    )
    rng = np.random.default_rng(0)
    here = leakscope.metrics.roc(rng.normal(size=50), rng.random(50) < 0.5).auc.value
    assert float(ran(python, "-c", program, cwd=tmp_path)) == here
