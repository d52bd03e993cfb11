from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from leakscope.networks import MLP
from leakscope.networks.minmax import (
    InferenceNetwork,
    MembershipGame,
    class_probabilities,
    gain,
    play,
)
from leakscope.networks.seeding import Purpose, drawing_from, generator
from leakscope.networks.stages import Stage
from leakscope.networks.training import Hooks, Training

functional = nn.functional
N, K = 24, 3
stream = torch.Generator().manual_seed(0)
MEMBERS = (torch.randn(N, 5, generator=stream), torch.randint(K, (N,), generator=stream))
OTHERS = (torch.randn(7, 5, generator=stream), torch.randint(K, (7,), generator=stream))


def random(seed: int = 0) -> torch.Generator:
    return generator(seed, Purpose.HOOKS)


def model(dropout: float = 0.0, outputs: int = K) -> MLP:
    with drawing_from(generator(1, Purpose.WEIGHTS)):
        return MLP([5, 6, outputs], dropout=dropout)


def game(seed: int = 0, logits: Tensor | None = None, **options: Any) -> MembershipGame:
    given = torch.zeros(1, K) if logits is None else logits
    return MembershipGame(MEMBERS, OTHERS, given, random=random(seed), **options)


def test_the_network_of_nasr() -> None:
    with drawing_from(generator(0, Purpose.WEIGHTS)):
        network = InferenceNetwork(10)
    sizes = {
        name: tuple(weight.shape) for name, weight in network.named_parameters() if weight.ndim == 2
    }
    assert list(sizes.values()) == [
        (1024, 10), (512, 1024), (64, 512), (512, 10), (64, 512), (256, 128), (64, 256), (1, 64),
    ]  # fmt: skip
    for weight in network.parameters():
        if weight.ndim == 1:
            assert not weight.any()
        elif weight.numel() > 10_000:
            assert weight.std().item() == pytest.approx(0.01, rel=0.05)
            assert abs(weight.mean().item()) < 1e-3


def test_its_answer_is_that_of_its_layers() -> None:
    network = game().network
    probabilities = torch.rand(4, K, generator=torch.Generator().manual_seed(1))
    labels = torch.eye(K)[[0, 2, 1, 1]]
    weights = [(one, bias) for one, bias in zip(*[iter(network.parameters())] * 2, strict=True)]

    def through(x: Tensor, layers: list[tuple[Tensor, Tensor]]) -> Tensor:
        for weight, bias in layers:
            x = (x @ weight.T + bias).clamp(min=0)
        return x

    with torch.no_grad():
        for _, bias in weights:
            bias.normal_(generator=torch.Generator().manual_seed(2))
        read = torch.cat([through(probabilities, weights[:3]), through(labels, weights[3:5])], 1)
        (weight, bias), read = weights[7], through(read, weights[5:7])
        torch.testing.assert_close(network(probabilities, labels), (read @ weight.T + bias)[:, 0])


def test_the_gain_of_the_best_and_of_a_guess() -> None:
    # P = (.5, .25, .125, .125) against uniform: the best logits are log P/Q.
    best = torch.tensor([0.5, 0.25, 0.125, 0.125], dtype=torch.float64).div(0.25).log()
    members, others = best.repeat_interleave(torch.tensor([4, 2, 1, 1])), best
    assert gain(members, others).item() == pytest.approx(-1.301344842722, abs=1e-12)
    assert gain(torch.zeros(5), torch.zeros(2)).item() == pytest.approx(-math.log(4))


def test_the_probabilities_of_one_logit_are_of_two_classes() -> None:
    logits = torch.tensor([-2.0, 0.0, 1.5])
    both = torch.stack([torch.zeros(3), logits], dim=1)
    torch.testing.assert_close(class_probabilities(logits), both.softmax(dim=1))
    torch.testing.assert_close(class_probabilities(logits[:, None]), both.softmax(dim=1))
    torch.testing.assert_close(class_probabilities(both), both.softmax(dim=1))
    assert game(logits=logits).classes == 2


