from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from leakscope.networks import MLP
from leakscope.networks.stages import JoinedHooks, Stage, combined
from leakscope.networks.training import Beginning, Figures, History, Hooks, train
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
RECORDS = Records(X, (X[:, 0] > 0).astype(int))


def mlp(inputs: int, classes: int) -> nn.Module:
    return MLP([inputs, 5, classes], dropout=0.3)


RECIPE = TorchRecipe("mlp", mlp, epochs=4, batch_size=16, lr=0.01)


def twice(stage: Stage) -> None:
    stage.train(epochs=2)
    stage.train(epochs=2)


def test_a_course_of_two_parts_draws_on_where_the_first_left_off() -> None:
    """With a plain optimizer, which remembers nothing, two halves are the whole."""
    recipe = replace(RECIPE, optimizer="sgd", stack=1)
    whole = recipe.fit(RECORDS, 3).parameters()
    halves = replace(recipe, course=twice).fit(RECORDS, 3).parameters()
    np.testing.assert_array_equal(whole, halves)


def test_a_course_may_put_another_network_in_its_place() -> None:
    made: list[nn.Module] = []

    def course(stage: Stage) -> None:
        made.append(stage.module)
        stage.module = stage.fresh()
        made.append(stage.module)

    model = replace(RECIPE, course=course).fit(RECORDS, 3)
    assert model.module is made[1]
    assert not any(
        torch.equal(one, other)
        for one, other in zip(made[0].parameters(), made[1].parameters(), strict=True)
        if one.ndim > 1
    )


def test_parts_have_settings_of_their_own() -> None:
    seen: list[tuple[int, Any, Any]] = []

    def loop(module: nn.Module, X: Any, y: Tensor, settings: Any, **rest: Any) -> History:
        seen.append((settings.epochs, settings.stop_at_accuracy, settings.loss))
        assert y.sum() == (0 if settings.epochs == 1 else RECORDS.y.sum())
        return train(module, X, y, settings, **rest)

    def course(stage: Stage) -> None:
        stage.train()
        stage.train(epochs=1, stops=False, y=torch.zeros_like(stage.y), loss="cross_entropy")
        assert [len(part.epochs) for part in stage.parts] == [4, 1]

    replace(RECIPE, course=course, loop=loop, stop_at_accuracy=1.0).fit(RECORDS, 0)
    assert seen == [(4, 1.0, "cross_entropy"), (1, None, "cross_entropy")]


def test_hooks_are_called_in_order_and_penalties_added() -> None:
    called: list[str] = []

    def hooks(name: str, amount: float, stop: bool) -> Hooks:
        def end(module: nn.Module, epoch: int, figures: Figures) -> bool:
            called.append(f"{name} epoch")
            return stop

        return Hooks(
            lambda module, X, y: torch.tensor(amount),
            lambda module, optimizer, step, loss: called.append(f"{name} batch"),
            end,
        )

    both = combined(hooks("a", 1.0, True), Hooks(), hooks("b", 2.5, False))
    assert both.penalty is not None
    assert both.penalty(nn.Identity(), X, torch.zeros(1)).item() == 3.5
    assert both.on_batch is not None
    both.on_batch(nn.Identity(), torch.optim.SGD([torch.zeros(1)]), 1, 0.0)
    assert both.on_epoch is not None
    assert both.on_epoch(nn.Identity(), 1, Figures(0.0)) is True
    assert called == ["a batch", "b batch", "a epoch", "b epoch"]
    assert combined(Hooks(), Hooks()) == Hooks()


def test_the_hooks_of_the_recipe_are_in_force_in_every_part() -> None:
    steps: list[str] = []

    def maker(beginning: Beginning) -> Hooks:
        assert beginning.reference is None
        return Hooks(on_batch=lambda *_: steps.append("recipe"))

    def course(stage: Stage) -> None:
        stage.train(epochs=1)
        stage.train(epochs=1, hooks=Hooks(on_batch=lambda *_: steps.append("part")))

    joined = JoinedHooks((maker, Hooks(on_batch=lambda *_: steps.append("second"))))
    replace(RECIPE, hooks=joined, course=course, batch_size=60).fit(RECORDS, 0)
    assert steps == ["recipe", "second", "recipe", "second", "part"]
