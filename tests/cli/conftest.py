from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakscope.cli import main


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Run the command with these words in a fresh folder, within this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LEAKSCOPE_DATA", raising=False)

    def ran(*words: object) -> Ran:
        capfd.readouterr()
        code = main([str(word) for word in words])
        return Ran(code, *capfd.readouterr())

    return ran


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, small_report: Any) -> list[tuple[str, Any, Any]]:
    """What the command asks of the library, which answers at once: its name, and arguments."""
    made: list[tuple[str, Any, Any]] = []
    for name in ("audit", "audit_predictions"):

        def answer(*given: Any, _name: str = name, **named: Any) -> Any:
            made.append((_name, given, named))
            return small_report

        monkeypatch.setattr(f"leakscope.{name}", answer)
    return made


@pytest.fixture(scope="session")
def small_report() -> Any:
    """A real report, of two attacks on noise."""
    import leakscope

    rng = np.random.default_rng(0)
    sides = []
    for _ in range(2):
        probabilities = rng.dirichlet([1.0, 1.0], 60)
        sides += [probabilities, (probabilities[:, 1] > rng.random(60)).astype(int)]
    return leakscope.audit_predictions(*sides, attacks=["loss", "label-gap"])


def people(n: int, seed: int, first: int = 0) -> pd.DataFrame:
    """A table of n people: two numbers, a text, a person per two rows, and an answer."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 2))
    return pd.DataFrame(
        {
            "height": numbers[:, 0],
            "weight": numbers[:, 1],
            "town": rng.choice(["here", "there"], n),
            "person": first + np.arange(n) // 2,
            "answer": np.where(numbers[:, 0] + rng.normal(size=n) > 0, "yes", "no"),
        }
    )


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    """Two files of people, members and non-members."""
    paths = tmp_path / "members.csv", tmp_path / "nonmembers.csv"
    for seed, path in enumerate(paths):
        people(80, seed, first=1000 * seed).to_csv(path, index=False)
    return paths


@pytest.fixture
def predictions(tmp_path: Path) -> tuple[Path, Path]:
    """Two files of predictions: the probability of each class, the label, a group and a person."""
    paths = tmp_path / "member-predictions.csv", tmp_path / "nonmember-predictions.csv"
    for seed, path in enumerate(paths):
        rng = np.random.default_rng(10 + seed)
        table = people(80, seed, first=1000 * seed)[["town", "person", "answer"]]
        yes = rng.random(80)
        table = table.assign(no=1 - yes, yes=yes).rename(columns={"answer": "label"})
        table.to_csv(path, index=False)
    return paths
