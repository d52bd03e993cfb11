"""What explanations of a torch network cost, against a pass through it and against captum.

usage: python benchmarks/explanations.py [--repeats 15]

Networks: a small one (104–50–50–2, 2,000 records) and that of Purchase (600–1024–512–256–100, 512
records), tanh, on one thread. A gradient is compared with one forward and backward pass of the
same records, integrated gradients (50 steps), LRP and DeepLIFT with captum's own, called directly,
all from features to attributions of the predicted class's logit. Figures are the fastest of
repetitions taken in turns, which other work on the machine disturbs least. Fails where a gradient
takes more than 1.2 times the pass, another more than 1.15 times captum's time, or where
attributions differ by more than 1e-5.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import captum.attr
import numpy as np
import torch
from torch import nn

from leakscope.channels.explanations import IntegratedGradients
from leakscope.models import as_model
from leakscope.models.attributions import attributions

OVER_A_PASS, OVER_CAPTUM = 1.2, 1.15
NETWORKS = {"small": ((104, 50, 50, 2), 2000), "Purchase": ((600, 1024, 512, 256, 100), 512)}


@dataclass(frozen=True)
class Race:
    """Ours and theirs, which of a network and its records make the same attributions (n, d)."""

    name: str
    ours: Callable[[], np.ndarray]
    theirs: Callable[[], np.ndarray]
    limit: float

    def run(self, repeats: int) -> tuple[float, float, float]:
        """Least seconds of ours and of theirs, and the largest difference."""
        mine, other = self.ours(), self.theirs()
        difference = np.abs(mine - other).max()
        seconds: tuple[list[float], list[float]] = ([], [])
        for _ in range(repeats):
            for work, times in zip((self.ours, self.theirs), seconds, strict=True):
                start = time.perf_counter()
                work()
                times.append(time.perf_counter() - start)
        return min(seconds[0]), min(seconds[1]), float(difference)


def network(widths: tuple[int, ...]) -> nn.Sequential:
    """Fully connected layers with tanh between them."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers[:-1]).eval()


def races(module: nn.Sequential, X: np.ndarray) -> list[Race]:
    """Each explanation against what it is measured by."""
    model = as_model(module)
    features = torch.tensor(X, dtype=torch.float32)
    target = module(features).argmax(dim=1)
    numbers = target.numpy()
    start = np.zeros((1, X.shape[1]))

    def one_pass() -> np.ndarray:
        module.zero_grad()
        inputs = torch.tensor(X, dtype=torch.float32, requires_grad=True)
        outputs = module(inputs)
        outputs.gather(1, outputs.argmax(dim=1, keepdim=True)).sum().backward()
        return np.asarray(inputs.grad)

    def by_captum(kind: type) -> np.ndarray:
        inputs = torch.tensor(X, dtype=torch.float32)
        return np.asarray(kind(module).attribute(inputs, target=target).detach())

    def integrated() -> np.ndarray:
        return IntegratedGradients().explain(model, X, start, numbers)

    def relevance() -> np.ndarray:
        return attributions(model, X, rule="lrp", target=numbers, epsilon=1e-9)

    def deeplift() -> np.ndarray:
        return attributions(model, X, rule="deeplift", target=numbers)

    kinds = captum.attr
    return [
        Race("gradient", lambda: attributions(model, X), one_pass, OVER_A_PASS),
        Race(
            "integrated gradients",
            integrated,
            lambda: by_captum(kinds.IntegratedGradients),
            OVER_CAPTUM,
        ),
        Race("LRP", relevance, lambda: by_captum(kinds.LRP), OVER_CAPTUM),
        Race("DeepLIFT", deeplift, lambda: by_captum(kinds.DeepLift), OVER_CAPTUM),
    ]


def main() -> int:
    """Print the table; 0 if every limit is kept, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    holds = True
    print("| network | explanation | ours, s | theirs, s | ratio | at most | difference |")
    print("|---|---|---|---|---|---|---|")
    for name, (widths, n) in NETWORKS.items():
        X = np.random.default_rng(0).normal(size=(n, widths[0]))
        for race in races(network(widths), X):
            ours, theirs, difference = race.run(options.repeats)
            print(f"| {name} | {race.name} | {ours:.4f} | {theirs:.4f} | ", end="")
            print(f"{ours / theirs:.2f} | {race.limit} | {difference:.1e} |")
            holds &= ours <= race.limit * theirs and difference <= 1e-5
    return int(not holds)


if __name__ == "__main__":
    raise SystemExit(main())
