"""One run of user code in a process of its own: how long it takes, what memory, what it finds."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tempfile
import time
import tokenize
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from _peers.tasks import CODE, Entry

# One thread each, wherever a library looks for how many.
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in THREADS} | {"LOKY_MAX_CPU_COUNT": "1"}
SECONDS = 900  # after which a run is given up
COMPARED = "# what is compared"


@dataclass(frozen=True)
class Run:
    """Seconds of the whole process by the clock and of the processor, and those of its imports.

    megabytes: the most that it had. found: the arrays that it left behind.
    problem: why there is nothing of that, empty if there is.
    """

    seconds: float = 0.0
    processor: float = 0.0
    imports: float = 0.0
    megabytes: float = 0.0
    found: dict[str, np.ndarray] | None = None
    problem: str = ""


def run(entry: Entry, python: Path, given: Path) -> Run:
    """Run it once, in a folder of its own, with its own tool and the given data alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        work, log = folder / "work", folder / "log.txt"
        work.mkdir()
        kept = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")
        environment = {key: os.environ[key] for key in kept if key in os.environ}
        environment |= ONE_THREAD | {
            "PEERS_GIVEN": str(given),
            "PYTHONPATH": str(CODE),
            "MPLBACKEND": "Agg",
            "ART_DATA_PATH": str(folder),  # or it makes a folder at home
        }
        words = [str(python), str(CODE / "_run.py"), str(CODE / entry.code), str(folder)]
        with log.open("wb") as out:
            start = time.perf_counter()
            process = subprocess.Popen(words, cwd=work, env=environment, stdout=out, stderr=out)
            code, processor = _wait(process)
            seconds = time.perf_counter() - start
        if code != 0:
            lines = log.read_text("utf-8", "replace").strip().splitlines() or ["no message"]
            return Run(problem=f"ended with {code}: {lines[-1]}")
        told = json.loads((folder / "cost.json").read_text("utf-8"))
        with np.load(folder / "found.npz") as file:
            found = {name: file[name] for name in file.files}
    return Run(seconds, processor, told["imports"], told["megabytes"], found)


def _wait(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """The exit code, and the seconds of the processor."""
    limit = time.monotonic() + SECONDS
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > limit:
            process.kill()
            _, status, usage = os.wait4(process.pid, 0)
            break
        time.sleep(0.005)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def lines_of(entry: Entry) -> int:
    """How many lines its users write: those of its file, and of those that it asks for."""
    files = (entry.code, *entry.beside)
    return sum(count_lines((CODE / name).read_text("utf-8")) for name in files)


def count_lines(source: str) -> int:
    """Lines with code of their own.

    Not counted: comments, docstrings and empty lines, the reading of the given data, and what
    follows the mark from which on scores are taken out for this comparison.
    """
    source = source.partition(COMPARED)[0]
    skipped = {
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
        tokenize.ENDMARKER,
    }  # fmt: skip
    counted: set[int] = set()
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            statement.append(token)
        if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER) and statement:
            text = all(one.type == tokenize.STRING for one in statement)
            given = [one.string for one in statement[:2]] == ["from", "given"]
            if not text and not given:
                counted.update(n for one in statement for n in range(one.start[0], one.end[0] + 1))
            statement = []
    return len(counted)
