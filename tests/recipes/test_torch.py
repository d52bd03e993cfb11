from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.errors import InputError, MissingExtraError, RecordsError
from leakscope.models.torch import TorchModel
from leakscope.networks import MLP, network
from leakscope.networks.training import Beginning, Figures, Hooks
from leakscope.recipes import as_recipe, task_of, train
from leakscope.recipes.fingerprint import fingerprint
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records
from leakscope.trials import fixed_size, run_trials

N = 80
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 4))
Y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
RECORDS = Records(X, Y)
EVERYBODY = np.ones((1, N), dtype=np.int8)


def mlp(inputs: int, classes: int) -> nn.Module:
    return MLP([inputs, 6, classes], dropout=0.2)


def wider(inputs: int, classes: int) -> nn.Module:
    return MLP([inputs, 7, classes], dropout=0.2)


def normalized(inputs: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, classes))


RECIPE = TorchRecipe("mlp", mlp, lr=0.01, epochs=3)


def test_a_model_of_the_records() -> None:
    model = replace(RECIPE, epochs=40).fit(RECORDS, 3)
    assert isinstance(model, TorchModel)
    assert (model.task, model.classes.tolist()) == ("classification", ["no", "yes"])
    assert (model.predict(X) == Y).mean() > 0.9
    assert next(model.module.parameters()).dtype == torch.float32


@pytest.mark.parametrize("factory", [mlp, normalized])
def test_the_same_seed_gives_the_same_bits_and_leaves_torch_alone(factory: Any) -> None:
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    recipe = replace(RECIPE, factory=factory)
    first, second, other = (recipe.fit(RECORDS, seed).parameters() for seed in (4, 4, 5))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_the_first_weights_are_the_seeds_whatever_comes_after() -> None:
    seen: list[Tensor] = []

    def keep(beginning: Beginning) -> Hooks:
        seen.append(torch.cat([part.detach().ravel() for part in beginning.module.parameters()]))
        return Hooks()

    for options in ({}, {"epochs": 1}, {"batch_size": 7}, {"validation": 0.5}):
        replace(RECIPE, hooks=keep, **options).fit(RECORDS, 9)
    assert all(torch.equal(one, seen[0]) for one in seen)


def test_each_model_is_trained_on_its_members_alone() -> None:
    roles = rng.integers(0, 3, size=(3, N)).astype(np.int8)
    for recipe in (replace(RECIPE, stack=1), replace(RECIPE, factory=normalized)):
        models = recipe.fit_many(RECORDS, roles, [1, 2, 3])
        for model, row, seed in zip(models, roles, [1, 2, 3], strict=True):
            alone = recipe.fit(RECORDS.take(np.flatnonzero(row == 1)), seed)
            np.testing.assert_array_equal(model.parameters(), alone.parameters())


