from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from joblib import delayed
from joblib.externals.loky import get_reusable_executor
from toys import Together, Toy, draw_records

from leakscope.channels.outputs import Loss, Margin, Probabilities
from leakscope.errors import InputError, MissingExtraError, ModelError, UnknownNameError
from leakscope.recipes.sklearn import tree
from leakscope.trials import backends, model_seeds, random_halves, run_trials
from leakscope.trials.backends import open_pool
from leakscope.trials.store import DONE

RECORDS = draw_records(60)
KEPT: list[Any] = []  # by workers
ROLES = random_halves(60, 6, 0)
BytesOf = Callable[[Path], dict[str, str]]


def opened(folder: Path, backend: str = "local", **options: Any) -> Any:
    given = {"workers": None, "address": None, "shared": [], **options}
    where = backend, given.pop("workers"), given.pop("address")
    return open_pool(where, folder=folder, **given)


def run(store: Path, recipe: Any, **options: Any) -> Any:
    channels = [Margin(), Loss(), Probabilities()]
    return run_trials(recipe, RECORDS, ROLES, channels, store=store, **options)


@pytest.fixture
def free_address() -> str:
    """An address at which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{listener.getsockname()[1]}"


def test_a_backend_that_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError) as caught:
        opened(tmp_path, "dusk")
    assert str(caught.value) == "There is no backend named 'dusk'; did you mean 'dask'?"


@pytest.mark.parametrize("backend", ["local", "dask", "ray"])
def test_too_few_workers(tmp_path: Path, backend: str) -> None:
    with pytest.raises(InputError, match="There are 0 workers; give 1 or more"):
        opened(tmp_path, backend, workers=0)


def test_an_address_is_of_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="The address 'tcp://x' is of a cluster; say which with"):
        opened(tmp_path, address="tcp://x")


@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_extra_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError) as caught, opened(tmp_path, backend):
        pytest.fail("a pool without its package")
    assert str(caught.value) == (
        f"The backend {backend} needs an optional package; pip install 'leakscope[{backend}]'"
    )


# This machine


def test_as_many_workers_as_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "cpu_count", lambda: 1)
    with opened(tmp_path) as (pool, width):
        assert width == 1
        assert pool(delayed(os.getpid)() for _ in range(2)) == [os.getpid()] * 2


def mask_of_worker(_: int) -> set[int]:
    return {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])}


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="a system without masks")
def test_workers_do_not_hear_an_interrupt_and_this_process_does(tmp_path: Path) -> None:
    with opened(tmp_path, workers=2) as (pool, width):
        assert width == 2
        assert all(signal.SIGINT in mask for mask in pool(map(delayed(mask_of_worker), range(4))))
    assert signal.SIGINT not in mask_of_worker(0)


def test_where_nothing_can_be_masked_workers_start_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(signal, "pthread_sigmask", raising=False)
    assert backends._deaf_to_interrupts(lambda: 3) == 3


def test_an_error_while_workers_start_is_told() -> None:
    with pytest.raises(ZeroDivisionError):
        backends._deaf_to_interrupts(lambda: 1 // 0)


@pytest.mark.slow
def test_nobody_tells_of_what_an_interrupted_process_left_behind() -> None:
    code = (
        "from multiprocessing import resource_tracker; from leakscope.trials import backends; "
        "backends._start_trackers(); resource_tracker.register('/left-behind', 'semaphore')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""


def grown(_: int) -> int:
    KEPT.append(np.ones(50_000_000))  # 400 MB, more than loky allows a worker to grow
    time.sleep(1.1)  # so often it looks
    return os.getpid()


@pytest.mark.slow
def test_workers_may_grow(tmp_path: Path) -> None:
    with opened(tmp_path, workers=2) as (pool, _):
        workers = pool(delayed(grown)(task) for task in range(4))
        get_reusable_executor(reuse=True).shutdown(kill_workers=True)  # gives back what it took
    assert len(set(workers)) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_ends_the_workers(tmp_path: Path, workers: int) -> None:
    started: set[int] = set()

    def begin_and_stop() -> None:
        with opened(tmp_path, workers=workers) as (pool, _):
            started.update(pool(delayed(os.getpid)() for _ in range(4)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin_and_stop()
    gone = [_is_gone(worker) for worker in started - {os.getpid()}]
    assert all(gone)
    assert bool(gone) == (workers > 1)


def _is_gone(process: int) -> bool:
    for _ in range(1000):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        threading.Event().wait(0.01)
    return False


# Dask


def test_no_scheduler_at_the_address(
    tmp_path: Path, free_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(backends, "CONNECTING", 0.2)
    with pytest.raises(InputError) as caught, opened(tmp_path, "dask", address=free_address):
        pytest.fail("a pool without a cluster")
    assert str(caught.value).startswith(f"There is no Dask scheduler at {free_address!r} (")
    assert str(caught.value).endswith("and give its address, such as tcp://127.0.0.1:8786")


def test_what_is_no_address(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with (
        pytest.raises(InputError, match="There is no Dask scheduler at 'nonsense://x:1'"),
        opened(tmp_path, "dask", address="nonsense://x:1"),
    ):
        pytest.fail("a pool without a cluster")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.1:8786", "tcp://somewhere"])
def test_an_address_without_a_port_or_a_protocol(tmp_path: Path, address: str) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match=r"give one such as tcp://127\.0\.0\.1:8786"):
        opened(tmp_path, "dask", address=address)


def test_a_cluster_has_the_workers_it_has(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with (
        pytest.raises(InputError, match="has the workers it has; leave out workers=3"),
        opened(tmp_path, "dask", address="tcp://127.0.0.1:1", workers=3),
    ):
        pytest.fail("a pool")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [tree(), Together()], ids=["tree", "together"])
def test_a_cluster_writes_the_same_bytes(
    tmp_path: Path, cluster: Any, recipe: Any, bytes_of: BytesOf
) -> None:
    told: list[str] = []
    run(tmp_path / "one", recipe, workers=1)
    run(
        tmp_path / "cluster",
        recipe,
        backend="dask",
        address=cluster.address,
        progress=lambda step, *_: told.append(step),
    )
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "cluster")
    assert told[0] == "training 6 models with 2 workers"


@pytest.mark.slow
def test_a_cluster_of_this_machine_is_started_and_ended(tmp_path: Path, bytes_of: BytesOf) -> None:
    pytest.importorskip("distributed")
    run(tmp_path / "one", Toy(), workers=1)
    run(tmp_path / "dask", Toy(), workers=1, backend="dask")
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "dask")


@pytest.mark.slow
def test_a_recipe_that_raises_on_a_cluster(tmp_path: Path, cluster: Any, bytes_of: BytesOf) -> None:
    store, recipe = tmp_path / "store", Toy(forbidden=tmp_path / "forbidden")
    seed = model_seeds(0, 6)[4]
    (tmp_path / "forbidden").write_text(f"{seed} raise")
    where = {"backend": "dask", "address": cluster.address}
    with pytest.raises(ModelError) as caught:
        run(store, recipe, **where)
    told = f"Model 4 of 6 (counting from 0, seed {seed}) could not be trained: the matrix is sing"
    # Other workers may finish one more before they hear of it.
    assert str(caught.value).startswith(told)
    assert str(caught.value).endswith(f" of 6 models were finished and are kept in {str(store)!r}")
    assert len(list(store.glob(f"*/{DONE}"))) >= 2
    (tmp_path / "forbidden").unlink()
    run(store, recipe, **where)
    run(tmp_path / "undisturbed", recipe, workers=1)
    assert bytes_of(store) == bytes_of(tmp_path / "undisturbed")


@pytest.mark.slow
def test_a_worker_that_does_not_see_the_folder(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        pytest.raises(InputError, match=r"The worker tcp://\S+ does not see the folder '.+gone', "),
        opened(tmp_path / "gone", "dask", address=cluster.address),
    ):
        pytest.fail("a pool that would write nowhere")


@pytest.mark.slow
def test_a_cluster_without_workers(tmp_path: Path, environment: dict[str, str]) -> None:
    pytest.importorskip("distributed")
    from conftest import Cluster

    empty = Cluster(tmp_path, environment)
    try:
        with (
            pytest.raises(InputError, match=r"has no worker; start some with `dask worker tcp://"),
            opened(tmp_path, "dask", address=empty.address),
        ):
            pytest.fail("a pool without workers")
    finally:
        empty.end()


@pytest.mark.slow
def test_one_dask_worker_works_and_not_this_process(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    pytest.importorskip("distributed")
    from conftest import Cluster

    lonely = Cluster(tmp_path, environment)
    try:
        worker = lonely.add_worker()
        lonely.wait_for(1)
        shared = {"large": "argument"}
        with opened(tmp_path, "dask", address=lonely.address, shared=[shared]) as (pool, width):
            assert width == 1
            assert pool(delayed(os.getpid)() for _ in range(2)) == [worker.pid] * 2
            assert pool([delayed(sorted)(shared)]) == [["large"]]
    finally:
        lonely.end()


class FakeClient:
    """A cluster of one worker, seen from here, that never says goodbye."""

    waited: ClassVar[list[float]] = []

    def __init__(self, *_: object, **__: object) -> None:
        self.waited.clear()

    def ncores(self) -> dict[str, int]:
        return {"tcp://worker": 1}

    def run(self, call: Any, folder: Path) -> dict[str, bool]:
        return {"tcp://worker": call(folder)}

    def close(self, timeout: float) -> None:
        self.waited.append(timeout)
        raise TimeoutError


@pytest.fixture
def fake_dask(monkeypatch: pytest.MonkeyPatch) -> Any:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "Client", FakeClient)
    monkeypatch.setattr(backends, "parallel_config", lambda *_, **__: _nothing())
    monkeypatch.setattr(backends, "Parallel", _nothing)
    return distributed


def test_a_worker_that_died_again_and_again(tmp_path: Path, fake_dask: Any) -> None:
    with (
        pytest.raises(backends.LostWorkersError),
        opened(tmp_path, "dask", address="tcp://x:1"),
    ):
        raise fake_dask.KilledWorker("task", None, 3)
    assert FakeClient.waited == [backends.AT_ONCE]


def test_after_an_interrupt_dask_is_silent_and_its_processes_are_ended(
    tmp_path: Path, fake_dask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("tornado.application")
    monkeypatch.setattr(log, "level", logging.WARNING)
    others = [logging.getLogger(name) for name in ("asyncio", "distributed", "distributed.batched")]
    for other in others:
        monkeypatch.setattr(other, "level", logging.INFO)
    with opened(tmp_path, "dask", address="tcp://x:1") as (_, width):
        assert (width, log.level) == (1, logging.ERROR)
    assert log.level == logging.WARNING
    assert FakeClient.waited == [backends.CLOSING]
    children = multiprocessing.get_context("spawn")
    older, younger = (children.Process(target=time.sleep, args=(60,)) for _ in range(2))
    older.start()

    def begin_and_stop() -> None:
        with opened(tmp_path, "dask", address="tcp://x:1"):
            younger.start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin_and_stop()
    younger.join(10)
    assert younger.exitcode == -signal.SIGKILL
    assert older.is_alive()
    older.kill()
    older.join()
    assert {one.level for one in (log, *others)} == {logging.CRITICAL}
    assert FakeClient.waited == [backends.AT_ONCE]


class _nothing:  # noqa: N801
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


# Ray


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what Ray does in its own process is not ours to judge
def test_ray_writes_the_same_bytes_and_tells_the_same(
    tmp_path: Path,
    bytes_of: BytesOf,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("ray", reason="the extra leakscope[ray] is not installed")
    monkeypatch.setenv("PYTHONPATH", environment["PYTHONPATH"])
    recipe = Toy(forbidden=tmp_path / "forbidden")
    seed = model_seeds(0, 6)[4]
    run(tmp_path / "one", recipe, workers=1)
    run(tmp_path / "ray", recipe, workers=2, backend="ray")
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "ray")
    (tmp_path / "forbidden").write_text(f"{seed} raise")
    with pytest.raises(
        ModelError, match=rf"^Model 4 of 6 .*seed {seed}.*: the matrix is singular;"
    ):
        run(tmp_path / "raising", recipe, workers=2, backend="ray")


class FakeRay:
    """What is asked of Ray."""

    def __init__(self, error: Exception | None = None, *, running: bool = False) -> None:
        self.error, self.running, self.did = error, running, list[Any]()

    def is_initialized(self) -> bool:
        return self.running

    def init(self, **options: Any) -> None:
        self.did.append(options)
        if self.error is not None:
            raise self.error

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def shutdown(self) -> None:
        self.did.append("shutdown")


def fake_ray(monkeypatch: pytest.MonkeyPatch, ray: FakeRay) -> None:
    for name in ("ray", "ray.util", "ray.util.joblib"):
        monkeypatch.setitem(sys.modules, name, ray)
    ray.register_ray = lambda: None  # type: ignore[attr-defined]
    monkeypatch.setattr(backends, "parallel_config", lambda *_, **__: _nothing())
    monkeypatch.setattr(backends, "Parallel", _nothing)


@pytest.mark.parametrize("error", [ConnectionError("no"), ValueError("no")])
def test_no_ray_cluster_at_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    fake_ray(monkeypatch, FakeRay(error))
    said = rf"There is no Ray cluster at '127.0.0.1:1' \({type(error).__name__}\); start one with"
    with (
        pytest.raises(InputError, match=said),
        opened(tmp_path, "ray", address="127.0.0.1:1"),
    ):
        pytest.fail("a pool without a cluster")


def test_an_error_of_ray_itself_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = FakeRay()
    fake_ray(monkeypatch, ray)
    with pytest.raises(ZeroDivisionError), opened(tmp_path, "ray"):
        raise ZeroDivisionError
    assert ray.did[-1] == "shutdown"


def test_ray_is_started_and_ended_where_it_was_not_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = FakeRay()
    fake_ray(monkeypatch, ray)
    with opened(tmp_path, "ray", workers=2) as (_, width):
        assert width == 2
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    assert ray.did == [{**quiet, "num_cpus": 2}, "shutdown"]
    running = FakeRay(running=True)
    fake_ray(monkeypatch, running)
    with opened(tmp_path, "ray") as (_, width):
        assert width == 3
    assert running.did == []


def test_a_thread_of_dask_that_begins_late_gets_another_chance() -> None:
    tried: list[int] = []

    def late() -> int:
        tried.append(0)
        assert len(tried) > 2
        return 5

    assert backends._patiently(late, AssertionError) == 5
    tried.clear()
    with pytest.raises(AssertionError):
        backends._patiently(late, AssertionError, times=2)