@pytest.mark.parametrize(("batch", "size"), [(None, 5), (9, 9)])
def test_the_inference_network_climbs_its_gain_by_adam(batch: int | None, size: int) -> None:
    # In double precision: Adam divides by the size of gradients that are next to 0 at first.
    sides = [(X.double(), y) for X, y in (MEMBERS, OTHERS)]
    module, logits, draws = model().double().eval(), torch.zeros(1, K).double(), random()
    with drawing_from(draws):
        plain = InferenceNetwork(K).double()
    members, others = sides
    played = MembershipGame(members, others, logits, steps=3, batch=batch, lr=0.01, random=random())
    played.learn(module, 9)
    optimizer = torch.optim.Adam(plain.parameters(), lr=0.01)
    drawn = [torch.randint(len(y), (3, size), generator=draws) for _, y in (MEMBERS, OTHERS)]
    for step in range(3):
        h = []
        for (X, y), rows in zip(sides, drawn, strict=True):
            seen = module(X[rows[step]]).softmax(dim=1).detach()
            h.append(plain(seen, torch.eye(K).double()[y[rows[step]]]).sigmoid())
        loss = -(h[0].log().mean() + (1 - h[1]).log().mean())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    for ours, theirs in zip(played.network.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)
    assert torch.equal(torch.rand(1, generator=played.random), torch.rand(1, generator=draws))


def test_learning_leaves_the_model_as_it_was() -> None:
    module = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, K))
    module.train()
    before, state = copy.deepcopy(module.state_dict()), torch.get_rng_state()
    game().learn(module, 8)
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert all(layer.training for layer in module.modules())
    assert all(weight.grad is None for weight in module.parameters())
    assert torch.equal(state, torch.get_rng_state())


def test_the_penalty_is_the_mean_log_of_h_and_moves_the_model_alone() -> None:
    played = game()
    for weight in played.network.parameters():
        nn.init.normal_(weight, std=0.1, generator=torch.Generator().manual_seed(3))
    X, y = MEMBERS
    logits = X[:, :K].clone().requires_grad_()
    seen = (logits.softmax(dim=1), functional.one_hot(y, K).float())
    expected = played.network(*seen).sigmoid().log().mean()
    (gradient,) = torch.autograd.grad(expected, logits)
    found = played.log_membership(logits, y)
    torch.testing.assert_close(found, expected)
    torch.autograd.backward(found)
    assert logits.grad is not None
    assert gradient.abs().max() > 0
    torch.testing.assert_close(logits.grad, gradient)
    assert all(weight.grad is None for weight in played.network.parameters())


def stage(module: nn.Module, **settings: Any) -> Stage:
    return Stage(
        module=module,
        X=MEMBERS[0],
        y=MEMBERS[1],
        reference=OTHERS,
        validation=None,
        settings=Training(**settings),
        hooks=Hooks(),
        order=generator(0, Purpose.ORDER),
        weights=generator(0, Purpose.WEIGHTS),
        random=random(),
        fresh=model,
    )


def test_a_played_loss_is_the_one_before_and_the_penalty() -> None:
    def loss(outputs: Tensor, y: Tensor) -> Tensor:
        return outputs.square().mean()

    one, two, now = game(), game(), stage(model(), loss=loss)
    play(now, one, gamma=0.7)
    X, y = MEMBERS[0][:10], MEMBERS[1][:10]
    outputs = now.module(X)
    assert callable(now.settings.loss)
    value = now.settings.loss(outputs, y)
    two.learn(now.module, 10)  # before the model's own update
    torch.testing.assert_close(value, loss(outputs, y) + 0.7 * two.log_membership(outputs, y))
    for ours, theirs in zip(one.network.parameters(), two.network.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_it_plays_against_the_network_that_the_stage_has_now() -> None:
    asked: list[nn.Module] = []
    played, now = game(), stage(model(), epochs=1)
    played.learn = lambda module, size: asked.append(module)  # type: ignore[method-assign]
    play(now, played, gamma=0.1)
    now.train()
    now.module = nn.Linear(5, K)
    now.train()
    assert {type(module) for module in asked} == {MLP, nn.Linear}


class Shown(nn.Module):
    """Logits that show one of four things plainly."""

    def forward(self, X: Tensor) -> Tensor:
        return 8 * X


@pytest.mark.slow
def test_against_a_fixed_model_it_comes_to_the_best_gain() -> None:
    counts = torch.tensor([4, 2, 1, 1])
    members = torch.eye(4).repeat_interleave(counts, dim=0)
    others = torch.eye(4)
    sides = (members, torch.zeros(8).long()), (others, torch.zeros(4).long())
    played = MembershipGame(*sides, 8 * others, steps=150, batch=64, random=random())
    played.learn(Shown(), 64)
    with torch.no_grad():
        inferred = [played.network(class_probabilities(8 * X), torch.eye(4)[y]) for X, y in sides]
    reached = gain(*inferred).item()
    assert -1.301344842722 - 0.02 < reached <= -1.301344842722
