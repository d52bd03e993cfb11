from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from leakscope.networks.mlp import MLP
from leakscope.networks.seeding import Purpose, drawing_from, generator
from leakscope.networks.stacking import Layer, Masks, Stack, layers_of

# Sequences of every kind of layer, in usual and unusual orders.
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "one layer": lambda: nn.Linear(5, 3),
    "tanh": lambda: MLP([5, 4, 3]),
    "relu and dropout": lambda: MLP([5, 7, 6, 3], "relu", 0.4),
    "dropout first": lambda: nn.Sequential(nn.Dropout(0.2), nn.Linear(5, 4), nn.ReLU(), nn.Tanh(),
                                           nn.Linear(4, 3)),
    "nested": lambda: nn.Sequential(nn.Sequential(nn.Tanh(), nn.Linear(5, 4)), nn.ReLU(),
                                    nn.Dropout(0.5), nn.Dropout(0.1), nn.Linear(4, 3), nn.Tanh()),
}  # fmt: skip


def made(name: str, m: int = 3) -> list[nn.Module]:
    modules = []
    for seed in range(m):
        with drawing_from(generator(seed, Purpose.WEIGHTS)):
            modules.append(NETWORKS[name]().double())
    return modules


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_stack_answers_as_each_of_its_networks(name: str) -> None:
    modules = made(name)
    X = draw(2, 6, 5)  # of the first two alone
    layers = layers_of(modules[0])
    assert layers is not None
    stack = Stack(modules, layers)
    answers = stack.forward(X).detach()
    for number in range(2):
        expected = modules[number].eval()(X[number]).detach()
        torch.testing.assert_close(answers[number], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_are_those_of_autograd_dropout_included(name: str) -> None:
    modules = made(name)
    X, weights = draw(3, 6, 5), draw(3, 6, 3)
    layers = layers_of(modules[0])
    assert layers is not None
    stack = Stack(modules, layers)
    sizes = [6, 6, 4]
    shares = (torch.arange(6)[None] < torch.tensor(sizes)[:, None])[..., None]
    masks = Masks([generator(seed, Purpose.HOOKS) for seed in range(3)], sizes)
    outputs = stack.forward(X, masks)
    (outputs * weights * shares).sum().backward()
    gradients = stack.take_gradients()
    assert stack.take_gradients() == []
    half = len(gradients) // 2
    places = [layer.path for layer in layers if layer.kind == "linear"]
    for number, (module, size) in enumerate(zip(modules, sizes, strict=True)):
        with drawing_from(generator(number, Purpose.HOOKS)):
            answers = module.train()(X[number, :size])
        (answers * weights[number, :size]).sum().backward()
        torch.testing.assert_close(outputs[number, :size], answers, rtol=1e-12, atol=0)
        found = zip(places, gradients[:half], gradients[half:], strict=True)
        for path, weight_gradients, bias_gradients in found:
            linear = module.get_submodule(path)
            expected = linear.weight.grad.T, linear.bias.grad[None]
            for one, other in zip(
                (weight_gradients[number], bias_gradients[number]), expected, strict=True
            ):
                torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-13)


def test_parameters_are_views_and_go_back_to_where_they_were() -> None:
    modules = made("relu and dropout")
    layers = layers_of(modules[0])
    assert layers is not None
    stack = Stack(modules, layers)
    before = [part.detach().clone() for part in modules[1].parameters()]
    for value in stack.parameters(slice(1, 3)):
        assert len(value) == 2
        value.add_(1)
    stack.write_back(0, modules[0])
    stack.write_back(1, modules[1])
    for part, former in zip(modules[1].parameters(), before, strict=True):
        assert torch.equal(part, former + 1)
    for part, untouched in zip(
        modules[0].parameters(), made("relu and dropout")[0].parameters(), strict=True
    ):
        assert torch.equal(part, untouched)


def test_the_layers_of_a_plain_network() -> None:
    assert layers_of(MLP([5, 4, 3], "relu", 0.25)) == (
        Layer("linear", "layers.linear1", 5, 4),
        Layer("relu", "layers.relu1"),
        Layer("dropout", "layers.dropout1", rate=0.25),
        Layer("linear", "layers.linear2", 4, 3),
    )
    assert layers_of(nn.Sequential(nn.Dropout(0.0), nn.Linear(2, 2))) == (
        Layer("linear", "1", 2, 2),
    )


class Doubled(MLP):
    """An MLP that does something else."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


class Loud(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).abs()


def hooked() -> nn.Module:
    module = MLP([2, 2])
    module.linears[0].register_forward_hook(lambda *_: None)
    return module


def frozen() -> nn.Module:
    module = MLP([2, 2, 2])
    module.linears[0].weight.requires_grad_(False)
    return module


def shared() -> nn.Module:
    tanh = nn.Tanh()
    return nn.Sequential(nn.Linear(2, 2), tanh, nn.Linear(2, 2), tanh)


OTHERS: dict[str, Callable[[], nn.Module]] = {
    "a subclass": lambda: Doubled([2, 2]),
    "a layer of one's own": lambda: nn.Sequential(Loud(2, 2)),
    "no biases": lambda: nn.Sequential(nn.Linear(2, 2, bias=False)),
    "another layer": lambda: nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.BatchNorm1d(2))),
    "no layer with weights": lambda: nn.Sequential(nn.Tanh()),
    "hooks": hooked,
    "frozen weights": frozen,
    "a layer used twice": shared,
    "everything dropped": lambda: nn.Sequential(nn.Dropout(1.0), nn.Linear(2, 2)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_networks_are_not_plain(name: str) -> None:
    assert layers_of(OTHERS[name]()) is None
