"""What an epoch of a defended training costs, against an epoch of the plain one.

usage: python benchmarks/defenses.py [--repeats 5]

Networks: LeNet-5 on 2,000 images of 28 × 28, and fully connected layers (446–1024–512–256–30) on
1,200 records, batches of 64 and Adam, on one thread. The content does not matter to the time, and
is drawn. An epoch of a defense is what further epochs add to a training, so that what it does once
is left out: the search for the noise of DP-SGD, the first projection of a pruning. Figures are the
least of repetitions taken in turns, which other work on the machine disturbs least. Fails where an
epoch of ADMM takes more than 1.4 times a plain one, of min-max or DP-SGD more than 4.5 times.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from leakscope.defenses import DPSGD, MinMax, Pruning
from leakscope.networks.lenet import lenet5_of
from leakscope.networks.mlp import MLP
from leakscope.protocols import Recipe
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

# The epochs of the shorter and the longer training whose difference is measured.
SHORT, LONG = 1, 5
PLAIN = "plain"
LIMITS = {"ADMM": 1.4, "retraining, masked": 1.4, "min-max": 4.5, "DP-SGD": 4.5}

Training = Callable[[int], Recipe]


def hidden_layers(features: int, classes: int) -> MLP:
    """The network of Location-30."""
    return MLP([features, 1024, 512, 256, classes])


def networks() -> dict[str, tuple[TorchRecipe, Records]]:
    """The recipes, and records of the shapes they are for, as many again being reference ones."""
    rng = np.random.default_rng(0)
    images = Records(rng.random((4000, 1, 28, 28), dtype=np.float32), rng.integers(10, size=4000))
    visits = Records(
        rng.integers(2, size=(2400, 446)).astype(np.float32), rng.integers(30, size=2400)
    )
    return {
        "LeNet-5": (TorchRecipe("lenet-5", lenet5_of, batch_size=64), images),
        "446–1024–512–256–30": (TorchRecipe("mlp", hidden_layers, batch_size=64, stack=1), visits),
    }


def trainings(recipe: TorchRecipe) -> dict[str, Training]:
    """By their names, each a recipe of so many epochs of its kind."""
    once = replace(recipe, epochs=1)

    def pruned(epochs: int, retrain: int) -> Recipe:
        return Pruning(16, epochs=epochs, retrain=retrain, rhos=(1e-2,)).wrap_recipe(once)

    return {
        PLAIN: lambda epochs: replace(recipe, epochs=epochs),
        "ADMM": lambda epochs: pruned(epochs, 0),
        "retraining, masked": lambda epochs: pruned(1, epochs),
        "min-max": lambda epochs: MinMax(0.3).wrap_recipe(replace(recipe, epochs=epochs)),
        "DP-SGD": lambda epochs: DPSGD(6.28).wrap_recipe(replace(recipe, epochs=epochs)),
    }


def seconds(recipe: Recipe, records: Records) -> float:
    """What training takes on the first half of the records, with the second as reference."""
    roles = np.repeat([1, 2], len(records) // 2).astype(np.int8)
    start = time.perf_counter()
    recipe.fit_many(records, roles[None], [0])
    return time.perf_counter() - start


def per_epoch(kinds: dict[str, Training], records: Records, repeats: int) -> dict[str, float]:
    """The seconds that an epoch of each adds."""
    made = [(name, epochs, kinds[name](epochs)) for name in kinds for epochs in (SHORT, LONG)]
    least: dict[tuple[str, int], float] = {}
    for _ in range(repeats):
        for name, epochs, recipe in made:
            taken = seconds(recipe, records)
            least[name, epochs] = min(taken, least.get((name, epochs), taken))
    return {name: (least[name, LONG] - least[name, SHORT]) / (LONG - SHORT) for name in kinds}


def main() -> int:
    """Print the table; 0 if every limit is kept, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    holds = True
    print("| network | training | s per epoch | times the plain one | at most |")
    print("|---|---|---|---|---|")
    for network, (recipe, records) in networks().items():
        found = per_epoch(trainings(recipe), records, options.repeats)
        for name, taken in found.items():
            ratio, limit = taken / found[PLAIN], LIMITS.get(name)
            print(f"| {network} | {name} | {taken:.4f} | {ratio:.2f} | {limit or ''} |", flush=True)
            holds &= limit is None or ratio <= limit
    return int(not holds)


if __name__ == "__main__":
    raise SystemExit(main())
