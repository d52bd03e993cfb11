from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.networks import MLP, LeNet5
from leakscope.networks import clipping as module_of_clipping
from leakscope.networks.clipping import (
    ConvertedFactory,
    looked_at,
    refuse_mixing,
    wired_for_clipping,
)
from unusual_networks import Scaled, Shared


def test_linear_layers_are_ghosts_and_others_are_not() -> None:
    found = looked_at(LeNet5(), torch.zeros(1, 1, 28, 28))
    assert found.ghost == ("classifier.linear1", "classifier.linear2", "classifier.linear3")
    assert found.per_record == ("features.conv1", "features.conv2")
    # conv1: 156 weights, and 28 · 28 patches of 25; conv2: 2,416, and 100 patches of 150.
    assert found.most == module_of_clipping.NUMBERS // (156 + 28 * 28 * 25)
    plain = looked_at(MLP([4, 3, 2]), torch.zeros(1, 4))
    assert (plain.per_record, plain.most) == ((), module_of_clipping.NUMBERS)


@pytest.mark.parametrize(
    ("network", "one"),
    [
        (Shared(), torch.zeros(1, 4)),
        (nn.Sequential(nn.Linear(4, 2), nn.Flatten()), torch.zeros(1, 3, 5, 4)),
    ],
    ids=["used twice", "four dimensions"],
)
def test_what_has_no_ghosts(network: nn.Module, one: Tensor) -> None:
    found = looked_at(network, one)
    assert found.ghost == ()
    assert len(found.per_record) == sum(isinstance(part, nn.Linear) for part in network.modules())


def test_what_is_not_called_is_refused() -> None:
    network = Shared()
    network.spare = nn.Linear(4, 2)
    with pytest.raises(InputError, match="The layer 'spare' has weights and is not called"):
        looked_at(network, torch.zeros(1, 4))
    network.spare.requires_grad_(False)
    assert "spare" not in looked_at(network, torch.zeros(1, 4)).per_record
    assert not any(part._forward_hooks for part in network.modules())


class Normed(nn.Module):
    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(1, 8, 3), norm, nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.last(self.norm(self.conv(x)).mean(dim=(2, 3)))
        return logits


@pytest.mark.parametrize(
    "norm",
    [
        nn.BatchNorm2d(8),
        nn.BatchNorm2d(8, affine=False),
        nn.BatchNorm2d(8, affine=False, track_running_stats=False),
        nn.InstanceNorm2d(8, affine=True, track_running_stats=True),
    ],
    ids=str,
)
def test_layers_that_mix_records_are_refused(norm: nn.Module) -> None:
    with pytest.raises(InputError, match=r"The layer 'norm' \(\w+\) .*convert=True"):
        refuse_mixing(Normed(norm))


@pytest.mark.parametrize("norm", [nn.GroupNorm(2, 8), nn.InstanceNorm2d(8), nn.Identity()], ids=str)
def test_others_are_not(norm: nn.Module) -> None:
    refuse_mixing(Normed(norm))


def normed(inputs: Any, classes: int) -> nn.Module:
    return Normed(nn.BatchNorm2d(8))


def test_conversion_puts_group_normalization_in_its_place() -> None:
    converted = ConvertedFactory(normed)((1, 5, 5), 2)
    refuse_mixing(converted)
    norm = converted.get_submodule("norm")
    assert isinstance(norm, nn.GroupNorm)
    assert (norm.num_groups, norm.num_channels) == (8, 8)
    assert isinstance(normed((1, 5, 5), 2).get_submodule("norm"), nn.BatchNorm2d)


def flat(inputs: int, classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, 8), nn.BatchNorm1d(8, affine=False), nn.Linear(8, classes)
    )


def test_vectors_are_normalized_as_a_whole() -> None:
    converted = ConvertedFactory(flat)(4, 2)
    refuse_mixing(converted)
    norm = converted.get_submodule("1")
    assert isinstance(norm, nn.GroupNorm)
    assert (norm.num_groups, norm.num_channels, norm.affine) == (1, 8, False)
    answers = converted(torch.randn(1, 4, generator=torch.Generator().manual_seed(0)))
    assert not torch.allclose(answers, converted.get_submodule("2").bias)


@pytest.mark.parametrize("fails", [False, True])
def test_the_wiring_leaves_nothing_behind(fails: bool) -> None:
    network = nn.Sequential(Scaled(), nn.ReLU(inplace=True), nn.Linear(2, 2))
    things = [*network.modules(), *network.parameters()]

    def state() -> list[Any]:
        hooks = ("_forward_hooks", "_backward_hooks", "_is_full_backward_hook", "inplace")
        kept = [[copy.copy(getattr(thing, name, None)) for name in hooks] for thing in things]
        return [[sorted(vars(thing)) for thing in things], kept]

    before = state()
    try:
        with wired_for_clipping(network, 1.0, ghost=True) as wired:
            assert state() != before
            wired(torch.ones(3, 4)).sum().backward()
            if fails:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert state() == before


def test_what_cannot_be_wired_is_left_as_it_was() -> None:
    network = nn.Sequential(nn.Linear(4, 2), nn.ReLU(inplace=True))
    network[0].register_buffer("average", torch.zeros(2))
    with pytest.raises(NotImplementedError), wired_for_clipping(network, 1.0, ghost=True):
        pytest.fail("a layer with buffers")
    assert network[1].inplace is True
    assert not any("grad_sample" in vars(part) for part in network.parameters())
