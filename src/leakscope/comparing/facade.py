"""The front door: a recipe, records and defenses in; a comparison out."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import leakscope
from leakscope.auditing.facade import TRIALS
from leakscope.auditing.settings import typed
from leakscope.comparing.advice import Advisor, resolution
from leakscope.comparing.baselines import baselines, described
from leakscope.comparing.contest import Contest
from leakscope.comparing.defending import NONE
from leakscope.comparing.judging import Judged
from leakscope.comparing.running import Bench, Place
from leakscope.comparing.setup import Plan, make_plan
from leakscope.protocols import Attack, Defense, Progress, silent
from leakscope.report.comparison import FILES, SCHEMA_VERSION, Comparison
from leakscope.report.folders import check_folder
from leakscope.trials.backends import check_backend

HOW = {
    "division": "For each seed, members, reference records (D′) and evaluation non-members are "
    "three disjoint random sets, the same for every defense; persons and equal records are kept "
    "together. Defenses may use D′; nothing is judged on it.",
    "headline": "The strongest of all attacks, each taught on the defended model itself; the "
    "interval allows for its choice among them.",
    "intervals": "Means over seeds have intervals that cover both other records and other seeds "
    "(clustered in two ways, Student's quantile); with one seed they cover records alone.",
    "differences": "Paired by seed and by record; their intervals hold together for all defenses "
    "(Bonferroni), so that the best of many is not taken for better by luck. Significant: the "
    "interval excludes 0.",
    "frontier": "The defenses that no other significantly dominates: none is significantly better "
    "in both test accuracy and attack accuracy, or in one where the other is exactly equal. A "
    "defense is undecided unless it is significantly better than each other in one of both.",
    "seeds_needed": "How many seeds would decide if the observed differences and their spread "
    "between seeds hold.",
    "predict_seconds": "For all members and evaluation non-members of the seed.",
}


def compare(
    recipe: Any,
    records: Any,
    defenses: Sequence[str | Defense | Sequence[Defense]],
    *,
    members: int | None = None,
    seeds: int = 3,
    attacks: Sequence[str | Attack] | None = None,
    channels: Sequence[str] | None = None,
    shadows: int = 0,
    out: str | Path | None = None,
    workers: int | None = None,
    backend: str = "local",
    address: str | None = None,
    fresh: bool = False,
    limit: float = 0.1,
    seed: int = 0,
    progress: Progress | None = None,
    command: str | None = None,
    dataset: str | None = None,
) -> Comparison:
    """What each defense buys: privacy, accuracy, size and time, on the same records and seeds.

    recipe: an unfitted estimator, a name or a Recipe. records: Records, or (X, y), of classes.
    defenses: as they are written, such as "early-stop:12" or "prune:16+minmax:0.3" (the first is
    wrapped first), or Defense objects; none always stands beside them, and so do two baselines
    where one of them changes how a network is trained. members: how many records each model is
    trained on, by default a third. seeds: how many models of each defense.
    attacks, channels, shadows: as in ``audit``; shadow models have the defense too. limit: the
    advantage that counts as none. out: a folder for compare.json, compare.html and compare.csv,
    and for the models, which are found there again unless fresh; see ``audit`` for the others.
    """
    check_backend(backend, workers, address)
    if out is not None:
        check_folder(out, FILES)
    plan = make_plan(
        recipe,
        records,
        defenses,
        members=members,
        seeds=seeds,
        attacks=attacks,
        channels=channels,
        shadows=shadows,
        limit=limit,
        seed=seed,
    )
    told = typed(members=members, attacks=attacks, channels=channels, out=out and str(out))
    made = f"leakscope.compare(recipe, records, {[str(one) for one in plan.combinations]!r}, "
    made += f"{told}seeds={seeds}, shadows={shadows}, limit={limit}, seed={seed})"
    store = None if out is None else Path(out) / TRIALS
    place = Place(store, workers, backend, address, fresh)
    comparison = _compared(plan, place, progress or silent, command or made, dataset)
    if out is not None:
        comparison.save(out)
    return comparison


def _compared(
    plan: Plan, place: Place, progress: Progress, command: str, dataset: str | None
) -> Comparison:
    started = time.monotonic()
    bench = Bench(
        plan.records, plan.divisions, plan.attacks, plan.shadows, plan.seed, place, progress
    )
    judged = {one.name: bench.judge(one) for one in plan.compared}
    added, said = baselines(plan.compared, judged, plan.recipe, plan.members)
    judged |= {one.name: bench.judge(one) for one in added}
    contest = Contest(judged)
    kinds = described(said, contest.names)
    summaries = {
        name: contest.summary(name) | {"baseline": _baseline(name, kinds)} for name in contest.names
    }
    progress("done", 1, 1)
    return Comparison(
        {
            "schema_version": SCHEMA_VERSION,
            "leakscope": leakscope.__version__,
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "command": command,
            "setup": {
                "dataset": dataset,
                **plan.described(),
                "baselines": [one.to_dict() for one in said],
                "not_run": _not_run(plan, judged),
                "how": HOW,
            },
            "rows": [one.row for rows in judged.values() for one in rows],
            "summary": [*summaries.values()],
            "frontier": contest.frontier(),
            "frontier_resolution": resolution(contest),
            "advice": Advisor(contest, summaries, plan.limit, kinds).advice(),
            "cost": {
                "models": sum(len(rows) for rows in judged.values()) * (1 + plan.shadows),
                "seconds": round(time.monotonic() - started, 3),
            },
        }
    )


def _baseline(name: str, kinds: Mapping[str, str]) -> str | None:
    return "no defense" if name == NONE else kinds.get(name)


def _not_run(plan: Plan, judged: Mapping[str, Sequence[Judged]]) -> list[dict[str, Any]]:
    """Why an attack has no part in the headline; defenses: on which, none if not asked for."""
    reasons = {(attack, reason): list[str]() for attack, reason in plan.left_out.items()}
    reasons |= {(attack, reason): [*judged] for attack, reason in plan.unable.items()}
    for name, rows in judged.items():
        for one in dict.fromkeys(pair for row in rows for pair in row.not_run.items()):
            reasons.setdefault(one, []).append(name)
    return [
        {"attack": attack, "reason": reason, "defenses": names}
        for (attack, reason), names in sorted(reasons.items())
    ]
