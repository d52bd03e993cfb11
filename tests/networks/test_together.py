from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from leakscope.errors import InputError, ModelError
from leakscope.networks.mlp import MLP
from leakscope.networks.optimizers import Updates
from leakscope.networks.seeding import Purpose, drawing_from, generator
from leakscope.networks.stacking import layers_of
from leakscope.networks.together import Member, train_together
from leakscope.networks.training import History, Training, train

N = 120
X = torch.randn(N, 6, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] + 0.5 * X[:, 1] > 0).long() + (X[:, 2] > 1).long()
# Sizes that give 9, 6, 9, 7 and 6 batches of 10: a last one of 1, of 10, of 3.
SIZES = (91, 60, 90, 63, 61)
LAYERS = ((6, 8, 3), "tanh", 0.0)


def member(seed: int, size: int, spec: tuple[tuple[int, ...], str, float]) -> Member:
    widths, activation, dropout = spec
    weights = generator(seed, Purpose.WEIGHTS)
    with drawing_from(weights):
        module = MLP(widths, activation, dropout)
    drawn = torch.randperm(N, generator=torch.Generator().manual_seed(seed))
    return Member(module, drawn[:size], generator(seed, Purpose.ORDER), weights, drawn[size:])


def members(sizes: Sequence[int] = SIZES, spec: tuple = LAYERS) -> list[Member]:
    return [member(seed, size, spec) for seed, size in enumerate(sizes)]


def alone(one: Member, settings: Training, y: Tensor = Y) -> History:
    validation = (X[one.validation], y[one.validation]) if one.validation is not None else None
    with drawing_from(one.dropout):
        return train(
            *(one.module, X[one.records], y[one.records], settings),
            order=one.order,
            validation=validation,
        )


def together(stack: Sequence[Member], settings: Training, y: Tensor = Y) -> list[History]:
    layers = layers_of(stack[0].module)
    assert layers is not None
    return train_together(stack, layers, X, y, settings)


def vector(module: nn.Module) -> Tensor:
    return torch.cat([part.detach().ravel() for part in module.parameters()])


