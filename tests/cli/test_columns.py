from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakscope.cli.columns import sort_out
from leakscope.errors import InputError, RecordsError
from leakscope.recipes import as_recipe, named_recipe
from leakscope.report import load_schema

Run = Callable[..., Any]
Calls = list[tuple[str, Any, dict[str, Any]]]

SIDES = ("members", "nonmembers")
N = 120
MORE = "age,town,born,paid"


def patients(seed: int) -> pd.DataFrame:
    """What people hand in: every kind of column, with gaps in each that can have one."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, N)
    born = pd.Timestamp("2020-12-31") - pd.to_timedelta(age * 365 + rng.integers(0, 365, N), "D")
    words = ["came", "late", "asked", "for", "help", "left", "soon", "again"]
    table = pd.DataFrame(
        {
            "patient_id": rng.choice(10**7, N, replace=False),
            "email": [f"p{number}@example.org" for number in rng.choice(10**9, N)],
            "age": age,
            "town": rng.choice(["Bern", "Zug", "Biel"], N),
            "job": [f"job {number}" for number in rng.integers(0, 400, N) // 2],
            "born": born.strftime("%d.%m.%Y"),
            "smoker": rng.choice([True, False], N),
            "paid": [f"{value:,.2f}" for value in rng.lognormal(8, 1, N)],
            "note": [" ".join(rng.choice(words, 7)) for _ in range(N)],
            "country": "CH",
            "unused": None,
        }
    ).astype(object)
    for column in ("age", "town", "job", "born", "smoker", "paid", "note"):
        table.loc[rng.random(N) < 0.1, column] = None
    table.loc[0, "age"] = "?" if seed else 44
    return table.assign(answer=np.where(rng.random(N) < age / 110, "yes", "no"))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "members.csv", tmp_path / "nonmembers.csv"
    for seed, path in enumerate(paths):
        patients(seed).to_csv(path, index=False)
    return paths


def own(files: tuple[Path, Path], *more: object) -> tuple[object, ...]:
    words = ("--label", "answer", "--attacks", "loss,confidence")
    return "audit", "--members", files[0], "--nonmembers", files[1], *words, *more


@pytest.mark.parametrize(
    "recipe",
    [
        "logistic",
        "nearest",
        pytest.param("forest", marks=pytest.mark.slow),
        pytest.param("boosting", marks=pytest.mark.slow),
    ],
)
def test_a_table_of_every_kind_is_audited_and_the_pipeline_is_told(
    run: Run, files: tuple[Path, Path], recipe: str
) -> None:
    ran = run(*own(files, "--recipe", recipe, "--groups", "town"))
    assert ran.code == 0, ran.stderr
    told = [
        f"What {recipe} makes of the columns:",
        "  Read as numbers written like 1,234.5: age, paid.",
        "  Read as dates written like 31.12.2020, as days since 1970: born.",
        "  Left out, different in every row, as an identifier is: patient_id, email.",
        "  Left out, the same in every row: country.",
        "  Left out, without a value in any row: unused.",
        "  Numbers, gaps filled with the median, standardized: age, born, paid.",
        "  Categories, an indicator per value, gaps too: town, job, smoker.",
        "  Sentences, words counted in 64 columns each: note.",
        "  Name the columns with --features to choose otherwise.",
    ]
    assert "\n".join(told) in ran.stderr
    report = json.loads(Path("leakscope-report/report.json").read_text("utf-8"))
    assert report["target"]["features"] == 7
    assert report["target"]["preparation"] == [line.strip() for line in told[1:-1]]
    groups = {one["value"] for one in report["outcomes"][0]["groups"]}
    assert groups == {"Bern", "Zug", "Biel", "missing"}
    assert "Read as dates" in Path("leakscope-report/report.html").read_text("utf-8")


@pytest.mark.slow
def test_an_identifier_would_have_told_the_sides_apart(run: Run, files: tuple[Path, Path]) -> None:
    for side, path in enumerate(files):
        pd.read_csv(path).assign(patient_id=range(side * N, side * N + N)).to_csv(path, index=False)
    levels = {}
    for columns in (MORE, f"{MORE},patient_id"):
        ran = run(*own(files, "--recipe", "forest", "--features", columns, "--json"))
        levels[columns] = ran.json["verdict"]["level"]
    assert levels[f"{MORE},patient_id"] == "invalid"
    assert levels[MORE] != "invalid"


def test_the_schema_knows_what_was_prepared() -> None:
    target = load_schema()["$defs"]["target"]
    assert "preparation" in target["properties"]
    assert "preparation" not in target["required"]


def test_features_are_those_that_were_asked_for(
    run: Run, calls: Calls, files: tuple[Path, Path]
) -> None:
    ran = run(*own(files, "--recipe", "tree", "--features", "patient_id,age"))
    assert ran.code == 0, ran.stderr
    [(_, (model, members, nonmembers), _)] = calls
    assert list(members.X.columns) == list(nonmembers.X.columns) == ["patient_id", "age"]
    assert model.feature_names == ["patient_id", "age"]
    assert "Left out" not in ran.stderr
    assert "--features" not in ran.stderr


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("age,answer", "--features has 'answer', which is the label or the unit; leave it out"),
        ("age,weight", "The members have no column 'weight'; they have: "),
    ],
)
def test_features_that_cannot_be(
    run: Run, files: tuple[Path, Path], columns: str, said: str
) -> None:
    ran = run(*own(files, "--recipe", "tree", "--features", columns))
    assert ran.code == 2
    assert said in ran.stderr


@pytest.mark.slow
def test_the_target_and_its_shadows_learn_from_their_members_alone(
    run: Run, calls: Calls, files: tuple[Path, Path]
) -> None:
    run(*own(files, "--recipe", "logistic"))
    other = pd.read_csv(files[1])
    other["age"] = pd.to_numeric(other["age"], errors="coerce") * 1000
    other.assign(town=other["town"].str.upper()).to_csv(files[1], index=False)
    run(*own(files, "--recipe", "logistic"))
    first, second = (call[1][0] for call in calls)
    members = calls[0][1][1].X
    np.testing.assert_array_equal(first.predict_proba(members), second.predict_proba(members))


def test_a_pipeline_of_ones_own_gets_the_columns_as_they_are() -> None:
    table = pd.DataFrame({"id": np.arange(80.0), "x": np.arange(80) % 7, "y": [0, 1] * 40})
    mine = as_recipe(make_pipeline(StandardScaler(), LogisticRegression()), "mine")
    found = sort_out([table, table], SIDES, mine, label="y", groups=(), unit=None)
    assert [list(side.X.columns) for side in found.records] == [["id", "x"]] * 2
    assert found.told() == []
    said: list[str] = []
    found.say(found.told(), said.append)
    assert said == []


def test_groups_are_reported_by_as_they_are_written() -> None:
    table = pd.DataFrame(
        {
            "when": ["1970-01-02", None, "1970-01-03"], "pay": ["1,000", "2,000", "3,000"],
            "town": ["a", "b", "c"], "y": [0, 1, 0],
        }
    )  # fmt: skip
    found = sort_out(
        [table], ["records"], named_recipe("tree"), label="y", groups=["town", "when"], unit=None
    )
    [records] = found.records
    assert records.X["when"].tolist()[::2] == [1.0, 2.0]
    assert list(records.groups) == ["town", "when"]
    assert records.groups["when"].tolist() == ["1970-01-02", "missing", "1970-01-03"]


def test_a_column_that_one_side_lacks_is_refused() -> None:
    tables = [pd.DataFrame({"a": [1], "y": [0]}), pd.DataFrame({"a": [1], "b": [2], "y": [0]})]
    with pytest.raises(RecordsError, match="The members have no column 'b'"):
        sort_out(tables, SIDES, named_recipe("tree"), label="y", groups=(), unit=None)
    with pytest.raises(InputError, match="'y', which is the label or the unit"):
        sort_out(
            tables, SIDES, named_recipe("tree"), label="y", groups=(), unit=None, features=["y"]
        )


@pytest.mark.slow
def test_compare_sorts_out_its_table_too(run: Run, files: tuple[Path, Path]) -> None:
    words = ("--table", files[0], "--label", "answer", "--recipe", "tree", "--seeds", 1)
    ran = run("compare", *words, "--defenses", "round:1", "--attacks", "loss", "--workers", 1)
    assert ran.code == 0, ran.stderr
    assert "What tree makes of the columns:\n  Read as numbers" in ran.stderr
    assert "an identifier is: patient_id, email." in ran.stderr


def test_shadow_models_are_of_the_same_recipe(
    run: Run, calls: Calls, files: tuple[Path, Path]
) -> None:
    assert run(*own(files, "--recipe", "tree", "--shadows", 2)).code == 0
    [(_, _, named)] = calls
    assert (named["recipe"].name, named["shadows"]) == ("tree", 2)
