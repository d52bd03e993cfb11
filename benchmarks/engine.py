"""What the engine adds to training, and how much faster two workers are than one.

usage: python benchmarks/engine.py [--models 64] [--rounds 3] [--trees 100]

Forests of 100 trees on Adult, a pool of 4,000 records, 2,000 per model, observed through the
margin, the loss and the probabilities. The bare loop trains and observes the same models and keeps
nothing. One worker, two workers and the loop take turns, so that a busy moment of the machine
meets them all; ratios are medians over the rounds. The start of the workers
is told apart, and what the benchmark takes to delete its files is not counted.
"""

from __future__ import annotations

import argparse
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


def bare_loop(recipe: SklearnRecipe, records: Records, roles: np.ndarray) -> float:
    """Seconds to train and observe, one model after another."""
    start = time.perf_counter()
    with threadpool_limits(limits=1):
        for row, seed in zip(roles, model_seeds(0, len(roles)), strict=True):
            model = Remembering(recipe.fit(records.take(np.flatnonzero(row == 1)), seed))
            for channel in CHANNELS:
                channel.observe(model, records)
    return time.perf_counter() - start


def engine(recipe: SklearnRecipe, records: Records, roles: np.ndarray, workers: int) -> float:
    """Seconds for the same models by the engine, into a store that is new."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        run_trials(recipe, records, roles, CHANNELS, store=Path(folder), workers=workers)
        return time.perf_counter() - start


def main() -> None:
    """Print seconds per model, the ratio of one worker to two, and what the engine adds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trees", type=int, default=100)
    options = parser.parse_args()
    records = load_dataset("adult").sample(POOL, 0)
    recipe = SklearnRecipe("forest", RandomForestClassifier(options.trees, n_jobs=1), prepare=True)
    roles = fixed_size(POOL, MEMBERS, options.models, 0)
    few = SklearnRecipe("forest", RandomForestClassifier(1, n_jobs=1), prepare=True)
    engine(few, records, roles[:2], 1)  # imports are not what is measured
    # Two workers import what they need, and then are there for all rounds.
    starting = engine(few, records, roles[:2], 2) - engine(few, records, roles[:2], 2)
    taken = np.array(
        [
            [
                bare_loop(recipe, records, roles),
                engine(recipe, records, roles, 1),
                engine(recipe, records, roles, 2),
            ]
            for _ in range(options.rounds)
        ]
    )
    bare, one, two = taken.T / options.models
    print("| | seconds per model, median | all rounds |")
    print("|---|---|---|")
    for name, rounds in (("bare loop", bare), ("1 worker", one), ("2 workers", two)):
        told = ", ".join(f"{seconds:.3f}" for seconds in rounds)
        print(f"| {name} | {np.median(rounds):.3f} | {told} |")
    print()
    print(
        f"models: {options.models}, trees: {options.trees}, records: {POOL} ({MEMBERS} per model)"
    )
    print(f"start of two workers: {starting:.1f} s, once")
    print(f"1 worker / 2 workers: {np.median(one / two):.2f}")
    print(f"1 worker against the bare loop: {np.median(one / bare) - 1:+.1%}")


if __name__ == "__main__":
    main()
