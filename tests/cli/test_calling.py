from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression

from leakscope import Records, load_dataset

Run = Callable[..., Any]
Calls = list[tuple[str, Any, dict[str, Any]]]
Files = tuple[Path, Path]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing the page takes longer than all else here."""
    monkeypatch.setattr("leakscope.report.Report.to_html", lambda report: "")


def own(tables: Files, *more: object) -> tuple[object, ...]:
    return "audit", "--members", tables[0], "--nonmembers", tables[1], *more


def saved(predictions: Files, *more: object) -> tuple[object, ...]:
    first, second = predictions
    return "audit", "--member-predictions", first, "--nonmember-predictions", second, *more


def equal(first: Any, second: Any) -> bool:
    return np.array_equal(np.asarray(first.X), np.asarray(second.X)) and np.array_equal(
        first.y, second.y
    )


@pytest.mark.slow
def test_without_options_a_forest_on_half_of_4000_adults(run: Run, calls: Calls) -> None:
    assert run("audit", "--attacks", "loss").code == 0
    [(name, (model, members, nonmembers), named)] = calls
    first, second = load_dataset("adult").sample(4000, 0).coin_split(0)
    assert name == "audit"
    assert equal(members, first)
    assert equal(nonmembers, second)
    assert len(members) + len(nonmembers) == pytest.approx(4000, abs=5)
    assert model.name == "RandomForestClassifier"
    assert np.mean(model.predict(members.X) == members.y) > 0.99
    assert np.mean(model.predict(nonmembers.X) == nonmembers.y) < 0.9
    assert named["randomized"] is True
    assert named["groups"] is None
    assert set(members.groups) == {"sex", "race", "age"}
    assert named["dataset"] == "adult"
    assert named["seed"] == 0
    assert named["attacks"] == ["loss"]
    assert named["command"] == "leakscope audit --attacks loss"


def test_the_seed_draws_splits_and_trains(run: Run, calls: Calls) -> None:
    words = ("audit", "--dataset", "iris", "--seed", 3, "--recipe", "tree", "--records", 60)
    run(*words)
    [(_, (model, members, nonmembers), named)] = calls
    first, second = load_dataset("iris").sample(60, 3).coin_split(3)
    assert equal(members, first)
    assert equal(nonmembers, second)
    assert model.estimator.random_state == 3
    assert named["seed"] == 3


@pytest.mark.parametrize(
    ("dataset", "model"),
    [("iris", "RandomForestClassifier"), ("diabetes", "RandomForestRegressor")],
)
def test_the_usual_recipe_is_that_of_the_task(
    run: Run, calls: Calls, dataset: str, model: str
) -> None:
    run("audit", "--dataset", dataset)
    assert calls[0][1][0].name == model


def test_only_options_that_were_given_reach_the_library(run: Run, calls: Calls) -> None:
    run("audit", "--dataset", "iris", "--recipe", "tree")
    settings = {"randomized", "seed", "command", "progress", "groups", "dataset"}
    assert set(calls[0][2]) == settings | {"recipe", "shadows", "store"}
    words = "--limit 0.2 --prior 0.1 --delta 1e-6 --max-overlap 0 --channels loss,label"
    run("audit", "--dataset", "iris", "--recipe", "tree", "--no-randomized", *words.split())
    named = calls[1][2]
    assert named["limit"] == 0.2
    assert named["prior"] == 0.1
    assert named["delta"] == 1e-6
    assert named["max_overlap"] == 0
    assert named["channels"] == ["loss", "label"]
    assert named["randomized"] is False


def test_a_data_set_has_32_shadow_models_of_its_recipe(run: Run, calls: Calls) -> None:
    run("audit", "--dataset", "iris", "--recipe", "tree", "--out", "there")
    run("audit", "--dataset", "iris", "--recipe", "tree", "--shadows", 0)
    where = "--shadows 5 --backend dask --address tcp://127.0.0.1:1 --fresh"
    run("audit", "--dataset", "iris", "--recipe", "tree", *where.split())
    usual, none, five = (named for _, _, named in calls)
    assert (usual["shadows"], usual["recipe"].name) == (32, "tree")
    assert usual["store"] == Path("there") / "trials"
    assert (none["shadows"], none["recipe"]) == (0, None)
    assert five["shadows"] == 5
    told = {"backend": "dask", "address": "tcp://127.0.0.1:1", "fresh": True}
    assert {name: five[name] for name in told} == told


def test_data_comes_from_the_folder_named(run: Run, calls: Calls, data_folder: Path) -> None:
    ran = run("audit", "--dataset", "location30", "--data", data_folder, "--recipe", "tree")
    assert ran.code == 0
    assert calls[0][2]["dataset"] == "location30"


def test_options_of_a_data_set_reach_it(run: Run, calls: Calls) -> None:
    run("audit", "--dataset-options", "encoding=table", "--records", 100, "--recipe", "tree")
    assert "workclass" in calls[0][1][1].feature_names
    ran = run("audit", "--dataset-options", "encodin=table")
    assert ran.code == 2
    assert "did you mean 'encoding'?" in ran.stderr


def test_groups_of_a_data_set_can_be_chosen(run: Run, calls: Calls) -> None:
    run("audit", "--groups", "sex", "--records", 100, "--recipe", "tree")
    assert calls[0][2]["groups"] == ["sex"]


def test_files_with_a_recipe(run: Run, calls: Calls, tables: Files) -> None:
    words = own(tables, "--label", "answer", "--recipe", "nearest", "--groups", "town")
    ran = run(*words, "--unit", "person")
    assert ran.code == 0, ran.stderr
    [(_, (model, members, nonmembers), named)] = calls
    assert list(members.X.columns) == ["height", "weight", "town"]
    assert len(members) == len(nonmembers) == 80
    assert model.feature_names == ["height", "weight", "town"]
    assert (model.predict(members.X) == members.y).all()
    assert (list(members.groups), members.unit is None, named["unit"]) == (
        ["town"],
        False,
        "person",
    )
    assert named["randomized"] is False


def test_files_may_be_said_to_be_randomized(run: Run, calls: Calls, tables: Files) -> None:
    run(*own(tables, "--label", "answer", "--recipe", "tree", "--randomized"))
    assert calls[0][2]["randomized"] is True


def test_files_with_a_model(run: Run, calls: Calls, tables: Files, tmp_path: Path) -> None:
    table = pd.read_csv(tables[0])
    model = LogisticRegression().fit(table[["height", "weight"]], table["answer"])
    skops.io.dump(model, tmp_path / "model.skops")
    ran = run(*own(tables, "--label", "answer", "--model", tmp_path / "model.skops"))
    assert ran.code == 0, ran.stderr
    loaded = calls[0][1][0]
    assert np.array_equal(loaded.coef_, model.coef_)


def test_files_with_a_model_and_a_recipe_for_its_shadows(
    run: Run, calls: Calls, tables: Files, tmp_path: Path
) -> None:
    table = pd.read_csv(tables[0])
    model = LogisticRegression().fit(table[["height", "weight"]], table["answer"])
    skops.io.dump(model, tmp_path / "model.skops")
    words = own(tables, "--label", "answer", "--model", tmp_path / "model.skops", "--shadows", 4)
    assert run(*words).code == 0
    assert run(*words, "--recipe", "logistic").code == 0
    clone, named = (call[2] for call in calls)
    assert (clone["shadows"], clone["recipe"]) == (4, None)
    assert (named["shadows"], named["recipe"].name) == (4, "logistic")
    assert np.array_equal(calls[1][1][0].coef_, model.coef_)


def test_a_pickle_is_loaded_only_if_it_is_trusted(
    run: Run, calls: Calls, tables: Files, tmp_path: Path
) -> None:
    import joblib

    joblib.dump({"any": "thing"}, tmp_path / "model.joblib")
    words = own(tables, "--label", "answer", "--model", tmp_path / "model.joblib")
    ran = run(*words)
    assert ran.code == 2
    assert "--trust-pickle" in ran.stderr
    assert calls == []
    assert run(*words, "--trust-pickle").code == 0
    assert calls[0][1][0] == {"any": "thing"}


def test_predictions(run: Run, calls: Calls, predictions: Files) -> None:
    ran = run(*saved(predictions, "--groups", "town", "--unit", "person", "--seed", 4))
    assert ran.code == 0, ran.stderr
    [(name, given, named)] = calls
    tables = [pd.read_csv(path) for path in predictions]
    assert name == "audit_predictions"
    assert named["classes"].tolist() == ["no", "yes"]
    for side, table in enumerate(tables):
        assert np.array_equal(given[2 * side], table[["no", "yes"]].to_numpy())
        assert given[2 * side + 1].tolist() == table["label"].tolist()
        groups = named["nonmember_groups" if side else "member_groups"]
        assert list(groups) == ["town"]
        assert groups["town"].tolist() == table["town"].tolist()
        units = named["nonmember_units" if side else "member_units"]
        assert units.tolist() == table["person"].tolist()
    assert named["randomized"] is False
    assert named["seed"] == 4
    assert "max_overlap" not in named


def test_labels_are_compared_as_they_are_written(run: Run, calls: Calls, tmp_path: Path) -> None:
    text = "007,label,NA,1\n0.2,007,0.3,0.5\n0.2,NA,0.3,0.5\n0.2,1,0.3,0.5\n"
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(text)
    assert run(*saved((tmp_path / "a.csv", tmp_path / "b.csv"))).code == 0
    [(_, given, named)] = calls
    assert named["classes"].tolist() == ["007", "NA", "1"]
    assert given[1].tolist() == ["007", "NA", "1"]


def test_classes_may_stand_in_another_order(run: Run, calls: Calls, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,x,y\nx,0.25,0.75\n")
    (tmp_path / "b.csv").write_text("y,label,x\n0.5,y,0.5\n0.125,x,0.875\n")
    run(*saved((tmp_path / "a.csv", tmp_path / "b.csv")))
    [(_, given, _)] = calls
    assert given[2].tolist() == [[0.5, 0.5], [0.875, 0.125]]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("label\nx\n", "label\nx\n", "have 0 columns besides label; give one of probabilities"),
        ("label,x\nx,1\n", "label,x\nx,1\n", "have 1 columns besides label"),
        ("x,y\n1,0\n", "x,y\n1,0\n", "The members have no column 'label'"),
        ("label,x,y\nx,1,0\n", "label,x\nx,1\n", "The nonmembers have no column 'y'"),
        ("label,x,y\nx,1,0\n", "label,x,y,z\nx,1,0,0\n", "have the column 'z'"),
        (
            "label,x,y\nx,1,0\nx,high,0\n",
            "label,x,y\nx,1,0\n",
            "Column 'x' of the members is not numeric: row 1 (counting from 0) holds 'high'",
        ),
        ("label,x,y\n,1,0\n", "label,x,y\nx,1,0\n", "The label of the members is missing in row 0"),
        ("label,x,y\n", "label,x,y\nx,1,0\n", "The members are empty"),
    ],
)
def test_predictions_that_are_wrong_are_one_sentence(
    run: Run, calls: Calls, tmp_path: Path, first: str, second: str, said: str
) -> None:
    (tmp_path / "a.csv").write_text(first)
    (tmp_path / "b.csv").write_text(second)
    ran = run(*saved((tmp_path / "a.csv", tmp_path / "b.csv")))
    assert (ran.code, ran.stdout, calls) == (2, "", [])
    assert said in ran.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--limit", "2"], "The limit is 2.0; choose a number between 0 and 1"),
        (["--limit", "nan"], "The limit is nan; choose a number between 0 and 1"),
        (["--attacks", "los"], "There is no attack named 'los'; did you mean 'loss'?"),
        (["--channels", "labl"], "There is no channel named 'labl'; did you mean 'label'?"),
        (["--recipe", "fores"], "There is no recipe named 'fores'; did you mean 'forest'?"),
        (
            ["--attacks", "loss", "--channels", "label"],
            "None of the attacks loss goes through the channels label; `leakscope attacks` says "
            "which does",
        ),
        (
            ["--groups", ","],
            "--groups is ',', where names separated by commas are needed; put a name that holds a "
            "comma between double quotes",
        ),
    ],
)
def test_options_are_checked_before_any_work(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    def work(*_: object, **__: object) -> Records:
        raise AssertionError("work was done before the options were checked")

    monkeypatch.setattr("leakscope.cli.calling.load_dataset", work)
    ran = run("audit", *words)
    assert (ran.code, ran.stdout, ran.stderr) == (2, "", f"Error: {sentence}\n")


def test_an_unknown_data_set_is_one_sentence(run: Run) -> None:
    ran = run("audit", "--dataset", "adlut")
    assert ran.code == 2
    assert ran.stderr.splitlines()[-1].endswith("named 'adlut'; did you mean 'adult'?")


def test_a_data_set_that_is_not_there_says_where_to_get_it(run: Run, tmp_path: Path) -> None:
    ran = run("audit", "--dataset", "purchase100", "--data", tmp_path)
    assert ran.code == 2
    assert str(tmp_path) in ran.stderr
    assert "get it from" in ran.stderr


def test_steps_are_told_one_to_a_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, small_report: Any
) -> None:
    def audit(*_: object, progress: Callable[[str, int, int], None], **__: object) -> Any:
        progress("running loss", 0, 2)
        progress("running label-gap", 1, 2)
        progress("done", 2, 2)
        return small_report

    monkeypatch.setattr("leakscope.audit", audit)
    ran = run("audit", "--dataset", "iris", "--recipe", "tree")
    told = ran.stderr.splitlines()
    assert told[0] == "reading the data set iris"
    assert told[1].startswith("training tree on ")
    assert told[2:] == ["running loss (1 of 2)", "running label-gap (2 of 2)"]


def persons(folder: Path) -> Files:
    """Tables of persons with one to five rows that resemble each other, all on one side."""
    rng = np.random.default_rng(1)
    person = np.repeat(np.arange(300), rng.integers(1, 6, 300))
    side, traits = rng.random(300) < 0.5, rng.normal(size=(300, 3))
    table = pd.DataFrame(
        traits[person] + 0.02 * rng.normal(size=(len(person), 3)), columns=[*"abc"]
    )
    table = table.assign(patient=person, y=rng.integers(0, 2, len(person)))
    files = folder / "members.csv", folder / "nonmembers.csv"
    for path, chosen in zip(files, (side[person], ~side[person]), strict=True):
        table[chosen].to_csv(path, index=False)
    return files


@pytest.mark.parametrize("trained", ["by a recipe", "before"])
def test_the_unit_is_suggested_where_the_rows_of_persons_tell_the_sides(
    run: Run, tmp_path: Path, trained: str
) -> None:
    """Also where the column is not among the features that the model sees."""
    files = persons(tmp_path)
    members = pd.read_csv(files[0])
    skops.io.dump(LogisticRegression().fit(members[[*"abc"]], members["y"]), tmp_path / "m.skops")
    model = {
        "by a recipe": ("--recipe", "logistic", "--features", "a,b,c"),
        "before": ("--model", tmp_path / "m.skops"),
    }[trained]
    words = own(files, "--label", "y", "--attacks", "loss", "--json", *model)
    ran = run(*words)
    assert ran.code == 0, ran.stderr
    assert ran.json["verdict"]["level"] == "invalid"
    assert ran.stderr.count("The values of 'patient' repeat and hardly ever stand on both") == 1
    ran = run(*words, "--unit", "patient")
    assert ran.code == 0, ran.stderr
    assert ran.json["verdict"]["level"] != "invalid"
    assert "--unit" not in ran.stderr
