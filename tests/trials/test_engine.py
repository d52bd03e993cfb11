from __future__ import annotations

import gc
import hashlib
import json
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from toys import Together, Toy, draw_records

import leakscope
from leakscope.channels.outputs import Label, Loss, Margin, Probabilities
from leakscope.channels.robustness import Robustness
from leakscope.errors import InputError, ModelError, StoreError
from leakscope.recipes.sklearn import SklearnRecipe, ridge, tree
from leakscope.records import Records
from leakscope.trials import engine, model_seeds, random_halves, run_trials
from leakscope.trials.store import DONE, MODEL, Store

RECORDS = draw_records(60)
ROLES = random_halves(60, 6, 0)
BytesOf = Callable[[Path], dict[str, str]]


def run(store: Path | None, recipe: Any = None, *channels: Any, **options: Any) -> Any:
    given = {"records": RECORDS, "roles": ROLES, "workers": 1, **options}
    return run_trials(recipe or Toy(), given.pop("records"), given.pop("roles"),
                      channels or [Margin(), Loss()], store=store, **given)  # fmt: skip


def keys_of(store: Path) -> list[str]:
    return [model["key"] for model in json.loads((store / "manifest.json").read_text())["models"]]


class Journal:
    """Which seeds were trained, in every process."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal"
        self.recipe = Toy(journal=self.path)

    def read(self) -> list[int]:
        """The seeds since it was read last."""
        seeds = [int(line) for line in self.path.read_text().split()] if self.path.exists() else []
        self.path.unlink(missing_ok=True)
        return sorted(seeds)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


SEEDS = sorted(model_seeds(0, 6))


# The table


def test_the_table_is_what_a_plain_loop_gives(tmp_path: Path) -> None:
    trials = run(tmp_path / "store", tree(), Margin(), Loss(), Probabilities(), Label())
    assert trials.folder == tmp_path / "store"
    assert trials.seeds == model_seeds(0, 6)
    assert np.array_equal(trials.roles, ROLES)
    assert np.array_equal(trials.membership, ROLES == 1)
    for channel in (Margin(), Loss(), Probabilities(), Label()):
        expected = [
            channel.observe(tree().fit(RECORDS.take(np.flatnonzero(row == 1)), seed), RECORDS)
            for row, seed in zip(ROLES, trials.seeds, strict=True)
        ]
        assert np.array_equal(np.asarray(trials.observations[channel.name]), expected)


@pytest.mark.slow
def test_without_a_folder_the_models_last_as_long_as_the_table() -> None:
    trials = run(None)
    folder = trials.folder
    losses = trials.observations["loss"]
    assert folder.is_dir()
    del trials
    gc.collect()
    assert losses.shape == (6, 60, 1)
    del losses
    gc.collect()
    assert not folder.exists()


def test_a_run_that_fails_leaves_no_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(InputError):
        run(None, workers=0)
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_class_that_a_model_never_saw_has_probability_zero(tmp_path: Path) -> None:
    y = np.arange(60) % 2
    y[0] = 2
    records = Records(RECORDS.X, y)
    roles = ROLES.copy()
    roles[0, 0], roles[1, 0] = 0, 1
    trials = run(tmp_path, tree(), Probabilities(), Margin(), records=records, roles=roles)
    assert trials.observations["probabilities"].shape == (6, 60, 3)
    assert not trials.observations["probabilities"][0][:, 2].any()
    assert trials.observations["probabilities"][1][0].tolist() == [0.0, 0.0, 1.0]


def test_numbers_are_predicted_too(tmp_path: Path) -> None:
    records = Records(RECORDS.X, RECORDS.X @ np.array([1.0, -1.0, 0.5, 0.0]))
    trials = run(tmp_path, ridge(), Loss(), Label(), records=records)
    model = ridge().fit(records.take(np.flatnonzero(ROLES[2] == 1)), trials.seeds[2])  # type: ignore[attr-defined]
    assert np.array_equal(trials.observations["loss"][2][:, 0], model.loss(records.X, records.y))


def test_the_columns_follow_the_classes_that_are_asked_for(tmp_path: Path) -> None:
    first = run(tmp_path, None, Probabilities())
    turned = run(tmp_path, None, Probabilities(), classes=np.array([1, 0]))
    wider = run(tmp_path, None, Probabilities(), classes=np.array([0, 1, 2]))
    columns = np.asarray(first.observations["probabilities"])
    assert np.array_equal(np.asarray(turned.observations["probabilities"]), columns[:, :, ::-1])
    assert np.array_equal(np.asarray(wider.observations["probabilities"])[:, :, :2], columns)
    assert np.array_equal(np.asarray(first.observations["probabilities"]), columns)


def test_the_manifest_says_what_the_models_are(tmp_path: Path) -> None:
    trials = run(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["leakscope"] == leakscope.__version__
    assert manifest["recipe"]["name"] == "toy"
    assert manifest["records"] == {"number": 60, "fingerprint": RECORDS.fingerprint()}
    assert [model["seed"] for model in manifest["models"]] == list(trials.seeds)
    assert [model["members"] for model in manifest["models"]] == [30] * 6
    files = trials.observations["loss"].files
    assert [path.parent.name for path in files] == [model["key"] for model in manifest["models"]]
    assert {path.name for path in files} == {manifest["channels"]["loss"]}
    assert str(tmp_path) not in (tmp_path / "manifest.json").read_text()


def test_a_relative_folder_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trials = run(Path("store"))
    monkeypatch.chdir("/")
    assert trials.folder == tmp_path / "store"
    assert trials.observations["loss"].shape == (6, 60, 1)


# Keys


def test_each_part_changes_the_key_and_nothing_else_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keys(name: str, recipe: Any = None, *channels: Any, **options: Any) -> list[str]:
        run(tmp_path / name, recipe, *channels, **options)
        return keys_of(tmp_path / name)

    first = keys("first")
    assert len(set(first)) == 6
    same = {
        "channels": keys("channels", None, Label()),
        "keep": keys("keep", keep_models=False),
        "fresh": keys("fresh", fresh=True),
        "classes": keys("classes", classes=np.array([0, 1, 2])),
        "type": keys("type", roles=ROLES.astype(int)),
        "layout": keys("layout", roles=np.asfortranarray(ROLES)),
        "groups": keys("groups", records=replace(RECORDS, groups={"sex": ["f", "m"] * 30})),
        "prefix": keys("prefix", roles=ROLES[:4]) + first[4:],
    }
    assert {name: made == first for name, made in same.items()} == dict.fromkeys(same, True)
    X = RECORDS.X.copy()
    X[7, 2] += 1e-12
    another_row = ROLES.copy()
    another_row[3, [np.flatnonzero(ROLES[3] == 0)[0]]] = 2
    assert keys("row", roles=another_row)[3] != first[3]
    assert np.delete(keys_of(tmp_path / "row"), 3).tolist() == np.delete(first, 3).tolist()
    other = {
        "parameter": keys("parameter", Toy(scale=1.5)),
        "name": keys("name", Toy(name="other")),
        "records": keys("records", records=Records(X, RECORDS.y)),
        "seed": keys("seed", seed=1),
    }
    monkeypatch.setattr(engine, "SCHEMA", 2)
    other["schema"] = keys("schema")
    monkeypatch.undo()
    version = "leakscope.recipes.fingerprint.importlib.metadata.version"
    monkeypatch.setattr(version, lambda name: f"9.9 of {name}")
    other["library"] = keys("library")
    assert {name: bool(set(made) & set(first)) for name, made in other.items()} == dict.fromkeys(
        other, False
    )


def test_models_trained_together_depend_on_one_another(tmp_path: Path) -> None:
    run(tmp_path / "a", Together(), roles=ROLES[:5])
    another_row = ROLES[:5].copy()
    another_row[1] = 1
    run(tmp_path / "b", Together(), roles=another_row)
    first, second = keys_of(tmp_path / "a"), keys_of(tmp_path / "b")
    assert [one == other for one, other in zip(first, second, strict=True)] == [
        False, False, False, True, True,
    ]  # fmt: skip
    assert len(set(first)) == 5


def test_equal_rows_trained_together_are_two_models(tmp_path: Path) -> None:
    run(tmp_path, Together(), roles=ROLES[[0, 0, 0]])
    assert len(set(keys_of(tmp_path))) == 3


def test_the_files_of_a_channel_follow_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def file(channel: Any) -> str:
        return engine._file_of(channel, np.array([0, 1]))

    assert file(Loss()) == file(Loss())
    assert file(Robustness(seed=1)) != file(Robustness(seed=2))
    before = file(Loss())
    monkeypatch.setattr(leakscope, "__version__", "99.0")
    assert file(Loss()) != before
    assert engine._file_of(Loss(), None) != file(Loss())


# The same bytes


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [tree(), Together()], ids=["tree", "together"])
def test_one_worker_and_two_write_the_same_bytes(
    tmp_path: Path, recipe: Any, bytes_of: BytesOf
) -> None:
    channels = [Margin(), Loss(), Probabilities()]
    run(tmp_path / "one", recipe, *channels, workers=1)
    run(tmp_path / "two", recipe, *channels, workers=2)
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")


def test_records_that_workers_share_in_memory_change_no_bit(
    tmp_path: Path, bytes_of: BytesOf
) -> None:
    """Arrays of more than a megabyte are mapped into the workers, and lie there otherwise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 60))
    records = Records(X, (X[:, 0] + rng.normal(size=3000) > 0).astype(int))
    options: dict[str, Any] = {"records": records, "roles": random_halves(3000, 4, 0)}
    recipe = SklearnRecipe("logistic", LogisticRegression())
    run(tmp_path / "one", recipe, workers=1, **options)
    run(tmp_path / "two", recipe, workers=2, **options)
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")


