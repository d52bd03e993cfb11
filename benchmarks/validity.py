"""How often verdicts are right where the truth is known, and how often intervals hold the truth.

usage: python benchmarks/validity.py [--simulated 2000] [--real 200] [--shadowed 400]
                                     [--planted 200] [--repetitions 1000] [--workers 2]

About 40 minutes on two cores. The first table counts the verdicts of whole audits, with every
attack and control:
- simulated: saved predictions drawn from one distribution for both sides: nobody is a member;
- real: a random forest trained on a third set, so neither side are members, 500 records a side;
- shadowed: the same with a tree, and with every attack on 16 shadow models;
- planted: one nearest neighbour trained on the members, 500 records a side.
The verdict `leaks` must come in at most 2.5 % of all but the last, and always there. The other
tables are the coverage of intervals on scores of known truth (_coverage.py). The exit code is 1 if
anything is out of its range.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binomtest

import leakscope
from _coverage import coverage_tables
from leakscope.recipes import named_recipe, train
from leakscope.records import Records
from leakscope.registry import entries

SIDE = 500


def simulated(seed: int) -> str:
    """An audit of predictions from one distribution, whose sharpness, classes and sizes vary."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 11))
    sizes = rng.integers(100, 1000, size=2)
    sharpness = rng.choice([0.3, 1.0, 5.0])

    def side(n: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(0, k, n)
        return rng.dirichlet(np.ones(k) * sharpness, n) * 0.5 + 0.5 * (
            np.arange(k) == y[:, None]
        ), y

    (p1, y1), (p0, y0) = side(sizes[0]), side(sizes[1])
    return leakscope.audit_predictions(p1, y1, p0, y0, seed=seed).verdict.level


def adult(seed: int, sides: int) -> list[Records]:
    """Disjoint random sets of 500 Adult records, equal records kept together."""
    pool = leakscope.load_dataset("adult").sample(sides * SIDE, seed)
    deal = np.random.default_rng(seed).permutation(pool.blocks().max() + 1)[pool.blocks()] % sides
    return [pool.take(np.flatnonzero(deal == side)) for side in range(sides)]


def real(seed: int) -> str:
    """An audit of a forest that was trained on neither side."""
    third, members, nonmembers = adult(seed, 3)
    model = train(named_recipe("forest"), third, seed)
    return leakscope.audit(model, members, nonmembers, seed=seed).verdict.level


def shadowed(seed: int) -> str:
    """An audit of a tree that was trained on neither side, by attacks on shadow models alone."""
    third, members, nonmembers = adult(seed, 3)
    recipe = named_recipe("tree")
    model = train(recipe, third, seed)
    attacks = [one.name for one in entries("attack") if one.thing.shadows]
    return leakscope.audit(
        model,
        members,
        nonmembers,
        attacks=attacks,
        recipe=recipe,
        shadows=16,
        workers=1,
        seed=seed,
    ).verdict.level


def planted(seed: int) -> str:
    """An audit of one nearest neighbour, which keeps its members."""
    members, nonmembers = adult(seed, 2)
    model = train(named_recipe("nearest"), members, seed)
    return leakscope.audit(model, members, nonmembers, seed=seed).verdict.level


def quietly(run: Callable[[int], str], seed: int) -> str:
    """One run; a warning is an error, as in the tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return run(seed)


def main() -> int:
    """Print the tables; 0 if everything is in its range."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--simulated", type=int, default=2000)
    parser.add_argument("--real", type=int, default=200)
    parser.add_argument("--shadowed", type=int, default=400)
    parser.add_argument("--planted", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=1000, help="score sets per cell")
    parser.add_argument("--workers", type=int, default=2, help="processes; changes no number")
    options = parser.parse_args()
    good = True
    print(
        "| audits | number | leaks | share (95 % interval) | no leak found | undecided | invalid |"
    )
    print("|---|---|---|---|---|---|---|")
    for run in (simulated, real, shadowed, planted):
        name = run.__name__
        number = getattr(options, name)
        levels = Counter(
            Parallel(n_jobs=options.workers)(delayed(quietly)(run, seed) for seed in range(number))
        )
        if not number:
            continue
        share = binomtest(levels["leaks"], number)
        ends = share.proportion_ci(method="wilson")
        print(
            f"| {name} | {number} | {levels['leaks']} | {share.statistic:.2%} "
            f"({ends.low:.2%} to {ends.high:.2%}) | {levels['no_leak_found']} | "
            f"{levels['undecided']} | {levels['invalid']} |",
            flush=True,
        )
        good &= levels["leaks"] == number if name == "planted" else share.statistic <= 0.025
    if options.repetitions:
        text, covered = coverage_tables(options.repetitions, options.workers)
        print(f"\n{text}")
        good &= covered
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
