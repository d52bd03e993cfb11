"""The audit proper: from two sides of records to a report."""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import leakscope
from leakscope.auditing.battery import Battery, choose_attacks, run_battery
from leakscope.auditing.doors import missing_values
from leakscope.auditing.judging import judge_battery, vulnerable
from leakscope.auditing.leakage import Leaks, measure_leakage
from leakscope.auditing.settings import Settings
from leakscope.auditing.shadows import Dealing, Shadowing, describe_trials, train_shadows
from leakscope.auditing.target import describe_target, target_control, unit_counts
from leakscope.auditing.verdict import adjust, decide
from leakscope.controls import Control
from leakscope.controls.blind import blind_control
from leakscope.controls.constant import constant_control, constant_model
from leakscope.controls.overlap import Overlap, find_overlap
from leakscope.controls.target import size_control, variation_control
from leakscope.evidence import Folds
from leakscope.metrics.outcome import Outcome
from leakscope.models import Remembering
from leakscope.protocols import Attack, Bools, Model, Progress, silent
from leakscope.records import Records, pool
from leakscope.report import RecordTable, Report, Verdict
from leakscope.report.build import SCHEMA_VERSION
from leakscope.trials import Trials

# Why leakage is not measured on one model alone.
NO_SHADOWS = "It is measured on shadow models, and there are none; give --shadows 16 (shadows=16)."


@dataclass(frozen=True)
class Subject:
    """What is audited: a model that remembers its answers, and the pool in canonical order.

    clusters (n,): rows that count together, of one person or equal; None where each stands alone.
    row (n,): the record's position in the user's input, on its side. The names are for the report.
    """

    model: Model
    records: Records
    membership: Bools
    folds: Folds
    clusters: NDArray[np.intp] | None
    row: NDArray[np.intp]
    dataset: str | None
    unit: str | None


@dataclass(frozen=True)
class Found:
    """What the attacks and the controls found; unjudged: why an attack that ran has no outcome."""

    battery: Battery
    unjudged: dict[str, str] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    trials: Trials | None = None
    leaks: Leaks = field(default_factory=Leaks)


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
) -> Report:
    """The audit of one model; both sides have passed the door."""
    started = time.monotonic()
    chosen, not_run = choose_attacks(settings.attacks, settings.channels)
    nonmembers = nonmembers.in_the_columns_of(members)
    overlap = _overlap(model, members, nonmembers, settings.max_overlap)
    kept = (np.arange(len(members)), np.arange(len(nonmembers)))
    if overlap is not None and not overlap.refused:
        kept = (np.flatnonzero(~overlap.members), np.flatnonzero(~overlap.found))
    records, membership, row = _canonical(members, nonmembers, *kept)
    controls = [_overlap_control(overlap), _size_control(records, membership)]
    # Equal predictions are not equal records.
    blocks = records.blocks(join_equal=_has_features(model))
    folds = Folds.draw(blocks, membership, settings.seed)
    subject = Subject(
        Remembering(model),
        records,
        membership,
        folds,
        # Equal records answer alike: as long as some are, they count together.
        blocks if blocks.max() + 1 < len(records) else None,
        row,
        dataset,
        unit or "unit",
    )
    void = next((control for control in controls if control.voids), None)
    if void is not None:
        why = f"The control of the {void.name} failed."
        left_out = dict.fromkeys((one.name for one in chosen), why)
        found = Found(Battery({}, left_out), leaks=Leaks.unmeasured(why))
    else:
        # Taking out records that are on both sides undoes the coin that put them there.
        coins = settings.randomized and len(kept[1]) == len(nonmembers)
        found = _attacked(subject, blocks, chosen, settings, progress, shadowing, coins=coins)
    controls += found.controls
    verdict = decide(found.outcomes, controls, settings.limit)
    strongest = next((one for one in found.outcomes if one.attack == verdict.attack), None)
    report = {
        **_heading(command, settings),
        "target": _target(subject, settings),
        "trials": describe_trials(shadowing, found.trials, blocks),
        "controls": [control.to_dict() for control in controls],
        "outcomes": [outcome.to_dict() for outcome in found.outcomes],
        "disclosures": [],
        "leakage": found.leaks.beside(strongest),
        "not_run": _reasons(not_run | found.battery.not_run | found.unjudged | found.leaks.not_run),
        "verdict": asdict(verdict),
        "cost": {
            "models": 1 if found.trials is None else 1 + len(found.trials),
            "seconds": round(time.monotonic() - started, 3),
        },
    }
    return Report(report, _table(subject, found, verdict))


