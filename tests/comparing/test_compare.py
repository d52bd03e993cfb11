from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from opacus.accountants import RDPAccountant
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from leakscope.comparing import compare
from leakscope.comparing.dividing import divide
from leakscope.comparing.running import Bench
from leakscope.defenses.dpsgd import DPSGD
from leakscope.defenses.pruning import Pruning
from leakscope.errors import InputError, ModelError, UnknownNameError
from leakscope.networks import MLP
from leakscope.networks.accounting import Sampling, noise_for
from leakscope.protocols import Defense
from leakscope.recipes import as_recipe
from leakscope.recipes.sklearn import SklearnRecipe
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records
from leakscope.report.comparison import Comparison
from leakscope.trials import model_seeds

QUICK = {"attacks": ["loss", "label-gap"], "workers": 1}
COSTS = ("train_seconds", "predict_seconds")


def small(inputs, classes):
    return MLP([inputs, 16, classes])


def network(factory=small, **settings):
    return TorchRecipe("small", factory, **{"epochs": 8, "lr": 0.05, "stack": 32} | settings)


@dataclass(frozen=True)
class Counted(SklearnRecipe):
    """Counts its trainings in a file, which is no part of what it makes."""

    where: ClassVar[Path]

    def fit_many(self, records, roles, seeds):
        with self.where.open("a") as file:
            file.write("x" * len(seeds))
        return super().fit_many(records, roles, seeds)


def numbers(comparison, *, sort=False):
    """All but dates and costs."""
    data = comparison.to_dict()
    for entry in data["rows"] + data["summary"]:
        for cost in COSTS:
            del entry[cost]
    for key in ("created", "cost", "command"):
        del data[key]
    if sort:
        for key in ("rows", "summary"):
            data[key].sort(key=lambda one: (one["defense"], one.get("seed")))
        data["frontier"].sort()
        data["setup"]["defenses"].sort()
        for one in data["summary"]:
            one["beaten_by"].sort()
    return data


@pytest.fixture(scope="module")
def comparison(pool):
    return compare(LogisticRegression(C=1e3), pool, ["noise:2", "l2:1", "round:1"], **QUICK)


def test_there_is_a_row_for_each_defense_and_seed(comparison):
    assert [(one["defense"], one["seed"]) for one in comparison.rows] == [
        (name, seed) for name in ("none", "noise:2", "l2:1", "round:1") for seed in range(3)
    ]
    setup = comparison.to_dict()["setup"]
    assert setup["members"] == setup["reference"] == setup["nonmembers"] == [80] * 3
    assert setup["attacks"] == ["loss", "label-gap"]
    assert {one["attack"] for one in setup["not_run"] if not one["defenses"]} >= {"lira", "entropy"}
    assert comparison.advice


def test_a_row_has_what_the_interface_says(comparison):
    wanted = {
        "defense", "seed", "train_accuracy", "test_accuracy", "attack", "attack_accuracy", "low",
        "high", "advantage", "auc", "epsilon", "bytes", "train_seconds", "predict_seconds",
        "leakage", "guarantee", "epochs", "by_attack",
    }  # fmt: skip
    assert all(wanted <= set(one) for one in comparison.rows)
    assert {"setup", "rows", "frontier", "advice"} <= set(comparison.to_dict())
    assert "by_attack" not in comparison.to_csv()
    assert all(set(one["by_attack"]) == {"loss", "label-gap"} for one in comparison.summary)


def test_models_are_those_of_the_recipe_on_the_members(comparison, pool):
    """The oracle: train and judge one row by hand."""
    records = pool.take(pool.canonical_order())
    division = divide(records, None, 0, 3)[1]
    recipe = as_recipe(LogisticRegression(C=1e3))
    (model,) = recipe.fit_many(records, division.roles[None], [model_seeds(0, 3)[1]])
    right = model.predict(records.X) == records.y
    row = comparison.rows[1]
    assert row["train_accuracy"] == pytest.approx(right[division.roles == 1].mean())
    assert row["test_accuracy"] == pytest.approx(right[division.evaluated].mean())
    loss = model.loss(records.X, records.y)
    called = loss <= loss[division.roles == 1].mean()
    by_loss = 0.5 + called[division.roles == 1].mean() / 2 - called[division.evaluated].mean() / 2
    by_label = 0.5 + (row["train_accuracy"] - row["test_accuracy"]) / 2
    assert row["attack_accuracy"] == pytest.approx(max(by_loss, by_label))


