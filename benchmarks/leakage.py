"""Leakage of every record of Adult by paired draws, against refitting for each record.

usage: python benchmarks/leakage.py [--n 100] [--draws 1000] [--records 8] [--repetitions 24]

First every record, on all cores: seconds and the most memory the process held. Then, on one core
each, the time per record at equal draws: paired draws with their intervals; models trained anew
with and without the record, by the normal equations, one after another; and the same in one batch
per record, the fastest refitting we know. Last, how far estimates of the same records spread over
repetitions with different seeds, and how far their means are from a paired run of twenty times
the draws; what independent draws show of records that leak nothing has been subtracted.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

from leakscope import load_dataset
from leakscope.exact import ridge_leakage
from leakscope.metrics.gaussian import jeffreys

SECONDS, MEGABYTES, SPEED = 60.0, 2048.0, 150.0


def training_sets(
    size: int, record: int, n: int, draws: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Members (draws, n) with the record and without it."""
    drawn = [rng.choice(size - 1, 2 * n - 1, replace=False) for _ in range(draws)]
    others = np.stack(drawn)
    others += others >= record
    return np.insert(others[:, : n - 1], 0, record, axis=1), others[:, n - 1 :]


def fit_each(X: np.ndarray, y: np.ndarray, members: np.ndarray) -> np.ndarray:
    """A model for each training set, one after another."""
    return np.stack([np.linalg.solve(X[rows].T @ X[rows], X[rows].T @ y[rows]) for rows in members])


def fit_batch(X: np.ndarray, y: np.ndarray, members: np.ndarray) -> np.ndarray:
    """A model for each training set, all at once."""
    rows = X[members]
    columns = rows.swapaxes(1, 2)
    return np.linalg.solve(columns @ rows, columns @ y[members][..., None])[..., 0]


def refit(
    fit: Callable[..., np.ndarray],
    X: np.ndarray,
    y: np.ndarray,
    record: int,
    n: int,
    draws: int,
    seed: int,
) -> float:
    """The leakage of one record from models trained anew, with and without it."""
    p, rng = X.shape[1], np.random.default_rng([seed, record])
    models = [fit(X, y, members) for members in training_sets(len(X), record, n, draws, rng)]
    gaussians = [part for theta in models for part in (theta.mean(axis=0), np.cov(theta.T))]
    chance = (p * (p + 1) + 2 * p * (draws - 1) / draws) / (draws - p - 2)
    return float(jeffreys(*gaussians)) - chance


def peak_megabytes() -> float:
    """The most memory this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    """Print the table; 0 if every limit holds, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=100, help="records that train a model")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--records", type=int, default=8, help="records refitted for")
    parser.add_argument("--repetitions", type=int, default=24)
    options = parser.parse_args()
    n, draws = options.n, options.draws
    adult = load_dataset("adult", encoding="pca", components=5)
    X, y = np.asarray(adult.X), adult.y.astype(np.float64)
    few = np.random.default_rng(0).choice(len(X), options.records, replace=False)
    ridge_leakage(X, y, n, draws=draws, records=few)  # imports are not what is measured

    start = time.perf_counter()
    mean = ridge_leakage(X, y, n, draws=draws).mean
    seconds, megabytes = time.perf_counter() - start, peak_megabytes()

    start = time.perf_counter()
    ridge_leakage(X, y, n, draws=draws, workers=1)
    paired_seconds = (time.perf_counter() - start) / len(X)
    seeds = range(1, options.repetitions + 1)
    paired = [ridge_leakage(X, y, n, draws=draws, records=few, seed=seed).rho_kl for seed in seeds]
    start = time.perf_counter()
    refitted = [[refit(fit_batch, X, y, i, n, draws, seed) for i in few] for seed in seeds]
    batch_seconds = (time.perf_counter() - start) / (len(few) * len(seeds))
    start = time.perf_counter()
    for i in few:
        refit(fit_each, X, y, i, n, draws, 1)
    refit_seconds = (time.perf_counter() - start) / len(few)
    truth = ridge_leakage(X, y, n, draws=20 * draws, records=few).rho_kl

    print(f"every record: {len(X):,}, n = {n}, 5 features, {draws:,} draws")
    print(f"mean rho_kl {mean.value:.5f} ({mean.low:.5f} to {mean.high:.5f}), ", end="")
    print(f"{seconds:.1f} s (limit {SECONDS:.0f}), {megabytes:.0f} MB (limit {MEGABYTES:.0f})\n")
    print(f"{len(few)} records, {len(seeds)} repetitions, mean rho_kl {truth.mean():.5f}")
    print("| way | mean bias | mean standard deviation |")
    print("|---|---|---|")
    for way, found in (("paired", paired), ("refitting", refitted)):
        bias = np.mean(found, axis=0) - truth
        spread = np.std(found, axis=0, ddof=1)
        print(f"| {way} | {bias.mean():+.5f} | {spread.mean():.5f} |")
    ratios = np.std(refitted, axis=0, ddof=1) / np.std(paired, axis=0, ddof=1)
    print(f"\nratio of standard deviations {np.median(ratios):.1f} (median over records)")
    print(f"ms per record: paired {1000 * paired_seconds:.3f}, ", end="")
    print(f"refitting {1000 * refit_seconds:.1f}, in batches {1000 * batch_seconds:.1f}")
    speed = refit_seconds / paired_seconds
    print(f"speed ratio {speed:.0f} (limit {SPEED:.0f}), ", end="")
    print(f"against batches {batch_seconds / paired_seconds:.0f}")
    return int(seconds >= SECONDS or megabytes >= MEGABYTES or speed < SPEED)


if __name__ == "__main__":
    raise SystemExit(main())