def test_records_of_other_roles_change_nothing() -> None:
    roles = (np.arange(N) % 2 == 0).astype(np.int8)[None]
    strange = Records(np.where(roles[0][:, None] == 1, X, 1000.0), Y)
    one, other = (RECIPE.fit_many(records, roles, [1])[0] for records in (RECORDS, strange))
    np.testing.assert_array_equal(one.parameters(), other.parameters())


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.slow
def test_one_worker_and_two_write_the_same_bytes(tmp_path: Path) -> None:
    roles = fixed_size(N, N // 2, 6, 0)
    stores = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        recipe = TorchRecipe("mlp", partial(network, "shokri-small"), epochs=2, stack=2)
        run_trials(recipe, RECORDS, roles, ["margin"], store=folder, workers=workers)
        stores.append(contents(folder))
    assert len(stores[0]) > 12
    assert stores[0] == stores[1]


def doubled(outputs: Tensor, y: Tensor) -> Tensor:
    return 2 * nn.functional.cross_entropy(outputs, y)


@pytest.mark.parametrize(
    "change",
    [
        {"factory": wider}, {"factory": partial(mlp, classes=2)}, {"lr": 0.02},
        {"optimizer": "sgd"}, {"epochs": 4}, {"batch_size": 8}, {"weight_decay": 0.1},
        {"decay": 0.1}, {"momentum": 0.5},
        {"loss": "cross_entropy"}, {"loss": doubled}, {"stop_at_gap": 0.1}, {"validation": 0.2},
        {"stop_at_accuracy": 0.9}, {"hooks": Hooks()}, {"classes": (1, 2)}, {"dtype": "float64"},
        {"threads": 2}, {"stack": 8},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_every_setting_is_in_the_fingerprint(change: dict[str, Any]) -> None:
    assert fingerprint(replace(RECIPE, **change)) != fingerprint(RECIPE)


def test_the_fingerprint_follows_the_release_of_torch_and_nothing_that_was_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = fingerprint(RECIPE)
    assert RECIPE.together == 32
    RECIPE.fit(RECORDS, 0)
    assert fingerprint(RECIPE) == before == fingerprint(replace(RECIPE))
    real = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "9.9" if name == "torch" else real(name)
    )
    assert fingerprint(replace(RECIPE)) != before


def test_the_code_of_the_factory_is_in_the_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    source = "from torch import nn\ndef factory(i, k):\n    return nn.Linear(i, {})\n"
    (tmp_path / "factory_of_a_test.py").write_text(source.format("k"))
    factory = importlib.import_module("factory_of_a_test").factory
    before = fingerprint(TorchRecipe("mine", factory))
    assert fingerprint(TorchRecipe("mine", factory)) == before
    (tmp_path / "factory_of_a_test.py").write_text(source.format("k + 1"))
    assert fingerprint(TorchRecipe("mine", factory)) != before


def test_numbers_are_predicted_by_their_mean() -> None:
    records = Records(X, 2 * X[:, 0] - X[:, 3])
    recipe = TorchRecipe("line", partial(network, "mlp"), lr=0.01, epochs=60)
    model = recipe.fit(records, 0)
    assert model.task == "regression"
    assert np.mean((model.predict(X) - records.y) ** 2) < 0.1 * np.var(records.y)


def test_double_precision() -> None:
    model = replace(RECIPE, dtype="float64").fit(RECORDS, 0)
    assert next(model.module.parameters()).dtype == torch.float64


def test_more_classes_than_the_records_have() -> None:
    model = replace(RECIPE, classes=("maybe", "yes", "no")).fit(RECORDS, 0)
    assert model.predict_proba(X).shape == (N, 3)
    assert model.classes.tolist() == ["maybe", "yes", "no"]


def one_output(inputs: int, classes: int) -> nn.Module:
    return MLP([inputs, 6, 1])


def test_one_output_is_the_logit_of_the_second_class() -> None:
    model = TorchRecipe("mlp", one_output, lr=0.02, epochs=40).fit(RECORDS, 0)
    assert (model.predict(X) == Y).mean() > 0.9


def held_out(options: dict[str, Any], roles: NDArray[np.int8], records: Records) -> Any:
    """How many records a model is trained on, and the figures of each epoch."""
    told: list[Any] = []

    def hooks(beginning: Beginning) -> Hooks:
        told.append((len(beginning.y), beginning.reference))

        def on_epoch(module: nn.Module, epoch: int, figures: Figures) -> None:
            told.append(figures)

        return Hooks(on_epoch=on_epoch)

    replace(RECIPE, hooks=hooks, **options).fit_many(records, roles, [0])
    return told


def test_validation_records_are_held_out_of_its_own() -> None:
    (trained, reference), first, *_ = held_out({"validation": 0.25}, EVERYBODY, RECORDS)
    assert (trained, reference) == (60, None)
    assert first.validation_accuracy * 20 == pytest.approx(round(first.validation_accuracy * 20))


def test_records_of_role_two_validate_where_a_gap_is_asked_for() -> None:
    roles = np.array([1] * 50 + [2] * 30, dtype=np.int8)[None]
    (trained, reference), first, *_ = held_out({}, roles, RECORDS)
    assert (trained, len(reference[1])) == (50, 30)
    torch.testing.assert_close(reference[0], torch.from_numpy(X[50:]).float())
    assert first.validation_accuracy is None
    _, first, *_ = held_out({"stop_at_gap": 1.0}, roles, RECORDS)
    assert first.validation_accuracy * 30 == pytest.approx(round(first.validation_accuracy * 30))


def test_training_stops_at_a_gap() -> None:
    noise = Records(X, rng.integers(0, 2, size=N))
    options = {"stop_at_gap": 0.2, "validation": 0.3, "epochs": 400, "lr": 0.02}
    figures = held_out(options, EVERYBODY, noise)[1:]
    assert 1 < len(figures) < 400
    assert figures[-1].gap >= 0.2 > max(one.gap for one in figures[:-1])


def test_hooks_are_those_given_or_made_for_each_model() -> None:
    seen: list[int] = []
    hooks = Hooks(on_batch=lambda module, optimizer, step, loss: seen.append(step))
    replace(RECIPE, hooks=hooks, batch_size=40, epochs=2).fit_many(
        RECORDS, EVERYBODY.repeat(2, axis=0), [1, 2]
    )
    assert seen == [1, 2, 3, 4, 1, 2, 3, 4]


def softmax(inputs: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, classes), nn.Softmax(dim=1))


def mismatched(inputs: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 5), nn.Tanh(), nn.Linear(6, classes))


