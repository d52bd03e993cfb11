"""From scores to outcomes: every attack of a battery judged in the same way."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.auditing.battery import Battery, Shot
from leakscope.errors import LeakscopeError
from leakscope.evidence import Folds
from leakscope.metrics.epsilon import Epsilon, epsilon_lower_bound
from leakscope.metrics.outcome import Outcome, judge
from leakscope.metrics.tails import ENOUGH, cut_at
from leakscope.protocols import Bools, Floats
from leakscope.records import Records
from leakscope.report.words import CONSTANT

NOT_RANDOMIZED = "Membership was not drawn by a fair coin per record, which a bound on ε needs."
TAUGHT = "The attack was taught by members, which the one-run bound on ε does not allow."
EQUAL = (
    "Every record of a side stands there more than once: a bound on ε would need a coin for each."
)
BY_UNIT = "Rows belong to persons: a bound on ε would need a coin per row."


def judge_battery(
    battery: Battery,
    records: Records,
    membership: Bools,
    folds: Folds,
    clusters: NDArray[np.intp] | None,
    *,
    prior: float,
    randomized: bool,
    delta: float,
) -> tuple[list[Outcome], dict[str, str]]:
    """An outcome for each attack, the largest advantage first; the reason where there is none."""
    alone = _alone(clusters, membership)
    outcomes, failed = [], {}
    for name, shot in battery.shots.items():
        try:
            outcome = _judge(shot, records, membership, folds, clusters, prior)
            note = _why_no_epsilon(shot, records, randomized)
            if not note and len(set(membership[alone])) < 2:
                note = EQUAL
            bound: Epsilon | None = None
            if not note:
                bound = epsilon_lower_bound(shot.scores[alone], membership[alone], delta=delta)
        except LeakscopeError as reason:
            failed[name] = str(reason)
        else:
            outcomes.append(replace(outcome, epsilon_lower=bound, epsilon_note=note))
    return sorted(outcomes, key=lambda one: -one.advantage.value), failed


def without_constants(battery: Battery, folds: Folds) -> Battery:
    """The battery with attacks of constant scores among those that did not run."""
    constant = [name for name, shot in battery.shots.items() if is_constant(shot, folds)]
    varying = {name: shot for name, shot in battery.shots.items() if name not in constant}
    return Battery(varying, battery.not_run | dict.fromkeys(constant, CONSTANT))


def is_constant(shot: Shot, folds: Folds) -> bool:
    """Whether no two records are told apart by the same scorer.

    Scores learned on the other half come from two scorers, one for each half: that their constants
    differ is no evidence.
    """
    parts = [folds.half, ~folds.half] if shot.taught else [np.full(len(shot.scores), True)]
    return all(np.ptp(shot.scores[part]) == 0 for part in parts if part.any())


def _why_no_epsilon(shot: Shot, records: Records, randomized: bool) -> str:
    if not randomized:
        return NOT_RANDOMIZED
    if records.unit is not None:
        return BY_UNIT
    return TAUGHT if shot.taught else ""


def _alone(clusters: NDArray[np.intp] | None, membership: Bools) -> NDArray[np.intp]:
    """The records that stand alone: one that is there twice got one coin for both."""
    if clusters is None:
        return np.arange(len(membership))
    _, first, copies = np.unique(clusters, return_index=True, return_counts=True)
    return np.sort(first[copies == 1])


def _judge(
    shot: Shot,
    records: Records,
    membership: Bools,
    folds: Folds,
    clusters: NDArray[np.intp] | None,
    prior: float,
) -> Outcome:
    attack = shot.attack
    source = None
    if shot.threshold is not None:
        knows = attack.knowledge == "average training loss"
        source = "average training loss" if knows else "fixed by the attack"
    return judge(
        shot.scores,
        membership,
        attack=attack.name,
        channel=attack.channel,
        paper=attack.paper,
        summary=(attack.__doc__ or "").partition("\n")[0],
        knowledge=attack.knowledge,
        threshold=shot.threshold,
        threshold_source=source,
        calibration=folds.calibration,
        unit=clusters,
        groups=records.groups,
        inflation=shot.inflation,
        halves=folds.half if shot.taught else None,
        prior=prior,
        models=shot.models,
        options=_options(attack),
    )


def _options(attack: Any) -> dict[str, Any]:
    """The options an attack ran with, in words where JSON has no type for them."""
    names = [one.name for one in fields(attack)] if is_dataclass(attack) else []
    plain = (str, int, float, bool, list, tuple, type(None))
    values = {name: getattr(attack, name) for name in names}
    return {name: one if isinstance(one, plain) else repr(one) for name, one in values.items()}


def vulnerable(scores: Floats, membership: Bools) -> Bools:
    """Members above the threshold at which an attack accuses at most 1 % of non-members, (n,).

    At most 5 % where there are too few non-members to carry 1 %. For a leak on average, where no
    test of the highest scores is significant.
    """
    others = np.sort(scores[~membership])
    rate = 0.01 if 0.01 * len(others) >= ENOUGH else 0.05
    return np.asarray(membership & (scores > cut_at(others, rate)))
