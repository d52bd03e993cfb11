"""What the engine, the store and the folding cost by themselves: the constants of docs/scale.md.

usage: python benchmarks/scale.py [--models 1000] [--records 60000]

Every figure is the median of a few runs, beside the plain way to do the same in the same run where
there is one. The models guess, so that training them takes no time and what is left is the
engine's. About three minutes and 1 GB in a temporary folder, which is removed. Rows about Dask
need leakscope[dask].
"""

from __future__ import annotations

import argparse
import hashlib
import pickle
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.attacks import lira
from leakscope.channels.outputs import Loss, Margin, Probabilities
from leakscope.models import Remembering
from leakscope.models.answers import class_numbers
from leakscope.probabilities import log_loss
from leakscope.protocols import Ability, Bools, Floats, Labels, Model, Recipe, Stack, Task
from leakscope.records import Records
from leakscope.trials import Trials, model_seeds, random_halves, run_trials
from leakscope.trials.packing import pack, unpack
from leakscope.trials.store import DONE, MODEL, Store
from leakscope.trials.workers import Chunk

CLASSES = 10
CHANNELS = (Margin(), Loss(), Probabilities())
# The arrays of a ResNet-18 for CIFAR-10: 11,173,962 parameters and the 9,600 running statistics.
ARRAYS = [11_183_562 // 62] * 62
MEGA = 1e6


class Guess:
    """A model that guesses, each seed otherwise."""

    name = "guess"
    task: Task = "classification"
    abilities: frozenset[Ability] = frozenset({"labels", "probabilities", "loss", "queries"})

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.classes: Labels | None = np.arange(CLASSES)

    def predict(self, X: Any) -> Labels:
        return np.zeros(len(X), dtype=np.int64)

    def predict_proba(self, X: Any) -> Floats:
        numbers = np.random.default_rng(self.seed).random((len(X), CLASSES))
        return np.asarray(numbers / numbers.sum(axis=1, keepdims=True))

    def loss(self, X: Any, y: Labels) -> Floats:
        return log_loss(self.predict_proba(X), class_numbers(self, y))


@dataclass(frozen=True)
class Guessing(Recipe):
    """Training that takes no time."""

    name: str = "guessing"

    def fit_many(
        self, records: Records, roles: NDArray[np.int8], seeds: Sequence[int]
    ) -> list[Model]:
        return [Guess(seed) for seed in seeds]


class Network:
    """As many numbers as a ResNet-18 has, in float32; it is packed and never asked."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.weights = {f"w{i}": rng.random(n, np.float32) for i, n in enumerate(ARRAYS)}


def draw(n: int, width: int) -> Records:
    """Records of so many features each, all labels among the classes."""
    rng = np.random.default_rng(0)
    return Records(rng.integers(0, 256, (n, width), dtype=np.uint8), np.arange(n) % CLASSES)


def median(run: Callable[[], Any], repeats: int = 5) -> float:
    """The median of the seconds that it takes."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def peak(run: Callable[[], Any]) -> float:
    """The most megabytes that are allocated at once while it runs."""
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / MEGA


def row(what: str, value: str, beside: str = "") -> None:
    """A row of the table."""
    print(f"| {what} | {value} | {beside} |", flush=True)


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """A Dask cluster of this machine, as of another; None where Dask is not installed."""
    try:
        from distributed import LocalCluster
    except ImportError:
        row("Dask", "not installed")
        yield None
        return
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as started:
        yield started


def bare_loop(records: Records, models: int) -> None:
    """Train and observe, one model after another, and keep nothing."""
    for seed in model_seeds(0, models):
        model = Remembering(Guess(seed))
        for channel in CHANNELS:
            channel.observe(model, records)


def measure_engine(n: int, models: int, few: int, address: str | None) -> None:
    """Milliseconds per model: those of many models less those of a few, over how many more."""
    records = draw(n, 4)
    roles = random_halves(n, models, 0)

    def run(number: int, **options: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            run_trials(Guessing(), records, roles[:number], CHANNELS, store=folder, **options)

    def each(run: Callable[[int], None]) -> tuple[float, float]:
        run(few)
        start = median(partial(run, few), 3)
        per_model = (median(partial(run, models), 3) - start) / (models - few)
        return per_model * 1e3, start - few * per_model

    bare, _ = each(partial(bare_loop, records))
    ways: dict[str, dict[str, Any]] = {"1 worker": {"workers": 1}, "2 workers": {"workers": 2}}
    if address is not None:
        ways["2 Dask workers"] = {"backend": "dask", "address": address}
    for way, options in ways.items():
        cost, start = each(partial(run, **options))
        row(
            f"a model of {n:,} records, three channels, {way}",
            f"{cost:.1f} ms, and {start:.2f} s once",
            f"trained and observed alone: {bare:.1f} ms",
        )


def measure_bytes(folder: Path, n: int) -> None:
    """What a finished model takes beyond its packed bytes and 8 bytes a number."""
    models = 20
    trials = run_trials(
        Guessing(), draw(n, 4), random_halves(n, models, 0), CHANNELS, store=folder, workers=1
    )
    files = [file for file in folder.rglob("*") if file.is_file()]
    packed = sum(file.stat().st_size for file in files if file.name == MODEL)
    numbers = sum(8 * np.prod(stack.shape) for stack in trials.observations.values())
    beyond = (sum(file.stat().st_size for file in files) - packed - numbers) / models
    inodes = (len(list(folder.rglob("*"))) - 2) / models
    row(
        "a stored model beyond its packed bytes and 8 a number, three channels",
        f"{beyond:.0f} bytes, {inodes:.0f} inodes",
        f"{numbers / models / MEGA:.2f} MB of numbers",
    )


class ReachedError(Exception):
    """The run has come to where training would begin."""


def measure_start(records: Records, roles: NDArray[np.int8], folder: Path) -> None:
    """Keys, manifest, and looking for every model, up to where the first would be trained."""

    def stop(step: str, done: int, total: int) -> None:
        raise ReachedError

    def begin() -> None:
        try:
            run_trials(Guessing(), records, roles, CHANNELS, store=folder, workers=1, progress=stop)
        except ReachedError:
            return

    size = records.X.nbytes / MEGA
    once = median(records.fingerprint, 1)
    row("the records' fingerprint", f"{once:.2f} s", f"{size:.0f} MB, {size / once:.0f} MB/s")
    row(
        f"keys, manifest and looking for {len(roles):,} × {roles.shape[1]:,} roles",
        f"{median(begin, 3):.2f} s, {peak(begin):.0f} MB at its peak",
        f"the roles: {roles.nbytes / MEGA:.0f} MB",
    )
    size = (folder / "manifest.json").stat().st_size / len(roles)
    row("a model in the manifest", f"{size:.0f} bytes")
    store, keys = Store(folder / "looks"), [f"{number:032x}" for number in range(len(roles))]
    for key in keys:
        store.path(key, "margin").parent.mkdir(parents=True)
    asking = median(lambda: [store.has(key, ["margin"]) for key in keys])
    row(
        f"one look for which of {len(keys):,} models are begun",
        f"{1e3 * median(store.begun):.1f} ms",
        f"to open a list of each: {1e3 * asking:.0f} ms",
    )


def measure_stack(records: Records, roles: NDArray[np.int8], folder: Path) -> None:
    """Resuming, reading parts, and LiRA, over stored margins of every model."""

    def run(workers: int) -> Trials:
        return run_trials(Guessing(), records, roles, [Margin()], store=folder, workers=workers)

    trials = run(2)
    stack = trials.observations["margin"]
    m, n, _ = stack.shape
    size = 8 * m * n
    resumed = median(lambda: run(1), 3)
    files = sorted(folder.rglob("margin-*.npy"))
    plain = median(lambda: [hashlib.sha256(file.read_bytes()).digest() for file in files], 3)
    row(
        f"resuming a finished run of {m:,} models",
        f"{resumed:.2f} s: {1e3 * resumed / m:.2f} ms a model, {size / MEGA / resumed:.0f} MB/s",
        f"read and sha256 alone: {plain:.2f} s, {size / MEGA / plain:.0f} MB/s",
    )
    measure_folding(stack, trials.membership)


def measure_folding(stack: Stack, membership: Bools) -> None:
    """Parts of the stored stack, and LiRA over it, beside one array in memory."""
    m, n, _ = stack.shape
    part = 2**22 // m
    starts = range(0, n - part, part)
    array = np.asarray(stack)
    files = median(lambda: [stack[:, start : start + part] for start in starts], 3) / len(starts)
    plain = median(lambda: [array[:, start : start + part].copy() for start in starts], 3)
    row(
        f"{part:,} records of {m:,} files ({8 * part * m / MEGA:.0f} MB)",
        f"{1e3 * files:.0f} ms, {1e6 * files / m:.0f} µs a file",
        f"of one array: {1e3 * plain / len(starts):.0f} ms",
    )
    target = array[0, :, 0].copy()
    score = partial(lira, stack, membership, target)
    row(
        f"LiRA over {m:,} × {n:,} stored margins",
        f"{median(score, 3):.1f} s, {peak(score):.0f} MB beyond the membership",
        f"of one array of {array.nbytes / MEGA:.0f} MB: "
        f"{median(lambda: lira(array, membership, target), 3):.1f} s",
    )


def measure_records(records: Records, address: str | None) -> None:
    """Bytes that go to each worker once, and with each task."""
    floats = Records(records.X.astype(np.float32), records.y)
    sizes = [len(pickle.dumps(one, protocol=5)) / MEGA for one in (records, floats)]
    row("records on their way to a worker", f"{sizes[0]:.0f} MB", f"as float32: {sizes[1]:.0f} MB")
    roles = random_halves(len(records), 2, 0)[:1]
    task = Chunk([0], ["0" * 32], [0], roles, [[f"{one.name}-{0:012}.npy" for one in CHANNELS]])
    row(
        "a task",
        f"{len(pickle.dumps(task)) / 1e3:.1f} kB",
        f"its roles: {roles.nbytes / 1e3:.0f} kB",
    )
    if address is None:
        return
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        workers = len(client.ncores())

        def scatter() -> None:
            client.scatter(records, broadcast=True, hash=False).result()

        seconds = median(scatter, 3)
    row(
        f"records to {workers} Dask workers over loopback",
        f"{seconds:.2f} s, {sizes[0] * workers / seconds:.0f} MB/s",
    )


def measure_model(folder: Path) -> None:
    """A model of the size of a ResNet-18: packed, written, read, unpacked."""
    store, network = Store(folder), Network()
    packed = pack(network)  # type: ignore[arg-type]
    assert packed is not None
    whole = b"".join(packed)
    size = len(whole) / MEGA
    packing = median(lambda: pack(network))  # type: ignore[arg-type]
    row(
        "pack a model of 11.18 million float32",
        f"{size:.2f} MB, {1e3 * packing:.2f} ms, {peak(lambda: pack(network)):.0f} MB more",  # type: ignore[arg-type]
        f"pickle alone: {size / median(lambda: pickle.dumps(network, protocol=5)):.0f} MB/s",
    )
    writing = median(lambda: store.write_model("0" * 32, packed))
    plain = median(lambda: (folder / "plain").write_bytes(whole))
    row(
        "write it, with its checksum and fsync",
        f"{size / writing:.0f} MB/s",
        f"without either: {size / plain:.0f} MB/s",
    )
    store.finish("0" * 32, store.write_model("0" * 32, packed))
    reading = median(lambda: store.model("0" * 32))
    row(
        "read and check it",
        f"{size / reading:.0f} MB/s",
        f"unpack: {size / median(lambda: unpack(whole)):.0f} MB/s",
    )
    names = iter(range(1000))
    synced = median(lambda: store.finish(f"{next(names):032x}", {MODEL: "0" * 64}), 50)
    plain = median(lambda: (folder / f"{next(names)}").write_bytes(b"0" * 150), 50)
    row(f"write {DONE} with fsync", f"{1e3 * synced:.2f} ms", f"without: {1e3 * plain:.2f} ms")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--records", type=int, default=60_000)
    options = parser.parse_args()
    n = options.records
    print("| what | measured | beside |")
    print("|---|---|---|")
    with tempfile.TemporaryDirectory() as name, cluster(2) as dask:
        address = None if dask is None else dask.scheduler_address
        home = Path(name)
        measure_engine(1000, 116, 16, address)
        measure_engine(n, 20, 4, address)
        measure_bytes(home / "bytes", 1000)
        records = draw(n, 3 * 32 * 32)
        measure_records(records, address)
        roles = random_halves(n, options.models, 0)
        measure_start(records, roles, home / "start")
        measure_model(home / "model")
        measure_stack(records, roles, home / "stack")


if __name__ == "__main__":
    # Workers can unpickle what a module defines, and not what is defined in a script.
    from scale import main as run_as_module

    run_as_module()