# Resuming


def test_nothing_is_trained_twice(tmp_path: Path, journal: Journal, bytes_of: BytesOf) -> None:
    store = tmp_path / "store"
    run(store, journal.recipe, roles=ROLES[:2])
    assert len(journal.read()) == 2
    first = run(store, journal.recipe)
    assert sorted([*journal.read(), *model_seeds(0, 2)]) == SEEDS
    before = bytes_of(store)
    again = run(store, journal.recipe)
    assert journal.read() == []
    assert bytes_of(store) == before
    for name in ("margin", "loss"):
        assert np.array_equal(first.observations[name][:], again.observations[name][:])


def test_a_changed_setting_trains_again(tmp_path: Path, journal: Journal) -> None:
    store = tmp_path / "store"
    for change in ({}, {"scale": 2.0}, {"name": "other"}):
        run(store, replace(journal.recipe, **change))
        assert journal.read() == SEEDS
    run(store, journal.recipe, seed=1)
    assert journal.read() == sorted(model_seeds(1, 6))
    run(store, journal.recipe, records=draw_records(60, seed=1))
    assert journal.read() == SEEDS
    run(store, journal.recipe)
    assert journal.read() == []


def test_a_channel_asked_for_later_observes_what_is_there(
    tmp_path: Path, journal: Journal, bytes_of: BytesOf
) -> None:
    store = tmp_path / "store"
    run(store, journal.recipe, Loss())
    assert journal.read() == SEEDS
    trials = run(store, journal.recipe, Loss(), Margin())
    assert journal.read() == []
    run(tmp_path / "at-once", journal.recipe, Loss(), Margin())
    assert bytes_of(store) == bytes_of(tmp_path / "at-once")
    assert trials.observations["margin"].shape == (6, 60, 1)


