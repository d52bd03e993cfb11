"""What `import leakscope` costs, as a share of `import numpy, scipy.stats`.

Run alone, on a quiet machine: ``python benchmarks/import_cost.py``. Each import happens in a fresh
interpreter; the two alternate, so that a change of the machine's load meets both, and the medians
are compared. The time an interpreter takes to start is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

OURS = "import leakscope"
THEIRS = "import numpy, scipy.stats"
LIMIT = 1.5


def seconds(statement: str) -> float:
    """How long the statement takes in a fresh interpreter, start-up not counted."""
    program = (
        "from time import perf_counter; start = perf_counter(); "
        f"{statement}; print(perf_counter() - start)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def main() -> int:
    """Print both medians and their ratio; 0 if the ratio is within the limit, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=15, help="runs of each import")
    runs = parser.parse_args().runs

    for statement in (OURS, THEIRS):  # fills the disk cache and writes the bytecode
        seconds(statement)
    pairs = [(seconds(OURS), seconds(THEIRS)) for _ in range(runs)]
    ours, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))

    print(f"| {'statement':<28} | median of {runs} runs |")
    print(f"|{'-' * 30}|{'-' * 19}|")
    print(f"| {f'`{OURS}`':<28} | {1000 * ours:>14.2f} ms |")
    print(f"| {f'`{THEIRS}`':<28} | {1000 * theirs:>14.2f} ms |")
    print(f"\nratio {ours / theirs:.4f} (limit {LIMIT})")
    return int(ours > LIMIT * theirs)


if __name__ == "__main__":
    raise SystemExit(main())
