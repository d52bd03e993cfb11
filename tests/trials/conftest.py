from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import leakscope

HERE = Path(__file__).resolve().parent
# The recipes of toys.py are imported by name, here and in every worker.
sys.path.insert(0, str(HERE))

Bytes = dict[str, str]


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """The environment of a process that can import leakscope and the toys."""
    path = os.pathsep.join([str(Path(leakscope.__file__).resolve().parents[1]), str(HERE)])
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def bytes_of() -> Callable[[Path], Bytes]:
    """The checksum of every file below a folder."""

    def read(folder: Path) -> Bytes:
        return {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    return read


@pytest.fixture
def unsound() -> Callable[[Path], list[str]]:
    """The files that a store lists and that are not what was written."""

    def find(folder: Path) -> list[str]:
        return [
            f"{done.parent.name}/{name}"
            for done in folder.glob("*/done.json")
            for name, digest in json.loads(done.read_bytes())["files"].items()
            if hashlib.sha256((done.parent / name).read_bytes()).hexdigest() != digest
        ]

    return find


class Command:
    """runs.py in a process group of its own, as a terminal starts a command."""

    def __init__(self, environment: dict[str, str], *words: object) -> None:
        self.said, self.cleaned = "", False
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "runs.py"), *map(str, words)],
            env=environment,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def signal(self, number: int, *, group: bool) -> None:
        """To the leading process alone, or to all of them."""
        (os.killpg if group else os.kill)(self.process.pid, number)

    def end(self, timeout: float = 60) -> tuple[int, str]:
        """Its exit code and what it said on stderr."""
        self.process.wait(timeout)
        self.clean()
        return self.process.returncode, self.said

    def clean(self) -> None:
        """Leave no process of the group behind."""
        if not self.cleaned:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.said = "".join(self.process.communicate())
            self.cleaned = True


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Callable[..., Command]]:
    """Start runs.py with these words."""
    started: list[Command] = []

    def begin(*words: object) -> Command:
        started.append(Command(environment, *words))
        return started[-1]

    yield begin
    for command in started:
        command.clean()


def wait_until(true: Callable[[], object], seconds: float = 60) -> None:
    """Until this is so; it is looked at often."""
    last = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < last, "it has not come to pass"
        time.sleep(0.01)


class Cluster:
    """A Dask scheduler and workers, each a process, started as a user does."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._environment = environment
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        file = folder / "scheduler.json"
        self._start("scheduler", "--port", "0", "--scheduler-file", str(file))
        wait_until(lambda: file.exists() and file.stat().st_size)
        self.address = str(json.loads(file.read_text())["address"])

    def add_worker(self) -> subprocess.Popen[bytes]:
        return self._start("worker", self.address, "--no-nanny", "--nthreads", "1")

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1", "--no-dashboard"],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._processes.append(process)
        return process

    def wait_for(self, workers: int) -> None:
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            wait_until(lambda: len(client.ncores()) == workers)

    def end(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> Iterator[Cluster]:
    """A real cluster of two workers on this machine."""
    pytest.importorskip("distributed", reason="the extra leakscope[dask] is not installed")
    started = Cluster(tmp_path_factory.mktemp("cluster"), environment)
    try:
        for _ in range(2):
            started.add_worker()
        started.wait_for(2)
        yield started
    finally:
        started.end()
