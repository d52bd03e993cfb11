"""Layer-wise rules of explanation for torch modules: LRP's ε-rule and DeepLIFT's rescale rule.

Both are gradients in which each nonlinearity f(z) has another slope (Ancona et al. 2018,
propositions 1 and 2): f(z)/z for LRP, (f(z) − f(z₀))/(z − z₀) for DeepLIFT against a baseline z₀.
Every call a forward pass makes, of a layer or of a function, goes through ``Rules``; the module is
not changed, may use a layer twice, flatten where it likes and end in a softmax. A call with no
known rule is refused, as a slope left alone would be a wrong explanation that looks like one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from leakscope.errors import ModelError

Rule = Literal["gradient", "lrp", "deeplift"]

# Linear in the record, up to a constant: LRP divides by their results.
LINEAR = frozenset({
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "batch_norm", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "mean", "matmul", "mm",
    "bmm", "addmm", "baddbmm", "mul", "__mul__", "__rmul__", "mul_", "div", "__truediv__",
    "true_divide", "__rmatmul__", "__matmul__",
})  # fmt: skip
# Numbers moved about or added up, in which a rule has nothing to change.
MOVED = frozenset({
    "flatten", "unflatten", "view", "reshape", "permute", "transpose", "squeeze", "unsqueeze",
    "movedim", "t", "contiguous", "clone", "to", "float", "double", "type_as", "expand",
    "expand_as", "repeat", "pad", "cat", "concat", "stack", "chunk", "split", "__getitem__",
    "unbind", "narrow", "add", "add_", "__add__", "__radd__", "__iadd__", "sub", "__sub__",
    "sub_", "__rsub__", "rsub", "neg", "__neg__", "sum", "dropout", "dropout1d", "dropout2d",
    "dropout3d", "alpha_dropout", "feature_dropout",
})  # fmt: skip
# One number in, one number out.
NONLINEAR = frozenset({
    "relu", "relu_", "relu6", "hardtanh", "tanh", "tanh_", "sigmoid", "sigmoid_", "elu", "selu",
    "celu", "leaky_relu", "gelu", "silu", "mish", "softplus", "hardswish", "hardsigmoid",
    "softsign", "logsigmoid", "exp", "sin", "cos", "square", "sqrt", "abs", "clamp",
})  # fmt: skip
POOLED: Mapping[str, Callable[..., tuple[Tensor, Tensor]]] = {
    "max_pool1d": functional.max_pool1d_with_indices,
    "max_pool2d": functional.max_pool2d_with_indices,
    "max_pool3d": functional.max_pool3d_with_indices,
}
# Where a module turns its logits into probabilities.
ENDS = frozenset({"softmax", "log_softmax", "sigmoid", "logsigmoid"})

# What may come after that and leaves the numbers as they are, or keeps them in bounds.
AFTER = frozenset({"clamp", "contiguous", "double", "flatten", "float", "reshape", "squeeze", "to",
                   "unsqueeze", "view"})  # fmt: skip

_CLOSE = 1e-6  # nearer to the baseline a slope is that of the tangent


class UnknownCallError(ModelError):
    """A call in the forward pass for which there is no rule."""


class Rules(TorchFunctionMode):
    """Follows one forward pass, gives its nonlinearities the slopes of a rule, finds its logits.

    before: the pass of the baseline, which DeepLIFT compares each nonlinearity with.
    """

    def __init__(self, rule: Rule, epsilon: float = 0.0, before: Rules | None = None) -> None:
        super().__init__()
        self.rule, self.epsilon = rule, epsilon
        self.seen: list[tuple[Tensor, Tensor]] = []
        self._before = None if before is None else iter(before.seen)
        self._ends: list[tuple[Tensor, Tensor]] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """The result of the call, with the slope that the rule gives it."""
        named = {} if kwargs is None else kwargs
        name = getattr(func, "__name__", "")
        result = self._ruled(func, name, args, named)
        if name in ENDS and isinstance(result, Tensor):
            self._ends.append((result, args[0]))
        elif name in AFTER and args and self.logits(args[0]) is not args[0]:
            moved = func(self.logits(args[0]), *args[1:], **named) if name in MOVED else None
            self._ends.append((result, self.logits(args[0]) if moved is None else moved))
        return result

    def logits(self, result: Tensor) -> Tensor:
        """What the module made its result from by a softmax or a logistic function, or itself."""
        for probabilities, logits in reversed(self._ends):
            if probabilities is result:
                return logits
        return result

    def _ruled(
        self, func: Callable[..., Any], name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        depends = [one for one in _tensors([*args, *kwargs.values()]) if one.requires_grad]
        if self.rule == "gradient" or not depends:
            return func(*args, **kwargs)
        if name in NONLINEAR and len(depends) == 1 and depends[0] is args[0]:
            return self._bent(func, args, kwargs)
        if name in POOLED and self.rule == "deeplift":
            return self._pooled(name, args, kwargs)
        result = func(*args, **kwargs)
        if name in MOVED or name in ENDS or not _follows(result):
            return result
        if _linear(name, depends, args, kwargs):
            if self.rule == "lrp":
                signs = torch.copysign(torch.full_like(result, self.epsilon), result)
                return _sloped(result, result, result / (result + signs))
            return result
        raise UnknownCallError(
            f"There is no rule of {self.rule} for the call {name}; use the explanations gradient, "
            "integrated-gradients or smoothgrad, which need none"
        )

    def _bent(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Tensor:
        """A nonlinearity with the slope of the rule."""

        def of(z: Tensor) -> Tensor:
            bent: Tensor = func(z, *args[1:], **kwargs)
            return bent

        z = args[0].detach()
        value = of(z.clone())  # it may work in place
        if self.rule == "lrp":
            slope = torch.where(z == 0, torch.zeros_like(z), value / z)
        else:
            slope = self._secant(of, z, value)
        return _sloped(args[0], value, slope)

    def _secant(self, of: Callable[[Tensor], Tensor], z: Tensor, value: Tensor) -> Tensor:
        self.seen.append((z, value))
        if self._before is None:
            return torch.zeros_like(z)  # the baseline itself, which is followed no further
        start, start_value = next(self._before)
        step = z - start
        slope = (value - start_value) / step
        near = step.abs() < _CLOSE
        if near.any():
            middle = ((z + start) / 2)[near].requires_grad_()
            with torch.enable_grad():
                (tangent,) = torch.autograd.grad(of(middle.clone()).sum(), middle)
            slope[near] = tangent
        return slope

    def _pooled(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
        """The largest of a window: what it gains by the place of the record's, then the baseline's.

        A gain over the baseline is the record's largest number's; a loss that of the number which
        was the largest in the baseline.
        """
        without = {key: value for key, value in kwargs.items() if key != "return_indices"}
        z = args[0]
        value, place = POOLED[name](z.detach(), *args[1:], **without)
        self.seen.extend([(z.detach(), value), (place, place)])
        if self._before is None:
            return value.requires_grad_()
        start, start_value = next(self._before)
        start_place, _ = next(self._before)
        top = torch.maximum(value, start_value)
        gain = self._at(z, place, start, top - start_value)
        loss = self._at(z, start_place.expand_as(place), start, value - top)
        both: Tensor = _Sum.apply(value, gain, loss)  # type: ignore[no-untyped-call]
        return both

    @staticmethod
    def _at(z: Tensor, place: Tensor, start: Tensor, change: Tensor) -> Tensor:
        """The numbers at these places, with the slope by which their own change is this one."""
        flat = z.flatten(2).gather(2, place.flatten(2)).view_as(place)
        before = start.expand_as(z).flatten(2).gather(2, place.flatten(2)).view_as(place)
        step = flat.detach() - before
        slope = torch.where(step.abs() < _CLOSE, torch.zeros_like(step), change / step)
        return _sloped(flat, flat.detach(), slope)


class _Sloped(torch.autograd.Function):
    """A value (n, …) that changes with its argument by the slope it is given."""

    @staticmethod
    def forward(ctx: Any, argument: Tensor, value: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(slope)
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return gradients[0] * slope, None, None


def _sloped(argument: Tensor, value: Tensor, slope: Tensor) -> Tensor:
    result: Tensor = _Sloped.apply(argument, value, slope)  # type: ignore[no-untyped-call]
    return result


class _Sum(torch.autograd.Function):
    """A value that changes with two arguments as their sum does."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, one: Tensor, other: Tensor) -> Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, Tensor]:
        return None, gradients[0], gradients[0]


