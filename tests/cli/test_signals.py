"""Real audits with workers that get a signal: message, exit code, and nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import leakscope
from leakscope.trials import model_seeds

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc and /dev/shm"),
]

TOYS = Path(__file__).resolve().parents[1] / "trials"
# Whoever starts the tests in the background, or with nohup, has its children ignore signals.
AUDIT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[1] == "nohup" else signal.SIG_DFL)
from leakscope.cli import main
sys.exit(main(sys.argv[2:]))
"""
LONG = 90.0  # seconds for what comes at once on an idle machine
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def wait_until(true: Callable[[], object], what: str) -> None:
    last = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < last, what
        time.sleep(0.02)


class Audit:
    """An audit with 64 shadow models and two workers, in a session and a TMPDIR of its own."""

    def __init__(self, folder: Path, *words: str, start: str = "plainly") -> None:
        self.folder, self.tmp = folder, folder / "tmp"
        self.tmp.mkdir(exist_ok=True)
        (folder / "slow.py").write_text(
            "from pathlib import Path\nfrom toys import Toy\n"
            f"recipe = Toy(seconds=0.2, journal=Path({str(folder / 'journal')!r}), "
            f"forbidden=Path({str(folder / 'forbidden')!r}))\n"
        )
        source = str(Path(leakscope.__file__).resolve().parents[1])
        path = os.pathsep.join([source, str(TOYS), str(folder)])
        # More than a megabyte of features goes to the workers through shared memory.
        data = [
            "--dataset",
            "synthetic",
            "--dataset-options",
            "n=3000,features=50",
            "--records",
            "3000",
        ]
        shadows = ["--recipe", "slow:recipe", "--shadows", "64", "--workers", "2"]
        self.process: Any = subprocess.Popen(
            [sys.executable, "-c", AUDIT, start, "audit", *data, *shadows, "--out", "out", *words],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "TMPDIR": str(self.tmp)},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for_models(self, number: int) -> None:
        """Until so many models have been trained by the workers, and more."""
        journal = self.folder / "journal"

        def trained() -> bool:
            assert self.process.poll() is None, self.process.communicate()[1]
            return journal.exists() and journal.read_text().count("\n") > number

        wait_until(trained, "no model is trained")

    def processes(self) -> list[int]:
        """All processes of its session that have not ended."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
                if int(session) == self.process.pid and state != "Z":
                    found.append(int(stat.parent.name))
        return found

    def shared(self) -> list[str]:
        """What it has in shared memory."""
        own = re.compile(rf".*[-_]{self.process.pid}[-_].*")
        return [one.name for one in Path("/dev/shm").iterdir() if own.fullmatch(one.name)]

    def left(self) -> list[str]:
        """What it has in its folder for temporary files, and half-written results."""
        halves = [str(one) for one in (self.folder / "out").rglob("*.tmp")]
        return [one.name for one in self.tmp.iterdir()] + halves

    def end(self) -> str:
        """Wait for its end and that of its processes; the last line it said."""
        said = self.process.communicate(timeout=LONG)[1]
        wait_until(lambda: not self.processes(), f"{self.processes()} go on")
        assert "Traceback" not in said
        return said.strip().splitlines()[-1]


@pytest.fixture
def audit(tmp_path: Path) -> Iterator[Callable[..., Audit]]:
    begun: list[Audit] = []

    def start(*words: str, **options: Any) -> Audit:
        begun.append(Audit(tmp_path, *words, **options))
        return begun[-1]

    yield start
    for one in begun:
        for process in one.processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        one.process.wait()
        one.process.stderr.close()


@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize("group", [True, False])
def test_a_signal_ends_an_audit_and_its_workers(audit: Any, number: int, group: bool) -> None:
    one = audit()
    one.wait_for_models(3)
    assert len(one.processes()) >= 3
    assert one.shared() + one.left()
    (os.killpg if group else os.kill)(one.process.pid, number)
    assert re.fullmatch(
        r"Stopped: \d+ of 64 models were finished and are kept in '.+'; run the same again to go "
        r"on from there",
        one.end(),
    )
    assert one.process.returncode == CODES[signal.Signals(number)]
    assert one.shared() == []
    assert one.left() == []


@pytest.mark.parametrize("number", CODES)
def test_temporary_shadow_models_go_with_it(audit: Any, number: int) -> None:
    one = audit("--redact")
    one.wait_for_models(3)
    assert any(name.startswith("leakscope-trials-") for name in one.left())
    os.kill(one.process.pid, number)
    assert re.fullmatch(r"Stopped: \d+ of 64 models were finished, and none is kept", one.end())
    assert one.process.returncode == CODES[signal.Signals(number)]
    assert one.shared() == []
    assert one.left() == []


def test_workers_end_when_their_leader_is_killed_and_the_next_run_sweeps(audit: Any) -> None:
    one = audit("--redact")
    one.wait_for_models(3)
    one.process.kill()
    one.process.communicate()
    wait_until(lambda: not one.processes(), "workers or trackers go on without their leader")
    wait_until(lambda: not one.shared(), "shared memory is left")
    left = one.left()
    assert [name[:17] for name in left] == ["leakscope-trials-"]
    other = audit("--redact")
    (other.folder / "journal").unlink()
    other.wait_for_models(1)
    assert not {*left} & {*other.left()}
    assert len(other.left()) >= 1
    os.kill(other.process.pid, signal.SIGTERM)
    other.end()
    assert other.left() == []


def test_one_long_call_of_the_leading_process(audit: Any, tmp_path: Path) -> None:
    (tmp_path / "forbidden").write_text(f"{model_seeds(0, 64)[3]} hang")
    one = audit("--redact", "--workers", "1")
    wait_until((tmp_path / "gone-wrong").exists, "the fourth model does not hang")
    os.kill(one.process.pid, signal.SIGTERM)
    assert one.end() == "Stopped in the middle of a step; what was finished before is kept."
    assert one.process.returncode == 143
    assert one.left() == []


def test_a_signal_before_any_model_is_one_line(audit: Any) -> None:
    one = audit()
    # Once handlers are in place, the process says what it does.
    assert one.process.stderr.readline() == "reading the data set synthetic\n"
    os.kill(one.process.pid, signal.SIGTERM)
    said = one.process.stderr.read()
    assert "Traceback" not in said
    last = said.strip().splitlines()[-1]
    assert re.fullmatch(
        r"Stopped( by SIGTERM|: 0 of 64 models were finished .*|in the .*)\.?", last
    )
    assert one.process.wait(LONG) == 143


def test_nohup_goes_on(audit: Any) -> None:
    one = audit(start="nohup")
    one.wait_for_models(2)
    os.killpg(one.process.pid, signal.SIGHUP)
    before = (one.folder / "journal").read_text().count("\n")
    one.wait_for_models(before + 4)
    assert len(one.processes()) >= 3
    os.kill(one.process.pid, signal.SIGTERM)
    one.end()
    assert one.process.returncode == 143
