"""Where chunks are worked on: in processes of this machine, on a Dask cluster, or on a Ray one.

joblib runs them all alike. Each gives workers of one thread; on a cluster the folder of the store
must be one that its workers see too.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from importlib.util import find_spec
from multiprocessing import resource_tracker
from pathlib import Path
from pickle import PicklingError
from typing import Any, TypeVar

from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib._memmapping_reducer import _get_temp_dir
from joblib.externals.loky import get_reusable_executor, process_executor
from joblib.externals.loky.backend import resource_tracker as loky_tracker
from threadpoolctl import threadpool_limits

from leakscope.errors import InputError, MissingExtraError, StoreError, UnknownNameError
from leakscope.trials.store import FULL

T = TypeVar("T")

# Seconds to wait for a cluster to answer, and to end.
CONNECTING, CLOSING, AT_ONCE = 10.0, 10.0, 0.5

# Seconds between two looks of a worker at whether its leader is still there.
ORPHANED = 0.5


# Signals that end the leading process, and others through it alone. Dask ends its own with SIGTERM.
HANGUP = [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []
ENDING = [signal.SIGTERM, *HANGUP]


class LostWorkersError(Exception):
    """Workers were killed and took with them what the others needed; another pool may go on."""


# What runs calls and gives the list of their results; how many workers it has.
Pool = tuple[Callable[[Iterator[Any]], list[Any]], int]


# A backend, how many workers, and the address of a cluster.
Where = tuple[str, int | None, str | None]


def check_backend(backend: str, workers: int | None, address: str | None) -> None:
    """Refuse what cannot be opened, before anything is trained."""
    if backend not in BACKENDS:
        raise UnknownNameError("backend", backend, BACKENDS)
    if workers is not None and (isinstance(workers, bool) or workers < 1):
        raise InputError(f"There are {workers} workers; give 1 or more")
    if backend != "local" and not _is_installed(EXTRAS[backend]):
        raise MissingExtraError(f"The backend {backend}", backend)
    if address is None:
        return
    if backend == "local":
        raise InputError(
            f"The address {address!r} is of a cluster; say which with backend='dask' or 'ray'"
        )
    if workers is not None:
        raise InputError(
            f"A cluster at {address!r} has the workers it has; leave out workers={workers}"
        )
    if backend == "dask" and not re.fullmatch(r"\w+://.+:\d+", address):
        raise InputError(
            f"The address {address!r} is not that of a Dask scheduler; give one such as "
            "tcp://127.0.0.1:8786"
        )


def _is_installed(package: str) -> bool:
    """Whether it can be imported, which for Dask and Ray would take seconds to try."""
    if package in sys.modules:
        return bool(sys.modules[package])  # None forbids the import
    return find_spec(package) is not None


def open_pool(where: Where, *, shared: Sequence[Any], folder: Path) -> AbstractContextManager[Pool]:
    """Workers, until the context ends; shared: large arguments, which Dask sends only once."""
    check_backend(*where)
    backend, workers, address = where
    return BACKENDS[backend](workers, address, shared, folder)


@contextmanager
def processes(number: int, **options: Any) -> Iterator[Parallel]:
    """So many processes of this machine with one thread each; options: joblib's."""
    # One works in this process, whose thread pools are limited here.
    with (
        threadpool_limits(limits=1),
        parallel_config(
            "loky", inner_max_num_threads=1, initializer=_begin_worker, initargs=(os.getpid(),)
        ),
        Parallel(n_jobs=number, **options) as pool,
    ):
        yield pool


