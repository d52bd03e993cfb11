"""What the engine adds to training, and how much faster two workers are than one.

usage: python benchmarks/engine.py [--models 64] [--rounds 2] [--trees 100]

Forests of 100 trees on Adult, a pool of 4,000 records, 2,000 per model, observed through the
margin, the loss and the probabilities. The bare loop trains and observes the same models and keeps
nothing. One worker, two workers and the loop take turns, so that a busy moment of the machine
meets them all; each figure is the best of its rounds. The start of the workers is told apart.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
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


def bare_loop(recipe: SklearnRecipe, records: Records, roles: np.ndarray) -> None:
    """Train and observe, one model after another."""
    with threadpool_limits(limits=1):
        for row, seed in zip(roles, model_seeds(0, len(roles)), strict=True):
            model = Remembering(recipe.fit(records.take(np.flatnonzero(row == 1)), seed))
            for channel in CHANNELS:
                channel.observe(model, records)


def engine(recipe: SklearnRecipe, records: Records, roles: np.ndarray, workers: int) -> None:
    """The same models, by the engine, into a store that is new."""
    with tempfile.TemporaryDirectory() as folder:
        run_trials(recipe, records, roles, CHANNELS, store=Path(folder), workers=workers)


def seconds(call: Callable[[], None]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    """Print seconds per model, the ratio of one worker to two, and what the engine adds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--trees", type=int, default=100)
    options = parser.parse_args()
    records = load_dataset("adult").sample(POOL, 0)
    recipe = SklearnRecipe("forest", RandomForestClassifier(options.trees, n_jobs=1), prepare=True)
    roles = fixed_size(POOL, MEMBERS, options.models, 0)
    few = SklearnRecipe("forest", RandomForestClassifier(1, n_jobs=1), prepare=True)
    engine(few, records, roles[:2], 1)  # imports are not what is measured
    # Two workers import what they need, and then are there for all rounds.
    first = seconds(lambda: engine(few, records, roles[:2], 2))
    starting = first - seconds(lambda: engine(few, records, roles[:2], 2))
    ways: dict[str, Callable[[], None]] = {
        "bare loop": lambda: bare_loop(recipe, records, roles),
        "1 worker": lambda: engine(recipe, records, roles, 1),
        "2 workers": lambda: engine(recipe, records, roles, 2),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, call in ways.items():
            taken[name].append(seconds(call))
    best = {name: min(rounds) for name, rounds in taken.items()}
    print("| | seconds per model, best round | all rounds |")
    print("|---|---|---|")
    for name, rounds in taken.items():
        told = ", ".join(f"{one / options.models:.3f}" for one in rounds)
        print(f"| {name} | {best[name] / options.models:.3f} | {told} |")
    print()
    print(
        f"models: {options.models}, trees: {options.trees}, records: {POOL} ({MEMBERS} per model)"
    )
    print(f"start of two workers: {starting:.1f} s, once")
    print(f"1 worker / 2 workers: {best['1 worker'] / best['2 workers']:.2f}")
    print(f"1 worker against the bare loop: {best['1 worker'] / best['bare loop'] - 1:+.1%}")


if __name__ == "__main__":
    main()
