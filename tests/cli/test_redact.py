from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

Run = Callable[..., Any]
Files = tuple[Path, Path]


@pytest.fixture
def rare(predictions: Files) -> Files:
    """Three people of a town of their own, on each side."""
    for path in predictions:
        table = pd.read_csv(path)
        table.loc[:2, "town"] = "Hamlet"
        table.to_csv(path, index=False)
    return predictions


def words(files: Files, *more: object) -> tuple[object, ...]:
    sides = "--member-predictions", files[0], "--nonmember-predictions", files[1]
    how = "--groups", "town", "--unit", "person", "--attacks", "loss,entropy"
    return "audit", *sides, *how, *more


def test_a_redacted_audit_tells_of_nobody(run: Run, rare: Files, tmp_path: Path) -> None:
    ran = run(*words(rare, "--redact", "--out", tmp_path / "here"))
    assert ran.code == 0
    assert "The report is redacted: neither records.csv nor trials/ is written." in ran.stderr
    assert "This report is redacted" in ran.stdout
    assert {one.name for one in (tmp_path / "here").iterdir()} == {"report.html", "report.json"}
    for name in ("report.html", "report.json"):
        text = (tmp_path / "here" / name).read_text("utf-8")
        assert "Hamlet" not in text
        assert str(tmp_path) not in text
    report = json.loads((tmp_path / "here" / "report.json").read_text("utf-8"))
    assert [one["group"] for one in report["redacted"]["withheld"]] == ["town"]
    assert "--member-predictions member-predictions.csv" in report["command"]
    assert "--out here" in report["command"]


@pytest.mark.slow
def test_the_figures_of_everyone_are_the_same(run: Run, rare: Files, tmp_path: Path) -> None:
    plain = run(*words(rare, "--out", tmp_path / "a", "--json")).json
    assert "Hamlet" in json.dumps(plain)
    part = run(*words(rare, "--redact", "--out", tmp_path / "b", "--json")).json
    assert part["verdict"] == plain["verdict"]
    for old, new in zip(plain["outcomes"], part["outcomes"], strict=True):
        assert {key: old[key] for key in ("attack", "auc", "advantage", "tpr_at_fpr")} == {
            key: new[key] for key in ("attack", "auc", "advantage", "tpr_at_fpr")
        }


def test_a_folder_with_records_is_refused_before_the_work(
    run: Run, rare: Files, calls: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "records.csv").write_text("row\n")
    ran = run(*words(rare, "--redact", "--out", tmp_path / "here"))
    assert ran.code == 2
    assert "holds records.csv of an audit that was not redacted" in ran.stderr
    assert calls == []


@pytest.mark.slow
def test_shadow_models_are_not_kept(run: Run, calls: list[Any]) -> None:
    for more in ([], ["--redact"]):
        run("audit", "--dataset", "iris", "--recipe", "tree", "--out", f"there{len(more)}", *more)
    (_, _, kept), (_, _, redacted) = calls
    assert kept["store"] == Path("there0") / "trials"
    assert "store" not in redacted
