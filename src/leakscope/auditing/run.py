"""The audit proper: from two sides of records to a report."""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import leakscope
from leakscope.auditing.additions import what_explanations_add
from leakscope.auditing.asking import LOCAL, Asking
from leakscope.auditing.battery import Battery, choose_attacks, run_battery
from leakscope.auditing.disclosures import (
    Disclosures,
    Explaining,
    extractions_asked_for,
    uninfluenced,
)
from leakscope.auditing.doors import missing_values
from leakscope.auditing.judging import (
    is_constant,
    judge_battery,
    vulnerable,
    without_constants,
)
from leakscope.auditing.leakage import Leaks, measure_leakage
from leakscope.auditing.settings import Settings
from leakscope.auditing.shadows import Dealing, Shadowing, describe_trials, train_shadows
from leakscope.auditing.subject import Subject, has_features, make_subject
from leakscope.auditing.target import describe_target, target_control
from leakscope.auditing.verdict import Limits, adjust, decide, leading_test
from leakscope.controls import Control
from leakscope.controls.blind import ONE_POPULATION, blind_control
from leakscope.controls.constant import constant_control, constant_model
from leakscope.controls.target import variation_control
from leakscope.metrics.outcome import Outcome
from leakscope.metrics.tail_test import above_tail
from leakscope.models import Remembering
from leakscope.protocols import Attack, Bools, Model, Progress, silent
from leakscope.records import Records
from leakscope.report import RecordTable, Report, Verdict
from leakscope.report.build import SCHEMA_VERSION
from leakscope.trials import Trials

_LOG = logging.getLogger(__name__)

# In which models are asked and attacks run: small work, which more threads than cores make crawl,
# and sums in the same order everywhere.
THREADS = 1

# Why leakage is not measured on one model alone.
NO_SHADOWS = "It is measured on shadow models, and there are none; give --shadows 16 (shadows=16)."
SAVED = "It is measured on shadow models, and saved predictions do not tell how to train any."


@dataclass(frozen=True)
class Found:
    """What the attacks and the controls found; unjudged: why an attack that ran has no outcome."""

    battery: Battery
    unjudged: dict[str, str] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    trials: Trials | None = None
    leaks: Leaks = field(default_factory=Leaks)
    additions: list[dict[str, Any]] = field(default_factory=list)


def run_audit(
    model: Model,
    members: Records,
    nonmembers: Records,
    settings: Settings,
    *,
    command: str,
    progress: Progress = silent,
    dataset: str | None = None,
    unit: str | None = None,
    shadowing: Shadowing | None = None,
    asking: Asking = LOCAL,
) -> Report:
    """The audit of one model; both sides have passed the door."""
    started = time.monotonic()
    chosen, not_run = choose_attacks(settings.attacks, settings.channels)
    subject, controls = make_subject(
        model, members, nonmembers, settings, dataset=dataset, unit=unit
    )
    told = Disclosures()
    void = next((control for control in controls if control.voids), None)
    if void is not None:
        why = f"The control of the {void.name} failed."
        names = [one.name for one in chosen] + extractions_asked_for(chosen, settings.channels)
        left_out = dict.fromkeys(names, why)
        found = Found(Battery({}, left_out), leaks=Leaks.unmeasured(why))
    else:
        chosen, too_many = asking.affordable(chosen, subject.model, subject.records, settings.seed)
        not_run |= too_many
        explaining = Explaining.of(model, members, chosen, settings.channels, progress)
        subject = subject.seen_through(explaining.model)
        found = _attacked(subject, chosen, settings, progress, shadowing)
        told = explaining.disclosed(subject.nonmembers, settings.seed, progress)
    not_run |= found.battery.not_run | found.unjudged | found.leaks.not_run | told.not_run
    controls += found.controls
    for control in controls:
        _LOG.info("control %s: %s", control.name, control.detail)
    limits = Limits(settings.limit, settings.tail_limit)
    failures = found.battery.not_run | found.unjudged
    verdict = decide(found.outcomes, controls, limits, failures, subject.persons_per_record)
    strongest = next((one for one in found.outcomes if one.attack == verdict.attack), None)
    report = {
        **_heading(command, settings),
        "target": _target(subject, settings),
        "trials": describe_trials(shadowing, found.trials, subject.blocks),
        "controls": [control.to_dict() for control in controls],
        "outcomes": [outcome.to_dict() for outcome in found.outcomes],
        "additions": found.additions,
        "disclosures": told.entries,
        "leakage": found.leaks.beside(strongest),
        "not_run": _reasons(not_run),
        "verdict": asdict(verdict),
        "cost": {
            "models": 1 if found.trials is None else 1 + len(found.trials),
            "seconds": round(time.monotonic() - started, 3),
            "threads": THREADS,
            **asking.cost(),
        },
    }
    return Report(report, _table(subject, found, verdict))


