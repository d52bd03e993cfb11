from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from leakscope.networks.tracing import (
    Step,
    alike,
    beginning,
    evaluating,
    failing_step,
    failure,
    first_difference,
    first_mixing,
    first_not_finite,
    hookable,
    last_layer,
    reason,
)

X = torch.arange(6.0).reshape(2, 3)


class Chain(nn.Module):
    """Two layers, and something between them that is no layer."""

    def __init__(self, between: Any) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.body = nn.Sequential(nn.ReLU(), nn.Linear(3, 2))
        self.between = between

    def forward(self, x: Tensor) -> Any:
        return self.body(self.between(self.first(x)))


def fail(x: Tensor) -> Tensor:
    raise RuntimeError("no")


class Failing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return fail(x)


def asked(module: nn.Module, inputs: Any = X) -> partial[Any]:
    return partial(module, inputs)


def place(step: Step | None) -> str:
    assert step is not None
    return step.place


def test_every_mode_is_restored_also_after_an_error() -> None:
    module = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(), nn.Linear(3, 2))
    module[0].eval()  # a frozen layer in a module that is being trained
    with evaluating(module):
        assert not any(layer.training for layer in module.modules())
    assert [layer.training for layer in module.modules()] == [True, False, True, True]
    with pytest.raises(RuntimeError, match="no"), evaluating(module):
        fail(X)
    assert [layer.training for layer in module.modules()] == [True, False, True, True]


def test_a_module_in_evaluation_mode_is_left_alone() -> None:
    class Counting(nn.Linear):
        calls = 0

        def train(self, mode: bool = True) -> Counting:
            Counting.calls += 1
            return super().train(mode)

    module = Counting(3, 2).eval()
    with evaluating(module):
        assert Counting.calls == 1
    assert Counting.calls == 1
    module.train()
    with evaluating(module):  # one that does something of its own is told of both changes
        assert Counting.calls == 3
    assert Counting.calls == 4
    assert module.training


def test_the_innermost_layer_that_fails_is_found() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.ReLU(), Failing()), nn.Linear(3, 1))
    step = failing_step(module, asked(module))
    assert place(step) == "the input of the layer '1.1' (Failing)"
    assert step is not None
    assert [tuple(tensor.shape) for tensor in step.tensors] == [(2, 3)]
    assert failing_step(module[0], asked(module[0])) is None


def test_a_step_in_a_sentence() -> None:
    step = Step("0.1", "Linear", "input", (X, X[:1]))
    assert failure(step) == ", in the layer '0.1' (Linear), which was given (2, 3), (1, 3)"
    assert (
        failure(Step("0", "Odd", "input", ()))
        == ", in the layer '0' (Odd), which was given nothing"
    )
    assert failure(Step("", "Net", "input", (X,))) == failure(None) == beginning(None) == ""
    assert beginning(step) == ", first at the input of the layer '0.1' (Linear)"


def test_what_fails_between_layers_or_before_them() -> None:
    between = Chain(fail)
    assert place(failing_step(between, asked(between))) == "the input of the module itself"
    assert failing_step(between, partial(fail, X)) is None


def test_the_first_layer_that_gives_nan_is_found() -> None:
    module = Chain(nn.Identity())
    with torch.no_grad():
        module.body[1].weight[0, 0] = torch.inf  # type: ignore[index, operator]
    assert place(first_not_finite(module, asked(module))) == "the layer 'body.1' (Linear)"
    for between in (torch.log, lambda x: x / 0):
        module = Chain(lambda x, between=between: between(-x.abs()))
        found = place(first_not_finite(module, asked(module)))
        assert found == "the input of the layer 'body' (Sequential)"
    healthy = Chain(torch.tanh)
    assert first_not_finite(healthy, asked(healthy)) is None
    step = first_not_finite(healthy, asked(healthy, X * torch.nan))
    assert place(step) == "the input of the module itself"


