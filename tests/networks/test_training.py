from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from leakscope.errors import InputError, ModelError
from leakscope.networks.inference import AttackNetwork
from leakscope.networks.mlp import MLP
from leakscope.networks.optimizers import Updates
from leakscope.networks.seeding import Purpose, drawing_from, generator
from leakscope.networks.training import Figures, Hooks, Training, batches, bounds, train

N = 45
X = torch.randn(N, 4, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] - X[:, 1] > 0).long()


def module(seed: int = 0, dropout: float = 0.0) -> MLP:
    with drawing_from(generator(seed, Purpose.WEIGHTS)):
        return MLP([4, 6, 2], dropout=dropout)


def order(seed: int = 0) -> torch.Generator:
    return generator(seed, Purpose.ORDER)


def vector(one: nn.Module) -> Tensor:
    return torch.cat([part.detach().ravel() for part in one.parameters()])


def test_the_loop_is_a_loop() -> None:
    trained, plain = module(), module()
    settings = Training(Updates("sgd", 0.1, decay=0.5), epochs=2, batch_size=8)
    history = train(trained, X, Y, settings, order=order())
    # The obvious way: 45 records in batches of 8, of which the last has 5.
    stream, step, means = order(), 0, []
    for _ in range(2):
        drawn, losses = torch.randperm(N, generator=stream), []
        for start in range(0, N, 8):
            chosen = drawn[start : start + 8]
            loss = nn.functional.cross_entropy(plain(X[chosen]), Y[chosen])
            gradients = torch.autograd.grad(loss, list(plain.parameters()))
            losses.append(loss.item() * len(chosen))
            with torch.no_grad():
                for part, gradient in zip(plain.parameters(), gradients, strict=True):
                    part.sub_(0.1 / (1 + 0.5 * step) * gradient)
            step += 1
        means.append(sum(losses) / N)
    torch.testing.assert_close(vector(trained), vector(plain), rtol=1e-6, atol=1e-7)
    assert [figures.loss for figures in history.epochs] == pytest.approx(means, rel=1e-6)
    assert history.threads == torch.get_num_threads()
    assert not trained.training
    assert all(part.grad is None for part in trained.parameters())


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_same_seed_gives_the_same_bits(dropout: float) -> None:
    def weights(seed: int) -> Tensor:
        one = module(3, dropout)
        with drawing_from(generator(seed, Purpose.WEIGHTS)):
            train(one, X, Y, Training(epochs=2), order=order(seed))
        return vector(one)

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


def test_it_learns() -> None:
    one = module()
    history = train(one, X, Y, Training(Updates("adam", 0.03), epochs=60), order=order())
    assert history.epochs[0].loss > 0.5
    assert history.epochs[-1].loss < 0.2
    assert (one(X).argmax(dim=1) == Y).float().mean() > 0.9


@pytest.mark.parametrize(
    ("n", "size", "expected"),
    [
        (6, 3, [(0, 3), (3, 6)]),
        (7, 3, [(0, 3), (3, 7)]),  # the one that would be alone joins those before
        (8, 3, [(0, 3), (3, 6), (6, 8)]),
        (1, 3, [(0, 1)]),
        (3, 1, [(0, 1), (1, 2), (2, 3)]),
        (2, 5, [(0, 2)]),
    ],
)
def test_where_batches_begin_and_end(n: int, size: int, expected: list[Any]) -> None:
    assert bounds(n, size) == expected
    drawn = list(batches(n, size, order()))
    assert [len(one) for one in drawn] == [stop - start for start, stop in expected]
    assert sorted(torch.cat(drawn).tolist()) == list(range(n))


def test_batch_normalization_is_never_given_one_record() -> None:
    one = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    train(one, X, Y, Training(epochs=1, batch_size=4), order=order())  # 45 = 11 · 4 + 1
    assert torch.isfinite(vector(one)).all()


def test_hooks_are_called_when_they_say() -> None:
    told: list[Any] = []

    def on_batch(one: nn.Module, optimizer: torch.optim.Optimizer, step: int, loss: float) -> None:
        assert one.training
        told.append((step, loss, vector(one)))

    def on_epoch(one: nn.Module, epoch: int, figures: Figures) -> bool:
        assert not one.training
        told.append((epoch, figures))
        return epoch == 2

    one = module()
    before = vector(one)
    hooks = Hooks(on_batch=on_batch, on_epoch=on_epoch)
    history = train(one, X, Y, Training(epochs=9, batch_size=20), order=order(), hooks=hooks)
    assert [entry[0] for entry in told] == [1, 2, 3, 1, 4, 5, 6, 2]
    assert not torch.equal(told[0][2], before)  # after the update
    assert torch.equal(told[-2][2], vector(one))
    assert history.epochs == (told[3][1], told[7][1])
    weighted = sum(loss * size for (_, loss, _), size in zip(told[:3], (20, 20, 5), strict=True))
    assert history.epochs[0].loss == pytest.approx(weighted / N)


def test_a_penalty_is_part_of_the_loss() -> None:
    def penalty(one: nn.Module, X: Any, y: Tensor) -> Tensor:
        assert len(X) == len(y)
        return 0.05 * sum(part.square().sum() for part in one.parameters())

    by_hook, by_option = module(), module()
    plain = Training(Updates("sgd", 0.1), epochs=2)
    decayed = Training(Updates("sgd", 0.1, weight_decay=0.1), epochs=2)
    penalized = train(by_hook, X, Y, plain, order=order(), hooks=Hooks(penalty=penalty))
    without = train(by_option, X, Y, decayed, order=order())
    torch.testing.assert_close(vector(by_hook), vector(by_option), rtol=1e-5, atol=1e-7)
    assert penalized.epochs[0].loss > without.epochs[0].loss + 0.01


