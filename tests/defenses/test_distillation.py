from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit, log_softmax, softmax
from torch import Tensor, nn

from leakscope.defenses import as_defense
from leakscope.defenses.distillation import Distillation, SoftenedCrossEntropy, softened
from leakscope.defenses.regularization import EqualCompute
from leakscope.errors import InputError
from leakscope.networks import MLP
from leakscope.networks.training import History, Hooks, train
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
RECORDS = Records(X, np.digitize(X[:, 0] + rng.normal(size=60), [-0.5, 0.5]))
MEMBERS = np.repeat([[1, 0, 0]], 20, axis=1).astype(np.int8)
REFERRED = np.repeat([[1, 2, 0]], 20, axis=1).astype(np.int8)


def mlp(inputs: int, classes: int) -> nn.Module:
    return MLP([inputs, 5, classes], dropout=0.2)


def single(inputs: int, classes: int) -> nn.Module:
    return MLP([inputs, 5, 1])


def probable(inputs: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, classes), nn.Softmax(dim=1))


RECIPE = TorchRecipe("net", mlp, epochs=3, batch_size=8, lr=0.01, stack=1)


def module_of(recipe: Any, roles: Any = MEMBERS, records: Records = RECORDS) -> nn.Module:
    (model,) = recipe.fit_many(records, roles, [3])
    found: nn.Module = model.module
    return found


def watched(recipe: Any) -> tuple[TorchRecipe, list[Any]]:
    """The recipe with a loop that writes down what it is asked to train."""
    parts: list[Any] = []

    def loop(module: nn.Module, X: Any, y: Tensor, settings: Any, **rest: Any) -> History:
        start = [weight.detach().clone() for weight in module.parameters()]
        history = train(module, X, y, settings, **rest)
        parts.append((module, start, X, y, settings))
        return history

    return replace(recipe, loop=loop), parts


