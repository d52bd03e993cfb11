"""Layer-wise rules of explanation for torch modules: LRP's ε-rule and DeepLIFT's rescale rule.

Both are gradients in which each nonlinearity f(z) has another slope (Ancona et al. 2018,
propositions 1 and 2): f(z)/z for LRP, (f(z) − f(z₀))/(z − z₀) for DeepLIFT against a baseline z₀.
Every call a forward pass makes, of a layer or of a function, goes through ``Rules``; the module is
not changed, may use a layer twice, flatten where it likes and end in a softmax. A call with no
known rule is refused, as a slope left alone would be a wrong explanation that looks like one. Calls
are known by the name without the underscore of those that work in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from leakscope.errors import ModelError
from leakscope.networks.slopes import sloped, summed

Rule = Literal["gradient", "lrp", "deeplift"]

# Linear in the record, up to a constant: LRP divides by their results.
LINEAR = frozenset({
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "batch_norm", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "mean", "matmul", "mm",
    "bmm", "addmm", "baddbmm", "mul", "__mul__", "__rmul__", "__imul__", "div", "__truediv__",
    "__itruediv__", "true_divide", "__rmatmul__", "__matmul__",
})  # fmt: skip
DIVIDED = frozenset({"div", "__truediv__", "__itruediv__", "true_divide"})
# Numbers moved about or added up, in which a rule has nothing to change. What is got as an
# attribute, x.T, is the transpose.
MOVED = frozenset({
    "flatten", "unflatten", "view", "reshape", "permute", "transpose", "squeeze", "unsqueeze",
    "movedim", "t", "contiguous", "clone", "to", "float", "double", "type_as", "expand",
    "expand_as", "repeat", "pad", "cat", "concat", "stack", "chunk", "split", "__getitem__",
    "unbind", "narrow", "add", "__add__", "__radd__", "__iadd__", "sub", "__sub__", "__isub__",
    "__rsub__", "rsub", "neg", "__neg__", "sum", "dropout", "dropout1d", "dropout2d", "dropout3d",
    "alpha_dropout", "feature_dropout", "__get__",
})  # fmt: skip
# One number in, one number out.
NONLINEAR = frozenset({
    "relu", "relu6", "hardtanh", "tanh", "sigmoid", "elu", "selu", "celu", "leaky_relu", "gelu",
    "silu", "mish", "softplus", "hardswish", "hardsigmoid", "softsign", "logsigmoid", "exp", "sin",
    "cos", "square", "sqrt", "abs", "clamp",
})  # fmt: skip
POOLED: Mapping[str, Callable[..., tuple[Tensor, Tensor]]] = {
    "max_pool1d": functional.max_pool1d_with_indices,
    "max_pool2d": functional.max_pool2d_with_indices,
    "max_pool3d": functional.max_pool3d_with_indices,
}
# Where a module turns its logits into probabilities: by calls that have no rule, as they mix the
# numbers of a record, or that have one.
MIXED = frozenset({"softmax", "log_softmax"})
ENDS = MIXED | {"sigmoid", "logsigmoid"}

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
        self._mixed: list[Tensor] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """The result of the call, with the slope that the rule gives it."""
        named = {} if kwargs is None else dict(kwargs)
        if not args and "input" in named:
            args = (named.pop("input"),)
        name = _name(func)
        result = self._ruled(func, name, args, named)
        if name in ENDS and isinstance(result, Tensor) and result is not args[0]:
            self._end(result, args[0], name in MIXED)
        elif name in AFTER and args and self.logits(args[0]) is not args[0]:
            moved = func(self.logits(args[0]), *args[1:], **named) if name in MOVED else None
            logits = self.logits(args[0]) if moved is None else moved
            self._end(result, logits, self._is_mixed(args[0]))
        return result

    def logits(self, result: Tensor) -> Tensor:
        """What the module made its result from by a softmax or a logistic function, or itself."""
        for probabilities, logits in reversed(self._ends):
            if probabilities is result:
                return logits
        return result

    def _end(self, result: Tensor, logits: Tensor, mixed: bool) -> None:
        self._ends.append((result, logits))
        if mixed:
            self._mixed.append(result)

    def _is_mixed(self, argument: Tensor) -> bool:
        return any(argument is one for one in self._mixed)

    def _ruled(
        self, func: Callable[..., Any], name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """The result of a call of this name, followed back by the rule."""
        depends = [one for one in _tensors([*args, *kwargs.values()]) if one.requires_grad]
        if self.rule == "gradient" or not depends:
            return func(*args, **kwargs)
        hidden = name not in AFTER and any(self._is_mixed(one) for one in depends)
        if name in NONLINEAR and len(depends) == 1 and depends[0] is args[0] and not hidden:
            return self._bent(func, args, kwargs)
        if name in POOLED and self.rule == "deeplift" and not hidden:
            return self._pooled(name, args, kwargs)
        result = func(*args, **kwargs)
        if not _follows(result):
            return result
        if hidden:
            raise self._unknown("softmax", f", to whose result {name} is applied")
        if name in MOVED or name in ENDS:
            return result
        if _linear(name, depends, args, kwargs):
            if self.rule == "lrp":
                numbers = result.detach()
                signs = torch.copysign(torch.full_like(numbers, self.epsilon), numbers)
                result.register_hook(partial(torch.mul, numbers / (numbers + signs)))
            return result
        raise self._unknown(name)

    def _unknown(self, name: str, place: str = "") -> UnknownCallError:
        return UnknownCallError(
            f"There is no rule of {self.rule} for the call {name}{place}; use the explanations "
            "gradient, integrated-gradients or smoothgrad, which need none"
        )

    def _bent(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Tensor:
        """A nonlinearity with the slope of the rule; in place where the call is."""

        def of(z: Tensor) -> Tensor:
            bent: Tensor = func(z, *args[1:], **kwargs)
            return bent

        z = args[0].detach()
        given = z.clone()
        value = of(given)
        if self.rule == "lrp":
            slope = torch.where(z == 0, torch.zeros_like(z), value / z)
        else:
            slope = self._secant(of, z, value)
        result = sloped(args[0], value, slope)
        # The module may look again at what was worked on in place, or drop the result.
        return args[0].copy_(result) if value is given else result

    def _secant(self, of: Callable[[Tensor], Tensor], z: Tensor, value: Tensor) -> Tensor:
        if self._before is None:
            # Copies, as the module may go on to work in place.
            self.seen.append((z.clone(), value.clone()))
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
        if self._before is None:
            self.seen.extend([(z.detach().clone(), value), (place, place)])
            return value.requires_grad_().clone()  # on which the module may work in place
        start, start_value = next(self._before)
        start_place, _ = next(self._before)
        top = torch.maximum(value, start_value)
        gain = self._at(z, place, start, top - start_value)
        loss = self._at(z, start_place.expand_as(place), start, value - top)
        return summed(value, gain, loss)

    @staticmethod
    def _at(z: Tensor, place: Tensor, start: Tensor, change: Tensor) -> Tensor:
        """The numbers at these places, with the slope by which their own change is this one."""
        flat = z.flatten(2).gather(2, place.flatten(2)).view_as(place)
        before = start.expand_as(z).flatten(2).gather(2, place.flatten(2)).view_as(place)
        step = flat.detach() - before
        slope = torch.where(step.abs() < _CLOSE, torch.zeros_like(step), change / step)
        return sloped(flat, flat.detach(), slope)


def _name(func: Callable[..., Any]) -> str:
    """What a call is known by: its name, without the underscore of one that works in place."""
    name = str(getattr(func, "__name__", ""))
    return name if name.startswith("__") else name.removesuffix("_")


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
    by_the_record = name in DIVIDED and depends[0] is not args[0]
    return name in LINEAR and len(depends) == 1 and not by_the_record
