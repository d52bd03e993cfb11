"""Channels of explanations: what each feature did to the prediction, as attributions φ (n, d).

Shokri, Strobel & Zick (2021, section 2 and appendix A) define the explanations. All follow the
output of the predicted class back to the features, and so need a torch module or a linear
scikit-learn model; ``surrogates`` has those that only ask. The logit and the probability of the
class are two channels: which of them leaks depends on where a network saturates.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from leakscope.channels.featured import array_of, reference
from leakscope.models.answers import class_numbers
from leakscope.models.attributions import (
    Classes,
    Output,
    attributions,
    number_of_features,
)
from leakscope.options import magnitude, one_of, whole_number
from leakscope.protocols import BOTH, Ability, Channel, Floats, Model, Task
from leakscope.records import Records
from leakscope.registry import register

Baseline = Literal["zero", "mean"]

# Points or noisy copies that are asked about at once.
_ROWS = 1024


@dataclass(frozen=True)
class Explanation(Channel):
    """What the explanations by gradients share.

    output: "logit" or "probability" of the predicted class. A two-class model of one logit has
    its log-odds for the logit.
    """

    paper: ClassVar[str] = "Shokri et al. 2021, section 2.2"
    tasks: ClassVar[frozenset[Task]] = BOTH
    needs: ClassVar[frozenset[Ability]] = frozenset({"labels", "gradients"})
    scope: ClassVar[Literal["record", "model"]] = "record"

    output: Output = "logit"

    def width(self, model: Model) -> int:
        """The number of features."""
        return number_of_features(model)


@dataclass(frozen=True)
class PlainExplanation(Explanation):
    """What the explanations of the record itself share, which others may be made of."""

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, d)."""
        X = array_of(records)
        return self.explain(model, X, self.against(X)).reshape(len(X), -1)

    def against(self, X: Floats) -> Floats:
        """The baseline (1, …) that records (n, …) are compared with, zeros if not said."""
        return reference(X, "zero")

    @abstractmethod
    def explain(
        self, model: Model, X: Floats, start: Floats, target: Classes | None = None
    ) -> Floats:
        """The attributions of records (n, …) against a baseline (1, …), in their shape.

        target (n,): the numbers of the classes, by default those that are predicted.
        """


@register("channel")
@dataclass(frozen=True)
class Gradient(PlainExplanation):
    """The gradient of the predicted class's logit or probability by the features."""

    name: ClassVar[str] = "gradient"

    def explain(
        self, model: Model, X: Floats, start: Floats, target: Classes | None = None
    ) -> Floats:
        """∂c/∂x, the slope at the record."""
        return attributions(model, X, output=self.output, target=target)


@register("channel")
@dataclass(frozen=True)
class GradientTimesInput(PlainExplanation):
    """The gradient times the features: what the record has of what the model looks at."""

    name: ClassVar[str] = "gradient-x-input"
    paper: ClassVar[str] = "Shrikumar et al. 2017, section 2.2"

    def explain(
        self, model: Model, X: Floats, start: Floats, target: Classes | None = None
    ) -> Floats:
        """x · ∂c/∂x."""
        return X * attributions(model, X, output=self.output, target=target)