@pytest.mark.parametrize("roles", [MEMBERS, REFERRED])
def test_a_fresh_student_learns_the_teachers_answers(roles: np.ndarray) -> None:
    recipe, parts = watched(Distillation(2.5).wrap_recipe(replace(RECIPE, stop_at_accuracy=0.99)))
    released = module_of(recipe, roles)
    teacher, plain = parts[0][0], module_of(replace(RECIPE, stop_at_accuracy=0.99))
    for ours, theirs in zip(teacher.parameters(), plain.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    student, start, given, y, settings = parts[1]
    assert released is student
    assert not any(
        torch.equal(mine, yours)
        for one in parts[0][1:2]
        for mine, yours in zip(one, start, strict=True)
    )
    # About D′ if there is one, and then about nobody else.
    others = 2 if 2 in roles else 1
    np.testing.assert_array_equal(given.numpy(), X[roles[0] == others].astype(np.float32))
    with torch.no_grad():
        logits = teacher(given).numpy()
    np.testing.assert_allclose(y.numpy(), softmax(logits / 2.5, axis=1), rtol=1e-5)
    assert settings.loss == SoftenedCrossEntropy(2.5)
    assert (settings.epochs, settings.stop_at_accuracy) == (3, None)
    assert len(parts) == 2


def test_what_follows_trains_the_student() -> None:
    longer = EqualCompute(2).wrap_recipe(Distillation().wrap_recipe(RECIPE))
    recipe, parts = watched(longer)
    released = module_of(recipe, REFERRED)
    assert released is parts[1][0] is parts[2][0]
    assert parts[1][3] is parts[2][3]
    assert parts[2][4].loss == SoftenedCrossEntropy(4.0)


def test_what_was_before_trains_the_teacher() -> None:
    recipe, parts = watched(Distillation().wrap_recipe(EqualCompute(2).wrap_recipe(RECIPE)))
    module_of(recipe, REFERRED)
    assert parts[0][0] is parts[1][0] is not parts[2][0]
    assert [part[4].epochs for part in parts] == [3, 2, 3]


def test_a_students_student() -> None:
    recipe, parts = watched(Distillation(2).wrap_recipe(Distillation(3).wrap_recipe(RECIPE)))
    module_of(recipe)
    assert [getattr(part[4].loss, "temperature", None) for part in parts] == [None, 3, 2]
    with torch.no_grad():
        logits = parts[1][0](parts[2][2]).numpy()
    np.testing.assert_allclose(parts[2][3].numpy(), softmax(logits / 2, axis=1), rtol=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_the_loss_at_a_temperature(temperature: float) -> None:
    logits, targets = rng.normal(size=(20, 3)), softmax(rng.normal(size=(20, 3)), axis=1)
    expected = -(targets * log_softmax(logits / temperature, axis=1)).sum(axis=1).mean()
    loss = SoftenedCrossEntropy(temperature)
    found = loss(torch.tensor(logits), torch.tensor(targets)).item()
    assert found == pytest.approx(temperature**2 * expected)
    # One logit z is the difference of two.
    pairs = loss(torch.tensor(logits[:, :2]), torch.tensor(softmax(targets[:, :2], axis=1)))
    single = torch.tensor(logits[:, 1] - logits[:, 0])
    for one in (single, single[:, None]):
        other = loss(one, torch.tensor(softmax(targets[:, :2], axis=1)))
        assert other.item() == pytest.approx(pairs.item())


def test_at_a_high_temperature_logits_are_matched() -> None:
    """Its gradient is then (z − v) / (n k) for centred logits z and v (Hinton et al., Eq. 4)."""
    z, v = (one - one.mean(axis=1, keepdims=True) for one in rng.normal(size=(2, 6, 3)))
    outputs = torch.tensor(z, requires_grad=True)
    targets = torch.tensor(softmax(v / 1e4, axis=1))
    torch.autograd.backward(SoftenedCrossEntropy(1e4)(outputs, targets))
    assert outputs.grad is not None
    np.testing.assert_allclose(outputs.grad.numpy(), (z - v) / (6 * 3), atol=1e-4)


def test_answers_are_asked_for_in_parts() -> None:
    module, many = single(4, 1).eval(), torch.randn(2500, 4)
    with torch.no_grad():
        second = expit(module(many).numpy()[:, 0] / 4)
    found = softened(module, many, 4.0)
    np.testing.assert_allclose(found.numpy(), np.stack([1 - second, second], axis=1), atol=1e-6)


def test_one_logit_is_of_two_classes() -> None:
    records = Records(X, (RECORDS.y == 1).astype(int))
    recipe = replace(RECIPE, factory=single)
    student = module_of(Distillation().wrap_recipe(recipe), REFERRED, records)
    assert student(torch.tensor(X[:3]).float()).shape == (3, 1)


def never(*_: Any) -> None:
    pytest.fail("nothing is trained")


@pytest.mark.parametrize(
    ("changes", "y"),
    [
        ({"loss": "squared_error"}, X[:, 0]),
        ({"factory": probable, "loss": nn.functional.cross_entropy}, RECORDS.y),
    ],
)
def test_networks_that_give_logits_of_classes_are_needed(changes: Any, y: Any) -> None:
    recipe = replace(RECIPE, hooks=Hooks(on_batch=never), **changes)
    with pytest.raises(InputError, match="'distill:4' is for networks that give logits"):
        module_of(Distillation().wrap_recipe(recipe), records=Records(X, y))


def test_a_loop_that_promises_something_is_left_alone() -> None:
    with pytest.raises(InputError, match=r"'distill:4' needs a student's training, .*'net' makes"):
        Distillation().wrap_recipe(replace(RECIPE, loop=train))


def test_how_it_is_written() -> None:
    assert as_defense("distill") == as_defense("distill:4") == Distillation()
    assert str(Distillation(2.5)) == "distill:2.5"
    assert Distillation().budget(RECIPE, 20) is None
    with pytest.raises(InputError, match=r"temperature must be a finite number above 0, got 0"):
        Distillation(0)
