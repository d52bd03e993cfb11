from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
import torch
from safetensors.torch import save_file
from sklearn.linear_model import LogisticRegression
from torch import nn

from leakscope.networks import MLP, LeNet5

Run = Callable[..., Any]
Calls = list[tuple[str, Any, dict[str, Any]]]
Write = Callable[..., tuple[object, ...]]

RECIPE = """
from torch import nn
from leakscope.recipes.torch import TorchRecipe

def build(inputs, classes):
    return nn.Sequential(nn.Linear(inputs, 3), nn.ReLU(), nn.Linear(3, classes))

net = TorchRecipe("mine", build, epochs=1)
"""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing the page takes longer than all else here."""
    monkeypatch.setattr("leakscope.report.Report.to_html", lambda report: "")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes both sides, of so many features and these labels; the words that name them."""

    def sides(features: int, labels: Any) -> tuple[object, ...]:
        rng = np.random.default_rng(0)
        for side in ("members", "nonmembers"):
            table = pd.DataFrame(rng.random((40, features)))
            table["y"] = np.resize(labels, 40)
            table.to_csv(tmp_path / f"{side}.csv", index=False)
        paths = [tmp_path / f"{side}.csv" for side in ("members", "nonmembers")]
        return "audit", "--members", paths[0], "--nonmembers", paths[1], "--label", "y"

    return sides


def numbers(path: Path) -> torch.Tensor:
    table = pd.read_csv(path).drop(columns="y")
    return torch.tensor(table.to_numpy(), dtype=torch.float32)


def test_weights_and_a_network_are_a_model(
    run: Run, calls: Calls, write: Write, tmp_path: Path
) -> None:
    module = MLP([4, 5, 2])
    save_file(module.state_dict(), tmp_path / "w.safetensors")
    torch.save(module.state_dict(), tmp_path / "w.pt")
    words = write(4, ["no", "yes"])
    for name in ("w.safetensors", "w.pt"):
        ran = run(*words, "--model", tmp_path / name, "--network", "mlp:4,5,2")
        assert (ran.code, ran.stderr) == (0, ran.stderr)
    with torch.no_grad():
        expected = module(numbers(tmp_path / "members.csv")).softmax(1).double().numpy()
    for _, (model, members, _), _ in calls:
        assert model.name == "MLP"
        np.testing.assert_array_equal(model.classes, ["no", "yes"])
        found = model.predict_proba(members.drop(columns="y"))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert len(calls) == 2


def test_an_audit_of_weights_runs_to_its_end(run: Run, write: Write, tmp_path: Path) -> None:
    save_file(MLP([4, 50, 50, 2]).state_dict(), tmp_path / "w.safetensors")
    words = write(4, [0, 1])
    ran = run(*words, "--model", tmp_path / "w.safetensors", "--network", "mlp", "--json")
    assert ran.code == 0
    assert ran.json["target"]["model"] == "MLP"
    assert ran.json["target"]["classes"] == ["0", "1"]
    assert "loss" in {one["attack"] for one in ran.json["outcomes"]}


@pytest.mark.slow
def test_a_network_of_images_takes_the_rows_of_a_table(
    run: Run, calls: Calls, write: Write, tmp_path: Path
) -> None:
    module = LeNet5().eval()
    save_file(module.state_dict(), tmp_path / "w")
    words = write(784, np.arange(10))
    for network in ("lenet5", "lenet5:1,28,28,10"):
        assert run(*words, "--model", tmp_path / "w", "--network", network).code == 0
    with torch.no_grad():
        images = numbers(tmp_path / "members.csv").reshape(-1, 1, 28, 28)
        expected = module(images).softmax(1).double().numpy()
    for _, (model, members, _), _ in calls:
        assert (model.name, model.classes) == ("LeNet5", None)
        found = model.predict_proba(members.drop(columns="y"))
        np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert len(calls) == 2


def test_a_recipe_makes_the_network_of_weights(
    run: Run, calls: Calls, write: Write, tmp_path: Path
) -> None:
    (tmp_path / "mine_here.py").write_text(RECIPE)
    module = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    torch.save(module.state_dict(), tmp_path / "w.pt")
    words = (*write(4, [0, 1]), "--model", tmp_path / "w.pt", "--recipe", "mine_here:net")
    assert run(*words).code == 0
    assert run(*words, "--shadows", 4).code == 0
    (_, (model, *_), plain), (_, _, shadowed) = calls
    assert torch.equal(model.module[0].weight, module[0].weight)
    assert "recipe" not in plain
    assert shadowed["recipe"].name == "mine"


def test_numbers_are_predicted_by_one_output(
    run: Run, calls: Calls, write: Write, tmp_path: Path
) -> None:
    save_file(MLP([4, 5, 1]).state_dict(), tmp_path / "w")
    words = write(4, [0.5, 1.25, 2.0])
    assert run(*words, "--model", tmp_path / "w", "--network", "mlp:4,5,1").code == 0
    assert calls[0][1][0].task == "regression"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ([], r"holds the weights of a network and not the network; name it with --network mlp"),
        (
            ["--network", "mlp:4,6,2"],
            "tensor 'layers.linear1.bias' has the shape (5,) where the network's has (6,)",
        ),
        (["--network", "mpl:4,6,2"], "There is no network named 'mpl'; did you mean 'mlp'?"),
        (["--recipe", "forest"], "the recipe 'forest' makes no torch network; name the network"),
    ],
)
def test_what_does_not_fit_is_one_sentence(
    run: Run, write: Write, tmp_path: Path, more: list[str], sentence: str
) -> None:
    save_file(MLP([4, 5, 2]).state_dict(), tmp_path / "w")
    ran = run(*write(4, [0, 1]), "--model", tmp_path / "w", *more)
    assert (ran.code, ran.stdout) == (2, "")
    assert sentence in ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("Error: ")


class Payload:
    """What a hostile file holds: unpickling it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_hostile_file_is_refused_before_records_are_read(run: Run, tmp_path: Path) -> None:
    torch.save({"a": Payload(tmp_path / "touched")}, tmp_path / "w.pt")
    words = ("--members", "none.csv", "--nonmembers", "none.csv", "--label", "y")
    ran = run("audit", *words, "--model", tmp_path / "w.pt", "--network", "mlp:4,5,2")
    assert ran.code == 2
    assert "holds more than weights" in ran.stderr
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            ["--recipe", "forest"],
            "--recipe beside --model says how to train shadow models, and --shadows does not say "
            "how many; add it, or leave --recipe out",
        ),
        (["--network", "mlp"], "holds a whole model; leave it out"),
    ],
)
def test_a_whole_model_needs_nothing_beside_it(
    run: Run, write: Write, tmp_path: Path, more: list[str], sentence: str
) -> None:
    skops.io.dump(LogisticRegression(), tmp_path / "m.skops")
    ran = run(*write(4, [0, 1]), "--model", tmp_path / "m.skops", *more)
    assert (ran.code, ran.stdout) == (2, "")
    assert sentence in ran.stderr
