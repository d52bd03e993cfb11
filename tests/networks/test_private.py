from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from opacus.accountants import RDPAccountant
from scipy.stats import kstest
from torch import Tensor, nn
from torch.nn import functional

from leakscope.errors import InputError, ModelError
from leakscope.networks import MLP, LeNet5, clipping, private
from leakscope.networks.accounting import Sampling, epsilon_of, noise_for
from leakscope.networks.losses import cross_entropy, squared_error
from leakscope.networks.optimizers import Updates
from leakscope.networks.private import PrivateTraining, record_losses
from leakscope.networks.seeding import Purpose, drawing_from, generator
from leakscope.networks.training import Hooks, Training
from unusual_networks import Scaled, Shared

N = 24
X = torch.randn(N, 4, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] - X[:, 1] > 0).long()
LOOP = PrivateTraining(8.0, 1e-3, clip=0.3)


def order(seed: int = 0) -> torch.Generator:
    return generator(seed, Purpose.ORDER)


def made(kind: Any, *arguments: Any, **options: Any) -> Any:
    with drawing_from(generator(5, Purpose.WEIGHTS)):
        return kind(*arguments, **options)


def vector(module: nn.Module) -> Tensor:
    return torch.cat([part.detach().ravel() for part in module.parameters()])


def by_hand(module: nn.Module, X: Tensor, settings: Training, loop: PrivateTraining) -> None:
    """DP-SGD as it is written down: one record after another."""
    sampling = Sampling.of(len(X), settings.batch_size, settings.epochs)
    noise = noise_for(loop.epsilon, loop.delta, sampling, loop.accountant)
    stream, parts = order(), list(module.parameters())
    optimizer = settings.updates.optimizer([{"params": parts}])
    module.train()
    for step in range(sampling.updates):
        settings.updates.set_rate(optimizer.param_groups[0], step)
        drawn = torch.nonzero(torch.rand(len(X), generator=stream) < sampling.rate).squeeze(1)
        sums = [torch.zeros_like(part) for part in parts]
        for one in drawn.tolist():
            loss = functional.cross_entropy(module(X[one : one + 1]), Y[one : one + 1])
            gradients = torch.autograd.grad(loss, parts)
            size = torch.sqrt(sum((part.square().sum() for part in gradients), torch.tensor(0.0)))
            shrunk = min(1.0, loop.clip / (size.item() + 1e-6))
            for total, part in zip(sums, gradients, strict=True):
                total.add_(shrunk * part)
        for part, total in zip(parts, sums, strict=True):
            noisy = torch.normal(0.0, noise * loop.clip, part.shape, generator=stream)
            part.grad = (total + noisy) / min(settings.batch_size, len(X))
        optimizer.step()


IMAGES = torch.randn(N, 1, 28, 28, generator=torch.Generator().manual_seed(1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "arguments", "records"),
    [
        (MLP, ([4, 6, 2],), X),
        (LeNet5, (2,), IMAGES),
        (Shared, (), X),
        (Scaled, (), X),
    ],
    ids=["mlp", "convolutions", "a layer used twice", "a weight of its own"],
)
@pytest.mark.parametrize(
    "updates", [Updates("sgd", 0.5), Updates("adam", 0.01, decay=0.1)], ids=str
)
def test_it_is_the_algorithm(
    kind: type[nn.Module],
    arguments: Any,
    records: Tensor,
    updates: Updates,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Few at a time, so that a batch has several parts.
    monkeypatch.setattr(clipping, "NUMBERS", 3 * 20_000)
    settings = Training(updates, epochs=2, batch_size=8)
    slow, fast = made(kind, *arguments), made(kind, *arguments)
    by_hand(slow, records, settings, LOOP)
    LOOP(fast, records, Y, settings, order=order())
    torch.testing.assert_close(vector(fast), vector(slow), rtol=2e-4, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Shared, Scaled])
