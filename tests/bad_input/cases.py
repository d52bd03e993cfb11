"""What a case of bad input is, what each is made of, and what every refusal must be like."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

# What a file holds, or what makes it; None for a folder.
Content = bytes | str | pd.DataFrame | Callable[[Path], object] | None
Files = Mapping[str, Content]

LONGEST = 400  # characters of a sentence


@dataclass(frozen=True)
class Case:
    """A command that must be refused.

    line: what is typed, as in a shell. told: what its sentence must hold, the culprit above all.
    files: what is there beside good tables; a name of the good ones replaces them.
    """

    id: str
    line: str
    told: tuple[str, ...]
    files: Files = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        return shlex.split(self.line)


def case(id: str, line: str, *told: str, files: Files | None = None) -> Case:
    return Case(id, line, told, files or {})


def people(n: int, seed: int) -> pd.DataFrame:
    """A good table: two numbers, a text, a person per row, and an answer of two classes."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 2)).round(6)
    return pd.DataFrame(
        {
            "x": numbers[:, 0],
            "z": numbers[:, 1],
            "town": rng.choice(["here", "there"], n),
            "person": 2 * np.arange(n) + seed,
            "y": np.where(numbers[:, 0] + rng.normal(size=n) > 0, "yes", "no"),
        }
    )


def predictions(n: int, seed: int) -> pd.DataFrame:
    """Good predictions: the probability of each class, the label and a group."""
    table = people(n, seed)
    yes = np.random.default_rng(100 + seed).uniform(0.1, 0.9, n).round(6)
    return pd.DataFrame(
        {"no": 1 - yes, "yes": yes, "label": table["y"], "town": table["town"]}
    ).round(6)


AUDIT = (
    "audit --members a.csv --nonmembers b.csv --label y --recipe logistic --attacks loss --out out"
)

PREDICTED = (
    "audit --member-predictions p.csv --nonmember-predictions q.csv --groups town --attacks loss "
    "--out out"
)

A, B = people(60, 0), people(60, 1)
P, Q = predictions(60, 0), predictions(60, 1)


def text(table: pd.DataFrame) -> str:
    return str(table.to_csv(index=False))


GOOD: Files = {"a.csv": text(A), "b.csv": text(B), "p.csv": text(P), "q.csv": text(Q)}


def with_cell(table: pd.DataFrame, row: int, column: str, value: object) -> pd.DataFrame:
    """The table with one other value, whatever the type of the column."""
    column_values = table[column].astype(object)
    column_values[row] = value
    return table.assign(**{column: column_values})


def make(files: Files, folder: Path) -> None:
    """Write the files of a case."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir()
        elif isinstance(content, pd.DataFrame):
            content.to_csv(path, index=False)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, "utf-8")
        else:
            content(path)


def snapshot(folder: Path) -> dict[str, str]:
    """Everything below a folder, with what the files hold."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        )
        for path in folder.rglob("*")
        if "__pycache__" not in path.parts
    }


def check_sentence(sentence: str, told: tuple[str, ...]) -> None:
    """One sentence that names the culprit, reads well, and is neither a crash nor a book."""
    assert sentence, "nothing was said"
    assert "\n" not in sentence
    assert len(sentence) <= LONGEST, f"{len(sentence)} characters: {sentence}"
    # Punctuation that dangles, or that met other punctuation where two texts were joined.
    assert not re.search(r"[\s,;:(\-–]$|[.,;:];|\.\)|  |\.\.$", sentence), sentence
    # What nobody foresaw is told with a type and this advice.
    assert "Traceback" not in sentence
    assert "run again with --debug" not in sentence
    for part in told:
        assert part in sentence, f"{part!r} is not in: {sentence}"


def check_refusal(code: int, stdout: str, stderr: str, told: tuple[str, ...]) -> None:
    """Exit code 2, nothing on stdout, and on stderr one sentence after what was told before it."""
    assert code == 2, stdout + stderr
    assert stdout == ""
    *before, error = stderr.splitlines()
    assert error.startswith("Error: "), stderr
    # Before it, steps are told, and what the library makes of the columns.
    assert not re.search('Error|Traceback|File "', "\n".join(before)), stderr
    sentence = error.removeprefix("Error: ")
    assert re.match("[A-Z'\"-]", sentence), sentence
    check_sentence(sentence, told)
