"""How often the 95 % intervals hold the truth, on Gaussian scores whose truth is known.

Part of benchmarks/validity.py. Non-members score N(0, 1), members N(μ, s²); every cell of the table
is one size, spread and true AUC, drawn many times. Judged are the AUC, the advantage of the
threshold that was chosen (on a fifth of the records; the truth is the population's advantage at
that very threshold), and TPR at FPR where there are non-members enough.

Where fewer than one member is expected above the threshold, nearly every sample finds none, the
interval starts at 0 and must hold the truth nearly always: such cells, in parentheses, are asked
for the lower limit alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import norm

from leakscope.metrics import Interval, Rate, roc, wilson
from leakscope.metrics.tails import ENOUGH

SIZES = ((100, 100), (300, 300), (1000, 1000), (5000, 5000), (100, 5000), (5000, 100), (300, 1000))
SPREADS = (1.0, 0.5, 2.0)
AREAS = (0.5, 0.6, 0.7, 0.8, 0.9)
FPRS = (0.001, 0.01, 0.05)
RANGES = {"AUC": (0.93, 0.97), "advantage": (0.93, 0.97), "PPV": (0.93, 0.97)} | {
    f"TPR at {fpr:.1%} FPR": (0.93, 0.99) for fpr in FPRS
}


@dataclass(frozen=True)
class Cell:
    """One population: so many records a side, the members' spread, the true AUC."""

    members: int
    nonmembers: int
    spread: float
    area: float

    @property
    def mean(self) -> float:
        """The members' mean that gives this AUC."""
        return float(norm.ppf(self.area)) * math.hypot(1, self.spread)

    @property
    def fprs(self) -> list[float]:
        """The false positive rates that so many non-members resolve."""
        return [fpr for fpr in FPRS if fpr * self.nonmembers * (1 + 1e-12) >= ENOUGH]

    def tpr(self, threshold: float) -> float:
        """The population's true positive rate at a threshold."""
        return float(norm.sf((threshold - self.mean) / self.spread))


def held(truth: float, interval: Interval | Rate) -> bool:
    """Whether the interval holds the truth."""
    return interval.low <= truth <= interval.high


def coverage(cell: Cell, repetitions: int, seed: int) -> dict[str, float]:
    """The share of repetitions in which each interval held the truth."""
    key = (seed, cell.members, cell.nonmembers, int(10 * cell.spread), int(100 * cell.area))
    rng = np.random.default_rng(key)
    membership = np.arange(cell.members + cell.nonmembers) < cell.members
    counts = dict.fromkeys(RANGES, 0)
    for repetition in range(repetitions):
        scores = rng.standard_normal(len(membership))
        scores[: cell.members] = cell.mean + cell.spread * scores[: cell.members]
        result = roc(scores, membership, fprs=cell.fprs, seed=repetition)
        threshold = result.threshold.value
        tpr, fpr = cell.tpr(threshold), float(norm.sf(threshold))
        counts["AUC"] += held(cell.area, result.auc)
        counts["advantage"] += held(tpr - fpr, result.advantage)
        counts["PPV"] += held(tpr / (tpr + fpr), result.ppv)
        for rate in result.tpr_at_fpr:
            truth = cell.tpr(float(norm.isf(rate.fpr)))
            counts[f"TPR at {rate.fpr:.1%} FPR"] += held(truth, rate)
    shares = {name: count / repetitions for name, count in counts.items()}
    for fpr in set(FPRS) - set(cell.fprs):
        del shares[f"TPR at {fpr:.1%} FPR"]
    return shares


def too_rare(cell: Cell, name: str) -> bool:
    """Whether less than one member is expected above the threshold of this rate."""
    rates = {f"TPR at {fpr:.1%} FPR": fpr for fpr in FPRS}
    return name in rates and cell.members * cell.tpr(float(norm.isf(rates[name]))) < 1


def table(results: dict[Cell, dict[str, float]]) -> Iterator[str]:
    """The coverage of every cell, in percent, as Markdown."""
    yield f"| members | non-members | spread | true AUC | {' | '.join(RANGES)} |"
    yield "|" + "---:|" * (4 + len(RANGES))
    for cell, shares in results.items():
        shown = []
        for name in RANGES:
            text = f"{100 * shares[name]:.1f}" if name in shares else "unresolved"
            shown.append(f"({text})" if name in shares and too_rare(cell, name) else text)
        sizes = f"{cell.members} | {cell.nonmembers} | {cell.spread:g} | {cell.area:g}"
        yield f"| {sizes} | {' | '.join(shown)} |"


def outside(share: float, name: str, rare: bool, repetitions: int) -> tuple[bool, bool]:
    """Whether a coverage is out of its range, and whether that is more than chance allows."""
    low, high = RANGES[name][0], 1.0 if rare else RANGES[name][1]
    sure = wilson(share * repetitions, repetitions, confidence=0.999)
    return not low <= share <= high, sure.high < low or sure.low > high


def summary(results: dict[Cell, dict[str, float]], repetitions: int) -> tuple[list[str], bool]:
    """A line for each quantity with its worst cells, and whether all hold but for chance."""
    lines = [
        "| interval of | must cover | cells | mean | lowest | highest | out | surely out |",
        "|---|---|---:|---:|---|---|---:|---:|",
    ]
    good = True
    for name, (low, high) in RANGES.items():
        cells = [(shares[name], cell) for cell, shares in results.items() if name in shares]
        asked = [(share, cell) for share, cell in cells if not too_rare(cell, name)]
        flags = [outside(share, name, too_rare(cell, name), repetitions) for share, cell in cells]
        good &= not any(surely for _, surely in flags)
        ends = [pick(asked, key=lambda pair: pair[0]) for pick in (min, max)]
        told = [
            f"{100 * share:.1f} ({cell.members}/{cell.nonmembers}, spread {cell.spread:g}, "
            f"AUC {cell.area:g})"
            for share, cell in ends
        ]
        lines.append(
            f"| {name} | {100 * low:.0f} to {100 * high:.0f} % | {len(asked)} | "
            f"{100 * np.mean([share for share, _ in asked]):.2f} | {told[0]} | {told[1]} | "
            f"{sum(out for out, _ in flags)} | {sum(surely for _, surely in flags)} |"
        )
    return lines, good


def coverage_tables(repetitions: int, workers: int, seed: int = 0) -> tuple[str, bool]:
    """The tables as Markdown, and whether every coverage is in its range, but for chance."""
    cells = [Cell(*size, *rest) for size, *rest in itertools.product(SIZES, SPREADS, AREAS)]
    work = partial(coverage, repetitions=repetitions, seed=seed)
    with ProcessPoolExecutor(workers) as pool:
        results = dict(zip(cells, pool.map(work, cells), strict=True))
    lines, good = summary(results, repetitions)
    error = 100 * math.sqrt(0.95 * 0.05 / repetitions)
    text = [
        f"Coverage of 95 % intervals in percent, {repetitions} score sets per cell: a true 95 % "
        f"shows with a standard deviation of {error:.2f} points.",
        "",
        *lines,
        "",
        *table(results),
    ]
    return "\n".join(text), good
