"""The membership experiment of Yeom et al. over many models: how much each one gives away."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from leakscope.errors import InputError
from leakscope.metrics.intervals import Interval, newcombe, tail_of
from leakscope.metrics.samples import check_booleans, model_splits, record_units
from leakscope.protocols import Bools, Floats, Stack

# Below this a variance is rounding: all cells of a side agree, and the number of records decides.
ROUNDING = 1e-24

# With fewer ways in which members were drawn than MANY, intervals are cautious; with fewer than FEW
# there is none: simulated, 2 to 4 of them would cover in 87 to 92 %.
MANY, FEW = 8, 3


@dataclass(frozen=True)
class Experiment:
    """The advantage of the adversary who knows each model's average training loss.

    ``advantages`` (m,) are TPR − FPR for each of the models; ``mean`` is their mean with its
    interval, for other models trained on other records; ``median``, ``q1`` and ``q3`` say how they
    spread. ``splits`` is the number of different ways in which members were drawn, a way and its
    complement being one.
    """

    models: int
    splits: int
    advantages: Floats
    mean: Interval
    median: float
    q1: float
    q3: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "models": self.models,
            "splits": self.splits,
            "advantages": self.advantages.tolist(),
            "mean": self.mean.to_dict(),
            "median": self.median,
            "q1": self.q1,
            "q3": self.q3,
        }


def membership_experiment(
    losses: Stack | NDArray[Any],
    membership: ArrayLike,
    *,
    unit: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Experiment:
    """Call a record a member where its loss is at most the model's average training loss.

    This is Experiment 1 of Yeom et al. 2018 (section 3.1, the advantage in Definition 4) with the
    adversary of section 6.2, over m models: losses (m, n) or (m, n, 1), membership (m, n): which
    records each model was trained on. Models are read one at a time.

    Models share records and records share models, so that the variance of the mean advantage is
    clustered both ways, V = V_models + V_records − V_cells (Cameron, Gelbach & Miller 2011), and
    never taken for less than the larger of the two. Rows of one ``unit`` (n,) count together.
    Models whose members are the same, or exactly the others, count together too: in complementary
    halves what is easy by chance on one side of a model is on the other side of its twin, and
    taken for independent the two would look more uncertain than their mean is. The quantile is
    Student's, at Satterthwaite's degrees of freedom: few models cost width only as far as they
    carry the variance. With fewer than 8 splits it has one degree less than there are splits, and
    with fewer than 3 there is no interval (NaN).

    The average training loss is itself uncertain, most where few records of large loss decide it,
    and models share those records: how far each moves the threshold counts as its part in the
    mean too, by the slope of TPR − FPR over one standard error of the average to either side.
    """
    members = _check_membership(losses.shape, membership)
    codes = record_units(unit, members.shape[1])
    clusters = model_splits(members)
    splits = len(set(clusters))
    if splits == 1:  # nothing is known of other splits: the models alone can be told apart
        clusters = np.arange(len(members))
    sums = _Sums.zeros(int(clusters.max()) + 1, int(codes.max()) + 1, float(members.mean()))
    rates = np.empty((len(members), 3))
    for cluster in range(len(sums.models)):
        terms = np.zeros((4, members.shape[1]))
        for model in np.flatnonzero(np.equal(clusters, cluster)):
            values = _losses_of(losses, int(model))
            rates[model], own = _measure(values, members[model])
            terms += own
        sums.add(cluster, np.stack([np.bincount(codes, weights=row) for row in terms]))
    advantages = rates[:, 0] - rates[:, 1]
    q1, median, q3 = np.quantile(advantages, [0.25, 0.5, 0.75])
    return Experiment(
        models=len(members),
        splits=splits,
        advantages=advantages,
        mean=sums.interval(rates, confidence),
        median=float(median),
        q1=float(q1),
        q3=float(q3),
    )


@dataclass(frozen=True)
class _Sums:
    """What the variance of the mean advantage needs, gathered in one pass over the models.

    How far a cell, one record in one cluster of models, moves the mean is linear in four terms,
    a − TPR·b + FPR·c + slope·d, whose weights are means over all models and known only at the end.
    So the terms are summed by models (g, 4) and by records (4, n), and their products over cells
    (4, 4). ``share`` is that of members.
    """

    models: Floats
    records: Floats
    products: Floats
    share: float

    @classmethod
    def zeros(cls, clusters: int, records: int, share: float) -> _Sums:
        return cls(np.zeros((clusters, 4)), np.zeros((4, records)), np.zeros((4, 4)), share)

    def add(self, cluster: int, terms: Floats) -> None:
        self.models[cluster] = terms.sum(axis=1)
        self.records[:] += terms
        self.products[:] += terms @ terms.T

    def interval(self, rates: Floats, confidence: float) -> Interval:
        """The mean advantage with its interval, given TPR, FPR and slope of each model (m, 3)."""
        tail = tail_of(confidence)
        g, n = len(self.models), self.records.shape[1]
        tpr, fpr, slope = (float(rate) for rate in rates.mean(axis=0))
        mean = tpr - fpr
        if g < FEW or n == 1:
            return Interval(mean, math.nan, math.nan)
        weight = np.array([1.0, -tpr, fpr, slope]) / len(rates)
        by_models = g / (g - 1) * float(np.square(self.models @ weight).sum())
        by_records = n / (n - 1) * float(np.square(weight @ self.records).sum())
        cells = float(weight @ self.products @ weight)
        variance = max(by_models + by_records - cells, by_models, by_records)
        if variance < ROUNDING:
            return newcombe(tpr, self.share * n, fpr, (1 - self.share) * n, confidence)
        freedom = variance**2 / (by_models**2 / (g - 1) + by_records**2 / (n - 1))
        if g < MANY:  # then the share that models carry is itself little more than a guess
            freedom = min(freedom, g - 1)
        width = -float(stdtrit(freedom, tail)) * math.sqrt(variance)
        return Interval(mean, max(mean - width, -1.0), min(mean + width, 1.0))


def _losses_of(losses: Stack | NDArray[Any], model: int) -> Floats:
    """The losses (n,) of all records in one model."""
    values = np.asarray(losses[model], dtype=np.float64).reshape(-1)
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(
            f"Losses must be finite, and {np.count_nonzero(~finite)} of model {model} are not, the "
            f"first of record {row} ({values[row]}): clip probabilities before taking logarithms"
        )
    return values


def _measure(losses: Floats, members: Bools) -> tuple[Floats, Floats]:
    """TPR, FPR and slope (3,) of one model, and the four terms (4, n) of each record in it.

    The slope is the change of TPR − FPR per standard error of the average training loss, and the
    last term how many of those each record moves it.
    """
    own = losses[members]
    n1, n0 = len(own), len(losses) - len(own)
    # A mean is at least the smallest, but for rounding, which must not part records that tie.
    cut = max(float(own.mean()), float(own.min()))
    error = float(own.std()) / math.sqrt(n1)
    inside, outside = members / n1, ~members / n0

    def advantage(at: float) -> float:
        return float((inside - outside)[losses <= at].sum())

    called = losses <= cut
    slope = (advantage(cut + error) - advantage(cut - error)) / 2 if error > 0 else 0.0
    moved = inside * (losses - cut) / error if error > 0 else np.zeros(len(losses))
    rates = np.array([called[members].mean(), called[~members].mean(), slope])
    return rates, np.stack([called * (inside - outside), inside, outside, moved])


def _check_membership(shape: tuple[int, ...], membership: ArrayLike) -> Bools:
    """The membership (m, n), fitting losses of this shape, with both sides in each model."""
    if len(shape) not in (2, 3) or shape[2:] not in ((), (1,)) or 0 in shape:
        raise InputError(
            f"Losses must be one number per model and record, (models, records), got shape {shape}"
        )
    members = check_booleans(membership, "membership")
    if members.shape != tuple(shape[:2]):
        raise InputError(
            f"The membership has shape {members.shape}, but there are losses of {shape[0]} models "
            f"and {shape[1]} records"
        )
    counts = np.count_nonzero(members, axis=1)
    for empty, name in ((counts == 0, "member"), (counts == shape[1], "non-member")):
        if empty.any():
            raise InputError(
                f"Model {int(np.argmax(empty))} has no {name} among the {shape[1]} records: both "
                f"sides are needed to tell them apart"
            )
    return members