def unseen_call(result: Tensor) -> str | None:
    """The name of an own autograd function on the way to a result, inside which no rule can see."""
    ours = {"_SlopedBackward", "_SumBackward"}
    waiting: list[Any] = [result.grad_fn]
    met: set[Any] = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in met:
            continue
        met.add(node)
        written = isinstance(node, torch.autograd.function.BackwardCFunction)
        if written and node.name() not in ours:
            return str(node.name()).removesuffix("Backward")
        waiting.extend(before for before, _ in node.next_functions)
    return None


def _tensors(arguments: Iterable[Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for one in arguments:
        if isinstance(one, Tensor):
            found.append(one)
        elif isinstance(one, list | tuple):
            found.extend(_tensors(one))
    return found


def _follows(result: Any) -> bool:
    """Whether numbers that depend on the record came out."""
    return any(one.requires_grad for one in _tensors([result]))


def _linear(
    name: str, depends: Sequence[Tensor], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """Whether the result is linear in the record, as products of two of its numbers are not."""
    if name in POOLED:
        return True
    if name == "batch_norm" and (kwargs.get("training") or True in args[5:6]):
        return False  # it then depends on the other records of the batch
    by_the_record = name in {"div", "__truediv__", "true_divide"} and depends[0] is not args[0]
    return name in LINEAR and len(depends) == 1 and not by_the_record