def test_fresh_trains_again(tmp_path: Path, journal: Journal, bytes_of: BytesOf) -> None:
    store = tmp_path / "store"
    run(store, journal.recipe)
    before = bytes_of(store)
    journal.read()
    run(store, journal.recipe, fresh=True)
    assert journal.read() == SEEDS
    assert bytes_of(store) == before


def test_models_need_not_be_kept(tmp_path: Path, journal: Journal) -> None:
    store = tmp_path / "store"
    run(store, journal.recipe, Loss(), keep_models=False)
    assert not list(store.rglob(MODEL))
    journal.read()
    run(store, journal.recipe, Loss())
    assert journal.read() == []
    run(store, journal.recipe, Margin())
    assert journal.read() == SEEDS


def test_models_trained_together_are_trained_together_again(
    tmp_path: Path, bytes_of: BytesOf
) -> None:
    store = tmp_path / "store"
    recipe = Together(journal=tmp_path / "journal")
    run(store, recipe)
    before = bytes_of(store)
    lost = keys_of(store)[4]
    for path in (store / lost).iterdir():
        path.unlink()
    (tmp_path / "journal").unlink()
    run(store, recipe)
    assert bytes_of(store) == before
    assert sorted(map(int, (tmp_path / "journal").read_text().split())) == sorted(
        model_seeds(0, 6)[3:]
    )


