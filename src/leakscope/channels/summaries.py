"""Explanations in nine numbers: what is stored of one, and all that the simple attacks look at.

An explanation has as many numbers as a record has features, thousands for some. What tells members
is in its size and shape (Shokri, Strobel & Zick 2021, section 4.3.3), for which nine are enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from scipy.special import entr

from leakscope.channels.explanations import (
    DeepLift,
    Explanation,
    Gradient,
    GradientTimesInput,
    IntegratedGradients,
    Relevance,
    SmoothGrad,
)
from leakscope.channels.featured import array_of
from leakscope.channels.surrogates import KernelShap, Lime, Occlusion, Surrogate
from leakscope.protocols import BOTH, Ability, Channel, Floats, Model, Task
from leakscope.records import Records
from leakscope.registry import register

SUMMARIES = (
    "1-norm",
    "2-norm",
    "largest size",
    "sum",
    "sum with the features",
    "variance",
    "entropy of the sizes",
    "share of small ones",
    "1-norm with the features",
)
# A feature counts as small where its part is less than this share of the largest.
SMALL = 0.01


def summarize(explanations: Floats, X: Floats) -> Floats:
    """Nine numbers of each explanation φ (n, d) of features x (n, d), (n, 9).

    In the order of SUMMARIES: ‖φ‖₁, ‖φ‖₂, ‖φ‖∞, Σφ, Σφx, the variance of φ over the features, the
    entropy of |φ| / ‖φ‖₁ in nats, the share of features with |φ| < ‖φ‖∞ / 100, and Σ|φx|. Where φ
    is 0 the entropy is 0 and all features are small.
    """
    sizes, weighted = np.abs(explanations), explanations * X
    total, largest = sizes.sum(axis=1), sizes.max(axis=1)
    parts = sizes / np.where(total > 0, total, 1.0)[:, None]
    return np.column_stack(
        [
            total,
            np.sqrt(np.square(explanations).sum(axis=1)),
            largest,
            explanations.sum(axis=1),
            weighted.sum(axis=1),
            explanations.var(axis=1),
            entr(parts).sum(axis=1),
            np.where(largest > 0, (sizes < SMALL * largest[:, None]).mean(axis=1), 1.0),
            np.abs(weighted).sum(axis=1),
        ]
    )


@dataclass(frozen=True)
class Summary(Channel):
    """What the summaries of explanations share.

    explanation: the channel that is summarized, with its options.
    """

    paper: ClassVar[str] = "after Shokri, Strobel & Zick 2021, section 4.3.3"
    tasks: ClassVar[frozenset[Task]] = BOTH
    needs: ClassVar[frozenset[Ability]] = Explanation.needs
    scope: ClassVar[Literal["record", "model"]] = "record"

    explanation: Explanation | Surrogate

    def width(self, model: Model) -> int:
        """Nine."""
        return len(SUMMARIES)

    def observe(self, model: Model, records: Records) -> Floats:
        """(n, 9), the 1-norm first."""
        X = array_of(records)
        return summarize(self.explanation.observe(model, records), X.reshape(len(X), -1))


@register("channel")
@dataclass(frozen=True)
class GradientSummary(Summary):
    """Nine numbers of the gradient of the predicted class's logit."""

    name: ClassVar[str] = "gradient-summary"

    explanation: Explanation | Surrogate = field(default_factory=Gradient)


@register("channel")
@dataclass(frozen=True)
class GradientProbabilitySummary(Summary):
    """Nine numbers of the gradient of the predicted class's probability."""

    name: ClassVar[str] = "gradient-probability-summary"

    explanation: Explanation | Surrogate = field(default_factory=partial(Gradient, "probability"))


@register("channel")
@dataclass(frozen=True)
class GradientTimesInputSummary(Summary):
    """Nine numbers of the gradient times the features."""

    name: ClassVar[str] = "gradient-x-input-summary"

    explanation: Explanation | Surrogate = field(default_factory=GradientTimesInput)


@register("channel")
@dataclass(frozen=True)
class IntegratedGradientsSummary(Summary):
    """Nine numbers of the integrated gradients."""

    name: ClassVar[str] = "integrated-gradients-summary"

    explanation: Explanation | Surrogate = field(default_factory=IntegratedGradients)


@register("channel")
@dataclass(frozen=True)
class RelevanceSummary(Summary):
    """Nine numbers of the relevance of layer-wise propagation."""

    name: ClassVar[str] = "lrp-summary"

    explanation: Explanation | Surrogate = field(default_factory=Relevance)


@register("channel")
@dataclass(frozen=True)
class DeepLiftSummary(Summary):
    """Nine numbers of the contributions of DeepLIFT."""

    name: ClassVar[str] = "deeplift-summary"

    explanation: Explanation | Surrogate = field(default_factory=DeepLift)


@register("channel")
@dataclass(frozen=True)
class SmoothGradSummary(Summary):
    """Nine numbers of the gradient averaged over noisy copies, SmoothGrad."""

    name: ClassVar[str] = "smoothgrad-summary"

    explanation: Explanation | Surrogate = field(default_factory=SmoothGrad)


@dataclass(frozen=True)
class SurrogateSummary(Summary):
    """What the summaries of explanations by questions share."""

    needs: ClassVar[frozenset[Ability]] = Surrogate.needs


@register("channel")
@dataclass(frozen=True)
class LimeSummary(SurrogateSummary):
    """Nine numbers of the slopes of LIME."""

    name: ClassVar[str] = "lime-summary"

    explanation: Explanation | Surrogate = field(default_factory=Lime)


@register("channel")
@dataclass(frozen=True)
class KernelShapSummary(SurrogateSummary):
    """Nine numbers of the Shapley values of KernelSHAP."""

    name: ClassVar[str] = "kernel-shap-summary"

    explanation: Explanation | Surrogate = field(default_factory=KernelShap)


@register("channel")
@dataclass(frozen=True)
class OcclusionSummary(SurrogateSummary):
    """Nine numbers of what the predicted class loses with each feature."""

    name: ClassVar[str] = "occlusion-summary"

    explanation: Explanation | Surrogate = field(default_factory=Occlusion)