def _attacked(
    subject: Subject,
    blocks: NDArray[np.intp],
    attacks: Sequence[Attack],
    settings: Settings,
    progress: Progress,
    shadowing: Shadowing | None,
    *,
    coins: bool,
) -> Found:
    """Train shadow models if asked, run every attack and control, and judge what came out.

    blocks (n,): what stays together in a shadow model. coins: whether one put each record on its
    side.
    """
    records, membership, seed = subject.records, subject.membership, settings.seed
    trials, leaks = None, Leaks.unmeasured(NO_SHADOWS)
    if shadowing is not None:
        dealing = Dealing(blocks, membership, shadowing.models)
        trials = train_shadows(
            shadowing, subject.model, records, dealing, attacks, seed=seed, progress=progress
        )
    with threadpool_limits(limits=1):  # small work: more threads than cores make it crawl
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
    judged, unjudged = judge_battery(
        battery,
        records,
        membership,
        subject.folds,
        subject.clusters,
        prior=settings.prior,
        randomized=coins,
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
    return Found(battery, unjudged, adjust(judged), controls, trials, leaks)


def _overlap(model: Model, members: Records, nonmembers: Records, limit: float) -> Overlap | None:
    """None where there is nothing to compare."""
    if not _has_features(model) and members.unit is None:
        return None
    return find_overlap(members, nonmembers, limit, by_features=_has_features(model))


def _has_features(model: Model) -> bool:
    """Whether records are more than the predictions saved for them."""
    return "queries" in model.abilities


def _overlap_control(overlap: Overlap | None) -> Control:
    if overlap is None:
        detail = (
            "Saved predictions have no features to compare: see that no record is on both sides."
        )
        return Control("overlap", passed=None, fatal=True, detail=detail)
    return overlap.control()


def _size_control(records: Records, membership: Bools) -> Control:
    units = unit_counts(records, membership)
    if units is None:
        return size_control(int(membership.sum()), int((~membership).sum()))
    return size_control(units["members"], units["nonmembers"], persons=True)


def _canonical(
    members: Records,
    nonmembers: Records,
    kept_members: NDArray[np.intp],
    kept_nonmembers: NDArray[np.intp],
) -> tuple[Records, Bools, NDArray[np.intp]]:
    """Both sides as one pool in canonical order, with membership and rows in the user's input."""
    records, membership = pool(members.take(kept_members), nonmembers.take(kept_nonmembers))
    row = np.concatenate([kept_members, kept_nonmembers])
    order = records.canonical_order(membership)
    return records.take(order), membership[order], row[order]


def _controls(
    subject: Subject, battery: Battery, seed: int, progress: Progress, trials: Trials | None
) -> list[Control]:
    model, records, membership = subject.model, subject.records, subject.membership
    progress("running the blind baseline", 0, 2)
    if _has_features(model):
        blind = blind_control(records, membership, subject.folds, seed)
    else:
        detail = (
            "Saved predictions have no features that a classifier blind to the model could see."
        )
        blind = Control("blind baseline", passed=None, fatal=True, detail=detail)
    progress("running the attacks on a constant model", 1, 2)
    attacks = [shot.attack for shot in battery.shots.values()]
    nobody = Remembering(constant_model(model, records))
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
        variation_control({name: shot.scores for name, shot in battery.shots.items()}),
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


def _table(subject: Subject, found: Found, verdict: Verdict) -> RecordTable:
    """One line per record, as the user gave them: members first."""
    battery, nats = found.battery, found.leaks.records
    flagged = np.zeros_like(subject.membership)
    if verdict.level == "leaks" and verdict.attack is not None:
        flagged = vulnerable(battery.shots[verdict.attack].scores, subject.membership)
    order = np.lexsort((subject.row, ~subject.membership))
    records = subject.records.take(order)
    return RecordTable.from_parts(
        row=subject.row[order],
        side=np.where(subject.membership[order], "member", "nonmember"),
        label=records.y,
        groups=records.groups,
        unit=None if records.unit is None else (subject.unit or "unit", records.unit),
        scores={name: shot.scores[order] for name, shot in battery.shots.items()},
        leakage=None if nats is None else nats[order],
        vulnerable=flagged[order],
    )
