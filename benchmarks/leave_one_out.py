"""Every leave-one-out model of Adult at once, against refitting without each record.

usage: python benchmarks/leave_one_out.py [--records 2000] [--refits 20] [--largest 20000]

First the models without each of 2,000 records against scikit-learn's LogisticRegression, refitted
without some of them to the same accuracy (tol 1e-10) by its fastest exact solver and by its default
one, one after another; all of them are extrapolated from these. How far the influences of the
refitted records are apart says how exact both are, and what scikit-learn's default tolerance and
the approximations make of the same influences stands beside. Then seconds and the most memory the
process held at growing sizes, with the exponent of the growth, and the rank of each record in the
explanation of its own prediction: all influences of all records, never held whole.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from leakscope import load_dataset
from leakscope.exact import koh_liang, leave_one_out, one_step_newton

RATIO, SECONDS, MEGABYTES = 300.0, 300.0, 3072.0
SOLVERS = ("newton-cholesky", "lbfgs")
SIZES = (2000, 5000, 10_000, 20_000)


def refits(
    X: np.ndarray, y: np.ndarray, records: np.ndarray, solver: str, tol: float
) -> tuple[np.ndarray, float]:
    """Probabilities (n, refits) without each of these records, and the seconds one refit takes."""
    found, seconds = [], 0.0
    for record in records:
        kept = np.arange(len(y)) != record
        rows, labels = X[kept], y[kept]
        start = time.perf_counter()
        model = LogisticRegression(solver=solver, tol=tol, max_iter=100_000).fit(rows, labels)
        seconds += time.perf_counter() - start
        found.append(expit(model.decision_function(X)))
    return np.stack(found, axis=1), seconds / len(records)


def peak_megabytes() -> float:
    """The most memory this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compare(X: np.ndarray, y: np.ndarray, few: np.ndarray) -> float:
    """Print how long refitting takes and how far influences are apart; the smallest ratio."""
    leave_one_out(X[:200], y[:200])  # imports are not what is measured
    start = time.perf_counter()
    found = leave_one_out(X, y)
    ours = time.perf_counter() - start
    own = expit(X @ found.theta[:-1] + found.theta[-1])[:, None]
    signs = np.where(own > 0.5, 1.0, -1.0)
    influence = found.influence(X)[:, few]
    print(f"all {len(y):,} models of {X.shape[1]} features at once: {ours:.2f} s\n")
    print("| refitting | ms per model | all, s | ratio | largest difference | correlation |")
    print("|---|---|---|---|---|---|")
    ratios = []
    for solver, tol in [*((solver, 1e-10) for solver in SOLVERS), ("lbfgs", 1e-4)]:
        after, seconds = refits(X, y, few, solver, tol)
        before = own
        if tol > 1e-10:  # what one gets who fits both models as scikit-learn does by default
            whole = LogisticRegression(solver=solver, tol=tol, max_iter=100_000).fit(X, y)
            before = expit(whole.decision_function(X))[:, None]
        else:
            ratios.append(len(y) * seconds / ours)
        theirs = signs * (before - after)
        apart = np.abs(theirs - influence).max()
        agreement = np.corrcoef(theirs.ravel(), influence.ravel())[0, 1]
        print(f"| {solver}, tol {tol:g} | {1000 * seconds:.0f} | {len(y) * seconds:.0f} ", end="")
        print(f"| {len(y) * seconds / ours:.0f} | {apart:.1e} | {agreement:.4f} |")
    for approximate in (one_step_newton, koh_liang):
        start = time.perf_counter()
        near = approximate(X, y)
        seconds = time.perf_counter() - start
        values = near.influence(X)[:, few]
        apart = np.abs(values - influence).max()
        agreement = np.corrcoef(values.ravel(), influence.ravel())[0, 1]
        print(f"| {near.method} | | {seconds:.2f} | | {apart:.1e} | {agreement:.4f} |")
    print(f"\n{len(few)} models were refitted, the others are extrapolated")
    print(f"smallest ratio at equal accuracy {min(ratios):.0f} (limit {RATIO:.0f})\n")
    return min(ratios)


def grow(X: np.ndarray, y: np.ndarray, sizes: list[int]) -> float:
    """Print seconds and memory at each size; the seconds at the largest."""
    print("| records | models, s | own ranks, s | peak MB | revealed by 1 / 5 / 10 |")
    print("|---|---|---|---|---|")
    times = []
    for size in sizes:
        start = time.perf_counter()
        found = leave_one_out(X[:size], y[:size])
        times.append(time.perf_counter() - start)
        start = time.perf_counter()
        ranks = found.self_ranks()
        seconds = time.perf_counter() - start
        shares = " / ".join(f"{(ranks <= k).mean():.1%}" for k in (1, 5, 10))
        print(f"| {size:,} | {times[-1]:.1f} | {seconds:.1f} ", end="")
        print(f"| {peak_megabytes():.0f} | {shares} |", flush=True)
    if len(sizes) > 1:
        exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        print(f"\nseconds grow as records to the power {exponent:.2f}")
    start = time.perf_counter()
    queries, largest = X[-1000:], 0.0
    for _, part in found.influence_chunks(queries, measure="log-loss"):
        largest = max(largest, float(np.abs(part).max()))
    seconds = time.perf_counter() - start
    print(f"influence of {size:,} records on {len(queries):,} queries, in chunks: ", end="")
    print(f"{seconds:.1f} s, the largest {largest:.2f}")
    print(f"at {size:,} records {times[-1]:.0f} s (limit {SECONDS:.0f}), ", end="")
    print(f"{peak_megabytes():.0f} MB (limit {MEGABYTES:.0f})")
    return times[-1]


def main() -> int:
    """Print the tables; 0 if every limit holds, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=2000, help="records of the comparison")
    parser.add_argument("--refits", type=int, default=20, help="models that are refitted")
    parser.add_argument("--largest", type=int, default=20_000, help="records at the most")
    options = parser.parse_args()
    adult = load_dataset("adult")
    rng = np.random.default_rng(0)
    rows = rng.choice(len(adult.y), max(options.largest, options.records), replace=False)
    X, y = np.asarray(adult.X)[rows], adult.y[rows]
    few = rng.choice(options.records, options.refits, replace=False)
    warnings.simplefilter("error")  # a refit that did not converge is no reference
    ratio = compare(X[: options.records], y[: options.records], few)
    seconds = grow(X, y, [size for size in SIZES if size < options.largest] + [options.largest])
    return int(ratio < RATIO or seconds >= SECONDS or peak_megabytes() >= MEGABYTES)


if __name__ == "__main__":
    raise SystemExit(main())
