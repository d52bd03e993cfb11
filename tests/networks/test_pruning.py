from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from leakscope.errors import InputError
from leakscope.networks import MLP, LeNet5, ResNet18
from leakscope.networks.optimizers import Updates
from leakscope.networks.pruning import (
    SAMPLED,
    Masks,
    Pruned,
    Schedule,
    Splitting,
    checked_budgets,
    largest,
    layer_budgets,
    prunable,
    prune,
)
from leakscope.networks.seeding import Purpose, drawing_from, generator, repeatable
from leakscope.networks.stages import Stage
from leakscope.networks.training import Figures, Hooks, Training

N = 90
X = torch.randn(N, 6, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] * X[:, 1] > 0).long() + (X[:, 2] > 1).long()


def mlp(seed: int = 0) -> nn.Module:
    with drawing_from(generator(seed, Purpose.WEIGHTS)):
        return MLP([6, 20, 12, 3])


def stage_of(updates: Updates | None = None, epochs: int = 10, seed: int = 0) -> Stage:
    return Stage(
        module=mlp(seed),
        X=X,
        y=Y,
        reference=None,
        validation=None,
        settings=Training(updates or Updates("adam", 0.01), epochs, 16),
        hooks=Hooks(),
        order=generator(seed, Purpose.ORDER),
        weights=generator(seed, Purpose.WEIGHTS),
        random=generator(seed, Purpose.HOOKS),
        fresh=mlp,
    )


def sizes_of(module: nn.Module) -> dict[str, int]:
    return {path: weight.numel() for path, weight in prunable(module).items()}


def left(module: nn.Module) -> dict[str, int]:
    return {path: int(weight.count_nonzero()) for path, weight in prunable(module).items()}


# ------------------------------------------------------------------------------- which weights


def test_only_weights_of_linear_and_convolutional_layers_are_pruned() -> None:
    assert sizes_of(LeNet5()) == {
        "features.conv1": 150,
        "features.conv2": 2400,
        "classifier.linear1": 48_000,
        "classifier.linear2": 10_080,
        "classifier.linear3": 840,
    }
    paths = prunable(ResNet18())
    assert not any("norm" in path for path in paths)
    assert all(weight.ndim in {2, 4} for weight in paths.values())


def test_frozen_weights_stay_and_tied_ones_are_there_once() -> None:
    first, second, third = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
    second.weight = first.weight
    third.weight.requires_grad_(False)
    assert list(prunable(nn.Sequential(first, second, third))) == ["0"]
    assert list(prunable(first)) == [""]
    with pytest.raises(InputError, match="A Tanh has no trained weights of linear or conv"):
        prunable(nn.Tanh())


# ------------------------------------------------------------------------------------ budgets


def test_the_ends_of_lenet_keep_half() -> None:
    budgets = layer_budgets(sizes_of(LeNet5()), 16)
    assert sum(budgets.values()) == 61_470 // 16
    assert (budgets["features.conv1"], budgets["classifier.linear3"]) == (75, 420)
    between = [budgets[path] for path in list(budgets)[1:-1]]
    assert between == pytest.approx(
        [3346 * size / 60_480 for size in (2400, 48_000, 10_080)], abs=2
    )


def test_large_ends_take_no_more_than_half_and_the_small_one_is_served_first() -> None:
    sizes = {"first": 456_704, "second": 524_288, "third": 131_072, "last": 7_680}
    budgets = layer_budgets(sizes, 16)
    total = sum(sizes.values()) // 16
    assert sum(budgets.values()) == total
    assert budgets["last"] == 3_840
    assert budgets["first"] == total // 2 - 3_840
    assert budgets["second"] == pytest.approx(4 * budgets["third"], abs=4)


def test_budgets_are_uniform_where_that_is_asked_for_or_there_is_nothing_between() -> None:
    sizes = {"a": 1000, "b": 3000, "c": 4000}
    assert layer_budgets(sizes, 8, protect=False) == {"a": 125, "b": 375, "c": 500}
    assert layer_budgets({"a": 1000, "b": 3000}, 8) == {"a": 125, "b": 375}
    assert layer_budgets({"": 10}, 3) == {"": 3}
    assert layer_budgets(sizes, 1) == sizes
    assert layer_budgets({"a": 5, "b": 5, "c": 30}, 20, protect=False) == {"a": 0, "b": 0, "c": 2}
    # What the ends would take is not taken from those that have one weight.
    seven = dict.fromkeys("abcdefg", 20)
    assert layer_budgets(seven, 20) == dict.fromkeys(seven, 1)
    with pytest.raises(InputError, match="A ratio of 8001 leaves none of 8000 weights; give a low"):
        layer_budgets(sizes, 8001)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=7), st.floats(1, 60), st.booleans())