def _attacked(
    subject: Subject,
    attacks: Sequence[Attack],
    settings: Settings,
    progress: Progress,
    shadowing: Shadowing | None,
) -> Found:
    """Train shadow models if asked, run every attack and control, and judge what came out."""
    records, membership, seed = subject.records, subject.membership, settings.seed
    trials = None
    leaks = Leaks.unmeasured(NO_SHADOWS if has_features(subject.model) else SAVED)
    if shadowing is not None:
        dealing = Dealing(subject.blocks, membership, shadowing.models)
        trials = train_shadows(
            shadowing, subject.model, records, dealing, attacks, seed=seed, progress=progress
        )
    with threadpool_limits(limits=THREADS):
        battery = run_battery(
            subject.model,
            records,
            membership,
            subject.folds,
            attacks,
            seed,
            progress,
            trials=trials,
        )
        controls = _controls(subject, battery, seed, progress, trials)
    battery = without_constants(battery, subject.folds)
    judged, unjudged = judge_battery(
        battery,
        records,
        membership,
        subject.folds,
        subject.clusters,
        prior=settings.prior,
        # Taking out records that are on both sides undoes the coin that put them there.
        randomized=settings.randomized and subject.whole,
        delta=settings.delta,
    )
    if trials is not None:
        leaks = measure_leakage(
            trials,
            dealing,
            subject.model,
            records,
            subject.clusters,
            seed=seed,
            progress=progress,
        )
    added = what_explanations_add(
        battery.shots, judged, membership, subject.folds.calibration, subject.clusters
    )
    return Found(battery, unjudged, adjust(judged), controls, trials, leaks, added)


def _controls(
    subject: Subject, battery: Battery, seed: int, progress: Progress, trials: Trials | None
) -> list[Control]:
    model, records, membership = subject.model, subject.records, subject.membership
    progress("running the blind baseline", 0, 2)
    if has_features(model):
        blind = blind_control(records, membership, subject.folds, seed)
    else:
        detail = (
            "Saved predictions have no features that a classifier blind to the model could see."
        )
        blind = Control("blind baseline", None, True, detail, ONE_POPULATION)
    progress("running the attacks on a constant model", 1, 2)
    attacks = [shot.attack for shot in battery.shots.values()]
    nobody = Remembering(uninfluenced(constant_model(model, records), model))
    constant = run_battery(
        nobody, records, membership, subject.folds, attacks, seed, silent, trials=trials
    )
    progress("done", 2, 2)
    return [
        blind,
        constant_control(
            {name: (shot.scores, shot.inflation) for name, shot in constant.shots.items()},
            sorted(constant.not_run),
            membership,
            subject.clusters,
        ),
        variation_control(
            sorted(
                name for name, shot in battery.shots.items() if is_constant(shot, subject.folds)
            ),
            len(battery.shots),
        ),
        target_control(model, records, membership, subject.clusters),
    ]


def _heading(command: str, settings: Settings) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "leakscope": leakscope.__version__,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        "seed": settings.seed,
    }


def _target(subject: Subject, settings: Settings) -> dict[str, Any]:
    return {
        **describe_target(subject.model, subject.records, subject.membership, subject.clusters),
        "dataset": subject.dataset,
        "unit": None if subject.records.unit is None else subject.unit,
        "missing_values": missing_values(subject.records),
        "randomized": settings.randomized,
        "prior": settings.prior,
    }


def _reasons(not_run: dict[str, str]) -> list[dict[str, str]]:
    return [{"attack": name, "reason": reason} for name, reason in sorted(not_run.items())]


def _flagged(subject: Subject, found: Found, verdict: Verdict) -> Bools:
    """The members that the leading attack singles out: those that the headline counts."""
    if verdict.level != "leaks" or verdict.attack is None:
        return np.zeros_like(subject.membership)
    shot = found.battery.shots[verdict.attack_at_low_fpr or verdict.attack]
    outcome = next(o for o in found.outcomes if o.attack == shot.attack.name)
    if verdict.attack_at_low_fpr is None:
        return vulnerable(shot.scores, subject.membership)
    return above_tail(
        shot.scores,
        subject.membership,
        leading_test(outcome).fpr,
        unit=subject.clusters,
        halves=subject.folds.half if shot.taught else None,
    )


def _table(subject: Subject, found: Found, verdict: Verdict) -> RecordTable:
    """One line per record, as the user gave them: members first."""
    battery, nats = found.battery, found.leaks.records
    flagged = _flagged(subject, found, verdict)
    order, records = np.lexsort((subject.row, ~subject.membership)), subject.records
    return RecordTable.from_parts(
        row=subject.row[order],
        side=np.where(subject.membership[order], "member", "nonmember"),
        label=records.y[order],
        groups={name: values[order] for name, values in records.groups.items()},
        unit=None if records.unit is None else (subject.unit, records.unit[order]),
        scores={
            name: shot.scores[order]
            for name, shot in battery.shots.items()
            if name not in found.unjudged
        },
        further={
            "calibration": np.where(subject.folds.calibration[order], "yes", "no"),
            "content_key": np.array([f"{key:016x}" for key in records.keys()[order].tolist()]),
            **({} if nats is None else {"leakage_nats": nats[order]}),
        },
        vulnerable=flagged[order],
    )
