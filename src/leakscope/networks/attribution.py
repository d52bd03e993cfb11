"""Explanations of torch modules: weights of their logits followed back to the features.

Shapes: n records (n, …), k logits; a module of one number per record has one logit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.errors import ModelError
from leakscope.networks.asking import type_and_device, with_rows
from leakscope.networks.endings import Kind, kind_of_outputs
from leakscope.networks.relevance import Rule, Rules
from leakscope.networks.slopes import unseen_call
from leakscope.networks.tracing import (
    evaluating,
    failing_step,
    first_not_finite,
    hookable,
    reason,
)
from leakscope.protocols import Floats

# Features in a batch: large enough for fast products, small enough for the layers of a network of
# images to stay in memory while they are followed back.
_FEATURES = 2**20
# Records by whose answers probabilities are told from logits.
_PROBE = 4
# By how much contributions may miss what they should add up to: of their own size, and in steps of
# rounding of the outputs, which deep networks make many of.
_MISSED, _ROUNDED = 1e-2, 1e4


def follow_back(
    module: nn.Module,
    X: NDArray[Any],
    weigh: Callable[[Floats, Floats, slice], Floats],
    rule: Rule = "gradient",
    baseline: NDArray[Any] | None = None,
    epsilon: float = 1e-6,
    kind: Kind | None = None,
) -> Floats:
    """What each feature does to a weighted sum of logits, in the shape of X (n, …).

    weigh: from the logits (r, k) of some records, those of the baseline (1 or r, k) and which
    records they are, to the weight of each logit, (r, k). rule: the gradient itself, or the
    relevance of LRP's ε-rule, or the contribution of DeepLIFT's rescale rule against the baseline
    (1 or n, …), zeros by default.
    kind: what the module's outputs are, by default what they look like; logits are explained as
    they are, as are the numbers of a regression, and those of probabilities are looked for. It is
    asked in evaluation mode and left as it was.
    """
    _refuse_compiled(module, rule)
    size = int(np.clip(_FEATURES // max(1, X[:1].size), 64, 4096))
    start = np.zeros((1, *X.shape[1:])) if baseline is None else baseline
    parts: list[Floats] = []
    # Also where the caller has switched gradients off.
    with torch.inference_mode(False), torch.enable_grad(), evaluating(module):
        for first in range(0, len(X), size):
            rows = slice(first, first + size)
            batch = start if len(start) == 1 else start[rows]
            weights = _of_rows(weigh, rows)
            part = _attributed(module, X[rows], weights, rule, batch, epsilon, kind)
            if not torch.isfinite(part.sum()):  # far cheaper than to look at each number
                _refuse_missing(module, X, part.numpy(), first)
            parts.append(part.numpy())
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty((0, *X.shape[1:])), *parts])


def inputs_of(module: nn.Module) -> int | None:
    """How many features the first layer takes, where that can be told."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            return layer.in_features
        if isinstance(layer, nn.modules.conv._ConvNd):
            return None
    return None


def _of_rows(
    weigh: Callable[[Floats, Floats, slice], Floats], rows: slice
) -> Callable[[Floats, Floats], Floats]:
    return lambda logits, start: weigh(logits, start, rows)


def _attributed(
    module: nn.Module,
    X: NDArray[Any],
    weigh: Callable[[Floats, Floats], Floats],
    rule: Rule,
    baseline: NDArray[Any],
    epsilon: float,
    kind: Kind | None,
) -> Tensor:
    """The attributions of one batch."""
    inputs = _features(X)
    if rule != "deeplift":
        logits = _logits(module, inputs, Rules(rule, epsilon), kind)
        numbers = _numbers(logits)
        gradient = _gradient(module, logits, inputs, weigh(numbers, numbers), rule)
        return gradient if rule == "gradient" else gradient * inputs.detach()
    start, before = _features(baseline), Rules(rule)
    start_logits = _logits(module, start, before, kind)
    try:
        logits = _logits(module, inputs, Rules(rule, epsilon, before), kind)
    except ModelError:
        if len(baseline) == len(X):
            raise
        # A module that has other things than records in its rows needs a baseline for each.
        many = np.repeat(baseline, len(X), axis=0)
        return _attributed(module, X, weigh, rule, many, epsilon, kind)
    ends, starts = _numbers(logits), _numbers(start_logits)
    weights = weigh(ends, starts)
    gradient = _gradient(module, logits, inputs, weights, rule)
    found = gradient * (inputs - start).detach()
    _refuse_incomplete(module, found, weights, ends, starts)
    return found