@register("channel")
@dataclass(frozen=True)
class IntegratedGradients(PlainExplanation):
    """The gradient averaged on the way from a baseline to the record, times the way.

    Attributions add up to the difference of the outputs of the record and of the baseline, up to
    the error of the integral, which is by Gauss and Legendre's nodes. baseline: "zero", or "mean",
    that of the records which are shown. The paper prints the path as x + α(x − x₀); x₀ + α(x − x₀)
    is meant.
    """

    name: ClassVar[str] = "integrated-gradients"
    paper: ClassVar[str] = "Sundararajan et al. 2017, section 3"

    steps: int = 50
    baseline: Baseline = "zero"

    def against(self, X: Floats) -> Floats:
        """(1, …)."""
        return reference(X, self.baseline)

    def explain(
        self, model: Model, X: Floats, start: Floats, target: Classes | None = None
    ) -> Floats:
        """(x − x₀) · ∫ ∂c/∂x(x₀ + α(x − x₀)) dα."""
        nodes, shares = np.polynomial.legendre.leggauss(whole_number("steps", self.steps, 1))
        chosen = _predicted(model, X) if target is None else target
        way, total = X - start, np.zeros(X.shape)
        together = max(1, _ROWS // max(1, len(X)))  # steps that are asked for at once
        for first in range(0, self.steps, together):
            part = slice(first, first + together)
            points = np.concatenate([start + (1 + node) / 2 * way for node in nodes[part]])
            classes = None if chosen is None else np.tile(chosen, len(nodes[part]))
            found = attributions(model, points, output=self.output, target=classes)
            total += np.tensordot(shares[part] / 2, found.reshape(-1, *X.shape), axes=1)
        return way * total


@register("channel")
@dataclass(frozen=True)
class Relevance(PlainExplanation):
    """The relevance of layer-wise propagation, LRP, by the ε-rule.

    Each layer shares out what it is given in the proportion of what went into it, and ε takes the
    part of sums near 0. Without biases and with a small ε the relevance of all features adds up to
    the output.
    """

    name: ClassVar[str] = "lrp"
    paper: ClassVar[str] = "Bach et al. 2015, Eq. 58"

    epsilon: float = 1e-6

    def explain(
        self, model: Model, X: Floats, start: Floats, target: Classes | None = None
    ) -> Floats:
        """Relevance of each feature."""
        return attributions(
            model, X, rule="lrp", output=self.output, target=target, epsilon=self.epsilon
        )


@register("channel")
@dataclass(frozen=True)
class DeepLift(PlainExplanation):
    """The contributions of DeepLIFT's rescale rule, against a baseline.

    They add up to the difference of the outputs of the record and of the baseline: "zero", or
    "mean", that of the records which are shown.
    """

    name: ClassVar[str] = "deeplift"
    paper: ClassVar[str] = "Shrikumar et al. 2017, section 3.5.1"

    baseline: Baseline = "zero"

    def against(self, X: Floats) -> Floats:
        """(1, …)."""
        return reference(X, self.baseline)

    def explain(
        self, model: Model, X: Floats, start: Floats, target: Classes | None = None
    ) -> Floats:
        """Contribution of each feature."""
        return attributions(
            model, X, rule="deeplift", output=self.output, target=target, baseline=start
        )


METHODS: dict[str, type[PlainExplanation]] = {
    kind.name: kind
    for kind in (Gradient, GradientTimesInput, IntegratedGradients, Relevance, DeepLift)
}


@register("channel")
@dataclass(frozen=True)
class SmoothGrad(Explanation):
    """The average explanation of noisy copies of the record.

    of: which explanation, by the name of its channel. sigma: the standard deviation of the noise,
    N(0, σ), in the units of the features (the paper prints N(k, σ)). The class is that of the
    record itself. The noise depends on the seed and on what the record holds, so that every model
    is asked about the same copies. Costs as much as ``samples`` explanations.
    """

    name: ClassVar[str] = "smoothgrad"
    paper: ClassVar[str] = "Smilkov et al. 2017, section 3"

    of: str = "gradient"
    sigma: float = 0.2
    samples: int = 50
    seed: int = 0

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, d)."""
        one_of("of", self.of, METHODS)
        magnitude("sigma", self.sigma)
        whole_number("samples", self.samples, 1)
        X = array_of(records)
        inner = METHODS[self.of](output=self.output)
        start, chosen = inner.against(X), _predicted(model, X)
        found = np.empty(X.shape)
        for rows, noise in self._noise(records, X):
            copies = (X[rows, None] + noise).reshape(-1, *X.shape[1:])
            classes = None if chosen is None else np.repeat(chosen[rows], self.samples)
            parts = inner.explain(model, copies, start, classes)
            found[rows] = parts.reshape(noise.shape).mean(axis=1)
        return found.reshape(len(X), -1)

    def _noise(self, records: Records, X: Floats) -> Iterator[tuple[slice, Floats]]:
        """The noise (r, samples, …) of some records at a time."""
        size, keys = max(1, _ROWS // self.samples), records.keys()
        shape = (self.samples, *X.shape[1:])
        for first in range(0, len(X), size):
            rows = slice(first, min(first + size, len(X)))
            drawn = [
                np.random.default_rng([self.seed, int(key)]).normal(0.0, self.sigma, shape)
                for key in keys[rows]
            ]
            yield rows, np.stack(drawn)


def _predicted(model: Model, X: Floats) -> Classes | None:
    """The number of the class that is predicted for each record, (n,); None for a regression."""
    if model.task == "regression":
        return None
    return class_numbers(model, model.predict(X)).astype(np.intp)
