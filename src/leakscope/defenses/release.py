"""Answers that tell less than the model knows: defenses around what is shown, not around training.

Top-k, rounded and tempered answers stand between the model and whoever asks it. Every channel that
is computed from answers sees the released ones: probabilities, loss, margins, entropies, queries of
noisy copies, and explanations that only ask (LIME, KernelSHAP, occlusion). The predicted label is
released as it is, so that accuracy stays and label-only attacks lose nothing. What is left alone,
because whoever is shown it does not need the answers: parameters, explanations by gradients, which
are computed inside of the model, and explanations by records. Numbers that a regression predicts
are no probabilities and are shown as they are.

None of them promises anything (Jia et al. 2019 and Song & Mittal 2021 show how little coarse
answers hide), and attacks that are fitted on answers of the same kind adapt.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from math import hypot
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import softmax

from leakscope.channels.explanations import METHODS, PlainExplanation, SmoothGrad
from leakscope.channels.joined import Joined
from leakscope.channels.summaries import Summary
from leakscope.errors import InputError
from leakscope.models import Remembering
from leakscope.options import magnitude, whole_number
from leakscope.protocols import Ability, Channel, Defense, Floats, Model, Task
from leakscope.records import Records
from leakscope.registry import register

# A channel that needs one of these is computed from answers.
ANSWERS: frozenset[Ability] = frozenset({"probabilities", "loss", "queries"})


@dataclass(frozen=True)
class DefendedChannel(Channel):
    """A channel that shows what another one does, as far as a defense lets it be seen."""

    channel: Channel

    # What stands in the class elsewhere is that of the channel inside.
    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the channel: attacks look for it by this name."""
        return self.channel.name

    @property
    def paper(self) -> str:  # type: ignore[override]
        """Where the channel comes from."""
        return self.channel.paper

    @property
    def tasks(self) -> frozenset[Task]:  # type: ignore[override]
        """The tasks of the channel."""
        return self.channel.tasks

    @property
    def needs(self) -> frozenset[Ability]:  # type: ignore[override]
        """What the channel needs of a model."""
        return self.channel.needs

    @property
    def scope(self) -> Literal["record", "model"]:  # type: ignore[override]
        """Whether it shows each record, or the model as a whole."""
        return self.channel.scope

    def width(self, model: Model) -> int:
        """As many numbers as before."""
        return self.channel.width(model)


@dataclass(frozen=True)
class Release(Defense):
    """What the defenses around answers share; each says what it makes of probabilities."""

    def wrap_channel(self, channel: Channel) -> Channel:
        """The channel of released answers; the channel itself if it is computed from none."""
        return ReleasedChannel(channel, self) if channel.needs & ANSWERS else channel

    @abstractmethod
    def released(self, probabilities: Floats) -> Floats:
        """What is shown in the place of probabilities (n, k), in their shape."""


@dataclass(frozen=True)
class ReleasedChannel(DefendedChannel):
    """A channel that observes released answers instead of the model's own."""

    defense: Release

    def observe(self, model: Model, records: Records) -> Floats:
        """What the channel inside of all releases shows of what the outermost lets through."""
        return self._innermost().observe(self._released(model), records)

    def _innermost(self) -> Channel:
        inside = self.channel
        return inside._innermost() if isinstance(inside, ReleasedChannel) else inside

    def _released(self, model: Model) -> Model:
        """The model behind all releases; what was wrapped first is done first."""
        inside = self.channel
        before = inside._released(model) if isinstance(inside, ReleasedChannel) else model
        return ReleasedModel(before, self.defense)


class ReleasedModel(Remembering):
    """A model as those see it who may ask it: the same labels, other probabilities.

    ``wrapped`` is the one inside, which explanations by gradients are still about.
    """

    def __init__(self, model: Model, defense: Release) -> None:
        super().__init__(model)
        self.defense = defense

    def predict_proba(self, X: Any) -> Floats:
        """What is released of the probability of each class, (n, k)."""
        return self.defense.released(super().predict_proba(X))


@register("defense")
@dataclass(frozen=True)
class TopK(Release):
    """Only the k largest probabilities are shown.

    What is left to 1 is spread evenly over the other classes, which is what anybody can work out.
    So all but one of the classes tell the last: of two classes nothing is hidden by k = 1. Among
    equal ones the first class is shown.
    """

    name: ClassVar[str] = "top-k"
    paper: ClassVar[str] = "Shokri et al. 2017, section VIII-A (top k classes)"
    example: ClassVar[str] = "top-k:1"

    k: int = 1

    def __post_init__(self) -> None:
        whole_number("k", self.k, 1)

    def __str__(self) -> str:
        return f"{self.name}:{self.k}"

    def released(self, probabilities: Floats) -> Floats:
        """(n, k), rows that sum as they did."""
        n, classes = probabilities.shape
        if self.k >= classes:
            return probabilities
        largest = np.argsort(-probabilities, axis=1, kind="stable")[:, : self.k]
        shown = np.zeros((n, classes), dtype=bool)
        np.put_along_axis(shown, largest, True, axis=1)
        hidden = np.where(shown, 0.0, probabilities).sum(axis=1, keepdims=True)
        return np.where(shown, probabilities, hidden / (classes - self.k))


