"""What the engine adds to training, and how much faster two workers are than one.

usage: python benchmarks/engine.py [--models 64] [--rounds 5] [--trees 100]

Forests of 100 trees on Adult, a pool of 4,000 records, 2,000 per model, observed through the
margin, the loss and the probabilities. The bare loop trains and observes the same models and keeps
nothing; the engine keeps the models too, or only what was observed. Each way is a command of its
own. They take turns of half a second, the others being stopped meanwhile (SIGSTOP), so that a busy
moment of the machine meets them all; only a command's own turns count. The start of the workers is
told apart.
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
WAYS = ("bare loop", "1 worker", "1 worker, models not kept", "2 workers")


def forest(trees: int) -> SklearnRecipe:
    """The recipe that is timed."""
    return SklearnRecipe("forest", RandomForestClassifier(trees, n_jobs=1), prepare=True)


def bare_loop(recipe: SklearnRecipe, records: Records, roles: np.ndarray) -> None:
    """Train and observe, one model after another."""
    with threadpool_limits(limits=1):
        for row, seed in zip(roles, model_seeds(0, len(roles)), strict=True):
            model = Remembering(recipe.fit(records.take(np.flatnonzero(row == 1)), seed))
            for channel in CHANNELS:
                channel.observe(model, records)


def one_way(way: str, models: int, trees: int) -> None:
    """What a command does: get ready, say how long the workers took to start, work when told."""
    records = load_dataset("adult").sample(POOL, 0)
    roles = fixed_size(POOL, MEMBERS, models, 0)

    def engine(recipe: SklearnRecipe, roles: np.ndarray) -> float:
        workers = 2 if way == "2 workers" else 1
        with tempfile.TemporaryDirectory() as folder:
            begun = time.perf_counter()
            run_trials(
                *(recipe, records, roles, CHANNELS),
                store=Path(folder),
                workers=workers,
                keep_models="not kept" not in way,
            )
            taken = time.perf_counter() - begun
            print(taken, flush=True)  # its end: what it takes to delete the files is not counted
        return taken

    if way == "bare loop":
        bare_loop(forest(1), records, roles[:2])
        print(0.0, flush=True)
        sys.stdin.readline()
        bare_loop(forest(trees), records, roles)
        print("finished", flush=True)
    else:
        engine(forest(1), roles[:2])
        sys.stdin.readline()
        engine(forest(trees), roles)


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
        starts.append(commands[-1].started - commands[1].started)
    taken = np.array(rounds)
    print("| | seconds per model, median | all rounds |")
    print("|---|---|---|")
    for way, seconds in zip(WAYS, taken.T, strict=True):
        told = ", ".join(f"{one:.3f}" for one in seconds)
        print(f"| {way} | {np.median(seconds):.3f} | {told} |")
    print()
    bare, one, unkept, two = taken.T
    print(
        f"models: {options.models}, trees: {options.trees}, records: {POOL} ({MEMBERS} per model)"
    )
    print(f"start of two workers: {np.median(starts):.1f} s, once")
    for name, ratios in (
        ("1 worker / 2 workers", one / two),
        ("1 worker / bare loop", one / bare),
        ("1 worker, models not kept / bare loop", unkept / bare),
    ):
        told = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        print(f"{name}: {np.median(ratios):.3f} (rounds: {told})")


if __name__ == "__main__":
    main()
