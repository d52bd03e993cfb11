from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import nn

from leakscope.errors import InputError
from leakscope.networks import CNN4, MLP, VGG16, LeNet5, ResNet18
from leakscope.networks.pruning import prunable
from leakscope.networks.removal import removed_channels
from leakscope.networks.seeding import Purpose, drawing_from, generator

X = torch.randn(90, 6, generator=torch.Generator().manual_seed(0))


def thinned(module: nn.Module, share: float, seed: int = 0) -> nn.Module:
    """Without most weights, and without all of those to and from some units."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in prunable(module).values():
            weight.mul_(torch.rand(weight.shape, generator=random) < share)
            weight[torch.rand(len(weight), generator=random) < 0.4] = 0
            weight[:, torch.rand(weight.shape[1], generator=random) < 0.2] = 0
        for layer in module.modules():
            if isinstance(layer, nn.BatchNorm2d):
                assert layer.running_mean is not None
                assert layer.running_var is not None
                layer.running_mean.normal_(generator=random)
                layer.running_var.uniform_(0.5, 2, generator=random)
                layer.bias.normal_(generator=random)
    return module.double().eval()


def padded(bias: bool) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 8, 3, padding=1, bias=bias),
        nn.BatchNorm2d(8),
        nn.Dropout(0.5),
        nn.Sequential(nn.Sigmoid(), nn.AvgPool2d(2)),
        nn.Conv2d(8, 9, 3, padding="valid", bias=bias),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(9 * 9, 20, bias=bias),
        nn.BatchNorm1d(20),
        nn.Tanh(),
        nn.Linear(20, 4, bias=bias),
    )


STACKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (lambda: MLP([6, 30, 20, 3]), (6,)),
    "lenet": (LeNet5, (1, 28, 28)),
    "tanh": (lambda: LeNet5(activation="tanh"), (1, 28, 28)),
    "cnn4": (lambda: CNN4(3, 1, 8, 8), (1, 8, 8)),
    "padded": (lambda: padded(True), (2, 10, 10)),
    "no biases": (lambda: padded(False), (2, 10, 10)),
}


@pytest.mark.parametrize(("name", "seed"), list(product(STACKS, range(3))))
def test_empty_units_are_removed_and_the_outputs_stay(name: str, seed: int) -> None:
    make, shape = STACKS[name]
    with drawing_from(generator(seed, Purpose.WEIGHTS)):
        module = thinned(make(), 0.3, seed)
        x = torch.rand(5, *shape, dtype=torch.float64)
    slim = removed_channels(module)
    torch.testing.assert_close(slim(x), module(x), rtol=1e-9, atol=1e-9)
    few = sum(one.numel() for one in slim.parameters())
    assert few < sum(one.numel() for one in module.parameters())
    # Once is enough, and layers say what sizes they have.
    assert str(removed_channels(slim)) == str(slim)
    for layer in slim.modules():
        if isinstance(layer, nn.Linear):
            assert layer.weight.shape == (layer.out_features, layer.in_features)
        if isinstance(layer, nn.Conv2d):
            assert layer.weight.shape[:2] == (layer.out_channels, layer.in_channels)


@pytest.mark.slow
def test_vgg_gets_smaller() -> None:
    module = thinned(VGG16(3), 0.5)
    slim = removed_channels(module)
    x = torch.rand(2, 3, 32, 32, dtype=torch.float64)
    torch.testing.assert_close(slim(x), module(x), rtol=1e-9, atol=1e-9)
    assert sum(one.numel() for one in slim.parameters()) < 6_000_000


def test_one_unit_stays_and_the_module_is_left_alone() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).train()
    module[2].bias.requires_grad_(False)
    with torch.no_grad():
        module[0].weight.zero_()
    slim = removed_channels(module)
    assert isinstance(slim, nn.Sequential)
    assert str(slim[0]) == "Linear(in_features=3, out_features=1, bias=True)"
    assert str(module[0]) == "Linear(in_features=3, out_features=4, bias=True)"
    assert slim.training
    assert not slim[2].bias.requires_grad
    assert slim[2].weight.requires_grad
    torch.testing.assert_close(slim(X[:, :3]), module(X[:, :3]))


def test_a_network_in_training_mode_is_looked_at_in_evaluation_mode() -> None:
    module = nn.Sequential(
        nn.Linear(3, 40), nn.Dropout(0.9), nn.BatchNorm1d(40), nn.ReLU(), nn.Linear(40, 2)
    ).train()
    with torch.no_grad():
        module[0].weight[10:] = 0
    slim = removed_channels(module)
    assert slim.training
    assert slim[0].out_features == 10
    torch.testing.assert_close(slim.eval()(X[:, :3]), module.eval()(X[:, :3]))


def empty_first(*layers: nn.Module) -> nn.Module:
    """The first unit of the first layer is empty."""
    with torch.no_grad():
        parts = list(layers[0].parameters())
        parts[0][0] = 0
    return nn.Sequential(*layers).double().eval()


@pytest.mark.parametrize(
    "module",
    [
        # A channel of a group cannot go alone.
        empty_first(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 1, groups=2)),
        # Without a flatten a linear layer is about the columns of an image.
        empty_first(nn.Conv2d(2, 4, 3), nn.Linear(6, 2)),
        # Averages with a frame of zeros are not constant, and softmax mixes the channels.
        empty_first(nn.Conv2d(2, 4, 3), nn.AvgPool2d(2, padding=1), nn.Conv2d(4, 3, 1)),
        empty_first(nn.Conv2d(2, 4, 3), nn.Softmax(dim=1), nn.Conv2d(4, 3, 1)),
        # Statistics of the batch are not constant.
        empty_first(
            nn.Conv2d(2, 4, 3),
            nn.BatchNorm2d(4, track_running_stats=False),
            nn.Conv2d(4, 3, 1),
        ),
        # A bias in a frame of zeros, or without a bias to take it, is not made away with.
        empty_first(nn.Conv2d(2, 4, 3), nn.Conv2d(4, 3, 3, padding=1)),
        empty_first(nn.Conv2d(2, 4, 3), nn.Conv2d(4, 3, 1, bias=False)),
        empty_first(nn.Linear(8, 3), nn.Flatten(), nn.Linear(3 * 16, 2)),
    ],
)
def test_what_might_change_the_outputs_is_kept(module: nn.Module) -> None:
    x = torch.rand(3, 2, 8, 8, dtype=torch.float64)
    slim = removed_channels(module)
    assert str(slim) == str(module)
    torch.testing.assert_close(slim(x), module(x), rtol=0, atol=0)


def test_what_is_no_stack_is_refused() -> None:
    layer = nn.Linear(3, 3)
    for module, name in [
        (ResNet18(), "ResNet18"),
        (nn.Sequential(layer, nn.ReLU(), layer), "Sequential"),
    ]:
        with pytest.raises(InputError, match=f"A {name} is no stack of layers, each used once"):
            removed_channels(module)