@register("defense")
@dataclass(frozen=True)
class Rounded(Release):
    """Probabilities are rounded to a number of decimal digits.

    They are not made to sum to 1 again, which would show more digits; two that are equal after
    rounding leave the label as it was.
    """

    name: ClassVar[str] = "round"
    paper: ClassVar[str] = "Shokri et al. 2017, section VIII-A (coarsen precision)"
    example: ClassVar[str] = "round:2"

    digits: int = 2

    def __post_init__(self) -> None:
        whole_number("digits", self.digits, 0)

    def __str__(self) -> str:
        return f"{self.name}:{self.digits}"

    def released(self, probabilities: Floats) -> Floats:
        """(n, k)."""
        return np.round(probabilities, self.digits)


@register("defense")
@dataclass(frozen=True)
class Temperature(Release):
    """Logits are divided by a temperature before the softmax: above 1 all answers look less sure.

    Probabilities become p^(1/t), made to sum to 1. Whoever knows t can undo it, and the order of
    the records by their loss or margin hardly changes; it hides something beside rounding, and from
    thresholds that were set without it.
    """

    name: ClassVar[str] = "temperature"
    paper: ClassVar[str] = "Shokri et al. 2017, section VIII-A (increase entropy)"
    example: ClassVar[str] = "temperature:4"

    t: float = 4.0

    def __post_init__(self) -> None:
        magnitude("t", self.t, above=0)

    def __str__(self) -> str:
        return f"{self.name}:{self.t:g}"

    def released(self, probabilities: Floats) -> Floats:
        """(n, k), rows that sum to 1."""
        with np.errstate(divide="ignore"):  # the logarithm of 0 is −∞, and 0 again afterwards
            return np.asarray(softmax(np.log(probabilities) / self.t, axis=1))


@register("defense")
@dataclass(frozen=True)
class SmoothedExplanations(Defense):
    """Explanations by gradients are averaged over noisy copies of the record, SmoothGrad.

    Around all channels that follow the model back to its features, their summaries included;
    explanations that only ask are left alone, as what they ask for is not in the hands of whoever
    explains. sigma: the standard deviation of the noise in the units of the features. The noise is
    the same whenever the same record is asked about, so that asking again averages nothing out.
    Around SmoothGrad itself the variances add up.
    """

    name: ClassVar[str] = "smoothgrad"
    paper: ClassVar[str] = "Smilkov et al. 2017, section 3"
    example: ClassVar[str] = "smoothgrad:0.2"

    sigma: float = 0.2
    samples: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        magnitude("sigma", self.sigma, above=0)
        whole_number("samples", self.samples, 1)
        whole_number("seed", self.seed, 0)

    def __str__(self) -> str:
        return f"{self.name}:{self.sigma:g}"

    def wrap_channel(self, channel: Channel) -> Channel:
        """The channel with smoothed explanations; the channel itself if it shows none."""
        return channel if self.smoothed(channel) is channel else SmoothedChannel(channel, self)

    def smoothed(self, channel: Channel) -> Channel:
        """The same channel in which every explanation by gradients is smoothed."""
        if isinstance(channel, SmoothGrad):
            return replace(channel, sigma=hypot(channel.sigma, self.sigma))
        if isinstance(channel, PlainExplanation):
            return self._around(channel)
        if isinstance(channel, Summary):
            inner: Any = self.smoothed(channel.explanation)
            return channel if inner is channel.explanation else replace(channel, explanation=inner)
        if isinstance(channel, Joined):
            parts = tuple(self.smoothed(part) for part in channel.parts)
            same = all(one is other for one, other in zip(parts, channel.parts, strict=True))
            return channel if same else replace(channel, parts=parts)
        if isinstance(channel, DefendedChannel):
            within = self.smoothed(channel.channel)
            return channel if within is channel.channel else replace(channel, channel=within)
        return channel

    def _around(self, channel: PlainExplanation) -> SmoothGrad:
        known = METHODS.get(channel.name)
        if known is None or channel != known(output=channel.output):
            raise InputError(
                f"The channel {channel!r} cannot be smoothed: SmoothGrad is of "
                f"{', '.join(METHODS)} with the options they have by default; leave its options out"
            )
        return SmoothGrad(
            channel.output, channel.name, self.sigma, samples=self.samples, seed=self.seed
        )


@dataclass(frozen=True)
class SmoothedChannel(DefendedChannel):
    """A channel whose explanations are averaged over noisy copies of each record."""

    defense: SmoothedExplanations

    def observe(self, model: Model, records: Records) -> Floats:
        """What the channel shows of smoothed explanations."""
        return self.defense.smoothed(self.channel).observe(model, records)