def test_it_stops_at_an_accuracy() -> None:
    seen: list[float] = []
    one = module()

    def on_epoch(one: nn.Module, epoch: int, figures: Figures) -> None:
        right = (one(X).argmax(dim=1) == Y).float().mean().item()
        assert figures.accuracy == pytest.approx(right)
        seen.append(right)

    settings = Training(Updates("adam", 0.02), epochs=200, stop_at_accuracy=0.9)
    history = train(one, X, Y, settings, order=order(), hooks=Hooks(on_epoch=on_epoch))
    assert 1 < len(history.epochs) < 200
    assert seen[-1] >= 0.9 > max(seen[:-1])
    assert history.epochs[-1].validation_accuracy is None
    assert history.epochs[-1].gap is None


def test_it_stops_at_a_gap_to_records_of_its_own() -> None:
    noise = torch.randint(0, 2, (N,), generator=torch.Generator().manual_seed(3))
    other = torch.randn(50, 4, generator=torch.Generator().manual_seed(4))
    validation = other, torch.randint(0, 2, (50,), generator=torch.Generator().manual_seed(5))
    settings = Training(Updates("adam", 0.02), epochs=300, stop_at_gap=0.3)
    one = module()
    history = train(one, X, noise, settings, order=order(), validation=validation)
    gaps = [figures.gap for figures in history.epochs]
    assert gaps[-1] >= 0.3 > max(gaps[:-1])
    right = (one(other).argmax(dim=1) == validation[1]).float().mean().item()
    assert history.epochs[-1].validation_accuracy == pytest.approx(right)


def test_what_it_cannot_stop_at_is_refused() -> None:
    with pytest.raises(InputError, match=r"a gap of 0.1 and has no validation records"):
        train(module(), X, Y, Training(stop_at_gap=0.1), order=order())
    numbers = Training(loss="squared_error", stop_at_accuracy=0.9)
    with pytest.raises(InputError, match="Numbers are not predicted right or wrong"):
        train(MLP([4, 1]), X, X[:, 0], numbers, order=order())


def test_numbers_are_predicted_by_least_squares() -> None:
    target = X @ torch.tensor([1.0, -2.0, 0.5, 0.0]) + 3
    one = MLP([4, 1])
    settings = Training(Updates("sgd", 0.1), epochs=200, loss="squared_error")
    history = train(one, X, target, settings, order=order(), validation=(X, target))
    assert history.epochs[-1] == Figures(pytest.approx(0, abs=1e-6))
    expected = torch.tensor([[1.0, -2.0, 0.5, 0.0]])
    torch.testing.assert_close(one.linears[0].weight.detach(), expected, rtol=1e-3, atol=1e-3)


def test_a_loss_of_ones_own() -> None:
    def hinge(outputs: Tensor, y: Tensor) -> Tensor:
        return nn.functional.multi_margin_loss(outputs, y)

    history = train(module(), X, Y, Training(loss=hinge, epochs=30), order=order())
    assert history.epochs[-1].loss < history.epochs[0].loss


def test_several_things_about_each_record_by_name() -> None:
    one = AttackNetwork({"predicted": 2, "explanation": 4})
    seen = {"predicted": nn.functional.one_hot(Y).float(), "explanation": X}
    settings = Training(Updates("adagrad", 0.01), epochs=8, stop_at_accuracy=0.99)
    history = train(one, seen, Y, settings, order=order())
    assert history.epochs[-1].accuracy >= 0.99


def test_a_loss_that_is_not_finite_names_the_epoch_and_the_layer() -> None:
    def spoil(one: nn.Module, optimizer: torch.optim.Optimizer, step: int, loss: float) -> None:
        if step == 3:
            with torch.no_grad():
                one.linears[1].weight[0, 0] = float("nan")

    settings = Training(epochs=9, batch_size=23)
    with pytest.raises(
        ModelError,
        match=r"The loss was nan in epoch 2 \(counting from 1\), the weights of the layer "
        r"'layers.linear2' \(Linear\) not being finite; lower lr, or scale the records",
    ):
        train(module(), X, Y, settings, order=order(), hooks=Hooks(on_batch=spoil))


def test_a_loss_that_is_not_finite_though_all_weights_are() -> None:
    def broken(outputs: Tensor, y: Tensor) -> Tensor:
        return outputs.sum() / 0

    with pytest.raises(ModelError, match=r"inf in epoch 1 .* all weights being finite"):
        train(module(), X, Y, Training(loss=broken), order=order())


class Root(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sqrt()


def test_a_layer_that_is_not_finite_with_finite_weights_is_named() -> None:
    one = nn.Sequential(nn.Linear(X.shape[1], 2), Root())
    sentence = r"nan in epoch 1 .* being finite, first at the layer '1' \(Root\); lower lr"
    with pytest.raises(ModelError, match=sentence):
        train(one, X, Y, Training(), order=order())


def test_a_layer_that_fails_in_training_alone_is_named() -> None:
    one = nn.Sequential(nn.Linear(X.shape[1], 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    sentence = (
        r"Sequential could not be trained on a batch of 1 record, in the layer '1' "
        r"\(BatchNorm1d\), which was given \(1, 3\): Expected more than 1 value per channel"
    )
    with pytest.raises(ModelError, match=sentence):
        train(one, X[:1], Y[:1], Training(), order=order())


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(float("nan")))

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * x[:, :2]


def test_a_parameter_of_the_module_itself_is_named_by_its_name() -> None:
    with pytest.raises(ModelError, match=r"the layer 'factor' \(Scale\) not being finite"):
        train(Scale(), X, Y, Training(), order=order())