def _begin_worker(leader: int) -> None:
    """End this worker soon after the process that leads it, even where that was killed.

    And let loky not take growth of this worker by 300 MB for a leak, and end it with a warning. To
    import torch already takes that, and where warnings are errors loky then waits for ever.
    Without psutil it does not look.
    """
    process_executor._USE_PSUTIL = False

    def watch() -> None:
        while os.getppid() == leader:
            time.sleep(ORPHANED)
        # Its files are whole at any moment. The trackers end with the last worker, and clean up.
        os._exit(1)

    # Windows knows the number of a parent that is gone: there a worker ends when it is idle.
    if sys.platform != "win32":
        threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _local(
    workers: int | None, address: str | None, shared: Sequence[Any], folder: Path
) -> Iterator[Pool]:
    number = workers or cpu_count()
    if number > 1:
        _start_trackers()
    with processes(number) as pool:
        try:
            if number > 1:
                _deaf_to_interrupts(
                    lambda: pool(delayed(_sees)(folder) for _ in range(number)), *ENDING
                )
            yield pool, number
        except BrokenProcessPool as error:
            raise LostWorkersError from error
        except PicklingError as error:
            _say_full(error)
            raise
        except KeyboardInterrupt:
            if number > 1:
                # Also those that are still starting, which the end of this process would wait for.
                workers_left = multiprocessing.active_children()
                get_reusable_executor(reuse=True).shutdown(wait=False, kill_workers=True)
                # What they were writing is swept when they are gone.
                until = time.monotonic() + AT_ONCE
                for worker in workers_left:
                    worker.join(max(0.0, until - time.monotonic()))
            raise


def _say_full(error: PicklingError) -> None:
    """Say so where records could not be handed to workers for want of room.

    joblib writes large arrays to files that all workers read; of an error there it keeps the text.
    """
    number = re.search(r"OSError: \[Errno (\d+)\]", str(error.__cause__))
    if number is None or int(number[1]) not in FULL:
        return
    folder = str(Path(_get_temp_dir("")[0]))
    variable = "TMPDIR" if folder == tempfile.gettempdir() else "JOBLIB_TEMP_FOLDER"
    raise StoreError(
        f"The folder for temporary files {folder!r} is full ({os.strerror(int(number[1]))}); make "
        f"room there, name another folder in the environment variable {variable}, or use one "
        "worker (--workers 1), which needs no copy of the records"
    ) from error


@contextmanager
def _dask(
    workers: int | None, address: str | None, shared: Sequence[Any], folder: Path
) -> Iterator[Pool]:
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    with _dask_client(workers, address) as client:
        if not client.ncores():
            raise InputError(
                f"The Dask cluster at {address!r} has no worker; start some with `dask worker "
                f"{address} --nthreads 1`"
            )
        if max(client.ncores().values()) > 1:
            raise InputError(
                f"A worker of the Dask cluster at {address!r} has "
                f"{max(client.ncores().values())} threads, and models are trained by one each; "
                f"start workers with `dask worker {address} --nthreads 1 --nworkers N`"
            )
        _check_shared_folder(client.run(_sees, folder), folder)
        with parallel_config("dask", client=client, scatter=list(shared)), Parallel() as pool:
            width = sum(client.ncores().values())
            try:
                yield (pool if width > 1 else _one_by_one(client, shared)), width
            # The second is of records whose copies were all on workers that are gone.
            except (KilledWorker, FutureCancelledError) as error:
                raise LostWorkersError from error


def _one_by_one(client: Any, shared: Sequence[Any]) -> Callable[[Iterator[Any]], list[Any]]:
    """What joblib does for several workers, for one: alone, it would work in this process."""
    sent = {id(one): client.scatter(one, broadcast=True) for one in shared}

    def run(calls: Iterator[Any]) -> list[Any]:
        return [
            client.submit(call, *(sent.get(id(one), one) for one in given), pure=False).result()
            for call, given, _ in calls
        ]

    return run


@contextmanager
def _dask_client(workers: int | None, address: str | None) -> Iterator[Any]:
    """A client of the cluster at the address, or of one of this machine that ends with it."""
    from distributed import Client

    with ExitStack() as stack, _ending_children(), _told_less():
        where: Any = address
        if address is None:
            where = _deaf_to_interrupts(lambda: _local_cluster(workers or cpu_count()), *HANGUP)
            stack.push(_closing(where))
        try:
            client = _patiently(
                lambda: Client(where, timeout=CONNECTING, set_as_default=False), AssertionError
            )
        except (OSError, ValueError) as error:
            raise InputError(
                f"There is no Dask scheduler at {address!r} ({type(error).__name__}); start one "
                "with `dask scheduler`, and give its address, such as tcp://127.0.0.1:8786"
            ) from error
        stack.push(_closing(client))
        yield client


def _patiently(call: Callable[[], T], failure: type[Exception], times: int = 3) -> T:
    """Call this again where it fails so: Dask asserts that a thread of its own began within 10 s.

    On a machine that is busy with other things it may not have.
    """
    for _ in range(times - 1):
        with suppress(failure):
            return call()
    return call()