# Damage


def damaged_observation(folder: Path) -> None:
    [path] = folder.glob("loss-*.npy")
    path.write_bytes(path.read_bytes()[:-1] + b"\1")


def short_observation(folder: Path) -> None:
    [path] = folder.glob("loss-*.npy")
    path.write_bytes(path.read_bytes()[:100])


def lost_observation(folder: Path) -> None:
    [path] = folder.glob("loss-*.npy")
    path.unlink()


def short_list(folder: Path) -> None:
    (folder / DONE).write_bytes((folder / DONE).read_bytes()[:40])


def empty_list(folder: Path) -> None:
    (folder / DONE).write_bytes(b"")


@pytest.mark.parametrize(
    "damage",
    [damaged_observation, short_observation, lost_observation, short_list, empty_list],
)
def test_damage_is_found_said_and_made_good(
    tmp_path: Path, journal: Journal, bytes_of: BytesOf, damage: Callable[[Path], None]
) -> None:
    store = tmp_path / "store"
    run(store, journal.recipe)
    before = bytes_of(store)
    journal.read()
    damage(store / keys_of(store)[3])
    what = DONE if damage in (short_list, empty_list) else r"loss-\w+\.npy"
    said = rf"^What is stored of model 3 \(counting from 0\) in '.+' is damaged.* \({what}\); it is"
    with pytest.warns(UserWarning, match=said) as told:
        run(store, journal.recipe)
    assert len(told) == 1
    assert bytes_of(store) == before
    # The model itself is sound, and is not trained again where it is known to be.
    assert journal.read() == ([model_seeds(0, 6)[3]] if what == DONE else [])


