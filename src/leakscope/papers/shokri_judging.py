"""How well an attack of section 4 of Shokri, Strobel & Zick (2021) does, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from leakscope.attacks.threshold import LabelGap
from leakscope.auditing.battery import OF_MEMBERS
from leakscope.evidence import Evidence
from leakscope.metrics import roc
from leakscope.metrics.intervals import Interval, quantile_of
from leakscope.models import class_numbers
from leakscope.papers.shokri_samples import mean_over
from leakscope.papers.shokri_targets import Target
from leakscope.protocols import Attack, Channel, Floats

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Attempt:
    """What an attack on one target came to: its accuracy, and the scores (n,) behind it."""

    accuracy: Interval
    scores: Floats


def attempt(target: Target, attack: Attack, channel: Channel) -> Attempt:
    """An attack on all records of a target, through a channel.

    A threshold is chosen on a fifth of the records and judged on the others, also that of the
    loss, as in the paper; taught attacks are cross-fitted, half by half, and cut at even odds.
    """
    return judged(target, attack, channel.observe(target.model, target.records))


def judged(target: Target, attack: Attack, observations: Floats) -> Attempt:
    """The same, of what was observed (n, w)."""
    folds = target.folds
    evidence = Evidence(
        task="classification",
        observations=observations,
        labels=class_numbers(target.model, target.records.y),
        classes=len(target.model.classes),  # type: ignore[arg-type]  # a classifier has classes
        folds=folds,
        seed=target.seed,
        knowledge=attack.knowledge,
        _membership=target.membership if attack.knowledge in OF_MEMBERS else None,
    )
    scores = np.asarray(attack.score(evidence), dtype=np.float64)
    taught = attack.knowledge == "members of the other half"
    own = attack.threshold(evidence) if taught or isinstance(attack, LabelGap) else None
    found = roc(
        scores,
        target.membership,
        threshold=own,
        calibration=folds.calibration if own is None else None,
        # As in an audit: each half taught the attack on the other.
        inflation=2.0 if taught else 1.0,
    )
    return Attempt(found.accuracy, scores)


def correlation(one: Floats, other: Floats) -> Interval:
    """Pearson's correlation of two numbers of n records, with Fisher's interval (atanh r).

    0 where one of them is the same for everybody.
    """
    constant = np.ptp(one) == 0 or np.ptp(other) == 0
    value = 0.0 if constant else float(np.clip(np.corrcoef(one, other)[0, 1], -1.0, 1.0))
    half = quantile_of(0.95) / math.sqrt(len(one) - 3)
    with np.errstate(divide="ignore"):  # that of 1 is infinite, and stays it
        z = np.arctanh(value)
    return Interval(value, float(np.tanh(z - half)), float(np.tanh(z + half)))


def over_targets(found: Sequence[Interval]) -> Interval:
    """The mean over targets trained on different records.

    Student's interval over targets, or the average interval over records where that is wider, as
    for one target.
    """
    between = mean_over([one.value for one in found])
    low, high = (float(np.mean([getattr(one, end) for one in found])) for end in ("low", "high"))
    return Interval(
        between.value, float(np.fmin(low, between.low)), float(np.fmax(high, between.high))
    )


def grouped(things: Iterable[T], key: Callable[[T], Hashable]) -> Iterator[list[T]]:
    """The things of each key together, in the order in which the keys come."""
    groups: dict[Hashable, list[T]] = {}
    for one in things:
        groups.setdefault(key(one), []).append(one)
    yield from groups.values()


def places(targets: Sequence[Target]) -> dict[str, Any]:
    """Where targets of one data set and one level stand: the columns that all rows share."""
    train, test = np.mean([target.accuracies for target in targets], axis=0).tolist()
    return {
        "dataset": targets[0].source.name,
        "gap": train - test,
        "level": targets[0].level,
        "epoch": float(np.mean([target.epoch for target in targets])),
        "train_accuracy": train,
        "test_accuracy": test,
    }


def ends(found: Interval) -> dict[str, float | None]:
    """An accuracy and its ends under the names that others read."""
    told = found.to_dict()
    return {"attack_accuracy": told["value"], "low": told["low"], "high": told["high"]}


def told(row: Mapping[str, Any], key: str = "attack_accuracy", low: str = "low") -> str:
    """A figure of a row with its interval: .628 (.607 to .648)."""
    high = low.replace("low", "high")
    value, *both = (_digits(row[name]) for name in (key, low, high))
    return f"{value} ({both[0]} to {both[1]})"


def _digits(number: float) -> str:
    return f"{number:.3f}".replace("-", "−")
