"""Time and memory of LiRA and RMIA, beside a Python loop over records.

usage: python benchmarks/scoring.py [--models 256] [--records 50000] [--part 500]

The loop does the same for one record after another. LiRA's has numpy and scipy.stats inside, as the
authors' published code has. RMIA's compares each record with every other one in Python; a second
one makes these comparisons in one step of numpy, and what is left to gain is the loop itself. Loops
are measured on a part of the records (RMIA's compares each of them with all), the ratio is that of
the times per record, and the results must agree to 1e-10 on that part. Memory is what is allocated
beyond the inputs, in a run of its own.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from leakscope.attacks import lira, rmia
from leakscope.attacks.likelihood_ratio import FLOOR

Floats = np.ndarray


def draw(m: int, n: int) -> tuple[Floats, Floats, Floats]:
    """Margins of m models and of the target, higher for members, and who is one, m models."""
    rng = np.random.default_rng(0)
    membership = rng.random((m + 1, n)) < 0.5
    margins = rng.normal(size=(m + 1, n))
    margins += rng.normal(size=n) + membership
    return margins[:m], membership[:m], margins[m]


def lira_loop(
    margins: Floats, membership: Floats, target: Floats, online: bool, floor: float
) -> Floats:
    """The attack of one record after another; floor is the least standard deviation."""
    scores = np.empty(len(target))
    for i, seen in enumerate(target):
        outside = margins[~membership[:, i], i]
        mean_out, spread_out = outside.mean(), max(outside.std(ddof=1), floor)
        if online:
            inside = margins[membership[:, i], i]
            mean_in, spread_in = inside.mean(), max(inside.std(ddof=1), floor)
            scores[i] = norm.logpdf(seen, mean_in, spread_in)
            scores[i] -= norm.logpdf(seen, mean_out, spread_out)
        else:
            scores[i] = norm.logcdf(seen, mean_out, spread_out)
            scores[i] -= norm.logsf(seen, mean_out, spread_out)
    return scores


def count_plainly(ratio: float, others: list[float]) -> int:
    """How many others a record dominates, one after another."""
    return sum(ratio >= 2.0 * other for other in others)


def count_at_once(ratio: float, others: Floats) -> int:
    """How many others a record dominates, in one step."""
    return int((ratio >= 2.0 * others).sum())


def rmia_loop(
    probabilities: Floats,
    membership: Floats,
    target: Floats,
    online: bool,
    others: Floats | list[float],
    count: Callable[..., int],
) -> Floats:
    """The share of the others (all records' ratios) that each record dominates."""
    scores = np.empty(len(target))
    for i, seen in enumerate(target):
        outside = probabilities[~membership[:, i], i].mean()
        if online:
            ratio = seen / ((probabilities[membership[:, i], i].mean() + outside) / 2)
        else:
            ratio = seen / ((1.3 * outside + 0.7) / 2)
        scores[i] = count(ratio, others) / (len(others) - 1)  # it never dominates itself
    return scores


def all_ratios(probabilities: Floats, membership: Floats, target: Floats, online: bool) -> Floats:
    """What RMIA's loop compares with, by plain sums, and not part of its time."""
    inside, outside = (
        (probabilities * side).sum(axis=0) / side.sum(axis=0) for side in (membership, ~membership)
    )
    return target / ((inside + outside) / 2 if online else (1.3 * outside + 0.7) / 2)


def least_spread(margins: Floats, membership: Floats, online: bool) -> float:
    """The floor of the standard deviation, by plain sums over all records."""
    squares, freedom = 0.0, 0
    for side in (membership, ~membership)[0 if online else 1 :]:
        count = side.sum(axis=0)
        mean = (margins * side).sum(axis=0) / count
        squares += (((margins - mean) * side) ** 2).sum()
        freedom += int((count - 1).sum())
    return float(np.sqrt(FLOOR * squares / freedom))


def peak_megabytes(run: Callable[[], Floats]) -> float:
    """The most memory that is allocated while it runs."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def seconds(run: Callable[[], Floats], repeats: int) -> tuple[float, Floats]:
    """The least time of a few runs, and the result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return min(times), result


def main() -> None:
    """Print seconds, megabytes and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=256)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--part", type=int, default=500)
    options = parser.parse_args()
    n, part = options.records, min(options.part, options.records)
    margins, membership, target = draw(options.models, n)
    probabilities, own = expit(margins), expit(target)

    print(f"{options.models} models × {n:,} records; the loop on {part:,} of them\n")
    print("| attack | seconds | memory beyond inputs | the loop | per record | all | ratio |")
    print("|---|---|---|---|---|---|---|")
    for online in (True, False):
        floor = least_spread(margins, membership, online)
        ratios = all_ratios(probabilities, membership, own, online)
        few = membership[:, :part]
        lira_slow = partial(lira_loop, margins[:, :part], few, target[:part], online, floor)
        rmia_slow = partial(rmia_loop, probabilities[:, :part], few, own[:part], online)
        rmia_fast = partial(rmia, probabilities, membership, own, online=online)
        variant = "" if online else "-offline"
        compare(
            f"lira{variant}",
            partial(lira, margins, membership, target, online),
            {"numpy and scipy inside": lira_slow},
            n,
            part,
        )
        compare(
            f"rmia{variant}",
            rmia_fast,
            {
                "pairs in Python": partial(rmia_slow, ratios.tolist(), count_plainly),
                "pairs in numpy": partial(rmia_slow, ratios, count_at_once),
            },
            n,
            part,
        )


def compare(
    name: str, fast: Callable[[], Floats], loops: dict[str, Callable[[], Floats]], n: int, part: int
) -> None:
    """A row of the table for each loop."""
    quick, scores = seconds(fast, 3)
    megabytes = peak_megabytes(fast)
    for loop, slow in loops.items():
        plain, expected = seconds(slow, 1)
        np.testing.assert_allclose(scores[:part], expected, rtol=1e-10, atol=1e-10)
        everything = plain / part * n
        print(
            f"| {name} | {quick:.2f} | {megabytes:.0f} MB | {loop} | {1e6 * plain / part:.0f} µs | "
            f"{everything:.1f} s | {everything / quick:.0f} |"
        )


if __name__ == "__main__":
    main()