def test_the_order_of_defenses_and_of_records_changes_nothing(comparison, pool):
    mixed = pool.take(np.random.default_rng(0).permutation(len(pool)))
    again = compare(
        LogisticRegression(C=1e3), mixed, ["round:1", "none", "l2:1", "noise:2"], **QUICK
    )
    assert numbers(again, sort=True) == numbers(comparison, sort=True)


def test_another_defense_or_another_seed_changes_no_row(comparison, pool):
    recipe = LogisticRegression(C=1e3)
    more = compare(recipe, pool, ["l2:1"], seeds=4, **QUICK)
    rows = {(one["defense"], one["seed"]): one for one in numbers(more)["rows"]}
    for one in numbers(comparison)["rows"]:
        if one["defense"] in ("none", "l2:1"):
            assert rows[one["defense"], one["seed"]] == one
    other = compare(recipe, pool, ["l2:1"], seed=1, seeds=1, **QUICK)
    assert numbers(other)["rows"][0] != numbers(comparison)["rows"][0]


@pytest.mark.slow
def test_what_is_interrupted_goes_on_and_trains_nothing_twice(pool, tmp_path, monkeypatch):
    Counted.where = tmp_path / "trained"
    recipe = Counted("counted", LogisticRegression())
    defenses, judge = ["noise:2", "noise:1"], Bench.judge

    def interrupted(bench, defended):
        if defended.name == "noise:1":
            raise KeyboardInterrupt
        return judge(bench, defended)

    out = tmp_path / "out"
    monkeypatch.setattr(Bench, "judge", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compare(recipe, pool, defenses, seeds=1, out=out, **QUICK)
    assert len(Counted.where.read_text()) == 2
    assert not (out / "compare.json").exists()
    monkeypatch.setattr(Bench, "judge", judge)
    resumed = compare(recipe, pool, defenses, seeds=1, out=out, **QUICK)
    assert len(Counted.where.read_text()) == 3
    again = compare(recipe, pool, defenses, seeds=1, out=out, **QUICK)
    assert len(Counted.where.read_text()) == 3
    # Found, a model still has the time that its training took.
    assert [one["train_seconds"] for one in again.rows] == [
        one["train_seconds"] for one in resumed.rows
    ]
    alone = compare(recipe, pool, defenses, seeds=1, **QUICK)
    assert numbers(resumed) == numbers(again) == numbers(alone)
    compare(recipe, pool, defenses, seeds=1, out=out, fresh=True, **QUICK)
    assert len(Counted.where.read_text()) == 9
    assert numbers(Comparison.load(out)) == numbers(alone)


@pytest.mark.slow
def test_networks_have_baselines_and_epochs(pool, tmp_path):
    pruning = Pruning(4, epochs=1, retrain=2)
    prune = str(pruning)

    def run(seeds=2):
        return compare(
            network(),
            pool,
            ["early-stop:3", pruning, "l2:0.3"],
            seeds=seeds,
            out=tmp_path,
            **QUICK,
        )

    found = run()
    told = {one["defense"]: one for one in found.summary}
    assert told["none"]["epochs"] == 8
    assert told["early-stop:3"]["epochs"] == 3
    assert told[prune]["epochs"] == told["equal-compute:5"]["epochs"] == 13
    said = {(one["kind"], *one["beside"]): one for one in found.to_dict()["setup"]["baselines"]}
    assert said["equal compute", prune]["defense"] == "equal-compute:5"
    assert said["equal compute", "l2:0.3"]["defense"] is None
    stop = said["early stopping at the same train accuracy", "l2:0.3"]["defense"]
    assert told[stop]["train_accuracy"] >= told["l2:0.3"]["train_accuracy"] - 0.001
    assert told[stop]["epochs"] < 8
    rows = {name: one["baseline"] for name, one in told.items() if one["baseline"]}
    assert rows["none"] == "no defense"
    assert rows["equal-compute:5"] == f"equal compute as {prune}"
    assert rows[stop].startswith("early stopping at the same train accuracy as ")
    assert not {"early-stop:3", prune, "l2:0.3"} & set(rows)
    resolution = found.to_dict()["frontier_resolution"]
    assert resolution["undecided"] == sorted(
        name for name, one in told.items() if one["undecided_against"]
    )
    # Trained by themselves, models do not depend on how many seeds there are.
    before = sorted(one.name for one in (tmp_path / "trials").iterdir())
    run(seeds=1)
    assert set(before) <= {one.name for one in (tmp_path / "trials").iterdir()}


@pytest.mark.slow
def test_the_epsilon_of_a_row_is_what_opacus_accounts(pool):
    """From the noise that was taken, by its accountant: for every update, as they are sampled."""
    recipe = network(epochs=2, batch_size=20)
    found = compare(recipe, pool, [DPSGD(3.0, accountant="rdp")], seeds=1, **QUICK)
    plain, private = found.to_dict()["rows"][:2]
    members = found.to_dict()["setup"]["members"][0]
    sampling = Sampling.of(members, 20, 2)
    assert sampling.updates == 2 * -(-members // 20)
    account = RDPAccountant()
    noise = noise_for(3.0, private["delta"], sampling, "rdp")
    account.history = [(noise, 20 / members, sampling.updates)]
    assert private["epsilon"] == account.get_epsilon(private["delta"]) <= 3.0
    assert private["guarantee"].startswith(f"({private['epsilon']:g}, 1e-05)-differential")
    assert (plain["epsilon"], plain["guarantee"]) == (None, "no formal guarantee")


def test_shadow_models_have_the_defense_and_the_reference_records(pool, monkeypatch, tmp_path):
    from leakscope.comparing import running

    runs = []
    train = running.run_trials

    def noted(recipe, records, roles, channels, **options):
        runs.append((recipe.name, roles, [one.name for one in channels]))
        return train(recipe, records, roles, channels, **options)

    monkeypatch.setattr(running, "run_trials", noted)
    found = compare(
        LogisticRegression(),
        pool,
        ["noise:1", "round:1"],
        seeds=1,
        members=40,
        attacks=["lira-offline", "loss"],
        shadows=4,
        workers=1,
        out=tmp_path,
    )
    assert [one["attacks"] for one in found.rows] == [2, 2, 2]
    shadows = [one for one in runs if one[2] != ["cost"]]
    assert [name for name, _, _ in shadows] == [
        "LogisticRegression", "LogisticRegression+noise:1", "LogisticRegression"
    ]  # fmt: skip
    for _, roles, channels in shadows:
        assert channels == ["margin"]
        assert roles.shape == (4, 120)
        reference = (roles == 2).all(axis=0)
        assert reference.sum() == 40
        assert ((roles == 1).sum(axis=1) == 40).all()
        assert not (roles[:, ~reference] == 2).any()
    assert found.to_dict()["cost"]["models"] == 15


def test_attacks_that_need_shadow_models_are_told_of_without(pool):
    found = compare(
        DecisionTreeClassifier(), pool, ["round:0"], seeds=1, attacks=["loss", "lira"], workers=1
    )
    (lira,) = [one for one in found.to_dict()["setup"]["not_run"] if one["attack"] == "lira"]
    assert lira["defenses"] == ["none", "round:0"]
    assert "needs 4 shadow models" in lira["reason"]
    with pytest.raises(InputError, match="'lira' needs 4 shadow models"):
        compare(DecisionTreeClassifier(), pool, ["round:0"], attacks=["lira"])


def test_an_attack_that_fails_on_one_defense_is_named_with_it(pool):
    @dataclass(frozen=True)
    class Blind(Defense):
        """Shows no loss to anybody."""

        name: ClassVar[str] = "blind"
        paper: ClassVar[str] = "none"
        example: ClassVar[str] = "blind"

        def __str__(self):
            return self.name

        def wrap_channel(self, channel):
            if channel.name == "loss":
                return dataclass_with_needs(channel)
            return channel

    def dataclass_with_needs(channel):
        class Needy(type(channel)):
            needs = frozenset({"records"})

        return Needy()

    found = compare(DecisionTreeClassifier(), pool, [Blind()], seeds=1, **QUICK)
    (loss,) = [one for one in found.to_dict()["setup"]["not_run"] if one["attack"] == "loss"]
    assert loss["defenses"] == ["blind"]
    assert [one["attacks"] for one in found.rows] == [2, 1]


def test_persons_are_kept_together_and_counted(pool):
    persons = Records(pool.X, pool.y, unit=np.arange(240) // 2)
    found = compare(DecisionTreeClassifier(), persons, ["round:0"], seeds=1, **QUICK)
    assert found.to_dict()["setup"]["persons"] == 120


REFUSED = {
    "an unknown defense": ({"defenses": ["nois:1"]}, UnknownNameError, "did you mean 'noise'"),
    "a bad option": ({"defenses": ["noise:-1"]}, InputError, "sigma must be"),
    "no list": ({"defenses": "noise:1"}, InputError, "give a list"),
    "a defense of networks": ({"defenses": ["early-stop:2"]}, InputError, "give a TorchRecipe"),
    "no seed": ({"seeds": 0}, InputError, "seeds must be a whole number"),
    "too many members": ({"members": 100}, InputError, "ask for 80 members at most"),
    "a limit": ({"limit": 2}, InputError, "The limit is 2"),
    "shadows": ({"shadows": -1}, InputError, "number of shadow models"),
    "an unknown attack": ({"attacks": ["los"]}, UnknownNameError, "did you mean 'loss'"),
    "an unknown channel": ({"channels": ["los"]}, UnknownNameError, "did you mean 'loss'"),
    "a backend": ({"backend": "moon"}, InputError, "moon"),
    "a seed": ({"seed": -1}, InputError, "The seed is -1"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_everything_is_refused_before_anything_is_trained(what, pool, tmp_path):
    changed, error, message = REFUSED[what]
    Counted.where = tmp_path / "trained"
    options = {"defenses": ["noise:1"], **QUICK} | changed
    with pytest.raises(error, match=message):
        compare(Counted("counted", LogisticRegression()), pool, **options)
    assert not Counted.where.exists()


def normalized(inputs, classes):
    return nn.Sequential(nn.Linear(inputs, 4), nn.BatchNorm1d(4), nn.Linear(4, classes))


NOT_TRAINED = {
    "too large a budget": (
        small, [["equal-compute:1", Pruning(budgets={"layers.linear1": 10_000})]],
        "it has 192 weights",
    ),
    "batch normalization": (normalized, ["dpsgd:1"], "BatchNorm1d"),
    "noise around it": (normalized, ["dpsgd:1+noise:1"], "BatchNorm1d"),
}  # fmt: skip


@pytest.mark.parametrize("what", NOT_TRAINED)
def test_networks_that_a_defense_cannot_train_are_refused_first(what, pool, monkeypatch):
    factory, defenses, message = NOT_TRAINED[what]
    monkeypatch.setattr(Bench, "judge", lambda *_: pytest.fail("a model was trained"))
    with pytest.raises(InputError, match=message):
        compare(network(factory=factory), pool, defenses, **QUICK)


def test_numbers_are_not_classes(pool):
    with pytest.raises(InputError, match="judges by accuracy"):
        compare(LinearRegression(), pool, ["noise:1"])
    with pytest.raises(InputError, match="judges by accuracy"):
        compare(LogisticRegression(), (pool.X, pool.X[:, 0]), ["noise:1"])
    with pytest.raises(InputError, match="Records"):
        compare(LogisticRegression(), pool.X, ["noise:1"])


def test_a_file_in_the_way_is_told_first(pool, tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="a file is in the way"):
        compare(LogisticRegression(), pool, ["noise:1"], out=tmp_path / "out")


def test_models_that_cannot_be_written_are_refused_with_what_to_do(pool):
    class Local(DecisionTreeClassifier):
        """Cannot be found again by its name."""

    with (
        pytest.warns(UserWarning, match="cannot be written to a file"),
        pytest.raises(ModelError, match="define their class in a module"),
    ):
        compare(Local(), pool, ["round:1"], **QUICK)


def test_progress_names_the_defense(pool):
    told = []
    compare(
        LogisticRegression(),
        pool,
        ["round:1"],
        seeds=1,
        progress=lambda *step: told.append(step),
        **QUICK,
    )
    assert any(step[0] == "round:1, seed 0: running loss" for step in told)
    assert told[-1] == ("done", 1, 1)


def test_the_files(comparison, tmp_path):
    assert comparison.save(tmp_path / "run") == tmp_path / "run"
    data = json.loads((tmp_path / "run" / "compare.json").read_text("utf-8"))
    assert data == comparison.to_dict()
    lines = (tmp_path / "run" / "compare.csv").read_text("utf-8").splitlines()
    assert len(lines) == 1 + len(comparison.rows)
    assert "js_low" in lines[0].split(",")
    assert "compare.csv" in (tmp_path / "run" / "compare.html").read_text("utf-8")
