from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import leakscope
from leakscope.cli import interrupts
from leakscope.cli.interrupts import stopping_soon
from leakscope.trials import model_seeds

TOYS = Path(__file__).resolve().parents[1] / "trials"


def test_without_an_interrupt_nothing_happens() -> None:
    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)
    threads = threading.active_count()
    with stopping_soon(pytest.fail):
        assert threading.active_count() == threads + 1
    assert threading.active_count() == threads
    assert signal.set_wakeup_fd(before) == before


def test_an_interrupt_that_is_heard_in_time_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "PATIENCE", 0.05)
    monkeypatch.setattr(os, "_exit", lambda _: pytest.fail("it was not needed"))
    with pytest.raises(KeyboardInterrupt), stopping_soon(pytest.fail):
        signal.raise_signal(signal.SIGINT)
    time.sleep(0.1)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_other_endings_are_interrupts_too(
    monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt), stopping_soon(pytest.fail) as stop:
            signal.raise_signal(number)
        assert stop.exit_code == code
        assert stop.sentence == f"Stopped by {signal.Signals(number).name}."
        assert signal.getsignal(number) is signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)  # as nohup has it
        with stopping_soon(pytest.fail):
            signal.raise_signal(number)
            assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_one_that_is_not_heard_ends_the_process(
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
    number: int,
    code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ended, said = threading.Event(), list[Any]()

    def leave(code: int) -> None:
        said.append(code)
        ended.set()

    monkeypatch.setattr(interrupts, "PATIENCE", 0.05)
    monkeypatch.setattr(os, "_exit", leave)
    for cleaning in ("_end_children", "remove_folders"):
        monkeypatch.setattr(interrupts, cleaning, lambda: None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    before = signal.signal(number, lambda *_: None)  # as deaf as one long call
    try:
        with stopping_soon(said.append):
            signal.raise_signal(number)
            assert ended.wait(5)
    finally:
        signal.signal(number, before)
    assert said == ["Stopped in the middle of a step; what was finished before is kept.", code]
    assert capsys.readouterr().err == ("\x1b[?25h" if terminal else "")


def test_other_signals_are_nobodys_business(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "PATIENCE", 0.01)
    monkeypatch.setattr(os, "_exit", lambda _: pytest.fail("it was another signal"))
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with stopping_soon(pytest.fail):
            signal.raise_signal(signal.SIGUSR1)
            time.sleep(0.1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_who_listened_before_listens_again() -> None:
    hears, tells = socket.socketpair()
    tells.setblocking(False)
    before = signal.set_wakeup_fd(tells.fileno())
    try:
        with stopping_soon(pytest.fail):
            pass
        assert signal.set_wakeup_fd(tells.fileno()) == tells.fileno()
    finally:
        signal.set_wakeup_fd(before)
        hears.close()
        tells.close()


def test_another_thread_is_not_told_of_signals() -> None:
    ran: list[int] = []

    def run() -> None:
        with stopping_soon(pytest.fail):
            ran.append(threading.active_count())

    thread = threading.Thread(target=run)
    before = threading.active_count()
    thread.start()
    thread.join()
    assert ran == [before + 1]


AUDIT = """
import sys
from leakscope.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def auditing(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start an audit with 64 shadow models; further words are further options."""
    begun: list[subprocess.Popen[str]] = []
    path = os.pathsep.join([str(Path(leakscope.__file__).resolve().parents[1]), str(TOYS)])

    def start(*words: str) -> subprocess.Popen[str]:
        options = ["audit", "--dataset", "digits", "--records", "300", "--shadows", "64"]
        begun.append(
            subprocess.Popen(
                [sys.executable, "-c", AUDIT, *options, "--out", "out", *words],
                cwd=tmp_path,
                env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
                start_new_session=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return begun[-1]

    yield start
    for process in begun:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def interrupt(process: subprocess.Popen[str]) -> str:
    """What it says when Ctrl-C is pressed, and that it ends within two seconds."""
    begun = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    process.wait(timeout=30)
    assert time.monotonic() - begun < 2
    assert process.returncode == 130
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    said = process.communicate()[1]
    assert "Traceback" not in said
    return said.strip().splitlines()[-1]


def wait_for_models(folder: Path, number: int) -> None:
    last = time.monotonic() + 90
    while len(list(folder.rglob("done.json"))) < number:
        assert time.monotonic() < last, "they are not finished"
        time.sleep(0.01)


RESUME = (
    r"Stopped: \d+ of 64 models were finished and are kept in '.+'; run the same again to go on "
    r"from there"
)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_audit_says_how_to_go_on(tmp_path: Path, auditing: Any, workers: str) -> None:
    process = auditing("--recipe", "tree", "--workers", workers)
    wait_for_models(tmp_path, 3)
    assert re.fullmatch(RESUME, interrupt(process))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the call never returns on Linux")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_one_long_call_of_a_library(tmp_path: Path, auditing: Any, workers: str) -> None:
    (tmp_path / "forbidden").write_text(f"{model_seeds(0, 64)[3]} hang")
    (tmp_path / "hanging.py").write_text(
        "from pathlib import Path\n"
        "from toys import Toy\n"
        f"recipe = Toy(forbidden=Path({str(tmp_path / 'forbidden')!r}))\n"
    )
    process = auditing("--recipe", "hanging:recipe", "--workers", workers)
    wait_for_models(tmp_path, 3)
    while not (tmp_path / "gone-wrong").exists():
        time.sleep(0.02)
    said = interrupt(process)
    if workers == "1":
        assert said == "Stopped in the middle of a step; what was finished before is kept."
    else:
        assert re.fullmatch(RESUME, said)
