from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from leakscope.networks import MLP, network
from leakscope.recipes import stacked
from leakscope.recipes.stacked import models_at_once
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

N = 90
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 5))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
RECORDS = Records(X, Y)
ROLES = (rng.random((6, N)) < 0.5).astype(np.int8)
SEEDS = [5, 6, 7, 8, 9, 10]


def mlp(inputs: Any, classes: int) -> nn.Module:
    return MLP([int(np.prod(inputs)), 6, 4, classes], "relu", dropout=0.2)


def parameters(models: list[Any]) -> NDArray[np.float64]:
    return np.array([model.parameters() for model in models])


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many networks each stack had."""
    seen: list[int] = []
    real = stacked.train_stack

    def watched(begun: Any, *rest: Any) -> None:
        seen.append(len(begun))
        real(begun, *rest)

    monkeypatch.setattr("leakscope.recipes.torch.train_stack", watched)
    return seen


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "adagrad"])
def test_stacked_models_are_those_that_are_trained_alone(optimizer: str, sizes: list[int]) -> None:
    recipe = TorchRecipe("mlp", mlp, optimizer, lr=0.01, epochs=2, weight_decay=0.01, decay=0.01)
    together = parameters(recipe.fit_many(RECORDS, ROLES, SEEDS))
    assert sizes == [6]
    alone = [
        recipe.fit_many(RECORDS, row[None], [seed])[0]
        for row, seed in zip(ROLES, SEEDS, strict=True)
    ]
    assert sizes == [6]
    np.testing.assert_allclose(together, parameters(alone), rtol=1e-4, atol=2e-5)
    assert np.abs(together[0] - together[1]).max() > 0.1


def test_validation_and_stopping_work_in_a_stack(sizes: list[int]) -> None:
    recipe = TorchRecipe(
        "mlp", mlp, lr=0.02, epochs=60, stop_at_accuracy=0.85, validation=0.2, batch_size=8
    )
    together = parameters(recipe.fit_many(RECORDS, ROLES, SEEDS))
    assert sizes == [6]
    alone = TorchRecipe(
        "mlp", mlp, lr=0.02, epochs=60, stop_at_accuracy=0.85, validation=0.2, batch_size=8, stack=1
    )
    expected = parameters(alone.fit_many(RECORDS, ROLES, SEEDS))
    np.testing.assert_allclose(together, expected, rtol=1e-3, atol=1e-3)


def test_a_stack_is_no_larger_than_asked_for(sizes: list[int]) -> None:
    recipe = TorchRecipe("mlp", mlp, epochs=1, stack=4)
    assert recipe.together == 4
    models = recipe.fit_many(RECORDS, ROLES, SEEDS)
    assert (len(models), sizes) == (6, [4, 2])


def test_a_stack_is_no_larger_than_memory_allows(
    sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # 5·6 + 6 + 6·4 + 4 + 4·2 + 2 = 74 parameters; with two inputs 56.
    monkeypatch.setattr(stacked, "MOST_PARAMETERS", 230)
    recipe = TorchRecipe("mlp", mlp, epochs=1)
    assert recipe.together == 4
    recipe.fit_many(RECORDS, ROLES, SEEDS)
    assert sizes == [3, 3]
    monkeypatch.setattr(stacked, "MOST_PARAMETERS", 60)
    assert recipe.together == 1
    recipe.fit_many(RECORDS, ROLES, SEEDS)
    assert sizes == [3, 3]


def test_networks_of_different_layers_are_not_stacked_with_each_other(sizes: list[int]) -> None:
    made = []

    def changing(inputs: int, classes: int) -> nn.Module:
        made.append(inputs)
        return MLP([inputs, 3 if len(made) < 5 else 4, classes])

    # The first is made to see whether they are plain, three more have the same width.
    recipe = TorchRecipe("mlp", changing, epochs=1)
    assert recipe.together == 32
    recipe.fit_many(RECORDS, ROLES, SEEDS)
    assert sizes == [3, 3]


def test_images_are_stacked_where_the_network_flattens_them(sizes: list[int]) -> None:
    images = Records(X[:, :4].reshape(N, 1, 2, 2), Y)
    flat = Records(X[:, :4], Y)
    recipe = TorchRecipe("mlp", partial(network, "mlp"), epochs=1)
    many = parameters(recipe.fit_many(images, ROLES, SEEDS))
    np.testing.assert_array_equal(many, parameters(recipe.fit_many(flat, ROLES, SEEDS)))
    assert sizes == [6, 6]

    def rows(inputs: Any, classes: int) -> nn.Module:
        # The linear layer takes the last side of an image, and no stack does that.
        return nn.Sequential(nn.Linear(4 if isinstance(inputs, int) else 2, 2))

    with pytest.raises(Exception, match="shape"):
        TorchRecipe("rows", rows, epochs=1).fit_many(images, ROLES, SEEDS)
    assert sizes == [6, 6]


@pytest.mark.parametrize(
    "options",
    [{"stack": 1}, {"loss": nn.functional.cross_entropy}, {"hooks": lambda beginning: None}],
)
def test_what_only_one_network_can_have_is_trained_alone(
    options: dict[str, Any], sizes: list[int]
) -> None:
    recipe = TorchRecipe("mlp", mlp, epochs=1, **options)
    assert recipe.together == 1
    assert len(recipe.fit_many(RECORDS, ROLES[:2], SEEDS[:2])) == 2
    assert sizes == []


class Convolution(nn.Module):
    def __init__(self, shape: tuple[int, int, int], classes: int) -> None:
        super().__init__()
        channels, _, _ = shape
        self.layer = nn.Conv2d(channels, classes, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).flatten(1)


class Unhashable:
    """A factory that cannot be remembered."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, inputs: int, classes: int) -> nn.Module:
        return MLP([inputs, classes])


def test_other_networks_are_trained_one_after_another(sizes: list[int]) -> None:
    recipe = TorchRecipe("cnn", Convolution, epochs=1)
    assert recipe.together == 1
    images = Records(X[:, :4].reshape(N, 1, 2, 2), Y)
    models = recipe.fit_many(images, ROLES[:2], SEEDS[:2])
    assert (parameters(models).shape, sizes) == ((2, 10), [])


def test_how_many_at_once_is_told_by_the_factory_and_draws_nothing() -> None:
    before = torch.get_rng_state()
    assert models_at_once(partial(network, "shokri-base"), 32) == 32
    assert models_at_once(partial(network, "shokri-texas"), 32) == 1
    assert models_at_once(partial(network, "lenet5"), 32) == 1
    assert models_at_once(lambda inputs, classes: nn.BatchNorm1d(2), 32) == 1
    assert models_at_once(Unhashable(), 7) == 7
    assert torch.equal(torch.get_rng_state(), before)
