"""What happens inside a module while it answers: the layer that fails, or first goes wrong.

Layers are watched by hooks, which are taken away afterwards. A step is a tensor on its way into a
layer or out of it, so that also what a module does between its layers is found, by the layer that
gets it next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

# Two runs of one batch on one device differ by rounding at the most, dropout by far more.
TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class Step:
    """The tensors that go into a layer, or come out of it; the module itself has no name."""

    layer: str
    kind: str
    side: Literal["input", "output"]
    tensors: tuple[Tensor, ...]

    @property
    def place(self) -> str:
        """Where this is, for a sentence."""
        if not self.layer:
            return f"the {self.side} of the module itself"
        into = "the input of " if self.side == "input" else ""
        return f"{into}the layer {self.layer!r} ({self.kind})"


def failure(step: Step | None) -> str:
    """For a sentence: the layer in which a module failed, and on tensors of what shape."""
    if step is None or not step.layer:
        return ""
    shapes = ", ".join(str(tuple(tensor.shape)) for tensor in step.tensors) or "nothing"
    return f", in the layer {step.layer!r} ({step.kind}), which was given {shapes}"


def reason(error: BaseException) -> str:
    """For a sentence: what an error says, in one line without a closing full stop."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    # TorchScript says what happened at the end of a traceback of its own.
    told = lines[-1] if "TorchScript" in lines[0] else lines[0]
    return told.removeprefix("RuntimeError: ").rstrip(".")


def beginning(step: Step | None) -> str:
    """For a sentence: where something began."""
    return "" if step is None else f", first at {step.place}"


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while; then every layer is in its former mode, whatever happened."""
    modes = [(layer, layer.training) for layer in module.modules()]
    if not any(training for _, training in modes):
        yield
        return
    former = module.training
    try:
        module.eval()
        yield
    finally:
        module.train(former)  # some modules do more than to set the flag
        for layer, training in modes:
            layer.training = training


def failing_step(module: nn.Module, run: Callable[[], Any]) -> Step | None:
    """The innermost layer in which ``run``, which asks the module, raises; None if it does not."""
    entered: list[Step] = []

    def enter(step: Step) -> None:
        if step.side == "input":
            entered.append(step)
        else:
            entered.pop()

    with _watched(module, enter):
        try:
            run()
        except Exception:  # whatever a layer raises, it is the place that is wanted
            return entered[-1] if entered else None
    return None


def first_not_finite(module: nn.Module, run: Callable[[], Any]) -> Step | None:
    """The first step at which a tensor holds NaN or an infinite number."""
    return next((step for step in _steps(module, run) if not _finite(step)), None)


def first_difference(module: nn.Module, run: Callable[[], Any]) -> Step | None:
    """The first step at which two runs with the same input differ."""
    first, second = _steps(module, run), _steps(module, run)
    pairs = zip(first, second, strict=False)
    return next((one for one, other in pairs if not _alike(one, other)), None)


def first_mixing(
    module: nn.Module, run: Callable[[], Any], run_few: Callable[[], Any]
) -> Step | None:
    """The first step at which the first record differs between a run of all and a run of few."""
    pairs = zip(_steps(module, run), _steps(module, run_few), strict=False)
    first = ((_first_row(one), _first_row(few)) for one, few in pairs)
    return next((one for one, few in first if not _alike(one, few)), None)


def last_layer(module: nn.Module, run: Callable[[], Any]) -> str:
    """The layer that is finished last before the module itself is, for a sentence."""
    outputs = [step for step in _steps(module, run) if step.side == "output" and step.layer]
    # What holds the last layer is finished after it: the innermost is the one that is meant.
    inner = [step for step in outputs if not _holds_another(step, outputs)]
    return inner[-1].place if inner else "the module itself"


def alike(one: Tensor, other: Tensor) -> bool:
    """Whether two answers of the same shape are equal but for rounding."""
    if one.shape != other.shape:
        return False
    scale = float(one.abs().nan_to_num(posinf=0.0).max()) if one.numel() else 0.0
    return torch.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True)


def _holds_another(step: Step, steps: list[Step]) -> bool:
    return any(other.layer.startswith(f"{step.layer}.") for other in steps)


def _steps(module: nn.Module, run: Callable[[], Any]) -> list[Step]:
    steps: list[Step] = []
    with _watched(module, steps.append):
        run()
    return steps


@contextmanager
def _watched(module: nn.Module, tell: Callable[[Step], None]) -> Iterator[None]:
    handles = []
    for name, layer in hookable(module):
        kind = type(layer).__name__

        def before(_: nn.Module, inputs: Any, name: str = name, kind: str = kind) -> None:
            tell(Step(name, kind, "input", _tensors(inputs)))

        def after(
            _: nn.Module, inputs: Any, output: Any, name: str = name, kind: str = kind
        ) -> None:
            tell(Step(name, kind, "output", _tensors(output)))

        handles += [layer.register_forward_pre_hook(before), layer.register_forward_hook(after)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def hookable(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The layers that hooks can be put on, with their names: those of TorchScript take none."""
    for name, layer in module.named_modules():
        if not isinstance(layer, torch.jit.ScriptModule):
            yield name, layer


def _tensors(values: Any) -> tuple[Tensor, ...]:
    """The tensors of a layer's inputs or outputs, which may be one, several or none."""
    if isinstance(values, Tensor):
        # A copy: a layer may work in place on what it is given.
        return (values.detach().clone(),)
    if isinstance(values, dict):
        values = tuple(values.values())
    if isinstance(values, tuple | list):
        return tuple(tensor for value in values for tensor in _tensors(value))
    return ()


def _first_row(step: Step) -> Step:
    return replace(step, tensors=tuple(tensor[:1] for tensor in step.tensors if tensor.ndim))


def _finite(step: Step) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in step.tensors)


def _alike(one: Step, other: Step) -> bool:
    same = len(one.tensors) == len(other.tensors) and one.layer == other.layer
    pairs = zip(one.tensors, other.tensors, strict=False)
    return same and all(alike(first.double(), second.double()) for first, second in pairs)
