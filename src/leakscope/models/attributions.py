"""What each feature does to one prediction of a model that can be followed back to its features.

A classifier is a map from features to logits, and what is explained is a weighted sum of them: the
logit of a class has one weight of 1, its probability the weights of the softmax. Linear models in
closed form follow the weights back here, torch modules in ``networks.attribution``. Shapes: n
records of d features, k logits; one logit alone stands for two classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from leakscope.errors import InputError, NotApplicableError
from leakscope.models.linear import LinearMap
from leakscope.models.torch import TorchModel
from leakscope.options import magnitude, one_of
from leakscope.protocols import Floats, Model, Task, WrappedModel

Output = Literal["logit", "probability"]
Rule = Literal["gradient", "lrp", "deeplift"]
Classes = NDArray[np.intp]

# The logits of some records (r, k) and of the baseline (1 or r, k), and which records they are, in;
# the weight of each logit (r, k) out.
Weigh = Callable[[Floats, Floats, slice], Floats]

# Between the ends of the way from a baseline to a record a softmax may jump: 64 nodes follow a
# logit over a distance of 60 to 1e-6.
_NODES, _SHARES = np.polynomial.legendre.leggauss(64)


class _Followed(Protocol):
    """What follows weights of logits back to the features."""

    def __call__(
        self, X: Floats, weigh: Weigh, rule: Rule, baseline: Floats | None, epsilon: float
    ) -> Floats: ...


def attributions(
    model: Model,
    X: Floats,
    *,
    rule: Rule = "gradient",
    output: Output = "logit",
    target: Classes | None = None,
    baseline: Floats | None = None,
    epsilon: float = 1e-6,
) -> Floats:
    """What each feature does to the output of a class, in the shape of X (n, …).

    rule: "gradient"; "lrp", the relevance of layer-wise propagation with the ε-rule (Bach et al.
    2015, section "Multilayer networks", Eq. 58); "deeplift", the contributions of the rescale rule
    (Shrikumar et al. 2017, section 3.5.1) against the baseline (1 or n, …), zeros by default.
    target (n,): the number of the class, by default the one that is predicted. For a regression
    the number that is predicted is explained, whatever the output.
    """
    model = innermost(model)
    one_of("output", output, get_args(Output))
    one_of("rule", rule, get_args(Rule))
    magnitude("epsilon", epsilon)

    def weigh(logits: Floats, start: Floats, rows: slice) -> Floats:
        chosen = None if target is None else target[rows]
        return logit_weights(logits, start, rule, output, chosen, model.task)

    return _follower(model, output)(X, weigh, rule, baseline, epsilon)


def innermost(model: Model) -> Model:
    """The model inside of those that only remember its answers or add to its abilities."""
    while isinstance(model, WrappedModel):
        model = model.wrapped
    return model


def number_of_features(model: Model) -> int:
    """How many features a record has for this model, d, or one sentence where it cannot tell."""
    inside = innermost(model)
    if isinstance(inside, TorchModel):
        from leakscope.networks.attribution import inputs_of

        found = inputs_of(inside.module)
    else:
        found = getattr(getattr(inside, "estimator", None), "n_features_in_", None)
    if found is None:
        raise NotApplicableError(f"{model.name} does not say how many features it takes")
    return int(found)


def logit_weights(
    logits: Floats,
    start: Floats,
    rule: Rule,
    output: Output,
    target: Classes | None,
    task: Task,
) -> Floats:
    """The weight of each logit (n, k) in what is explained of each record, (n, k).

    start (1 or n, k): the logits of the baseline. A probability by the ε-rule is the relevance of
    its logit, shared out from the probability: a softmax has no rule. By the rescale rule it is
    the average of its gradient between the logits of the baseline and of the record, which adds
    up to their difference.
    """
    if task == "regression":
        return np.ones_like(logits)
    if logits.shape[1] == 1:
        # The same two classes with a logit each, of which the one is minus the other.
        halves = np.array([[-0.5, 0.5]])
        pair = logit_weights(logits * halves, start * halves, rule, output, target, task)
        return np.asarray((pair @ halves.T) * (2.0 if output == "logit" else 1.0))
    chosen = logits.argmax(axis=1) if target is None else _checked(target, *logits.shape)
    own = np.zeros_like(logits)
    own[np.arange(len(logits)), chosen] = 1.0
    if output == "logit":
        return own
    if rule == "lrp":
        logit = np.take_along_axis(logits, chosen[:, None], axis=1)
        # Of a logit of 0 there is nothing to share out.
        return np.asarray(own * softmax(logits, axis=1) / np.where(logit == 0, np.inf, logit))
    if rule == "gradient":
        return _softmax_gradient(logits, own)
    along = ((1 + node) / 2 for node in _NODES)
    between = (_softmax_gradient(start + part * (logits - start), own) for part in along)
    total = np.zeros_like(logits)
    for share, gradient in zip(_SHARES / 2, between, strict=True):
        total += share * gradient
    return total


def _softmax_gradient(logits: Floats, own: Floats) -> Floats:
    """The derivative of the probability of the class whose own is 1 by each logit, (n, k)."""
    shares = softmax(logits, axis=1)
    return np.asarray((own * shares).sum(axis=1, keepdims=True) * (own - shares))


def _checked(target: Classes, n: int, k: int) -> Classes:
    numbers = np.asarray(target)
    if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
        raise InputError(f"There must be one class number for each of {n} records, got {target!r}")
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < k:
        raise InputError(
            f"The class numbers run from {numbers.min()} to {numbers.max()} where there are {k} "
            f"classes; give numbers from 0 to {k - 1}"
        )
    return numbers.astype(np.intp)


def _follower(model: Model, output: Output) -> _Followed:
    """How weights are followed back through this kind of model."""
    if isinstance(model, TorchModel):
        from leakscope.networks.attribution import follow_back

        def through(
            X: Floats, weigh: Weigh, rule: Rule, baseline: Floats | None, epsilon: float
        ) -> Floats:
            kind = model.kind(X)
            return follow_back(model.module, X, weigh, rule, baseline, epsilon, kind)

        return through
    estimator = getattr(model, "estimator", None)
    if estimator is None:
        raise NotApplicableError(
            f"{model.name} cannot be followed back to its features; use a torch module or a linear "
            "scikit-learn model, or explain it by lime, kernel-shap or occlusion"
        )
    known = LinearMap.of(estimator)
    if output == "probability" and model.task == "classification" and not known.softmax:
        raise NotApplicableError(
            f"{model.name} has no probabilities that follow from its logits by a softmax; explain "
            "its logits with output='logit'"
        )
    return known.follow_back
