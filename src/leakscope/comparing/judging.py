"""One model judged: how accurate it is, how well its members are found, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from leakscope.auditing.battery import Battery, Release, channel_of, released, run_battery
from leakscope.auditing.judging import judge_battery
from leakscope.comparing.averaging import TAIL, Figure
from leakscope.comparing.costs import seconds_to_predict, size_of
from leakscope.comparing.defending import Defended
from leakscope.comparing.dividing import Seat
from leakscope.errors import LeakscopeError, ModelError
from leakscope.leakage.gain import output_gain
from leakscope.metrics.intervals import Interval, finite
from leakscope.metrics.jackknife import interval_of_largest
from leakscope.metrics.outcome import Outcome
from leakscope.models import Remembering, class_numbers
from leakscope.protocols import Attack, Bools, Model, Progress
from leakscope.trials import Trials

LABEL, MARGIN = "label", "margin"


@dataclass(frozen=True, eq=False)
class Judged:
    """One row of the comparison, and what is needed to compare it with others.

    right, found: the test accuracy and the accuracy of the strongest attack, with what each block
    of the pool has to do with them. not_run: why an attack has no outcome. by_attack: as found, of
    each attack.
    """

    defense: str
    row: dict[str, Any]
    right: Figure
    found: Figure
    not_run: Mapping[str, str]
    by_attack: Mapping[str, Figure] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """Which of the seeds."""
        return int(self.row["seed"])


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model of one seed, and the seconds and epochs that took (−1: not known)."""

    model: Model
    seconds: float
    epochs: float


def judge_model(
    defended: Defended,
    trained: Trained,
    seat: Seat,
    attacks: Sequence[Attack],
    trials: Trials | None,
    *,
    blocks: int,
    seed: int,
    progress: Progress,
) -> Judged:
    """The row of one model; attacks that learn are taught on this very model.

    trials: its shadow models. blocks: how many the pool has.
    """
    model = Remembering(trained.model)
    with threadpool_limits(limits=1):
        release = defended.combination.release(model, seat.members, seat.reference)
        battery = run_battery(
            model,
            seat.records,
            seat.membership,
            seat.folds,
            attacks,
            seed,
            progress,
            trials=trials,
            release=release,
        )
        right = _right(model, seat, release, seed)
        leakage = _leakage(model, seat, release, seed)
        predicting = seconds_to_predict(trained.model, seat.records.X)
    outcomes, not_run = _outcomes(battery, seat)
    strongest, accuracy = headline(outcomes, defended.name, not_run)
    others = ~seat.membership
    row = {
        "defense": defended.name,
        "seed": seat.number,
        "train_accuracy": float(right[seat.membership].mean()),
        "test_accuracy": float(right[others].mean()),
        "attack": strongest.attack,
        "attack_accuracy": accuracy.value,
        "low": accuracy.low,
        "high": accuracy.high,
        "advantage": strongest.advantage.value,
        "auc": strongest.auc.value,
        "attacks": len(outcomes),
        "by_attack": {name: one.to_dict() for name, one in accuracies(outcomes).items()},
        "leakage": leakage,
        **_promised(defended),
        "bytes": size_of(trained.model),
        "train_seconds": _known(trained.seconds),
        "predict_seconds": predicting,
        "epochs": _known(trained.epochs),
    }
    found = {one.attack: _found(battery, one, seat, blocks) for one in outcomes}
    return Judged(
        defended.name,
        row,
        Figure.rate(right[others], seat.place[others], blocks),
        found[strongest.attack],
        not_run,
        found,
    )


def _outcomes(battery: Battery, seat: Seat) -> tuple[list[Outcome], dict[str, str]]:
    """What each attack achieved, and why others have no outcome."""
    outcomes, unjudged = judge_battery(
        battery,
        seat.records,
        seat.membership,
        seat.folds,
        seat.clusters,
        prior=0.5,
        randomized=False,
        delta=1e-5,
    )
    return outcomes, battery.not_run | unjudged


def _promised(defended: Defended) -> dict[str, Any]:
    """What the row says of differential privacy."""
    epsilon, delta = defended.budget or (None, None)
    return {"epsilon": epsilon, "delta": delta, "guarantee": defended.guarantee}


def headline(
    outcomes: Sequence[Outcome], name: str, not_run: Mapping[str, str]
) -> tuple[Outcome, Interval]:
    """The strongest of the attacks, with an interval that allows for its choice among them."""
    if not outcomes:
        reason = next(iter(not_run.values()), "")
        raise ModelError(f"No attack could be run on the models of {name!r}: {reason}")
    found = accuracies(outcomes).values()
    value, low, high = (
        np.array([getattr(one, end) for one in found]) for end in ("value", "low", "high")
    )
    interval = interval_of_largest(value, low, high)
    # Of equally strong ones that of the first name, whatever the order they ran in.
    strongest = min(outcomes, key=lambda one: (-one.accuracy.value, one.attack))
    return strongest, interval


def accuracies(outcomes: Sequence[Outcome]) -> dict[str, Interval]:
    """How accurate each attack is; the lower ends hold for all of them together.

    So any of them may be looked at because it is the strongest.
    """
    together = 1 - 2 * TAIL / max(len(outcomes), 1)
    return {
        one.attack: replace(one.accuracy, low=one.rates.accuracy(together).low) for one in outcomes
    }


def _found(battery: Battery, outcome: Outcome, seat: Seat, blocks: int) -> Figure:
    """How accurate an attack is on the records it is judged on."""
    shot = battery.shots[outcome.attack]
    # A threshold of the attack's own is judged on all records, a chosen one on the others.
    everyone = np.ones(len(seat.membership), dtype=bool)
    judged = ~seat.folds.calibration if shot.threshold is None else everyone
    return Figure.accuracy(
        (shot.scores >= outcome.threshold.value)[judged],
        seat.membership[judged],
        seat.place[judged],
        blocks,
        shot.inflation,
    )


def _right(model: Model, seat: Seat, release: Release, seed: int) -> Bools:
    """Which records the model is right about, as it is released, (n,)."""
    channel = released(channel_of(LABEL, seed), release)
    shown = channel.observe(model, seat.records)[:, 0]
    return np.asarray(shown == class_numbers(model, seat.records.y))


def _leakage(model: Model, seat: Seat, release: Release, seed: int) -> dict[str, Any] | None:
    """How far the released margins of members are from those of others; None: not measured."""
    try:
        channel = released(channel_of(MARGIN, seed), release)
        shown = channel.observe(model, seat.records)
        gain = output_gain(shown[:, :1], seat.membership, seed=seed)
    except LeakscopeError:
        return None
    return {"channel": MARGIN, **gain.to_dict()}


def _known(number: float) -> float | None:
    return finite(number) if number >= 0 else None