def _local_cluster(workers: int) -> Any:
    from distributed import LocalCluster

    # Loopback only, its page too: with None that would be open to all, at a port others use.
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )


@contextmanager
def _ending_children() -> Iterator[None]:
    """On Ctrl-C end the processes that were started inside, whatever they are doing."""
    before = multiprocessing.active_children()
    try:
        yield
    except KeyboardInterrupt:
        for child in multiprocessing.active_children():
            if child not in before:
                child.kill()
        raise


@contextmanager
def _told_less() -> Iterator[None]:
    """Dask says nothing of what it mends itself, and after Ctrl-C nothing of what was on its way.

    That still comes while this process ends, so that its logs stay silent. Any part of Dask may
    have something to say then, and some have a level of their own.
    """
    parts = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    names = ("asyncio", "distributed", "tornado.application", *parts)
    logs = [logging.getLogger(name) for name in names]
    levels = [log.level for log in logs]
    try:
        for log in logs:
            log.setLevel(logging.ERROR)
        yield
    except KeyboardInterrupt:
        levels = [logging.CRITICAL for _ in logs]
        raise
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


def _closing(one: Any) -> Callable[..., None]:
    """How a client or a cluster is left: what ends in an error, or Ctrl-C, waits for nobody."""

    def close(error: type[BaseException] | None, *_: object) -> None:
        with suppress(TimeoutError):
            one.close(timeout=CLOSING if error is None else AT_ONCE)
        # Where that was too short, the end of this process would else wait once more.
        one.shutdown_on_close = False

    return close


@contextmanager
def _ray(
    workers: int | None, address: str | None, shared: Sequence[Any], folder: Path
) -> Iterator[Pool]:
    import ray
    from ray.util.joblib import register_ray

    started = not ray.is_initialized()
    if started:
        options: dict[str, Any] = {"address": address} if address else {"num_cpus": workers}
        try:
            ray.init(logging_level=logging.ERROR, log_to_driver=False, **options)
        except (ConnectionError, ValueError) as error:
            raise InputError(
                f"There is no Ray cluster at {address!r} ({type(error).__name__}); start one with "
                "`ray start --head`, and give its address"
            ) from error
    try:
        register_ray()
        with parallel_config("ray", n_jobs=workers or -1), Parallel() as pool:
            yield pool, workers or int(ray.cluster_resources().get("CPU", 1))
    finally:
        if started:
            ray.shutdown()


# The package that each needs beyond the core.
EXTRAS = {"dask": "distributed", "ray": "ray"}

BACKENDS: dict[str, Callable[..., AbstractContextManager[Pool]]] = {
    "local": _local,
    "dask": _dask,
    "ray": _ray,
}


def _deaf_to_interrupts(call: Callable[[], T], *others: int) -> T:
    """Call this so that the processes it starts do not hear Ctrl-C, nor other signals.

    A terminal tells every process of a command of it. Workers would each print where it met them;
    the leading process alone decides, and ends them. They inherit what their thread does not hear.
    """
    result: Future[T] = Future()

    def run() -> None:
        if hasattr(signal, "pthread_sigmask"):
            # These start first: they would make the thread hear again when they do.
            _start_trackers()
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *others})
        try:
            result.set_result(call())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return result.result()


def _start_trackers() -> None:
    """Start the processes that clean up after this one, and let them do so in silence.

    Where Ctrl-C ends this process in the middle of its own cleaning, they would tell of that. They
    ignore it, but would hear of a terminal that is closed before they have cleaned up.
    """
    silence = "ignore:resource_tracker:UserWarning"
    sys.warnoptions.append(silence)  # processes are started with these
    masked = hasattr(signal, "pthread_sigmask")
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, HANGUP) if masked else set[Any]()
    try:
        resource_tracker.ensure_running()
        loky_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(silence)
        if masked:
            signal.pthread_sigmask(signal.SIG_SETMASK, heard)


def _sees(folder: Path) -> bool:
    return os.access(folder, os.W_OK)


def _check_shared_folder(seen: dict[str, bool], folder: Path) -> None:
    blind = sorted(worker for worker, sees in seen.items() if not sees)
    if blind:
        raise InputError(
            f"The worker {blind[0]} does not see the folder {str(folder)!r}, to which it would "
            "write; give one on a file system that all workers share"
        )
