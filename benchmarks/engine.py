"""What the engine adds to training, and how much faster two workers are than one.

usage: python benchmarks/engine.py [--models 64] [--rounds 5] [--trees 100]

Forests of 100 trees on Adult, a pool of 4,000 records, 2,000 per model, observed through the
margin, the loss and the probabilities. Both the engine and the bare loop, which trains and observes
the same models, do each of two tasks: to keep the models and what was observed (the loop by
`joblib.dump` and `numpy.save`, which neither check nor flush what they write), and to keep no
models (the loop: nothing at all). What the engine adds is its time over that of the loop at the
same task; the price of keeping, the engine with models over the loop that keeps nothing, is told
apart. Each way is a command of its own. They take turns of half a second, the others being stopped
meanwhile (SIGSTOP), so that a busy moment of the machine meets them all; only a command's own turns
count. The start of the workers is told apart.
"""

from __future__ import annotations

import argparse
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import joblib
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

from leakscope.channels.outputs import Loss, Margin, Probabilities
from leakscope.datasets import load_dataset
from leakscope.models import Remembering
from leakscope.recipes.sklearn import SklearnRecipe
from leakscope.records import Records
from leakscope.trials import fixed_size, model_seeds, run_trials

POOL, MEMBERS = 4000, 2000
CHANNELS = (Margin(), Loss(), Probabilities())
TURN = 0.5
WAYS = (
    "bare loop, nothing kept",
    "bare loop, models kept",
    "1 worker, models not kept",
    "1 worker, models kept",
    "2 workers, models kept",
)


def forest(trees: int) -> SklearnRecipe:
    """The recipe that is timed."""
    return SklearnRecipe("forest", RandomForestClassifier(trees, n_jobs=1), prepare=True)


def bare_loop(
    recipe: SklearnRecipe, records: Records, roles: np.ndarray, folder: Path | None
) -> None:
    """Train and observe, one model after another; into the folder if there is one."""
    with threadpool_limits(limits=1):
        seeds = model_seeds(0, len(roles))
        for number, (row, seed) in enumerate(zip(roles, seeds, strict=True)):
            trained = recipe.fit(records.take(np.flatnonzero(row == 1)), seed)
            model = Remembering(trained)
            seen = {channel.name: channel.observe(model, records) for channel in CHANNELS}
            if folder is not None:
                joblib.dump(trained, folder / f"{number}.joblib")
                for name, values in seen.items():
                    np.save(folder / f"{number}-{name}.npy", values)


def one_way(way: str, models: int, trees: int) -> None:
    """What a command does: get ready, say how long the workers took to start, work when told."""
    records = load_dataset("adult").sample(POOL, 0)
    roles = fixed_size(POOL, MEMBERS, models, 0)

    def work(recipe: SklearnRecipe, roles: np.ndarray) -> None:
        with tempfile.TemporaryDirectory() as folder:
            begun = time.perf_counter()
            if way.startswith("bare loop"):
                kept = None if "nothing" in way else Path(folder)
                bare_loop(recipe, records, roles, kept)
            else:
                run_trials(
                    *(recipe, records, roles, CHANNELS),
                    store=Path(folder),
                    workers=int(way[0]),
                    keep_models="not kept" not in way,
                )
            # Said before the folder goes: what it takes to delete the files is not counted.
            print(time.perf_counter() - begun, flush=True)

    work(forest(1), roles[:2])
    sys.stdin.readline()
    work(forest(trees), roles)


class Command:
    """One way, in a process group of its own that can be stopped, and the seconds of its turns."""

    def __init__(self, way: str, options: argparse.Namespace) -> None:
        words = ["--way", way, "--models", options.models, "--trees", options.trees]
        self.process = subprocess.Popen(
            [sys.executable, __file__, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started = float(self._line())
        self.seconds, self.finished = 0.0, False
        self._signal(signal.SIGSTOP)
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def take_a_turn(self) -> None:
        """Go on for half a second, or until the end."""
        begun = time.perf_counter()
        self._signal(signal.SIGCONT)
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            self.finished = bool(selector.select(TURN))
        if not self.finished:
            self._signal(signal.SIGSTOP)
        self.seconds += time.perf_counter() - begun
        if self.finished:
            self._line()
            self.process.wait()

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("A command of the benchmark failed")
        return line

    def _signal(self, number: int) -> None:
        os.killpg(self.process.pid, number)


def main() -> None:
    """Print seconds per model, the ratio of one worker to two, and what the engine adds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        one_way(options.way, options.models, options.trees)
        return
    rounds, starts = [], []
    for _ in range(options.rounds):
        commands = [Command(way, options) for way in WAYS]
        while unfinished := [command for command in commands if not command.finished]:
            for command in unfinished:
                command.take_a_turn()
        rounds.append([command.seconds / options.models for command in commands])
        starts.append(commands[-1].started - commands[-2].started)
    taken = np.array(rounds)
    print("| | seconds per model, median | all rounds |")
    print("|---|---|---|")
    for way, seconds in zip(WAYS, taken.T, strict=True):
        told = ", ".join(f"{one:.3f}" for one in seconds)
        print(f"| {way} | {np.median(seconds):.3f} | {told} |")
    print()
    bare, keeping, unkept, kept, two = taken.T
    print(
        f"models: {options.models}, trees: {options.trees}, records: {POOL} ({MEMBERS} per model)"
    )
    print(f"start of two workers: {np.median(starts):.1f} s, once")
    for name, ratios in (
        ("1 worker / 2 workers", kept / two),
        ("engine / bare loop, models kept by both", kept / keeping),
        ("engine / bare loop, models kept by neither", unkept / bare),
        ("price of keeping models: engine / bare loop that keeps nothing", kept / bare),
    ):
        told = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        print(f"{name}: {np.median(ratios):.3f} (rounds: {told})")


if __name__ == "__main__":
    main()
