"""Outcome: what one attack achieved, each figure with an interval, overall and by group."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope.metrics.curves import Curve, roc
from leakscope.metrics.epsilon import Epsilon
from leakscope.metrics.groups import Group, by_group, value_codes, with_tails
from leakscope.metrics.histograms import Histogram, histogram
from leakscope.metrics.intervals import Interval, finite
from leakscope.metrics.rates import Rates
from leakscope.metrics.samples import check_scores, unit_codes
from leakscope.metrics.tail_test import TailTest, tail_tests
from leakscope.metrics.tails import Rate
from leakscope.metrics.thresholds import Threshold, draw_calibration


@dataclass(frozen=True)
class Outcome:
    """What one attack achieved; the keys of ``to_dict`` are those of a report.

    The advantage, accuracy, PPV and p-value are those of the threshold, on the records that had no
    part in choosing it; ``rates`` are what they follow from. ``overhead`` is how many records it
    took to make one effective record of those judged, on the side where it took more. ``tails``
    test the highest scores. ``adjusted_p``, theirs too, and ``epsilon_lower`` are filled in later:
    they depend on the other attacks and on how membership was drawn.
    """

    attack: str
    channel: str
    paper: str
    summary: str
    knowledge: str
    auc: Interval
    advantage: Interval
    accuracy: Interval
    threshold: Threshold
    tpr_at_fpr: tuple[Rate, ...]
    ppv: Interval
    prior: float
    models: int
    p_value: float
    curve: Curve
    histogram: Histogram
    groups: tuple[Group, ...]
    rates: Rates
    overhead: float
    tails: tuple[TailTest, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    adjusted_p: float = math.nan
    epsilon_lower: Epsilon | None = None
    epsilon_note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON, exactly the keys of an entry of "outcomes"."""
        return {
            "attack": self.attack,
            "channel": self.channel,
            "paper": self.paper,
            "summary": self.summary,
            "knowledge": self.knowledge,
            "options": dict(self.options),
            "auc": self.auc.to_dict(),
            "advantage": self.advantage.to_dict(),
            "accuracy": self.accuracy.to_dict(),
            "threshold": self.threshold.to_dict(),
            "rates": self.rates.to_dict(),
            "tpr_at_fpr": [rate.to_dict() for rate in self.tpr_at_fpr],
            "tails": [test.to_dict() for test in self.tails],
            "ppv": {"prior": self.prior, **self.ppv.to_dict()},
            "epsilon_lower": None if self.epsilon_lower is None else self.epsilon_lower.to_dict(),
            "epsilon_note": self.epsilon_note,
            "models": self.models,
            "p_value": finite(self.p_value),
            "adjusted_p": finite(self.adjusted_p),
            "curve": self.curve.to_dict(),
            "histogram": self.histogram.to_dict(),
            "groups": [group.to_dict() for group in self.groups],
        }


def judge(
    scores: ArrayLike,
    membership: ArrayLike,
    *,
    attack: str,
    channel: str,
    paper: str,
    summary: str,
    knowledge: str,
    threshold: float | None = None,
    threshold_source: str | None = None,
    calibration: ArrayLike | None = None,
    unit: ArrayLike | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    inflation: float = 1.0,
    halves: ArrayLike | None = None,
    prior: float = 0.5,
    models: int = 1,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Outcome:
    """Everything there is to say about an attack from its scores (n,), higher for members.

    The arguments are those of ``roc`` and what the report says about the attack. Groups are judged
    on the records the threshold is judged on. ``halves`` (n,) marks one of two halves whose scores
    were learned from each other.
    """
    values, members = check_scores(scores, membership)
    columns = dict(groups or {})
    if threshold is None and calibration is None:
        # Records with equal scores may belong to different groups: which of them are drawn must
        # not depend on the order they came in.
        keys = [value_codes(column, len(values), name)[1] for name, column in columns.items()]
        calibration = draw_calibration(values, members, unit_codes(unit, members), seed, keys)
    result = roc(
        values,
        members,
        unit=unit,
        threshold=threshold,
        calibration=calibration,
        inflation=inflation,
        prior=prior,
    )
    source = result.threshold.source
    if threshold is not None and threshold_source is not None:
        source = threshold_source
    return Outcome(
        attack=attack,
        channel=channel,
        paper=paper,
        summary=summary,
        knowledge=knowledge,
        auc=result.auc,
        advantage=result.advantage,
        accuracy=result.accuracy,
        threshold=Threshold(result.threshold.value, source),
        tpr_at_fpr=result.tpr_at_fpr,
        ppv=result.ppv,
        prior=prior,
        models=models,
        options=dict(options or {}),
        p_value=result.p_value,
        curve=result.curve,
        histogram=histogram(values, members),
        groups=with_tails(
            by_group(
                values >= result.threshold.value, members, columns, result.judged, unit, inflation
            ),
            values,
            members,
            columns,
            unit,
            halves,
        ),
        tails=tail_tests(values, members, unit=unit, halves=halves),
        rates=result.rates,
        overhead=max(
            np.count_nonzero(members) / result.rates.members,
            np.count_nonzero(~members) / result.rates.nonmembers,
        ),
    )