def _gradient(
    module: nn.Module, logits: Tensor, inputs: Tensor, weights: Floats, rule: Rule
) -> Tensor:
    """The slope of the weighted sum of logits by the inputs, (r, …)."""
    name = type(module).__name__
    unseen = None if rule == "gradient" else unseen_call(logits)
    if unseen is not None:
        raise ModelError(
            f"{name} calls {unseen} in a way that {rule} cannot see; explain it by gradient, "
            "integrated-gradients or smoothgrad"
        )
    seeds = torch.as_tensor(weights, dtype=logits.dtype, device=logits.device)
    gradient: Tensor | None = None
    try:
        if logits.requires_grad:
            (gradient,) = torch.autograd.grad(logits, inputs, seeds, allow_unused=True)
    except RuntimeError as error:
        raise ModelError(
            f"{name} cannot be followed back to its features: {reason(error)}"
        ) from error
    if gradient is None:
        raise ModelError(
            f"{name} cannot be followed back to its features: what it answers does not depend on "
            "them, or is computed where torch keeps no gradients"
        )
    return gradient


def _logits(module: nn.Module, inputs: Tensor, rules: Rules, kind: Kind | None) -> Tensor:
    """The logits or numbers (n, k)."""
    name = type(module).__name__
    try:
        # Of logits no rule is needed to follow gradients.
        with nullcontext() if (rules.rule, kind) == ("gradient", "logits") else rules:
            result = _answer(module, inputs, fixed=rules.rule != "gradient")
    except Exception as error:  # whatever a layer of the user's may raise
        place = _failing_place(module, inputs, rules)
        raise ModelError(
            f"{name} cannot be explained, it fails in {place}: {reason(error)}"
        ) from error
    if not isinstance(result, Tensor):
        raise ModelError(
            f"{name} must answer with one row per record to be explained, got "
            f"{type(result).__name__}"
        )
    logits = result if kind == "logits" else rules.logits(result)
    found, rows = logits is not result, with_rows(logits, len(inputs))
    if rows.shape[:1] != inputs.shape[:1]:
        raise ModelError(
            f"{name} must answer with one row per record to be explained, got {tuple(rows.shape)}"
        )
    if not found and _hides_logits(rows, kind or kind_of_outputs(rows[:_PROBE])):
        raise ModelError(
            f"{name} answers with probabilities whose logits cannot be found; let it end in its "
            "softmax, or give logits"
        )
    return rows.reshape(len(rows), -1)


def _hides_logits(answer: Tensor, kind: Kind | None) -> bool:
    """Whether answers (n,) or (n, k) are none; the logarithms of all probabilities are."""
    alone = answer.ndim == 1 or answer.shape[1] == 1
    return kind == "probabilities" or (kind == "log-probabilities" and alone)


def _refuse_incomplete(
    module: nn.Module, found: Tensor, weights: Floats, ends: Floats, starts: Floats
) -> None:
    """Contributions (r, …) of which all calls were seen add up to the rise of the output.

    That is the weighted sum (r, k) of the logits' differences from those of the baseline.
    """
    parts = found.flatten(1)
    missed = np.abs(parts.sum(dim=1).numpy() - (weights * (ends - starts)).sum(axis=1))
    sizes = parts.abs().sum(dim=1).numpy()
    outputs = (np.abs(weights) * (np.abs(ends) + np.abs(starts))).sum(axis=1)
    dtype, _ = type_and_device(module)
    rounding = _ROUNDED * torch.finfo(dtype).eps
    if (missed > _MISSED * sizes + rounding * outputs).any():
        raise ModelError(
            f"{type(module).__name__} does something that deeplift cannot see, as contributions do "
            "not add up to the difference from the baseline; explain it by gradient, "
            "integrated-gradients or smoothgrad"
        )