@pytest.mark.parametrize(
    "updates",
    [
        Updates("adam", 0.01),
        Updates("adam", 0.01, weight_decay=0.01, decay=0.1),
        Updates("sgd", 0.1, momentum=0.9, weight_decay=0.001, decay=0.01),
        Updates("sgd", 0.1),
        Updates("adagrad", 0.01, decay=1e-3, weight_decay=0.01),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "spec",
    [((6, 3), "tanh", 0.0), LAYERS, ((6, 9, 7, 5, 3), "relu", 0.3), ((6, 8, 8, 3), "tanh", 0.5)],
    ids=str,
)
def test_networks_trained_together_are_those_trained_alone(updates: Updates, spec: tuple) -> None:
    settings = Training(updates, epochs=2, batch_size=10)
    stack, single = members(spec=spec), members(spec=spec)
    histories = together(stack, settings)
    for one, other, history in zip(stack, single, histories, strict=True):
        begun = vector(other.module)
        expected = alone(other, settings)
        # They moved by far more than they differ.
        assert (vector(other.module) - begun).abs().max() > 1e-2
        torch.testing.assert_close(vector(one.module), vector(other.module), rtol=1e-4, atol=2e-5)
        for mine, theirs in zip(history.epochs, expected.epochs, strict=True):
            assert mine.loss == pytest.approx(theirs.loss, rel=1e-4)
            assert mine.accuracy == pytest.approx(theirs.accuracy, abs=0.02)
            assert mine.validation_accuracy == pytest.approx(theirs.validation_accuracy, abs=0.04)
        assert not one.module.training


@pytest.mark.parametrize("kind", ["one logit", "numbers"])
def test_one_output(kind: str) -> None:
    y = (Y > 0).long() if kind == "one logit" else X[:, 0] * 2 - X[:, 1]
    loss = "cross_entropy" if kind == "one logit" else "squared_error"
    settings = Training(Updates("adam", 0.01), epochs=2, batch_size=10, loss=loss)
    spec = ((6, 5, 1), "tanh", 0.0)
    stack, single = members(spec=spec), members(spec=spec)
    histories = together(stack, settings, y)
    for one, other, history in zip(stack, single, histories, strict=True):
        expected = alone(other, settings, y)
        torch.testing.assert_close(vector(one.module), vector(other.module), rtol=1e-4, atol=1e-5)
        assert history.epochs[-1].loss == pytest.approx(expected.epochs[-1].loss, rel=1e-4)
        assert (history.epochs[-1].accuracy is None) == (kind == "numbers")


def test_in_double_precision_only_the_last_digits_differ() -> None:
    settings = Training(Updates("adam", 0.01), epochs=3, batch_size=10)
    spec = ((6, 9, 7, 3), "relu", 0.3)
    stack, single = members(spec=spec), members(spec=spec)
    layers = layers_of(stack[0].module)
    assert layers is not None
    for one in (*stack, *single):
        one.module.double()
    train_together(stack, layers, X.double(), Y, settings)
    for one, other in zip(stack, single, strict=True):
        with drawing_from(other.dropout):
            data = X[other.records].double(), Y[other.records]
            train(other.module, *data, settings, order=other.order)
        torch.testing.assert_close(vector(one.module), vector(other.module), rtol=1e-9, atol=1e-11)


def test_each_stops_where_it_would_alone() -> None:
    settings = Training(Updates("adam", 0.01), epochs=40, batch_size=10, stop_at_accuracy=0.8)
    stack, single = members(), members()
    histories = together(stack, settings)
    epochs = []
    for one, other, history in zip(stack, single, histories, strict=True):
        expected = alone(other, settings)
        assert len(history.epochs) == len(expected.epochs) < 40
        epochs.append(len(history.epochs))
        torch.testing.assert_close(vector(one.module), vector(other.module), rtol=1e-3, atol=1e-4)
    assert len(set(epochs)) > 1


def test_a_gap_needs_validation_records_of_every_network() -> None:
    settings = Training(epochs=1, stop_at_gap=0.1)
    stack = members()
    stack[3] = replace(stack[3], validation=None)
    with pytest.raises(InputError, match="has no validation records"):
        together(stack, settings)
    histories = together(stack, replace(settings, stop_at_gap=None))
    assert [history.epochs[0].validation_accuracy is None for history in histories] == [
        False, False, False, True, False,
    ]  # fmt: skip


def test_without_validation_nothing_is_counted() -> None:
    stack = [replace(one, validation=None) for one in members()]
    histories = together(stack, Training(epochs=1))
    assert all(history.epochs[0].accuracy is None for history in histories)
    assert histories[0].threads == torch.get_num_threads()


def test_an_accuracy_is_stopped_at_without_validation() -> None:
    settings = Training(Updates("adam", 0.01), epochs=40, batch_size=10, stop_at_accuracy=0.8)
    stack = [replace(one, validation=None) for one in members()]
    single = [replace(one, validation=None) for one in members()]
    for one, history in zip(single, together(stack, settings), strict=True):
        assert len(history.epochs) == len(alone(one, settings).epochs) < 40
        assert history.epochs[-1].accuracy >= 0.8
        assert history.epochs[-1].validation_accuracy is None


def test_a_loss_that_is_not_finite_names_the_layer() -> None:
    stack = members()
    with torch.no_grad():
        stack[2].module.linears[1].weight[0, 0] = float("inf")
    with pytest.raises(ModelError, match=r"in epoch 1 .* the layer 'layers.linear[12]' \(Linear\)"):
        together(stack, Training(epochs=2))


def test_the_same_stack_gives_the_same_bits() -> None:
    spec = ((6, 9, 7, 3), "relu", 0.3)
    first, second = members(spec=spec), members(spec=spec)
    for stack in (first, second):
        together(stack, Training(epochs=2))
    for one, other in zip(first, second, strict=True):
        assert torch.equal(vector(one.module), vector(other.module))
