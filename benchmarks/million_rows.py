"""The memory that an audit of a large CSV file takes, beside that of the table itself.

usage: python benchmarks/million_rows.py [--rows 1000000] [--features 20]

Half of the rows are members. What is audited is a HistGradientBoostingClassifier from a skops file,
and then the predictions it made, each by the command line in a process of its own, with every
attack that needs no shadow models and with records.csv. Printed are the peak of the resident memory
above that of an audit of a few rows (the libraries, mostly), and its ratio to the table of both
sides in memory: eight bytes a number. A million rows take a quarter of an hour and 1 GB on disk.
Linux only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import skops.io
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

MEGA = 1e6
FEW = 400
LABEL, GROUP = "answer", "town"

# Runs the command, and then tells the largest resident memory its program has had, in kilobytes, as
# Linux has it. resource.getrusage would count what this process had when it started the other.
MEASURED = """
import re, sys
from pathlib import Path
from leakscope.cli import main
code = main(sys.argv[1:])
print(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1], file=sys.stderr)
sys.exit(code)
"""


@dataclass(frozen=True)
class Peak:
    """What one audit took: bytes of resident memory at the peak, and seconds."""

    memory: float
    seconds: float


def rows_of(n: int, features: int, seed: int) -> tuple[NDArray[np.float64], pd.DataFrame]:
    """Features (n, d), and the table of them with a noisy label and a column of five towns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features)).round(6)
    table = pd.DataFrame(X, columns=[f"x{place}" for place in range(features)])
    table[GROUP] = rng.choice(["Aix", "Bonn", "Cork", "Delft", "Evora"], n)
    table[LABEL] = np.where(X[:, 0] + rng.normal(size=n) > 0, "yes", "no")
    return X, table


def write_sides(folder: Path, n: int, features: int) -> float:
    """Write both sides, the model and its predictions; how many bytes both tables have."""
    sizes = 0.0
    model = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    for seed, side in enumerate(("members", "nonmembers")):
        X, table = rows_of(n // 2, features, seed)
        if side == "members":
            model.fit(table.drop(columns=[LABEL, GROUP]), table[LABEL].to_numpy())
            skops.io.dump(model, folder / "model.skops")
        sizes += X.nbytes
        table.to_csv(folder / f"{side}.csv", index=False)
        answers = model.predict_proba(table.drop(columns=[LABEL, GROUP]))
        saved = pd.DataFrame(answers, columns=model.classes_)
        saved[GROUP], saved["label"] = table[GROUP], table[LABEL]
        saved.to_csv(folder / f"{side}-predictions.csv", index=False)
    return sizes


def audited(folder: Path, *more: str) -> Peak:
    """One audit in a process of its own."""
    words = ["audit", "--groups", GROUP, "--out", str(folder / "out"), *more]
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    kilobytes = int(done.stderr.split()[-1])
    return Peak(1024 * kilobytes, time.perf_counter() - start)


def by_model(folder: Path) -> Peak:
    """The audit of the model on both tables."""
    return audited(
        folder,
        *("--members", str(folder / "members.csv"), "--nonmembers", str(folder / "nonmembers.csv")),
        *("--label", LABEL, "--model", str(folder / "model.skops")),
    )


def by_predictions(folder: Path) -> Peak:
    """The audit of what it answered."""
    saved = [str(folder / f"{side}-predictions.csv") for side in ("members", "nonmembers")]
    return audited(folder, "--member-predictions", saved[0], "--nonmember-predictions", saved[1])


def main(argv: Sequence[str] | None = None) -> None:
    """Print one line for each way to audit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=20)
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as few, tempfile.TemporaryDirectory() as many:
        write_sides(Path(few), FEW, asked.features)
        size = write_sides(Path(many), asked.rows, asked.features)
        print(f"{asked.rows:,} rows of {asked.features} features: {size / MEGA:.0f} MB in memory")
        for name, audit in (("model", by_model), ("predictions", by_predictions)):
            idle, peak = audit(Path(few)), audit(Path(many))
            above = peak.memory - idle.memory
            print(
                f"{name:12} peak {peak.memory / MEGA:6.0f} MB, {above / MEGA:6.0f} MB above that "
                f"of {FEW} rows: {above / size:4.1f} times the table; {peak.seconds:.0f} s"
            )


if __name__ == "__main__":
    main()