def _answer(module: nn.Module, inputs: Tensor, fixed: bool) -> object:
    """What the module says; with fixed parameters only what depends on the inputs has gradients.

    It is given a copy, since what a gradient is asked for cannot be worked on in place, and the
    features belong to the records.
    """
    dtype, device = type_and_device(module)
    given = inputs.to(device, dtype, copy=True)
    if not fixed:
        return module(given)
    parameters = {name: one.detach() for name, one in module.named_parameters()}
    answer: object = torch.func.functional_call(module, parameters, (given,))
    return answer


def _failing_place(module: nn.Module, inputs: Tensor, rules: Rules) -> str:
    """The layer in which the same forward pass fails."""

    def run() -> None:
        # A baseline is followed without another: whether a call has a rule is seen all the same.
        with Rules(rules.rule, rules.epsilon):
            _answer(module, inputs, fixed=rules.rule != "gradient")

    step = failing_step(module, run)
    if step is None or not step.layer:
        return "its forward"
    return f"the layer {step.layer!r} ({step.kind})"


def _refuse_missing(module: nn.Module, X: NDArray[Any], part: Floats, first: int) -> None:
    """One sentence with the layer if an explanation, of the records from first on, is no number."""
    missing = np.flatnonzero(~np.isfinite(part.reshape(len(part), -1)).all(axis=1))
    if len(missing):
        record = first + int(missing[0])
        raise ModelError(
            f"The explanation of record {record} (counting from 0) is not finite, "
            f"{_broken_layer(module, X[record : record + 1])}; scale the features, or leave it out"
        )


def _broken_layer(module: nn.Module, X: NDArray[Any]) -> str:
    """Which layer gives a number that is not finite, forwards or, if none does, backwards."""
    inputs = _features(X)
    forwards = first_not_finite(module, lambda: _answer(module, inputs, fixed=False))
    if forwards is not None:
        return f"as {forwards.place} is not"
    outputs: list[tuple[str, Tensor]] = []

    def note(layer: nn.Module, _: object, output: object) -> None:
        if isinstance(output, Tensor) and output.requires_grad:
            outputs.append((names[layer], output))

    leaves = [one for one in hookable(module) if not list(one[1].children())]
    names = {layer: f"{name!r} ({type(layer).__name__})" for name, layer in leaves}
    handles = [layer.register_forward_hook(note) for _, layer in leaves]
    try:
        result = _answer(module, inputs, fixed=False)
    finally:
        for handle in handles:
            handle.remove()
    assert isinstance(result, Tensor)  # it has been explained
    tensors = [one for _, one in outputs]
    gradients: Sequence[Tensor | None] = (
        torch.autograd.grad(result.sum(), tensors, allow_unused=True) if tensors else ()
    )
    # Backwards the last gradient that is finite comes out of the layer in which it gets lost.
    for (layer, _), gradient in zip(outputs, gradients, strict=True):
        if gradient is not None and torch.isfinite(gradient).all():
            return f"as the gradient of the layer {layer} is not"
    return "as its gradient is not"


def _refuse_compiled(module: nn.Module, rule: str) -> None:
    """Compiled layers make calls that no rule can see."""
    for name, layer in module.named_modules():
        scripted = isinstance(layer, torch.jit.ScriptModule)
        # What torch.compile makes of a module, and what module.compile() does to it.
        compiled = hasattr(layer, "_orig_mod") or layer._compiled_call_impl is not None
        if rule != "gradient" and (scripted or compiled):
            place = f"The layer {name!r}" if name else "The module itself"
            raise ModelError(
                f"{place} ({type(layer).__name__}) is compiled, and {rule} cannot see inside it; "
                f"hand over the module as it was before torch.{'jit' if scripted else 'compile'}"
            )


def _features(X: NDArray[Any]) -> Tensor:
    """Features (r, …) in double precision, from which a gradient is asked for."""
    # torch wants an array that is not read backwards and that could be written to.
    return torch.from_numpy(np.require(X, np.float64, ("C", "W"))).requires_grad_()


def _numbers(logits: Tensor) -> Floats:
    return np.asarray(logits.detach().double().cpu().numpy())