def too_many(inputs: int, classes: int) -> nn.Module:
    return nn.Linear(inputs, classes + 1)


def failing(outputs: Tensor, y: Tensor) -> Tensor:
    raise RuntimeError("out of luck\nand more")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"factory": softmax}, "'mlp' give probabilities; let the factory leave out the softmax"),
        ({"factory": mismatched}, r"in the layer '2' \(Linear\), which was given \(2, 5\)"),
        ({"factory": too_many}, "Linear gives 3 outputs per record"),
        ({"factory": lambda inputs, classes: 3}, "factory of the recipe 'mlp' made a int"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1, got 0"),
        ({"batch_size": 1.5}, "batch_size must be a whole number"),
        ({"threads": 0}, "threads must be a whole number"),
        ({"stack": 0}, "stack must be a whole number"),
        ({"lr": -1}, "lr must be a finite number above 0"),
        ({"dtype": "float16"}, "dtype cannot be 'float16'"),
        ({"optimizer": "adma"}, "did you mean 'adam'"),
        ({"stop_at_accuracy": 80}, "stop_at_accuracy must be at most 1, got 80"),
        ({"stop_at_gap": 0.1}, "give validation, the share of the records to hold out"),
        ({"validation": 1.0}, "validation must be between 0 and 1, got 1.0"),
        ({"validation": 0.001}, "0.001 of 80 records to hold out for validation is 0 of them"),
        ({"lr": 1e38, "optimizer": "sgd"}, r"The loss was .* in epoch \d .*; lower lr"),
        ({"loss": failing}, "'mlp' could not be trained on the 80 records: .*out of luck"),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        replace(RECIPE, **change).fit(RECORDS, 0)
    assert "\n" not in str(caught.value)


def test_texts_and_rows_without_members_are_refused() -> None:
    table = Records(pd.DataFrame({"job": ["clerk", "nurse"]}), np.array([0, 1]))
    with pytest.raises(RecordsError, match="Column 'job' of the records is not numeric"):
        RECIPE.fit(table, 0)
    with pytest.raises(InputError, match="A row of the roles has no member"):
        RECIPE.fit_many(RECORDS, 0 * EVERYBODY, [0])
    assert RECIPE.fit_many(RECORDS, EVERYBODY[:0], []) == []


def test_a_loss_of_ones_own_leaves_it_to_the_model_what_the_outputs_are() -> None:
    def likelihood(outputs: Tensor, y: Tensor) -> Tensor:
        return nn.functional.nll_loss(outputs.log(), y)

    model = TorchRecipe("own", softmax, lr=0.05, epochs=30, loss=likelihood).fit(RECORDS, 0)
    own = model.module(torch.from_numpy(X).float()).detach().double().numpy()
    np.testing.assert_allclose(model.predict_proba(X), own, atol=1e-6)
    assert (model.predict(X) == Y).mean() > 0.9


def test_threads_are_those_asked_for() -> None:
    seen: list[int] = []
    hooks = Hooks(on_epoch=lambda module, epoch, figures: seen.append(torch.get_num_threads()))
    for threads in (1, 2):
        replace(RECIPE, hooks=hooks, epochs=1, threads=threads).fit(RECORDS, 0)
    assert seen == [1, 2]


def test_it_is_a_recipe_among_others() -> None:
    assert as_recipe(RECIPE) is RECIPE
    np.testing.assert_array_equal(
        train(RECIPE, RECORDS, 2).parameters(), RECIPE.fit(RECORDS, 2).parameters()
    )
    assert task_of(RECIPE) is None
    assert task_of(replace(RECIPE, loss="cross_entropy")) == "classification"
    assert task_of(replace(RECIPE, loss="squared_error")) == "regression"
    with pytest.raises(InputError, match=r"a torch module \(MLP\), .* pass .*TorchRecipe"):
        as_recipe(MLP([2, 2]))


def test_without_torch_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'leakscope\[torch\]'"):
        TorchRecipe("mlp", mlp)


@pytest.mark.slow
def test_the_names_of_recipes_are_known_without_torch() -> None:
    program = """
import sys
from leakscope.registry import entries
list(entries("recipe"))
assert "leakscope.recipes.torch" in sys.modules and "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
