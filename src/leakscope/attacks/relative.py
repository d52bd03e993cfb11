"""The relative attack (RMIA): a record's probability against its usual one, beside other records'.

Zarifzadeh et al. 2024, "Low-cost high-power membership inference attacks".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from leakscope.attacks.moments import checked, moments, require
from leakscope.errors import InputError
from leakscope.evidence import Evidence
from leakscope.protocols import CLASSIFICATION, Attack, Bools, Floats, Knowledge, Stack, Task
from leakscope.registry import register


def rmia(
    probabilities: ArrayLike | Stack,
    membership: ArrayLike,
    target_probabilities: ArrayLike,
    *,
    population: Sequence[ArrayLike | Stack] | None = None,
    online: bool = True,
    gamma: float = 2.0,
    a: float = 0.3,
) -> Floats:
    """The share of other records that each record dominates under the target, (n,).

    probabilities (m, n) of the true class in m shadow models, as an array or read in parts;
    membership (m, n): which records each was trained on; target_probabilities (n,). Records x and z
    are compared by p(x|θ)/p(x), how much more probable the target θ makes a record than models
    usually do; x dominates z where its ratio is at least ``gamma`` times that of z (section 2).

    online: p(x) is the mean of the models' average with x and their average without it. Offline it
    is ½((1 + a)·p_out(x) + 1 − a) from the models without x alone: ``a`` says how far the models
    with x are taken to come near to probability 1 (appendix B).

    population: by default the records themselves, each compared with all others. The adversary
    does not know which of them are members, and need not: for any gamma and any population the
    score rises with p(x|θ)/p(x). They set its scale and its ties, never the order; with gamma = 1
    and the records themselves there are no ties but of equal ratios. To use others, give their
    shadow probabilities (m, z) and target probabilities (z,), and their membership (m, z) if some
    shadow models were trained on them; if none was, p(z) is the mean over all models.
    """
    if not 0 < _number(gamma) < math.inf:
        raise InputError(f"gamma is a ratio of ratios and must be above 0, got {gamma!r}")
    if not 0 <= _number(a) <= 1:
        raise InputError(f"a must be between 0 and 1, got {a!r}")
    ratio = _ratio(probabilities, membership, target_probabilities, online, a)
    if population is None:
        if len(ratio) == 1:
            raise InputError("One record has no others to be compared with; give a population")
        return _dominated(ratio, ratio, gamma, itself=1)
    if len(population) not in (2, 3):
        raise InputError(
            "A population is a pair of shadow probabilities (m, z) and target probabilities (z,), "
            f"and perhaps the membership (m, z), got {len(population)} arrays"
        )
    shadows, target, *known = population
    if known:
        others = _ratio(shadows, known[0], target, online, a)
    else:
        nowhere = np.zeros(np.shape(shadows)[:2], dtype=bool)
        others = _ratio(shadows, nowhere, target, online=False, a=1.0)
    return _dominated(ratio, others, gamma, itself=0)


def _number(option: Any) -> float:
    """The option, NaN where it is no number."""
    return float(option) if isinstance(option, Real) else math.nan


def _ratio(
    probabilities: ArrayLike | Stack,
    membership: ArrayLike | Stack,
    target: ArrayLike | Stack,
    online: bool,
    a: float,
) -> Floats:
    """p(x|θ)/p(x) of each record, (n,)."""
    stack, inside, seen = checked(probabilities, np.asarray(membership), np.asarray(target))
    if stack.shape[2] > 1:
        raise InputError(
            f"One probability per record and model is needed, got {stack.shape[2]}; "
            "give that of the true class"
        )
    require(inside, 1, both=online)
    without, *with_it = moments(
        stack, inside, (False, True)[: 1 + online], spread=False, view=_checked_probabilities
    )
    usual = (1 + a) / 2 * without.mean + (1 - a) / 2
    if online:
        usual = (with_it[0].mean + without.mean) / 2
    return np.asarray(_checked_probabilities(seen) / usual)[:, 0]


def _checked_probabilities(values: Floats) -> Floats:
    if not (values.min() > 0 and values.max() <= 1):  # also where one is NaN
        wrong = ~((values > 0) & (values <= 1))
        raise InputError(
            "Probabilities of the true class must be above 0 and at most 1, got "
            f"{float(values[wrong][0])!r}; clip them at 1e-7"
        )
    return values


def _dominated(ratio: Floats, others: Floats, gamma: float, itself: int) -> Floats:
    """The share of others z with ratio(x) ≥ gamma · ratio(z), (n,); itself: 1 if x is one of them.

    By sorting: n log z steps in place of n × z.
    """
    count = np.searchsorted(np.sort(gamma * others), ratio, side="right")
    count -= itself * (ratio >= gamma * ratio)
    return np.asarray(count / (len(others) - itself))


@dataclass(frozen=True)
class Relative(Attack):
    """What the two relative attacks share.

    gamma: by how much one record must exceed another to dominate it. The paper takes 2; on models
    whose ratios lie within a factor of 2, as those of trees do, that leaves nothing but ties, and 1
    gives the same order without them.
    """

    channel: ClassVar[str] = "margin"
    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION
    knowledge: ClassVar[Knowledge] = "how it was trained, and records like its members"
    shadows: ClassVar[int] = 2

    gamma: float = 1.0


@register("attack")
@dataclass(frozen=True)
class OnlineRmia(Relative):
    """A member where its probability exceeds the usual one by more than other records' does."""

    name: ClassVar[str] = "rmia"
    paper: ClassVar[str] = "Zarifzadeh et al. 2024, section 2"

    def score(self, evidence: Evidence) -> Floats:
        """The share of other records that it dominates, (n,)."""
        return rmia(*_true_class(evidence), gamma=self.gamma)


@register("attack")
@dataclass(frozen=True)
class OfflineRmia(Relative):
    """The relative attack by models trained without the record alone.

    a: how far models with the record are taken to come near to probability 1.
    """

    name: ClassVar[str] = "rmia-offline"
    paper: ClassVar[str] = "Zarifzadeh et al. 2024, section 2 and appendix B"

    a: float = 0.3

    def score(self, evidence: Evidence) -> Floats:
        """The share of other records that it dominates, (n,)."""
        return rmia(*_true_class(evidence), online=False, gamma=self.gamma, a=self.a)


@dataclass(frozen=True, eq=False)
class _FromMargins:
    """Margins (m, n, 1) as probabilities, where they are read."""

    margins: Stack

    @property
    def shape(self) -> tuple[int, ...]:
        return self.margins.shape

    def __getitem__(self, index: Any) -> Floats:
        return np.asarray(expit(self.margins[index]))


def _true_class(evidence: Evidence) -> tuple[Stack, Bools, Floats]:
    """Probabilities of the true class: the shadows', who is a member there, and the target's."""
    shadows = _FromMargins(evidence.shadow_observations)
    return shadows, evidence.shadow_membership, np.asarray(expit(evidence.observations))