@settings(max_examples=150, deadline=None)
def test_budgets_add_up_and_fit(numbers: list[int], ratio: float, protect: bool) -> None:
    sizes = {str(place): size for place, size in enumerate(numbers)}
    total = int(sum(numbers) / ratio)
    if not total:
        with pytest.raises(InputError, match=f"leaves none of {sum(numbers)} weights"):
            layer_budgets(sizes, ratio, protect)
        return
    budgets, even = layer_budgets(sizes, ratio, protect), layer_budgets(sizes, ratio, False)
    assert list(budgets) == list(sizes)
    assert sum(budgets.values()) == total
    assert all(0 <= budgets[path] <= size for path, size in sizes.items())
    if total >= len(sizes):
        assert min(budgets.values()) >= 1
    for end in ("0", str(len(numbers) - 1)):
        assert budgets[end] >= even[end]
    ends = budgets["0"] + budgets[str(len(numbers) - 1)]
    if protect and len(numbers) > 2 and ends > even["0"] + even[str(len(numbers) - 1)]:
        assert ends <= total / 2


def test_budgets_that_were_given_are_checked() -> None:
    sizes = {"conv": 150, "linear": 20}
    assert checked_budgets(sizes, {"linear": 20}) == {"linear": 20}
    with pytest.raises(InputError, match="budget of the layer 'conv' is 151, and it has 150 weig"):
        checked_budgets(sizes, {"linear": 3, "conv": 151})
    with pytest.raises(InputError, match=r"the layer 'fc', which the network has not; .*conv, lin"):
        checked_budgets(sizes, {"fc": 3})


# --------------------------------------------------------------------------------- projection


def test_the_largest_of_equal_ones_are_those_of_the_lowest_index() -> None:
    weights = torch.tensor([[3, -1, 2, -2], [0.5, -4, 2, 0]])
    assert largest(weights, 4).tolist() == [[True, False, True, True], [False, True, False, False]]
    assert not largest(weights, 0).any()
    assert largest(weights, 8).all()


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.data())
@settings(max_examples=100, deadline=None)
def test_the_projection_is_the_nearest_point(values: list[int], data: st.DataObject) -> None:
    """Against a stable sort by magnitude."""
    number = data.draw(st.integers(0, len(values)))
    order = sorted(range(len(values)), key=lambda place: (-abs(values[place]), place))
    expected = [place in order[:number] for place in range(len(values))]
    assert largest(torch.tensor(values, dtype=torch.float32), number).tolist() == expected


@pytest.mark.parametrize("kind", ["drawn", "few different", "large where none is sampled", "zeros"])
@pytest.mark.parametrize("number", [1, 700, 9_000, 12_345, 20_000])
def test_a_sample_of_many_weights_leads_nobody_astray(kind: str, number: int) -> None:
    """It says where the largest are; also where it has seen none of them, or them alone."""
    n = 20_000
    weights = torch.from_numpy(np.random.default_rng(3).normal(size=n))
    step = n // SAMPLED + 1
    if kind == "few different":
        weights = weights.round()
    elif kind == "large where none is sampled":
        weights[::step] = 0.0
    elif kind == "zeros":
        weights[np.arange(n) % step != 0] = 0.0
    order = np.argsort(-weights.abs().numpy(), kind="stable")
    expected = np.zeros(n, dtype=bool)
    expected[order[:number]] = True
    np.testing.assert_array_equal(largest(weights, number).numpy(), expected)


# --------------------------------------------------------------------------------------- ADMM


def penalty_of(hooks: Hooks, layer: nn.Module) -> float:
    assert hooks.penalty is not None
    return hooks.penalty(layer, X, Y).item()


def test_one_round_by_hand() -> None:
    layer = nn.Linear(3, 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, -3.0, 2.0]]))
    splitting = Splitting(prunable(layer), {"": 2})
    assert splitting.Z[0].tolist() == [[0, -3, 2]]
    assert splitting.residual() == 1
    with splitting.at(0.5) as hooks:
        assert hooks.on_epoch is not None
        assert penalty_of(hooks, layer) == 0.25  # ρ/2 · 1²
        layer.weight.sum().backward()
        assert layer.weight.grad is not None
        assert layer.weight.grad.tolist() == [[1.5, 1, 1]]  # 1 + ρ(W − Z + U)
        layer.weight.sum().backward()  # without the penalty, its gradient does not come again
        assert layer.weight.grad.tolist() == [[2.5, 2, 2]]
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([[0.5, -3.0, 1.0]]))
        hooks.on_epoch(layer, 1, Figures(0.0))
        assert splitting.Z[0].tolist() == [[0, -3, 1]]
        assert splitting.U[0].tolist() == [[0.5, 0, 0]]
        assert penalty_of(hooks, layer) == pytest.approx(0.25 * 1.0)  # W − Z + U = 1
        hooks.on_epoch(layer, 2, Figures(0.0))
        # W + U = (1, −3, 1): of the two of magnitude 1 the first is taken now.
        assert splitting.Z[0].tolist() == [[1, -3, 0]]
        assert splitting.U[0].tolist() == [[0, 0, 1]]
    with splitting.at(5.0) as hooks:
        torch.testing.assert_close(splitting.U[0], torch.tensor([[0, 0, 0.1]]))
        # W − Z + U = (−.5, 0, 1.1)
        assert penalty_of(hooks, layer) == pytest.approx(2.5 * (0.25 + 1.21))
    layer.weight.grad = None
    layer.weight.sum().backward()  # the round is over
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[1, 1, 1]]


