"""How much faster small networks are trained as a stack than one after another.

usage: python benchmarks/ensemble.py [--models 64] [--records 2000] [--epochs 50] [--batch 64]

MLPs of 104–50–50–2 with tanh on Adult, each with its own 2,000 of 4,000 records, by Adam; all three
ways are the same TorchRecipe with the same seeds: one after another and as stacks of half of the
models, both on one thread, and the two halves in a process each, of which the slower one counts.
The ways take turns, so that a busy moment of the machine meets them all. Beside the seconds of the
clock, which decide, stand those of the processor: they show what two free cores would give where
others are at work. Exits with 1 if the stack is not 4.5 times as fast, the two processes not 8
times, or if the losses of the trained models differ in distribution (Kolmogorov–Smirnov, p < 0.01).
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.pool import Pool

import numpy as np
from scipy.stats import ks_2samp

from leakscope.datasets import load_dataset
from leakscope.networks import network
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records
from leakscope.trials import fixed_size, model_seeds

WAYS = ("one after another", "stacked", "two processes")
LIMITS = (1.0, 4.5, 8.0)
SAME = 0.01
QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)

Task = tuple[TorchRecipe, Records, np.ndarray, list[int]]


@dataclass(frozen=True)
class Turn:
    """What training came to: the losses of the models (m,), the seconds by clock and processor."""

    losses: np.ndarray
    clock: float
    processor: float

    def __add__(self, other: Turn) -> Turn:
        found = np.concatenate([self.losses, other.losses])
        return Turn(found, self.clock + other.clock, self.processor + other.processor)


def trained(task: Task) -> Turn:
    """Train the models of a task; their losses are the means over their own records."""
    recipe, records, roles, seeds = task
    clock, processor = time.perf_counter(), time.process_time()
    models = recipe.fit_many(records, roles, seeds)
    seconds = time.perf_counter() - clock, time.process_time() - processor
    pairs = zip(models, roles == 1, strict=True)
    losses = [model.loss(records.X, records.y)[mine].mean() for model, mine in pairs]
    return Turn(np.array(losses), *seconds)


def side_by_side(pool: Pool, tasks: list[Task]) -> Turn:
    """A task in each process; the slower one counts."""
    turns = pool.map(trained, tasks, chunksize=1)
    slower = [max(getattr(turn, name) for turn in turns) for name in ("clock", "processor")]
    return Turn(np.concatenate([turn.losses for turn in turns]), *slower)


def measured(options: argparse.Namespace) -> dict[str, Turn]:
    """What each way came to, for all models: of two processes the mean of two turns."""
    half = options.models // 2
    factory = partial(network, "mlp")
    single = TorchRecipe("mlp", factory, epochs=options.epochs, batch_size=options.batch, stack=1)
    stacked = replace(single, stack=half)
    records = load_dataset("adult").sample(2 * options.records, 0)
    roles = fixed_size(len(records), options.records, options.models, 0)
    seeds = model_seeds(0, options.models)
    halves = [slice(0, half), slice(half, options.models)]

    def task(recipe: TorchRecipe, part: slice) -> Task:
        return recipe, records, roles[part], seeds[part]

    both = [task(stacked, part) for part in halves]
    turns: dict[str, list[Turn]] = {way: [] for way in WAYS}
    with get_context("spawn").Pool(2) as pool:
        # Imports and the first calls of torch take seconds, and are no part of training.
        ready = [task(replace(recipe, epochs=1), slice(0, 2)) for recipe in (single, stacked)]
        trained(ready[0]), side_by_side(pool, [ready[1], ready[1]])
        for part, one in zip(halves, both, strict=True):
            turns[WAYS[0]].append(trained(task(single, part)))
            turns[WAYS[1]].append(trained(one))
            turns[WAYS[2]].append(side_by_side(pool, both))
            told = ", ".join(f"{way} {turns[way][-1].clock:.1f} s" for way in WAYS)
            print(told, file=sys.stderr, flush=True)
    first, second = turns[WAYS[2]]
    clock, processor = (first.clock + second.clock) / 2, (first.processor + second.processor) / 2
    return {
        WAYS[0]: turns[WAYS[0]][0] + turns[WAYS[0]][1],
        WAYS[1]: turns[WAYS[1]][0] + turns[WAYS[1]][1],
        WAYS[2]: Turn(first.losses, clock, processor),
    }


def main() -> int:
    """Measure, print, and say whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--batch", type=int, default=64)
    ways = measured(parser.parse_args())
    alone = ways[WAYS[0]]
    print(f"{'':20}{'seconds':>9}{'ratio':>7}{'limit':>7}{'processor':>11}{'ratio':>7}  losses")
    held = True
    for (way, turn), limit in zip(ways.items(), LIMITS, strict=True):
        ratio, by_processor = alone.clock / turn.clock, alone.processor / turn.processor
        p = ks_2samp(alone.losses, turn.losses).pvalue
        held = held and ratio >= limit and p >= SAME
        quantiles = " ".join(f"{one:.4f}" for one in np.quantile(turn.losses, QUANTILES))
        print(
            f"{way:20}{turn.clock:9.1f}{ratio:7.1f}{limit:7.1f}{turn.processor:11.1f}"
            f"{by_processor:7.1f}  {quantiles}  p = {p:.2f}, the same model differs by "
            f"{np.abs(alone.losses - turn.losses).max():.0e} at most"
        )
    print("the limits hold" if held else "A LIMIT DOES NOT HOLD")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