def damaged_model(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def lost_model(path: Path) -> None:
    path.unlink()


def writable_model(path: Path) -> None:
    path.chmod(0o666)


@pytest.mark.parametrize("damage", [damaged_model, lost_model, writable_model])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_model_that_is_needed_and_damaged_is_trained_again(
    tmp_path: Path,
    journal: Journal,
    bytes_of: BytesOf,
    damage: Callable[[Path], None],
    workers: int,
) -> None:
    store = tmp_path / "store"
    run(store, journal.recipe, Loss())
    journal.read()
    damage(store / keys_of(store)[3] / MODEL)
    with pytest.warns(UserWarning, match=r"model 3 .*\(model\.bin\); it is made again") as told:
        run(store, journal.recipe, Loss(), Margin(), workers=workers)
    assert len(told) == 1
    assert journal.read() == [model_seeds(0, 6)[3]]
    run(tmp_path / "at-once", journal.recipe, Loss(), Margin())
    assert bytes_of(store) == bytes_of(tmp_path / "at-once")


def test_files_left_half_written_are_cleared_away(tmp_path: Path, bytes_of: BytesOf) -> None:
    store = tmp_path / "store"
    run(store)
    before = bytes_of(store)
    killed = store / keys_of(store)[2]
    (killed / DONE).unlink()
    (killed / ".done.json.0123456789abcdef.tmp").write_bytes(b'{"files"')
    (killed / MODEL).write_bytes(b"as if it had been renamed before its bytes were there")
    run(store)
    assert bytes_of(store) == before


class Unkept:
    """A recipe whose models no file can hold."""

    name = "unkept"
    together = 1

    def fit_many(self, records: Any, roles: Any, seeds: Any) -> Any:
        models = Toy().fit_many(records, roles, seeds)
        for model in models:
            model.forget = threading.Lock()  # type: ignore[attr-defined]
        return models


def test_models_that_no_file_can_hold_are_said(tmp_path: Path) -> None:
    said = r"^Models of the recipe 'unkept' cannot be written to a file \(such as model 0, counting"
    with pytest.warns(UserWarning, match=said) as told:
        run(tmp_path, Unkept(), Loss())
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(tmp_path, Unkept(), Loss())


# Telling


def test_it_tells_how_many_models_and_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leakscope.trials.watching.LOOK", 0.01)
    told: list[tuple[str, int, int]] = []
    run(tmp_path, Toy(seconds=0.05), progress=lambda *what: told.append(what))
    assert told[0] == ("training 6 models with 1 worker", 0, 6)
    step, done, total = told[-1]
    assert step.startswith("training 6 models, 0.")
    assert (done, total) == (5, 6)  # the last is told by whoever goes on after it
    told.clear()
    run(tmp_path, Toy(seconds=0.05), progress=lambda *what: told.append(what))
    assert told == [(f"found 6 of 6 models in {tmp_path}", 6, 6)]


# Errors


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_recipe_that_raises(
    tmp_path: Path, workers: int, journal: Journal, bytes_of: BytesOf
) -> None:
    store, forbidden = tmp_path / "store", tmp_path / "forbidden"
    recipe = replace(journal.recipe, forbidden=forbidden)
    seed = model_seeds(0, 6)[4]
    forbidden.write_text(f"{seed} raise")
    with pytest.raises(ModelError) as caught:
        run(store, recipe, workers=workers)
    told = f"Model 4 of 6 (counting from 0, seed {seed}) could not be trained: the matrix is sing"
    assert str(caught.value).startswith(told)
    assert str(caught.value).endswith(f" of 6 models were finished and are kept in {str(store)!r}")
    # The other worker may finish one more after that was said.
    kept = len(list(store.glob(f"*/{DONE}")))
    assert kept >= (4 if workers == 1 else 2)
    journal.read()
    forbidden.unlink()
    run(store, recipe, workers=workers)
    assert len(journal.read()) == 6 - kept
    run(tmp_path / "undisturbed", recipe)
    assert bytes_of(store) == bytes_of(tmp_path / "undisturbed")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A worker was killed, most likely")  # as long as they get on
def test_a_worker_that_is_killed(tmp_path: Path, bytes_of: BytesOf) -> None:
    store, forbidden = tmp_path / "store", tmp_path / "forbidden"
    recipe = Toy(forbidden=forbidden)
    forbidden.write_text(f"{model_seeds(0, 6)[5]} die")
    with pytest.raises(ModelError, match="A worker was killed while it trained, most likely for"):
        run(store, recipe, workers=2)
    # All but the one that kills every worker.
    assert len(list(store.glob(f"*/{DONE}"))) == 5
    forbidden.unlink()
    run(store, recipe, workers=2)
    run(tmp_path / "undisturbed", recipe)
    assert bytes_of(store) == bytes_of(tmp_path / "undisturbed")


@pytest.mark.slow
def test_others_go_on_where_a_worker_is_killed_once(tmp_path: Path, bytes_of: BytesOf) -> None:
    store, forbidden = tmp_path / "store", tmp_path / "forbidden"
    recipe = Toy(forbidden=forbidden)
    forbidden.write_text(f"{model_seeds(0, 6)[3]} die-once")
    with pytest.warns(UserWarning, match="A worker was killed, most likely for want of memory; ot"):
        run(store, recipe, workers=2)
    run(tmp_path / "undisturbed", recipe)
    assert bytes_of(store) == bytes_of(tmp_path / "undisturbed")


def test_two_runs_at_once(tmp_path: Path) -> None:
    with (
        Store(tmp_path).leading(),
        pytest.raises(StoreError, match=r"^Another run is training models in .+; wait for it, or"),
    ):
        run(tmp_path)


def test_workers_that_write_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leakscope.trials.workers import Finished

    monkeypatch.setattr(engine, "work", lambda *_: [Finished()])
    monkeypatch.setattr("leakscope.trials.watching.LOOK", 0.01)
    with pytest.raises(StoreError, match=r"only 0 of 6 models are in .+; give a folder that all"):
        run(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"roles": ROLES[0]}, r"The roles have the shape \(60,\); give a row per model and a"),
        ({"roles": ROLES[:, :5]}, r"The roles have the shape \(6, 5\); .* each of the 60 records"),
        ({"roles": ROLES[:0]}, r"The roles have the shape \(0, 60\)"),
        ({"roles": np.where(ROLES == 1, 3, 0)}, "3 is no role; give 0 for a record that is left"),
        ({"roles": ROLES * (np.arange(6) != 2)[:, None]}, r"Model 2 \(counting from 0\) has no me"),
        ({"workers": 0}, "There are 0 workers; give 1 or more"),
    ],
)
def test_what_cannot_be_a_design(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(tmp_path, **change)


@pytest.mark.parametrize("channels", [[], [Loss(), Loss()]])
def test_each_channel_once(tmp_path: Path, channels: Any) -> None:
    with pytest.raises(InputError, match="give at least one, and each once"):
        run_trials(Toy(), RECORDS, ROLES, channels, store=tmp_path)


def test_the_digest_of_a_store_is_that_of_its_files(tmp_path: Path, bytes_of: BytesOf) -> None:
    """What the comparisons above rest on: every file below the folder, by name."""
    run(tmp_path)
    found = bytes_of(tmp_path)
    assert set(found) >= {"manifest.json", "lock"}
    assert len(found) == 2 + 6 * 4
    assert found["lock"] == hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class Greedy(Toy):
    """A recipe that asks for what its key does not hold."""

    def fit_many(self, records: Any, roles: Any, seeds: Any) -> Any:
        return super().fit_many(records, roles * records.groups["weight"], seeds)


def test_a_recipe_is_given_no_groups_and_no_persons(tmp_path: Path) -> None:
    records = replace(RECORDS, groups={"weight": np.ones(60)}, unit=np.arange(60))
    run(tmp_path, Toy(), records=records)
    with pytest.raises(ModelError, match="could not be trained: 'weight'"):
        run(tmp_path, Greedy(), records=records)


def test_what_users_would_try(tmp_path: Path) -> None:
    from sklearn.tree import DecisionTreeClassifier

    trials = run(tmp_path, DecisionTreeClassifier(), "loss", "margin", roles=ROLES.tolist())
    assert set(trials.observations) == {"loss", "margin"}
    assert len(run(tmp_path, "tree", "loss")) == 6
    with pytest.raises(InputError, match="There is no channel named 'los'; did you mean 'loss'"):
        run(tmp_path, "tree", "los")


def test_stored_models_are_found_and_observed(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    run(tmp_path, Toy(), Loss())
    run(tmp_path, Toy(), Loss(), Margin(), progress=lambda *what: told.append(what))
    assert told[0] == ("observing 6 models with 1 worker", 0, 6)
    told.clear()
    run(tmp_path, Toy(), Loss(), roles=random_halves(60, 8, 0),
        progress=lambda *what: told.append(what))  # fmt: skip
    assert told[0] == (f"found 6 of 8 models in {tmp_path}", 6, 8)
    assert told[1] == ("training 2 models with 1 worker", 6, 8)
