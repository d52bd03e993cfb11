"""How much memory an audit takes, above what its libraries do, beside the table it reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.ensemble import HistGradientBoostingClassifier

ROWS, FEATURES, FEW = 100_000, 20, 400
# Eight bytes a number.
TABLE = 8 * ROWS * FEATURES
# The table itself, both sides as one pool, the same in canonical order, and as numbers for the
# search of equal records: each about once. A matrix of rows by rows would be 5,000 times the table,
# and a Python object for every cell 5 times.
MOST = 8

# The peak of this program alone: resource.getrusage counts what the one that started it had, too.
MEASURED = """
import re, sys
from pathlib import Path
from leakscope.cli import main
code = main(sys.argv[1:])
print(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1], file=sys.stderr)
sys.exit(code)
"""


def write(folder: Path, n: int) -> None:
    """Both sides of n / 2 rows each, a model of the first, and what it answers for both."""
    folder.mkdir()
    model = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    for seed, side in enumerate(("members", "nonmembers")):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.normal(size=(n // 2, FEATURES)).round(6))
        X.columns = X.columns.astype(str)
        y = np.where(X["0"] + rng.normal(size=n // 2) > 0, "yes", "no")
        if side == "members":
            skops.io.dump(model.fit(X, y), folder / "model.skops")
        town = rng.choice(["Aix", "Bonn", "Cork"], n // 2)
        X.assign(town=town, label=y).to_csv(folder / f"{side}.csv", index=False)
        saved = pd.DataFrame(model.predict_proba(X), columns=model.classes_)
        saved.assign(town=town, label=y).to_csv(folder / f"{side}-saved.csv", index=False)


def peak(folder: Path, way: str) -> int:
    """The largest resident memory of an audit in a process of its own, in bytes."""
    words = {
        "model": "--members members.csv --nonmembers nonmembers.csv --label label "
        "--model model.skops",
        "predictions": "--member-predictions members-saved.csv "
        "--nonmember-predictions nonmembers-saved.csv",
    }[way].split()
    attacks = ["--attacks", "loss,confidence", "--groups", "town"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "audit", *words, *attacks, "--out", way],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (folder / way / "records.csv").exists()
    return 1024 * int(done.stderr.split()[-1])


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the few rows and one with the many."""
    folder = tmp_path_factory.mktemp("tables")
    write(folder / "few", FEW)
    write(folder / "many", ROWS)
    return folder


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
@pytest.mark.parametrize("way", ["model", "predictions"])
def test_an_audit_takes_a_few_times_the_memory_of_its_table(tables: Path, way: str) -> None:
    above = peak(tables / "many", way) - peak(tables / "few", way)
    assert above < MOST * TABLE
