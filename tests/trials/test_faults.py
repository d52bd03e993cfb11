"""What a run survives: kill -9, a dead worker, a full disk, Ctrl-C; it ends in the same bytes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import wait_until

pytestmark = pytest.mark.slow

MODELS = 64
Start = Callable[..., Any]
BytesOf = Callable[[Path], dict[str, str]]
Unsound = Callable[[Path], list[str]]


def finished(folder: Path) -> int:
    """How many models were trained and observed."""
    return sum(".npy" in done.read_text() for done in folder.glob("*/done.json"))


def wait_for_models(folder: Path, number: int) -> None:
    wait_until(lambda: finished(folder) >= number)


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str], bytes_of: BytesOf
) -> Callable[..., dict[str, str]]:
    """The files of a run that nothing happened to, with these settings of the recipe."""
    known: dict[tuple[str, ...], dict[str, str]] = {}

    def run(*words: str) -> dict[str, str]:
        if words not in known:
            folder = tmp_path_factory.mktemp("undisturbed")
            script = Path(__file__).with_name("runs.py")
            command = [sys.executable, script, folder, "workers=1", *words]
            subprocess.run(command, env=environment, check=True)
            known[words] = bytes_of(folder)
        return known[words]

    return run


def test_killed_at_twenty_moments(
    tmp_path: Path, start: Start, bytes_of: BytesOf, unsound: Unsound, undisturbed: Any
) -> None:
    # So slow that twenty runs which are soon killed do not finish all models.
    store, words = tmp_path / "store", ("seconds=0.2",)
    rng = np.random.default_rng(7)
    before, in_the_middle = None, 0
    for kill in range(20):
        already = finished(store)
        command = start(store, "workers=2", *words)
        # The workers of a leader that was killed alone go on while the next run begins.
        time.sleep(0.2)
        if before is not None:
            before.clean()
        # While it starts, or somewhere in its first few models.
        more = int(rng.integers(0, 3))
        wait_for_models(store, min(already + more, MODELS))
        time.sleep(float(rng.uniform(0, 0.2 if more else 2.0)))
        in_the_middle += command.process.poll() is None and already < finished(store) < MODELS
        if command.process.poll() is None:
            command.signal(signal.SIGKILL, group=kill % 2 == 0)
        command.process.wait()
        assert unsound(store) == []
        before = command
    assert in_the_middle >= 12
    assert start(store, "workers=2", *words).end() == (0, "")
    assert bytes_of(store) == undisturbed(*words)


def test_a_dask_worker_killed_in_the_middle(
    tmp_path: Path, start: Start, cluster: Any, bytes_of: BytesOf, undisturbed: Any
) -> None:
    store, words = tmp_path / "store", ("seconds=0.2",)
    victim = cluster.add_worker()
    cluster.wait_for(3)
    command = start(store, "backend=dask", f"address={cluster.address}", *words)
    wait_for_models(store, 12)
    victim.kill()
    victim.wait()
    assert finished(store) < MODELS
    assert command.end() == (0, "")
    assert bytes_of(store) == undisturbed(*words)


def test_the_only_dask_worker_killed_and_another_goes_on(
    tmp_path: Path, start: Start, environment: dict[str, str], bytes_of: BytesOf, undisturbed: Any
) -> None:
    """With it goes the only copy of the records that a worker had."""
    pytest.importorskip("distributed")
    from conftest import Cluster

    # So slow that another worker has started before all models are finished.
    store, words = tmp_path / "store", ("seconds=0.2",)
    own = Cluster(tmp_path, environment)
    try:
        victim = own.add_worker()
        own.wait_for(1)
        command = start(store, "backend=dask", f"address={own.address}", *words)
        wait_for_models(store, 5)
        own.add_worker()
        own.wait_for(2)
        assert finished(store) < MODELS
        victim.kill()
        code, said = command.end()
        assert code == 0, said
        assert bytes_of(store) == undisturbed(*words)
    finally:
        own.end()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own with room for some of the models."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=2m", "leakscope", str(disk)]
    done = subprocess.run(mounted, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="a tmpfs is mounted")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk(
    small_disk: Path,
    workers: int,
    start: Start,
    bytes_of: BytesOf,
    unsound: Unsound,
    undisturbed: Any,
) -> None:
    store, words = small_disk / "store", (f"workers={workers}",)
    ballast = small_disk / "ballast"
    # Room for some of the models and not for all of them: 64 take about 1 MB.
    ballast.write_bytes(bytes(1_500_000))
    code, said = start(store, *words).end()
    assert code == 2
    assert said.startswith(f"StoreError: The disk of {str(store)!r} is full (No space left on")
    assert said.count("\n") == 1
    kept = finished(store)
    assert 0 < kept < MODELS
    assert unsound(store) == []
    assert not list(store.rglob("*.tmp"))
    # Still full: the same sentence, and nothing is lost.
    assert start(store, *words).end() == (code, said)
    assert finished(store) >= kept
    ballast.unlink()
    assert start(store, *words).end() == (0, "")
    assert bytes_of(store) == undisturbed()


@pytest.mark.skipif(sys.platform != "linux", reason="a tmpfs is mounted")
@pytest.mark.parametrize("variable", ["TMPDIR", "JOBLIB_TEMP_FOLDER"])
def test_a_full_folder_for_temporary_files(
    small_disk: Path, variable: str, environment: dict[str, str]
) -> None:
    """It is no problem of pickling: the message names the folder, and what to do."""
    (small_disk / "ballast").write_bytes(bytes(1_900_000))
    script = (
        "import sys; from toys import Toy, draw_records\n"
        "from leakscope.errors import LeakscopeError\n"
        "from leakscope.trials import random_halves, run_trials\n"
        "try:\n"
        "    run_trials(Toy(), draw_records(60_000), random_halves(60_000, 4, 0), ['loss'], "
        f"workers=2, store={None if variable == 'TMPDIR' else 'store'!r})\n"
        "except LeakscopeError as error:\n"
        "    sys.exit(f'{type(error).__name__}: {error}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment | {variable: str(small_disk)},
        cwd=small_disk.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stderr.strip().splitlines()[-1]
    assert said.startswith(
        f"StoreError: The folder for temporary files {str(small_disk)!r} is full (No space left on"
    )
    assert variable in said
    assert [one.name for one in small_disk.iterdir()] == ["ballast"]


def test_no_room_for_a_file_of_this_size(
    tmp_path: Path,
    environment: dict[str, str],
    bytes_of: BytesOf,
    unsound: Unsound,
    undisturbed: Any,
    start: Start,
) -> None:
    store = tmp_path / "store"
    script = str(Path(__file__).with_name("runs.py"))
    # The manifest of 64 models, about 10 kB, does not fit; that of 8 does, but no observations.
    limited = (
        "import resource, runpy, sys;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY));"
        f"sys.argv = [{script!r}, {str(store)!r}, 'models=8', 'workers=1'];"
        f"runpy.run_path({script!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("StoreError: The disk of ")
    assert "is full (File too large); make room and run the same again" in done.stderr
    assert unsound(store) == []
    assert not list(store.rglob("*.tmp"))
    assert start(store, "models=8", "workers=1").end() == (0, "")
    assert bytes_of(store) == undisturbed("models=8")


# A terminal tells every process of its group; kill tells the leading one alone. One worker is the
# leading process, and those of a cluster that was there before are in no group of ours.
@pytest.mark.parametrize(
    ("where", "group"),
    [
        ("one", True),
        ("two", True),
        ("two", False),
        ("starting", True),
        ("dask", True),
        ("dask", False),
        ("cluster", True),
    ],
)
def test_interrupted(
    tmp_path: Path,
    where: str,
    group: bool,
    start: Start,
    request: pytest.FixtureRequest,
    bytes_of: BytesOf,
    unsound: Unsound,
    undisturbed: Any,
) -> None:
    options = {
        "one": ["workers=1"],
        "two": ["workers=2"],
        "starting": ["workers=2"],
        "dask": ["workers=2", "backend=dask"],
        "cluster": ["backend=dask"],
    }[where]
    if where == "cluster":
        options.append(f"address={request.getfixturevalue('cluster').address}")
    store, words = tmp_path / "store", ("seconds=0.1", "models=32")
    command = start(store, *options, *words)
    if where == "starting":
        wait_until((store / "manifest.json").exists)
        time.sleep(0.3)  # the workers are importing what they need
    else:
        wait_for_models(store, 5)
    begun = time.monotonic()
    command.signal(signal.SIGINT, group=group)
    code, said = command.end()
    assert time.monotonic() - begun < 2
    assert code == 130
    told = re.fullmatch(
        r"Stopped: (\d+) of 32 models were finished and are kept in (.+); run the same again to go "
        r"on from there\n",
        said,
    )
    assert told is not None, said
    assert told[2] == repr(str(store))
    # The workers of a cluster go on until they hear of it.
    assert (
        int(told[1]) <= finished(store) if where == "cluster" else int(told[1]) == finished(store)
    )
    assert unsound(store) == []
    assert start(store, "workers=1", *words).end() == (0, "")
    assert bytes_of(store) == undisturbed(*words)
