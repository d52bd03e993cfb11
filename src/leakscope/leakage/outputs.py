"""Leakage through what models show of a record, from trials of any recipe.

Parameters of large models are out of reach: there are too many, and exchanging neurons changes
them and not the model. What a model shows of a record is not, and it is what most adversaries see.
By data processing it tells at most what the parameters tell: every figure here is a lower bound on
white-box leakage (Farokhi & Kaafar 2020, remark 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakscope.errors import InputError
from leakscope.leakage.averaging import (
    Folded,
    Leakage,
    Prepare,
    check_membership,
    leakage_of,
)
from leakscope.leakage.bounds import advantage_bound, advantage_bound_of_information
from leakscope.leakage.divergence import (
    prepare_advantage,
    prepare_divergence,
    prepare_information,
)
from leakscope.leakage.plans import Design, Plan
from leakscope.options import whole_number
from leakscope.protocols import Floats

if TYPE_CHECKING:
    from leakscope.protocols import Stack

# Distances between models held at once, 100 MB; where models stand in line, IN_LINE for each.
AT_ONCE = 2_000_000
IN_LINE = 128

LOWER = "a lower bound on what the parameters tell"


@dataclass(frozen=True)
class Measure:
    """How one measure is called, estimated and read: what it implies, and what it can be."""

    name: str
    note: str
    prepare: Prepare
    bound: Callable[[float], float]
    limits: tuple[float, float]


def _measures(neighbours: int, seed: int) -> tuple[Measure, ...]:
    return (
        Measure(
            "mutual_information",
            "Mutual information of what is seen of a record and its membership at equal priors, in "
            f"nats of at most ln 2, cross-validated: {LOWER}.",
            lambda seen, folds: prepare_information(seen, folds % 10),
            lambda value: float(advantage_bound_of_information(value)),
            (0.0, math.log(2)),
        ),
        Measure(
            "divergence",
            "Kullback–Leibler divergence, both directions summed, of what is seen of a record with "
            f"and without it in training, in nats, by nearest neighbours: {LOWER}.",
            lambda seen, _: prepare_divergence(seen, neighbours, seed),
            lambda value: float(advantage_bound(value)),
            (0.0, math.inf),
        ),
        Measure(
            "advantage",
            "TPR − FPR of a rule learned for each record on half of the models and judged on the "
            f"others: {LOWER}.",
            prepare_advantage,
            lambda _: math.nan,  # what one rule reaches is no limit for others
            (-1.0, 1.0),
        ),
    )


@dataclass(frozen=True, eq=False)
class OutputLeakage:
    """Leakage through outputs by three measures: two in nats, and what an adversary makes of it."""

    mutual_information: Leakage
    divergence: Leakage
    advantage: Leakage

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the three in a list."""
        found = (self.mutual_information, self.divergence, self.advantage)
        return {"leakage": [one.to_dict() for one in found]}


def models_each_side(width: int, neighbours: int = 5) -> int:
    """How many models with each record, and how many without, ``output_leakage`` needs."""
    return max(neighbours + 3, 2 * width + 2)


def output_leakage(
    observations: Stack | NDArray[Any],
    membership: ArrayLike,
    *,
    groups: Mapping[str, ArrayLike] | None = None,
    unit: ArrayLike | None = None,
    neighbours: int = 5,
    permutations: int = 49,
    confidence: float = 0.95,
    seed: int = 0,
    design: Design | None = None,
) -> OutputLeakage:
    """How much what models show of each record tells about its membership.

    observations (m, n, w) or (m, n): what m models show of n records, such as the log-odds of the
    true class; membership (m, n): which records each was trained on. Records are read a part at a
    time. ``groups`` are columns (n,) to average by; rows of one ``unit`` (n,) count together.

    Each measure is compared with what it shows where membership is shuffled: its average there is
    the estimator's own error, not leakage. ``design`` says how membership was drawn, where models
    depend on each other otherwise than in exact pairs.
    """
    if not hasattr(observations, "shape"):
        observations = np.asarray(observations)
    shape = tuple(observations.shape)
    if len(shape) not in (2, 3) or 0 in shape:
        raise InputError(
            f"Observations must be some numbers per model and record, (models, records, numbers), "
            f"got shape {shape}"
        )
    whole_number("neighbours", neighbours, 1)
    width = shape[2] if len(shape) == 3 else 1
    members = check_membership(membership, shape[0], models_each_side(width, neighbours))
    if members.shape != shape[:2]:
        raise InputError(
            f"The membership is of {members.shape[1]} records, but {shape[1]} were observed"
        )
    plan = Plan.draw(members, permutations, seed, design)

    size = max(AT_ONCE // (shape[0] * (IN_LINE if width == 1 else shape[0])), 1)
    found = {
        one.name: leakage_of(
            Folded.of(partial(_read, observations), one.prepare, members, plan, size),
            measure=f"output_{one.name}",
            note=one.note,
            bound=one.bound,
            limits=one.limits,
            models=shape[0],
            groups=groups,
            unit=unit,
            confidence=confidence,
        )
        for one in _measures(neighbours, seed)
    }
    return OutputLeakage(**found)


def _read(observations: Stack | NDArray[Any], start: int, stop: int) -> Floats:
    """What is shown of these records, (m, stop − start, w), if it is finite."""
    part = np.asarray(observations[:, start:stop], dtype=np.float64)
    if not np.isfinite(part).all():
        model, record = np.argwhere(~np.isfinite(part))[0][:2]
        raise InputError(
            f"Observations must be finite, and model {model} shows {part[model, record].ravel()} "
            f"of record {start + record}: clip probabilities before taking logarithms"
        )
    return part.reshape(*part.shape[:2], -1)