def test_a_round_is_training_with_the_penalty() -> None:
    """Against torch's own gradient of ρ/2‖W − Z + U‖², for two epochs."""
    stage, plain = stage_of(), stage_of()
    budgets = layer_budgets(sizes_of(stage.module), 4)
    splitting = Splitting(prunable(stage.module), budgets)
    with splitting.at(0.2) as hooks:
        history = stage.train(epochs=2, hooks=hooks)
    weights = list(prunable(plain.module).values())

    def projected(sums: list[Tensor]) -> list[Tensor]:
        pairs = zip(sums, budgets.values(), strict=True)
        return [one * largest(one, number) for one, number in pairs]

    U = [torch.zeros_like(W) for W in weights]
    Z = projected([W.detach() for W in weights])

    def penalty(module: nn.Module, X: object, y: Tensor) -> Tensor:
        parts = zip(weights, Z, U, strict=True)
        return torch.stack([(W - z + u).square().sum() for W, z, u in parts]).sum() * 0.1

    def update(module: nn.Module, epoch: int, figures: Figures) -> None:
        Z[:] = projected([W.detach() + u for W, u in zip(weights, U, strict=True)])
        U[:] = [u + W.detach() - z for u, W, z in zip(U, weights, Z, strict=True)]

    expected = plain.train(epochs=2, hooks=Hooks(penalty, None, update))
    for one, other in zip(stage.module.parameters(), plain.module.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    for pair in zip(history.epochs, expected.epochs, strict=True):
        assert pair[0].loss == pytest.approx(pair[1].loss, rel=1e-5)
    assert splitting.residual() > 0


@pytest.mark.parametrize(
    "updates",
    [Updates("adam", 0.01), Updates("sgd", 0.05, momentum=0.9), Updates("adagrad", 0.05)],
    ids=lambda one: one.name,
)
def test_what_is_pruned_is_zero_and_stays_so(updates: Updates) -> None:
    found: list[tuple[Pruned, list[Tensor]]] = []
    for _ in range(2):
        with repeatable():
            stage = stage_of(updates)
            stage.train()
            budgets = layer_budgets(sizes_of(stage.module), 4)
            assert left(stage.module) != budgets
            pruned = prune(stage, budgets, Schedule(epochs=4, retrain=5))
        assert [len(part.epochs) for part in stage.parts] == [10, 4, 4, 4, 5]
        assert left(stage.module) == budgets == pruned.budgets
        for path, weight in prunable(stage.module).items():
            gone = weight[~pruned.masks.kept[path]]
            assert not torch.signbit(gone).any()  # +0, no bit set
        found.append((pruned, [part.detach().clone() for part in stage.module.parameters()]))
    assert all(torch.equal(one, other) for one, other in zip(found[0][1], found[1][1], strict=True))
    assert found[0][0].residuals == found[1][0].residuals


def test_the_residual_falls_from_round_to_round() -> None:
    stage = stage_of(epochs=20)
    stage.train()
    budgets = layer_budgets(sizes_of(stage.module), 4)
    pruned = prune(stage, budgets, Schedule(epochs=10, retrain=0))
    first, second, third = pruned.residuals
    assert first > second > third > 0
    assert len(stage.parts) == 4  # no retraining
    assert left(stage.module) == budgets


def test_the_retrained_network_is_trained_on_what_is_left() -> None:
    stage = stage_of()
    stage.train()
    pruned = prune(stage, {"layers.linear2": 30}, Schedule(epochs=3, retrain=0))
    before = [part.detach().clone() for part in stage.module.parameters()]
    stage.train(epochs=5)
    after = list(stage.module.parameters())
    assert all(not torch.equal(one, other) for one, other in zip(before, after, strict=True))
    # Layers without a budget are whole; the others are held in whatever follows.
    assert left(stage.module) == {"layers.linear1": 120, "layers.linear2": 30, "layers.linear3": 36}
    stage.module = stage.fresh()
    stage.train(epochs=1)
    mask = pruned.masks.kept["layers.linear2"]
    assert torch.equal(prunable(stage.module)["layers.linear2"] != 0, mask)


def test_pruning_does_not_stop_early() -> None:
    stage = stage_of(epochs=3)
    stage.settings = Training(Updates("adam", 0.01), 3, 16, stop_at_accuracy=0.01)
    stage.train()
    prune(stage, layer_budgets(sizes_of(stage.module), 2), Schedule((0.1,), 2, 2))
    assert [len(part.epochs) for part in stage.parts] == [1, 2, 2]


def test_masks_of_a_single_layer() -> None:
    layer = nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[-1.0, -0.5]]))
    for one in (layer, layer.double()):
        masks = Masks.of_largest(prunable(one), {"": 1})
        masks.hold(one)
        assert one.weight.tolist() == [[-1, 0]]
        assert not torch.signbit(one.weight[0, 1])
        assert masks.kept[""].tolist() == [[True, False]]