def test_parts_of_a_batch_are_one_update(
    kind: type[nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained() -> Tensor:
        module = made(kind)
        LOOP(module, X, Y, Training(Updates("sgd", 0.5), 2, 8), order=order())
        return vector(module)

    whole = trained()
    monkeypatch.setattr(clipping, "NUMBERS", 1)
    torch.testing.assert_close(trained(), whole, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits_with_dropout() -> None:
    def trained(seed: int) -> Tensor:
        module = made(MLP, [4, 6, 2], dropout=0.5)
        with drawing_from(generator(seed, Purpose.WEIGHTS)):
            LOOP(module, X, Y, Training(epochs=2, batch_size=8), order=order(seed))
        return vector(module)

    assert torch.equal(trained(1), trained(1))
    assert not torch.equal(trained(1), trained(2))


def test_what_was_spent_is_told_and_the_module_is_plain() -> None:
    module = made(MLP, [4, 6, 2])
    before = [sorted(vars(thing)) for thing in (*module.modules(), *module.parameters())]
    history = LOOP(module, X, Y, Training(epochs=2, batch_size=8), order=order())
    privacy = history.privacy
    assert privacy.sampling == Sampling(8 / 24, 6)
    theirs = RDPAccountant()
    theirs.history = [(privacy.noise, 8 / 24, 6)]
    assert privacy.epsilon == theirs.get_epsilon(1e-3)
    assert privacy.epsilon == epsilon_of(8.0, 1e-3, privacy.sampling, "rdp") <= 8
    assert privacy.ghost == ("layers.linear1", "layers.linear2")
    assert privacy.per_record == ()
    assert before == [sorted(vars(thing)) for thing in (*module.modules(), *module.parameters())]
    assert type(module) is MLP
    assert not module.training
    assert all(part.grad is None for part in module.parameters())
    assert len(history.epochs) == 2
    assert all(math.isfinite(figures.loss) for figures in history.epochs)
    again = pickle.loads(pickle.dumps(module))
    assert torch.equal(again(X), module(X))


def test_it_learns_where_the_promise_is_weak() -> None:
    module = made(MLP, [4, 6, 2])
    loop = PrivateTraining(1000.0, 1e-3)
    settings = Training(Updates("adam", 0.05), epochs=40, batch_size=N)
    history = loop(module, X, Y, settings, order=order())
    assert history.epochs[0].loss > 0.5
    assert history.epochs[-1].loss < 0.25


def test_where_nobody_is_drawn_there_is_noise_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Training(Updates("sgd", 1.0), epochs=1, batch_size=N)
    sampling = Sampling.of(N, N, 1)
    noise = noise_for(8.0, 1e-3, sampling, "rdp")
    monkeypatch.setattr(private, "_uniform", np.ones)  # nobody's chance is below 1
    monkeypatch.setattr(private, "_SystemNoise", private.DPOptimizerFastGradientClipping)
    module = made(MLP, [4, 6, 2])
    before = vector(module)
    stream = order()
    loop = PrivateTraining(8.0, 1e-3, clip=0.3, secure=True)
    history = loop(module, X, Y, settings, order=stream)
    again = order()
    drawn = [
        torch.normal(0.0, noise * 0.3, part.shape, generator=again).ravel()
        for part in module.parameters()
    ]
    torch.testing.assert_close(before - vector(module), torch.cat(drawn) / N)
    assert math.isnan(history.epochs[0].loss)


def test_secure_noise_is_gaussian_and_never_the_same() -> None:
    settings = Training(Updates("sgd", 1.0), epochs=1, batch_size=N)
    noise = noise_for(8.0, 1e-3, Sampling.of(N, N, 1), "rdp")
    clip = 1e-6  # gradients of no weight beside the noise, which is in units of it
    moves = []
    for _ in range(2):
        module = made(MLP, [4, 400, 2]).double()
        before = vector(module)
        loop = PrivateTraining(8.0, 1e-3, clip=clip, secure=True)
        loop(module, X.double(), Y, settings, order=order())
        moves.append((before - vector(module)) * N / (noise * clip))
    first, second = moves
    assert not torch.equal(first, second)
    # The sum of 24 clipped gradients adds at most 24 in norm to 2,802 normal numbers.
    for move in (first, second, (first - second) / math.sqrt(2)):
        assert kstest(move.numpy(), "norm").pvalue > 1e-7
        assert abs(move.std().item() - 1) < 0.2


def test_uniform_numbers_of_the_system() -> None:
    drawn = private._uniform((50, 1000))
    assert drawn.shape == (50, 1000)
    assert 0 < drawn.min() < 0.01
    assert 0.99 < drawn.max() < 1
    assert kstest(drawn.ravel(), "uniform").pvalue > 1e-7


@pytest.mark.parametrize(
    "loss",
    [
        "cross_entropy",
        cross_entropy,
        lambda outputs, y: functional.cross_entropy(outputs, y, label_smoothing=0.1),
        lambda outputs, y: functional.cross_entropy(outputs, y) * (2 if outputs.max() > 0 else 1),
        lambda outputs, y: functional.cross_entropy(outputs, y, reduction="none"),
    ],
    ids=["by name", "mean", "smoothed", "that looks", "of each"],
)
def test_the_loss_of_each_record_is_that_of_a_batch_of_one(loss: Any) -> None:
    outputs = torch.randn(7, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    y = torch.tensor([0, 1, 2, 0, 1, 2, 0])
    alone = cross_entropy if isinstance(loss, str) else loss
    expected = [alone(outputs[row : row + 1], y[row : row + 1]).reshape(()) for row in range(7)]
    torch.testing.assert_close(record_losses(loss, outputs, y), torch.stack(expected))


def test_other_losses_by_name() -> None:
    outputs, numbers = torch.randn(5, 1), torch.randn(5)
    expected = (outputs[:, 0] - numbers).square()
    torch.testing.assert_close(record_losses("squared_error", outputs, numbers), expected)
    torch.testing.assert_close(record_losses(squared_error, outputs[:, 0], numbers), expected)
    signs = torch.tensor([0, 1, 1, 0, 1])
    expected = functional.softplus(torch.where(signs == 1, -1, 1) * outputs[:, 0])
    torch.testing.assert_close(record_losses("cross_entropy", outputs, signs), expected)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hooks": Hooks(penalty=lambda module, X, y: y.sum())}, "takes no hooks"),
        ({"hooks": Hooks(on_epoch=lambda module, epoch, figures: True)}, "takes no hooks"),
        ({"settings": Training(stop_at_accuracy=0.9)}, "cannot stop at an accuracy"),
        ({"settings": Training(stop_at_gap=0.1)}, "cannot stop at an accuracy or at a gap"),
    ],
)
def test_what_is_not_accounted_for_is_refused(changes: dict[str, Any], said: str) -> None:
    module = made(MLP, [4, 6, 2])
    before = vector(module)
    options = {"settings": Training(epochs=1, batch_size=8), "hooks": Hooks()} | changes
    with pytest.raises(InputError, match=said):
        LOOP(module, X, Y, options.pop("settings"), order=order(), **options)
    assert torch.equal(vector(module), before)


def test_batch_normalization_is_refused_before_anything_is_trained() -> None:
    module = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    before = vector(module)
    with pytest.raises(InputError, match=r"The layer '1' \(BatchNorm1d\) mixes the records"):
        LOOP(module, X, Y, Training(epochs=1, batch_size=8), order=order())
    assert torch.equal(vector(module), before)


def test_a_loss_that_is_lost_is_named_and_leaves_no_hooks() -> None:
    module = made(MLP, [4, 6, 2])
    broken = X.clone()
    broken[:] = torch.nan
    with pytest.raises(ModelError, match="The loss was nan in epoch 1"):
        LOOP(module, broken, Y, Training(epochs=2, batch_size=8), order=order())
    assert not any(part._forward_hooks for part in module.modules())
