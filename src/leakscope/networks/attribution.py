"""Explanations of torch modules: weights of their logits followed back to the features.

Shapes: n records (n, …), k logits; a module of one number per record has one logit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.errors import ModelError
from leakscope.networks.endings import kind_of_outputs
from leakscope.networks.relevance import Rules, unseen_call
from leakscope.networks.tracing import evaluating, failing_step, first_not_finite
from leakscope.protocols import Floats

# Features in a batch: large enough for fast products, small enough for the layers of a network of
# images to stay in memory while they are followed back.
_FEATURES = 2**20
# Records by whose answers probabilities are told from logits.
_PROBE = 4


def follow_back(
    module: nn.Module,
    X: NDArray[Any],
    weigh: Callable[[Floats, Floats, slice], Floats],
    rule: Literal["gradient", "lrp", "deeplift"] = "gradient",
    baseline: NDArray[Any] | None = None,
    epsilon: float = 1e-6,
    numbers: bool = False,
) -> Floats:
    """What each feature does to a weighted sum of logits, in the shape of X (n, …).

    weigh: from the logits (r, k) of some records, those of the baseline (1 or r, k) and which
    records they are, to the weight of each logit, (r, k). rule: the gradient itself, or the
    relevance of LRP's ε-rule, or the contribution of DeepLIFT's rescale rule against the baseline
    (1 or n, …), zeros by default.
    numbers: the module's outputs are what is explained; else they are logits, or probabilities
    that are made of logits by a softmax. It is asked in evaluation mode and left as it was.
    """
    _refuse_compiled(module, rule)
    size = int(np.clip(_FEATURES // max(1, X[:1].size), 64, 4096))
    start = np.zeros((1, *X.shape[1:])) if baseline is None else baseline
    found = np.empty(X.shape, dtype=np.float64)
    with evaluating(module):
        for first in range(0, len(X), size):
            rows = slice(first, first + size)
            batch = start if len(start) == 1 else start[rows]
            weights = _of_rows(weigh, rows)
            part = _attributed(module, X[rows], weights, rule, batch, epsilon, numbers)
            found[rows] = part.cpu().numpy()
            if not torch.isfinite(part.sum()):  # far cheaper than to look at each number
                _refuse_missing(module, X, found, rows)
    return found


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
    rule: Literal["gradient", "lrp", "deeplift"],
    baseline: NDArray[Any],
    epsilon: float,
    numbers: bool,
) -> Tensor:
    """The attributions of one batch."""
    inputs = as_inputs(module, X).requires_grad_()
    before, start, start_logits = None, None, None
    if rule == "deeplift":
        before = Rules(rule)
        start = as_inputs(module, baseline).requires_grad_()
        start_logits = _logits(module, start, before, numbers)
    logits = _logits(module, inputs, Rules(rule, epsilon, before), numbers)
    weights = weigh(_numbers(logits), _numbers(logits if start_logits is None else start_logits))
    unseen = None if rule == "gradient" else unseen_call(logits)
    if unseen is not None:
        raise ModelError(
            f"{type(module).__name__} calls its own autograd function {unseen}, inside which "
            f"{rule} cannot see; explain it by gradient, integrated-gradients or smoothgrad"
        )
    seeds = torch.as_tensor(weights, dtype=logits.dtype, device=logits.device)
    try:
        (gradient,) = torch.autograd.grad(logits, inputs, seeds)
    except RuntimeError as error:
        raise ModelError(
            f"{type(module).__name__} cannot be followed back to its features: {_line(error)}"
        ) from error
    if rule == "gradient":
        return gradient
    return gradient * (inputs if start is None else inputs - start).detach()


def as_inputs(module: nn.Module, X: NDArray[Any]) -> Tensor:
    """Features as a tensor of the module's own precision, where the module is."""
    own = next((one for one in module.parameters() if one.is_floating_point()), torch.zeros(1))
    # Copied, as a module may work in place and the features belong to the records.
    return torch.from_numpy(np.ascontiguousarray(X)).to(own.device, own.dtype, copy=True)


def _logits(module: nn.Module, inputs: Tensor, rules: Rules, numbers: bool) -> Tensor:
    """The logits or numbers (n, k)."""
    name = type(module).__name__
    try:
        with rules:
            result = _answer(module, inputs, fixed=rules.rule != "gradient")
    except Exception as error:  # whatever a layer of the user's may raise
        place = _failing_place(module, inputs, rules)
        raise ModelError(
            f"{name} cannot be explained, it fails in {place}: {_line(error)}"
        ) from error
    if not isinstance(result, Tensor) or result.shape[:1] != inputs.shape[:1]:
        got = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
        raise ModelError(f"{name} must answer with one row per record to be explained, got {got}")
    logits = result if numbers else rules.logits(result)
    if (
        logits is result
        and not numbers
        and kind_of_outputs(result[:_PROBE]) not in {"logits", None}
    ):
        raise ModelError(
            f"{name} answers with probabilities whose logits cannot be found; let it end in its "
            "softmax, or give logits"
        )
    return logits.reshape(len(logits), -1)


def _answer(module: nn.Module, inputs: Tensor, fixed: bool) -> object:
    """What the module says; with fixed parameters only what depends on the inputs has gradients."""
    if not fixed:
        return module(inputs)
    parameters = {name: one.detach() for name, one in module.named_parameters()}
    answer: object = torch.func.functional_call(module, parameters, (inputs,))
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


def _refuse_missing(module: nn.Module, X: NDArray[Any], found: Floats, rows: slice) -> None:
    """One sentence with the layer if an explanation is not a number."""
    flat = found[rows].reshape(len(found[rows]), -1)
    missing = np.flatnonzero(~np.isfinite(flat).all(axis=1))
    if len(missing):
        record = rows.start + int(missing[0])
        raise ModelError(
            f"The explanation of record {record} (counting from 0) is not finite, "
            f"{_broken_layer(module, X[record : record + 1])}; scale the features, or leave it out"
        )


def _broken_layer(module: nn.Module, X: NDArray[Any]) -> str:
    """Which layer gives a number that is not finite, forwards or, if none does, backwards."""
    inputs = as_inputs(module, X).requires_grad_()
    forwards = first_not_finite(module, lambda: module(inputs))
    if forwards is not None:
        return f"as {forwards.place} is not"
    outputs: list[tuple[nn.Module, Tensor]] = []
    handles = [
        layer.register_forward_hook(lambda *call: outputs.append((call[0], call[2])))
        for layer in module.modules()
        if not list(layer.children())
    ]
    try:
        result = module(inputs)
    finally:
        for handle in handles:
            handle.remove()
    gradients = torch.autograd.grad(result.sum(), [one for _, one in outputs])
    names = {layer: name for name, layer in module.named_modules()}
    # Backwards the last gradient that is finite comes out of the layer in which it gets lost.
    for (layer, _), gradient in zip(outputs, gradients, strict=True):
        if torch.isfinite(gradient).all():
            return f"as the gradient of the layer {names[layer]!r} ({type(layer).__name__}) is not"
    return "as its gradient is not"


def _refuse_compiled(module: nn.Module, rule: str) -> None:
    """Compiled layers make calls that no rule can see."""
    for name, layer in module.named_modules():
        if rule != "gradient" and isinstance(layer, torch.jit.ScriptModule):
            raise ModelError(
                f"The layer {name!r} ({type(layer).__name__}) is compiled, and {rule} cannot see "
                "inside it; hand over the module as it was before torch.jit"
            )


def _numbers(logits: Tensor) -> Floats:
    return np.asarray(logits.detach().cpu().numpy(), dtype=np.float64)


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")
