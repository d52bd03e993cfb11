"""Two audits of the same records are compared record by record."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakscope
from leakscope.errors import InputError
from leakscope.gate.baseline import UNPAIRED, _change
from leakscope.gate.pairing import Paired
from leakscope.gate.reading import read_report
from leakscope.metrics.paired import advantage_difference
from leakscope.report import Report

X, y = make_classification(1200, 8, flip_y=0.2, random_state=0)
HALF = np.arange(1200) < 600
ATTACKS = ["loss", "label-gap", "confidence", "gradient-boosting"]


def audited(order: Any = None, *, C: float = 1.0, out: Path | None = None, **more: Any) -> Report:
    """The audit of a model that was trained on the first half, the records in another order."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=C)).fit(X[HALF], y[HALF])
    order = np.arange(600) if order is None else order
    sides = [(X[side][order], y[side][order]) for side in (HALF, ~HALF)]
    options = {"attacks": ATTACKS} | more
    return leakscope.audit(model, *sides, out=out, **options)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model, and one with another penalty on the same records, which come in another order."""
    now, before = (tmp_path_factory.mktemp(name) for name in ("now", "before"))
    audited(C=0.001, out=now)
    audited(np.random.default_rng(0).permutation(600), out=before)
    return now, before


def test_a_report_against_itself_holds_at_any_size(folders: tuple[Path, Path]) -> None:
    for folder in folders:
        assert leakscope.check(folder, baseline=folder, tolerance=0).exit_code == 0
        alone = folder / "report.json"
        assert leakscope.check(alone, baseline=alone, tolerance=0).exit_code == 0
        redacted = Report.load(folder).redacted()
        assert leakscope.check(redacted, baseline=redacted, tolerance=0).exit_code == 0


def test_the_same_model_audited_again_in_another_order_holds(folders: tuple[Path, Path]) -> None:
    again = audited(np.random.default_rng(1).permutation(600))
    found = leakscope.check(again, baseline=folders[1], tolerance=0)
    assert (found.exit_code, found.limits[0].high) == (0, 0)


def test_the_difference_is_that_of_the_decisions(folders: tuple[Path, Path]) -> None:
    now, before = (read_report(folder, records=True) for folder in folders)
    paired = Paired.align(now, before)
    for new, old in ((one, _named(before, one.attack)) for one in now.attacks):
        change = paired.change(new, old, 4)
        # The same seed has the same calibration fold: the change is that of the two reports.
        assert change.value == pytest.approx(new.advantage.value - old.advantage.value)
        independent = _change(new, old, 4)
        width = change.high - change.alone
        assert width < (0.8 if new.attack == "loss" else 1) * (independent.high - independent.alone)
    loss = _named(now, "loss"), _named(before, "loss")
    calls = [
        np.asarray(table["score_loss"], dtype=float) >= one.threshold
        for one, table in zip(loss, (paired.now, paired.before), strict=True)
    ]
    exact = advantage_difference(*calls, paired.members, confidence=1 - 0.05 / 4)
    assert paired.change(*loss, 4).low == pytest.approx(exact.low)
    # A learned attack counts each record for half.
    learned = [_named(one, "gradient-boosting") for one in (now, before)]
    calls = [
        np.asarray(table["score_gradient-boosting"], dtype=float) >= one.threshold
        for one, table in zip(learned, (paired.now, paired.before), strict=True)
    ]
    exact = advantage_difference(*calls, paired.members, inflation=2, confidence=0.95)
    assert paired.change(*learned, 4).high == pytest.approx(exact.high)


def _named(audit: Any, attack: str) -> Any:
    return next(one for one in audit.attacks if one.attack == attack)


def test_without_both_tables_the_audits_are_taken_as_independent(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    now, before = folders
    copied = tmp_path / "released.json"
    shutil.copy(before / "report.json", copied)
    assert UNPAIRED in leakscope.check(now, baseline=copied).notes
    paired = leakscope.check(now, baseline=before)
    assert UNPAIRED not in paired.notes
    assert paired.limits[0].high < leakscope.check(now, baseline=copied).limits[0].high


def test_a_table_of_another_run_is_refused(folders: tuple[Path, Path], tmp_path: Path) -> None:
    now, before = folders
    shutil.copy(now / "report.json", tmp_path)
    for text in (
        (before / "records.csv").read_text("utf-8"),  # other scores of the same records
        "row,side,label,vulnerable\n0,member,a,no\n",  # of an earlier version
        (now / "records.csv").read_text("utf-8").replace(",yes,", ",no,"),  # other folds
        "\n".join((now / "records.csv").read_text("utf-8").splitlines()[:-1]) + "\n",
    ):
        (tmp_path / "records.csv").write_text(text, "utf-8")
        with pytest.raises(InputError, match="is not of the same run as the report beside it"):
            leakscope.check(tmp_path, baseline=before)


def test_other_csv_data_are_refused(tmp_path: Path) -> None:
    model = LogisticRegression().fit(X[HALF], y[HALF])
    same = leakscope.audit(model, (X[HALF], y[HALF]), (X[~HALF], y[~HALF]), attacks=["loss"])
    other = leakscope.audit(
        model, (X[HALF] + 1e-9, y[HALF]), (X[~HALF] + 1e-9, y[~HALF]), attacks=["loss"]
    )
    with pytest.raises(InputError, match="is of other records than the report"):
        leakscope.check(other, baseline=same)
    assert leakscope.check(other, baseline=same, allow_other_records=True).exit_code in (0, 3)
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(8)]).assign(label=y)
    named = leakscope.audit(
        LogisticRegression().fit(frame[HALF].drop(columns="label"), y[HALF]),
        frame[HALF], frame[~HALF], label="label", attacks=["loss"],
    )  # fmt: skip
    renamed = frame.rename(columns={"c3": "d3"}) + 1
    renamed["label"] = y
    another = leakscope.audit(
        LogisticRegression().fit(renamed[HALF].drop(columns="label"), y[HALF]),
        renamed[HALF], renamed[~HALF], label="label", attacks=["loss"],
    )  # fmt: skip
    with pytest.raises(InputError, match="has other columns"):
        leakscope.check(another, baseline=named, allow_other_records=True)


def test_swapped_sides_are_refused() -> None:
    model = LogisticRegression().fit(X[HALF], y[HALF])
    sides = [(X[side], y[side]) for side in (HALF, ~HALF)]
    one, other = (leakscope.audit(model, *pair, attacks=["loss"]) for pair in (sides, sides[::-1]))
    with pytest.raises(InputError, match="check that the sides are not swapped"):
        leakscope.check(other, baseline=one, allow_other_records=True)
