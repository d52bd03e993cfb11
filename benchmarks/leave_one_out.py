"""Every leave-one-out model of Adult at once, against refitting without each record.

usage: python benchmarks/leave_one_out.py [--records 2000] [--refits 50] [--largest 20000]
                                          [--stand-in 1800 2048]

First the models without each of 2,000 records against scikit-learn's LogisticRegression, refitted
without some of them, one after another; all of them are extrapolated from these. Both sides take
turns, five times, and times are medians: machines have good and bad minutes. How exact each side
is, is measured: its largest error in an influence of the refitted records, against refits by
Newton's method to the last digit (tol 1e-13). The ratio that counts is the smallest, to the fastest
refits from nothing that are at least as exact as ours, of dense or sparse features. Told, and not
counted: the smallest to refits that are right to 1e-9, most of them less exact than ours; refits
that start from the model of all records, which take half as long; one thread for each side, as
ours has its threads for groups of models and scikit-learn for its linear algebra, where they gain
little (several refits at a time would gain more); scikit-learn's default tolerance; and the
approximations. Then seconds and the most memory the process held at growing sizes, with the
exponent of the growth, and the rank of each record in the explanation of its own prediction: all
influences of all records, never held whole. Last, Algorithm 1 of Shokri, Strobel & Zick (2021)
against explanations of one record each, on made-up records of the size of their Dog vs. Fish.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from dataclasses import dataclass, field

import numpy as np
from joblib import cpu_count
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from leakscope import load_dataset
from leakscope.channels.oracle import LocalOracle
from leakscope.exact import LeaveOneOut, koh_liang, leave_one_out, one_step_newton
from leakscope.extractions import Reconstruction
from leakscope.papers.shokri_reconstruction import stand_in

RATIO, SECONDS, MEGABYTES = 300.0, 300.0, 3072.0
ATTACK_SECONDS, ATTACK_MEGABYTES, MISSED = 360.0, 4096.0, 10
TURNS, TIMES = 5, 5  # times both sides are measured, and calls of ours each time
RIGHT = 1e-9  # the largest error of refits that are told of
NEWTON, LAST_DIGIT = "newton-cholesky", 1e-13
SIZES = (2000, 5000, 10_000, 20_000)


@dataclass
class Refits:
    """Refits by one solver, and what is known of them: seconds, and probabilities after each.

    warm: start from the model of all records.
    """

    solver: str
    tol: float
    sparse: bool = False
    warm: bool = False
    seconds: list[float] = field(default_factory=list)
    after: list[np.ndarray] = field(default_factory=list)

    @property
    def name(self) -> str:
        kinds = f"{', sparse' if self.sparse else ''}{', from all' if self.warm else ''}"
        return f"{self.solver}, tol {self.tol:g}{kinds}"

    def unfitted(self) -> LogisticRegression:
        return LogisticRegression(
            solver=self.solver, tol=self.tol, max_iter=100_000, warm_start=self.warm
        )

    def refit(self, X: np.ndarray, y: np.ndarray, records: np.ndarray) -> None:
        """Without each of these records."""
        whole = self.unfitted().fit(X, y) if self.warm else None
        for record in records:
            kept = np.arange(len(y)) != record
            rows, labels = (csr_array(X[kept]) if self.sparse else X[kept]), y[kept]
            model = self.unfitted()
            if whole is not None:
                model.classes_ = whole.classes_
                model.coef_, model.intercept_ = whole.coef_.copy(), whole.intercept_.copy()
            start = time.perf_counter()
            model.fit(rows, labels)
            self.seconds.append(time.perf_counter() - start)
            self.after.append(expit(model.decision_function(X)))

    def influences(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """(n, refits), of the records that were left out."""
        before = expit(self.unfitted().fit(X, y).decision_function(X))[:, None]
        return np.where(before > 0.5, 1.0, -1.0) * (before - np.stack(self.after, axis=1))


def at_once(X: np.ndarray, y: np.ndarray, workers: int | None = None) -> tuple[LeaveOneOut, list]:
    """All models without one record, and the seconds they take each time."""
    seconds = []
    for _ in range(TIMES):
        start = time.perf_counter()
        found = leave_one_out(X, y, workers=workers)
        seconds.append(time.perf_counter() - start)
    return found, seconds


def peak_megabytes() -> float:
    """The most memory this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compare(X: np.ndarray, y: np.ndarray, few: np.ndarray) -> float:
    """Print how long refitting takes and how exact it is; the smallest ratio that counts."""
    leave_one_out(X[:200], y[:200])  # imports are not what is measured
    solvers = [
        Refits(NEWTON, 1e-10),
        Refits(NEWTON, 1e-10, sparse=True),
        Refits(NEWTON, 1e-11),
        Refits(NEWTON, 1e-11, sparse=True),
        Refits(NEWTON, 1e-12),
        Refits(NEWTON, 1e-12, sparse=True),
        Refits(NEWTON, 1e-12, sparse=True, warm=True),
        Refits("lbfgs", 1e-10),
        Refits("lbfgs", 1e-4),
    ]
    ours, alone, theirs_alone = [], [], Refits(NEWTON, 1e-10, sparse=True)
    for records in np.array_split(few, TURNS):
        found, seconds = at_once(X, y)
        ours += seconds
        for one in solvers:
            one.refit(X, y, records)
        with threadpool_limits(1):
            alone += at_once(X, y, 1)[1]
            theirs_alone.refit(X, y, records)
    last = Refits(NEWTON, LAST_DIGIT)
    last.refit(X, y, few)
    exact, whole = last.influences(X, y), float(np.median(ours))
    theirs = max(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
    print(f"threads: {cpu_count()} of ours, {theirs} of scikit-learn's linear algebra")
    print(f"all {len(y):,} models of {X.shape[1]} features at once: {whole:.3f} s\n")
    print("| | ms per model | all, s | ratio | largest error | correlation |")
    print("|---|---|---|---|---|---|")
    error = tell("at once", found.influence(X)[:, few], exact, whole / len(y), whole)
    right, as_exact = [], []
    for one in solvers:
        each = float(np.median(one.seconds))
        off = tell(one.name, one.influences(X, y), exact, each, whole, len(y))
        right += [len(y) * each / whole] if off <= RIGHT and not one.warm else []
        as_exact += [len(y) * each / whole] if off <= error and not one.warm else []
    for approximate in (one_step_newton, koh_liang):
        start = time.perf_counter()
        near = approximate(X, y)
        spent = time.perf_counter() - start
        tell(near.method, near.influence(X)[:, few], exact, spent / len(y), whole)
    single, each = float(np.median(alone)), float(np.median(theirs_alone.seconds))
    print(f"\none thread for each side: {single:.3f} s at once, {1000 * each:.1f} ms ", end="")
    print(f"per model by {theirs_alone.name}: ratio {len(y) * each / single:.0f}")
    print(f"{len(few)} models were refitted, the others are extrapolated")
    print(f"smallest ratio to refits right to {RIGHT:g}: {min(right, default=np.nan):.0f}")
    smallest = min(as_exact, default=0.0)  # of none, if all are less exact
    print(f"smallest ratio to refits as exact as ours: {smallest:.0f} (limit {RATIO:.0f})\n")
    return smallest


def tell(
    what: str, values: np.ndarray, exact: np.ndarray, seconds: float, ours: float, models: int = 0
) -> float:
    """Print a row: seconds of one model, and of so many by extrapolation; the largest error."""
    off = float(np.abs(values - exact).max())
    agreement = np.corrcoef(values.ravel(), exact.ravel())[0, 1]
    whole = f"{models * seconds:.1f} | {models * seconds / ours:.0f}" if models else " | "
    print(f"| {what} | {1000 * seconds:.2f} | {whole} | {off:.1e} | {agreement:.4f} |", flush=True)
    return off


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


def reconstruct(records: int, features: int) -> bool:
    """Print how many records Algorithm 1 recovers, and how fast; whether its limits hold."""
    population = stand_in(records, features)
    start = time.perf_counter()
    found = leave_one_out(population.X, population.y)
    models = time.perf_counter() - start
    oracle = LocalOracle(
        lambda queries: found.predict_proba(queries)[:, 1],
        found.explain,
        population.X,
        population.y,
        k=1,
    )
    start = time.perf_counter()
    disclosure = Reconstruction().run(oracle)
    seconds = time.perf_counter() - start
    print(
        f"\nAlgorithm 1 on {records:,} x {features:,} made-up records: models {models:.1f} s, ",
        end="",
    )
    print(f"{disclosure.recovered:,} recovered (limit {records - MISSED:,}) ", end="")
    print(
        f"by {disclosure.queries:,} queries in {seconds:.0f} s (limit {ATTACK_SECONDS:.0f}), ",
        end="",
    )
    print(f"{peak_megabytes():.0f} MB (limit {ATTACK_MEGABYTES:.0f})")
    fast = seconds < ATTACK_SECONDS and peak_megabytes() < ATTACK_MEGABYTES
    return fast and disclosure.recovered >= records - MISSED


def main() -> int:
    """Print the tables; 0 if every limit holds, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=2000, help="records of the comparison")
    parser.add_argument("--refits", type=int, default=50, help="models that are refitted")
    parser.add_argument("--largest", type=int, default=20_000, help="records at the most")
    parser.add_argument("--stand-in", type=int, nargs=2, default=(1800, 2048), metavar=("N", "D"))
    options = parser.parse_args()
    adult = load_dataset("adult")
    rng = np.random.default_rng(0)
    rows = rng.choice(len(adult.y), max(options.largest, options.records), replace=False)
    X, y = np.asarray(adult.X)[rows], adult.y[rows]
    few = rng.choice(options.records, options.refits, replace=False)
    warnings.simplefilter("error")  # a refit that did not converge is no reference
    ratio = compare(X[: options.records], y[: options.records], few)
    seconds = grow(X, y, [size for size in SIZES if size < options.largest] + [options.largest])
    small = peak_megabytes() < MEGABYTES
    recovered = reconstruct(*options.stand_in)
    return int(ratio < RATIO or seconds >= SECONDS or not small or not recovered)


if __name__ == "__main__":
    raise SystemExit(main())
