"""An environment for each tool: what is installed into it, in which versions, and how large it is.

Tools disagree about the versions of what they need, so that no two share one. What all of them
compute with (scikit-learn, scipy, numpy, torch) is of the same release wherever a tool allows it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

# Of the same release in every environment, that of constraints.txt; with torch it also spares the
# download of CUDA where that release is there for the CPU.
SHARED = ("joblib", "numpy", "scikit-learn", "scipy", "torch")
# Leakscope is installed from a copy of these: to build it leaves traces.
SOURCE = ("LICENSE", "README.md", "pyproject.toml", "src")
HERE = "leakscope"


@dataclass(frozen=True)
class Environment:
    """What is installed: requirements, and which of the shared releases a tool does not allow.

    tool: the distribution whose version is told. note: what had to be done for it to run.
    """

    name: str
    tool: str
    requirements: tuple[str, ...]
    without: tuple[str, ...] = ()
    note: str = ""

    @property
    def own(self) -> bool:
        """Whether it is Leakscope, which is installed from this source."""
        return self.tool == HERE


UNDECLARED = "needs packaging, which it does not declare"
ENVIRONMENTS = {
    one.name: one
    for one in (
        Environment("leakscope", HERE, ("leakscope",)),
        Environment("leakscope-torch", HERE, ("leakscope[torch]",)),
        Environment(
            "art",
            "adversarial-robustness-toolbox",
            ("adversarial-robustness-toolbox==1.20.1", "packaging"),
            note=UNDECLARED,
        ),
        Environment(
            "art-torch",
            "adversarial-robustness-toolbox",
            ("adversarial-robustness-toolbox==1.20.1", "packaging", "torch"),
            note=UNDECLARED,
        ),
        Environment("sacroml", "sacroml", ("sacroml==2.0.1",)),
        Environment("auditml", "auditml", ("auditml==0.1.0",)),
        Environment("captum", "captum", ("captum==0.9.0",)),
        Environment(
            "pydvl", "pyDVL", ("pyDVL[influence]==0.10.0",), ("numpy",), "needs a numpy below 2"
        ),
        Environment("scikit-learn", "scikit-learn", ("scikit-learn",)),
    )
}


@dataclass(frozen=True)
class Installed:
    """An environment that is there: its interpreter, versions by name, and megabytes.

    problem: why it is not there, empty if it is.
    """

    python: Path
    versions: dict[str, str]
    megabytes: float
    problem: str = ""


def install(environment: Environment, folder: Path) -> Installed:
    """The environment within the folder, made where it is missing or another one is asked for."""
    home = folder / environment.name
    stamp = home / "installed.json"
    wanted = _wanted(environment)
    if not stamp.exists() or json.loads(stamp.read_text("utf-8")) != wanted:
        print(f"installing {environment.name}", flush=True)
        problem = _make(environment, home, wanted["constraints"])
        if problem:
            return Installed(_python(home), {}, 0.0, problem)
        stamp.write_text(json.dumps(wanted), "utf-8")
    return Installed(_python(home), _versions(home), _megabytes(_site(home)))


def constraints(text: str, without: tuple[str, ...] = ()) -> list[str]:
    """The lines of a file of constraints for the shared releases, but for some."""
    lines = [line.strip() for line in text.splitlines()]
    names = set(SHARED) - set(without)
    return [line for line in lines if line.partition("==")[0] in names]


def _wanted(environment: Environment) -> dict[str, Any]:
    """All that decides what is in the environment."""
    text = (ROOT / "constraints.txt").read_text("utf-8")
    digest = hashlib.sha256()
    if environment.own:
        for path in sorted((ROOT / "src").rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return {
        "requirements": list(environment.requirements),
        "constraints": constraints(text, environment.without),
        "python": sys.version,
        "source": digest.hexdigest(),
    }


def _make(environment: Environment, home: Path, pins: list[str]) -> str:
    """Make the environment anew; what went wrong, empty if nothing did."""
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=False)
    limits = home / "constraints.txt"
    limits.write_text("\n".join(pins) + "\n", "utf-8")
    requirements = list(environment.requirements)
    if environment.own:
        source = home / "source"
        source.mkdir()
        for name in SOURCE:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, source / name)
        requirements = [one.replace(HERE, str(source), 1) for one in requirements]
    words = [sys.executable, "-m", "pip", "--python", str(_python(home)), "--quiet"]
    words += ["--disable-pip-version-check", "install", "--constraint", str(limits)]
    done = subprocess.run([*words, *requirements], capture_output=True, text=True, check=False)
    shutil.rmtree(home / "source", ignore_errors=True)
    if done.returncode == 0:
        return ""
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return (errors or done.stderr.splitlines() or ["pip failed"])[0].removeprefix("ERROR: ")


def _python(home: Path) -> Path:
    inside = {"base": str(home), "platbase": str(home)}
    return Path(sysconfig.get_path("scripts", "venv", inside)) / "python"


def _site(home: Path) -> Path:
    inside = {"base": str(home), "platbase": str(home)}
    return Path(sysconfig.get_path("purelib", "venv", inside))


def _versions(home: Path) -> dict[str, str]:
    """The versions of what is installed, by name in small letters."""
    found = {}
    for one in _site(home).glob("*.dist-info"):
        name, _, version = one.name.removesuffix(".dist-info").partition("-")
        found[name.lower().replace("_", "-")] = version
    return found


def _megabytes(folder: Path) -> float:
    """What the files of a folder take, without what Python has compiled."""
    sizes = [
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    return sum(sizes) / 1e6