def test_what_a_layer_does_in_place_is_its_own() -> None:
    class Spoiling(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.mul_(torch.nan)

    module = nn.Sequential(nn.Linear(3, 3), Spoiling())
    with torch.no_grad():
        assert place(first_not_finite(module, asked(module))) == "the layer '1' (Spoiling)"


def test_the_first_place_where_two_runs_differ_is_found() -> None:
    torch.manual_seed(0)
    module = Chain(lambda x: functional.dropout(x, training=True)).eval()
    found = place(first_difference(module, asked(module)))
    assert found == "the input of the layer 'body' (Sequential)"
    layered = nn.Sequential(nn.Linear(3, 64), nn.Dropout(), nn.Linear(64, 2))
    assert place(first_difference(layered, asked(layered))) == "the layer '1' (Dropout)"
    assert first_difference(layered.eval(), asked(layered)) is None


def test_the_first_place_where_records_are_mixed_is_found() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, track_running_stats=False), nn.ReLU())
    many = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    module.eval()
    found = first_mixing(module, asked(module, many), asked(module, many[:2]))
    assert place(found) == "the layer '1' (BatchNorm1d)"
    apart = nn.Sequential(module[0], nn.LayerNorm(4))
    assert first_mixing(apart, asked(apart, many), asked(apart, many[:2])) is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_layers_of_torch_script_are_not_looked_into() -> None:
    scripted = torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    module = nn.Sequential(scripted, nn.Linear(2, 2))
    assert [name for name, _ in hookable(module)] == ["", "1"]
    assert place(failing_step(module, asked(module))) == "the input of the layer '1' (Linear)"
    assert failing_step(scripted, asked(scripted, X[:, :2])) is None
    with pytest.raises(RuntimeError) as caught:
        scripted(X[:, :2])
    assert reason(caught.value) == "mat1 and mat2 shapes cannot be multiplied (2x2 and 3x3)"


def test_what_an_error_says_is_one_line() -> None:
    assert reason(ValueError("Too short.\nSee there.")) == "Too short"
    assert reason(KeyError()) == "KeyError"


def test_a_layer_that_is_not_always_used_is_a_difference() -> None:
    class Coin(nn.Module):
        turn = False

        def __init__(self) -> None:
            super().__init__()
            self.heads, self.tails = nn.Linear(3, 2), nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Any:
            self.turn = not self.turn
            return (self.heads if self.turn else self.tails)(x)

    module = Coin()
    assert (
        place(first_difference(module, asked(module))) == "the input of the layer 'heads' (Linear)"
    )


def test_the_layer_that_is_last() -> None:
    module = Chain(torch.tanh)
    assert last_layer(module, asked(module)) == "the layer 'body.1' (Linear)"
    assert last_layer(nn.Linear(3, 2), asked(nn.Linear(3, 2))) == "the module itself"


def test_layers_may_give_several_tensors_or_none() -> None:
    class Several(nn.Module):
        def forward(self, x: Tensor) -> dict[str, Any]:
            return {"a": [x, x * torch.nan], "b": "text"}

    class Taking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.several = Several()

        def forward(self, x: Tensor) -> Any:
            return self.several(x)["a"][0]

    module = Taking()
    assert place(first_not_finite(module, asked(module))) == "the layer 'several' (Several)"


def test_no_hook_is_left() -> None:
    module = nn.Sequential(nn.Linear(3, 3), Failing())
    failing_step(module, asked(module))
    with pytest.raises(RuntimeError, match="no"):
        first_not_finite(module, asked(module))
    for layer in module.modules():
        assert not layer._forward_hooks
        assert not layer._forward_pre_hooks


def test_alike_but_for_rounding() -> None:
    one = torch.tensor([[1.0, -5.0], [torch.nan, torch.inf]])
    assert alike(one, one + 1e-5)
    assert not alike(one, one * torch.tensor([[1.0, 1.01], [1.0, 1.0]]))
    assert not alike(one, one[:1])
    assert alike(torch.zeros(0, 2), torch.zeros(0, 2))
