from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
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


ODD = ["hush,1=a b", "it's hush", "hüsh=x,y=z"]


@pytest.mark.slow
@pytest.mark.parametrize("source", ["recipe", "predictions"])
def test_nothing_planted_is_in_any_file(run: Run, tmp_path: Path, source: str) -> None:
    """Values, rare labels, groups, persons and folders that nobody else would write."""
    folder = tmp_path.joinpath(*ODD)
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    files = []
    for side in ("members", "nonmembers"):
        n = 150
        label = rng.choice(["flu", "cold"], n).astype(object)
        town = rng.choice(["here", "there"], n).astype(object)
        label[:2], town[2:4] = "ku;ru'hush", "ham,let=hush"
        table = pd.DataFrame({"height": rng.normal(size=n), "town": town, "label": label})
        table["person"] = [f"hush-{side}-{row // 2}" for row in range(n)]
        table["note"] = [f"hush {side} {row % 7}" for row in range(n)]
        if source == "predictions":
            table = table.drop(columns=["height", "note"])
            odds = rng.dirichlet([1.0, 1.0, 1.0], n)
            table[["cold", "flu", "ku;ru'hush"]] = odds
        files.append(folder / f"{side}.csv")
        table.to_csv(files[-1], index=False)
    named = ("--member-predictions", "--nonmember-predictions")
    more: list[object] = []
    if source == "recipe":
        named, more = ("--members", "--nonmembers"), ["--recipe", "tree"]
    out = folder / "out"
    ran = run(
        "audit", f"{named[0]}={files[0]}", named[1], files[1], *more, "--label", "label",
        "--groups", "town", "--unit", "person", "--redact", "--out", out,
    )  # fmt: skip
    assert ran.code == 0, ran.stderr
    written = [path.read_text("utf-8") for path in out.rglob("*") if path.is_file()]
    assert len(written) == 2
    for text in written:
        assert "hush" not in text.lower()
        assert "hüsh" not in text.lower()
        assert html.escape("it's") not in text
        assert str(tmp_path) not in text
    report = json.loads((out / "report.json").read_text("utf-8"))
    assert report["target"]["classes"].count("…") == 2
    assert {"group": "classes", "values": 2} in report["redacted"]["withheld"]


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
