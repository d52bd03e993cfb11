"""Time and memory of scoring and judging 50,000 records under every threshold attack.

usage: python benchmarks/thresholds.py [--records 50000] [--classes 10]

From class probabilities to outcomes: observe the channels, score, and judge each attack (AUC,
advantage, TPR at FPR, PPV, histogram, groups). The alternative, in the same run, takes AUC alone
for the same scores by comparing each member with each non-member, on a part of the records,
extrapolated by the number of pairs.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from leakscope.auditing.battery import choose_attacks, run_battery
from leakscope.auditing.judging import judge_battery
from leakscope.evidence import Folds
from leakscope.models import Remembering
from leakscope.models.predictions import SavedPredictions
from leakscope.protocols import silent
from leakscope.records import Records

ATTACKS = ("loss", "label-gap", "confidence", "entropy", "modified-entropy")
PART = 2000


def draw(n: int, k: int) -> tuple[Records, np.ndarray]:
    """Predictions that are surer on members, with two group columns."""
    rng = np.random.default_rng(0)
    y, membership = rng.integers(0, k, n), rng.random(n) < 0.5
    sure = rng.beta(np.where(membership, 3.0, 2.0), 1.0)[:, None]
    probabilities = sure * (np.arange(k) == y[:, None]) + (1 - sure) * rng.dirichlet(np.ones(k), n)
    groups = {"sex": rng.choice(["f", "m"], n), "age": rng.choice(list("abcdef"), n)}
    return Records(probabilities, y, groups), membership


def peak_megabytes() -> float:
    """The most memory this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def slow_auc(scores: np.ndarray, membership: np.ndarray) -> float:
    """The share of pairs in which the member scores higher, one pair after another."""
    members, others = scores[membership].tolist(), scores[~membership].tolist()
    won = sum((one > other) + 0.5 * (one == other) for one in members for other in others)
    return won / (len(members) * len(others))


def main() -> None:
    """Print seconds, megabytes and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=10)
    options = parser.parse_args()
    records, membership = draw(options.records, options.classes)
    model = Remembering(SavedPredictions(np.arange(options.classes)))
    attacks, _ = choose_attacks(ATTACKS, None)
    # A small run first: imports are not what is measured.
    few = records.take(np.arange(200))
    run_battery(
        model,
        few,
        membership[:200],
        Folds.draw(few.blocks(), membership[:200], 0),
        attacks,
        0,
        silent,
    )
    before, start = peak_megabytes(), time.perf_counter()
    folds = Folds.draw(records.blocks(), membership, 0)
    battery = run_battery(model, records, membership, folds, attacks, 0, silent)
    scored = time.perf_counter() - start
    judge_battery(
        battery,
        records,
        membership,
        folds,
        records.blocks(),
        prior=0.5,
        randomized=False,
        delta=1e-5,
    )
    seconds, megabytes = time.perf_counter() - start, peak_megabytes() - before
    scores = battery.shots["loss"].scores[:PART]
    start = time.perf_counter()
    slow_auc(scores, membership[:PART])
    pairs = len(ATTACKS) * (options.records / PART) ** 2
    slow = (time.perf_counter() - start) * pairs
    print("| records | attacks | scoring | and judging | memory beyond inputs | by pairs | ratio |")
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {options.records:,} | {len(ATTACKS)} | {scored:.2f} s | {seconds:.2f} s | "
        f"{megabytes:.0f} MB | {slow:.0f} s | {slow / seconds:.0f} |"
    )


if __name__ == "__main__":
    main()
