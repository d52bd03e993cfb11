"""Figure 2 of Wang et al. (2020): the loss of a network, and an attack on it, epoch by epoch.

Upper row: the classification loss of the members while the network is trained. Lower row: how
accurate the inference network of Nasr et al. (2018) is on records it was not taught with, while it
is taught the outputs of the trained network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from leakscope.comparing.defending import Defended
from leakscope.comparing.dividing import Seat
from leakscope.comparing.setup import Plan
from leakscope.evidence import Folds
from leakscope.papers.experiment import Experiment, Row, Scale, Setting
from leakscope.papers.shokri_parallel import each
from leakscope.papers.shokri_samples import pooled_share
from leakscope.papers.wang_attack import inference_recipe, seen_by_inference
from leakscope.papers.wang_comparing import folder_of, plan_of, telling
from leakscope.papers.wang_setups import CIFAR, MNIST, PAPER, Pool, first_there, setup_of
from leakscope.papers.wang_tracing import LossCurve, TracedRecipe
from leakscope.protocols import Floats
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records
from leakscope.registry import register
from leakscope.trials import Trials, run_trials

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import nn

SHOWN: dict[Scale, tuple[str, ...]] = {
    "quick": (MNIST.name,), "full": (CIFAR[0].name, MNIST.name)
}  # fmt: skip
KINDS = ("prune", "minmax")
LOSS, ATTACK = "classification loss", "attack accuracy"
# For how long the inference network is taught.
EPOCHS = 30
CURVES = "curves"


@dataclass(frozen=True, eq=False)
class Traced:
    """The networks of one defense: losses (s, e) and held-out hits (s, epochs) of asked (s,)."""

    defense: str
    losses: Floats
    hits: Floats
    asked: Sequence[int]


@register("experiment", "wang-fig2", paper=f"{PAPER}, figure 2")
def losses_and_attacks(setting: Setting) -> Experiment:
    """Classification loss and attack accuracy by epoch: no defense, pruning, min-max."""
    pool, missing = first_there(setting, SHOWN[setting.scale])
    plan = plan_of(pool, KINDS, setting)
    made = [traced(pool, plan, defended, setting) for defended in plan.compared]
    rows = [row for one in made for row in _rows(pool.setup.name, one)]
    return Experiment(
        experiment="wang-fig2",
        paper=f"{PAPER}, figure 2",
        setup=setup_of(
            [pool],
            setting,
            losses="of all members after each epoch, without the penalties of a defense; means "
            "over seeds",
            attack=f"the inference network on f(x) and y, taught for {EPOCHS} epochs with one half "
            "of members and others, judged on the other half",
        ),
        rows=rows,
        paper_rows=[
            {"claim": "pruning converges in less than 20 epochs", "source": "section 5.3"},
            {"claim": "pruning has the highest final classification loss",
             "source": "section 5.3"},
        ],
        notes=[*_notes(pool.setup.name, made, rows), *missing],
        draw=partial(_draw, rows),
    )  # fmt: skip


def traced(pool: Pool, plan: Plan, defended: Defended, setting: Setting) -> Traced:
    """Train the networks of one defense, or find them, and teach an inference network on each."""
    assert isinstance(defended.recipe, TorchRecipe)  # the set-ups are of torch networks
    folder = folder_of(pool, setting)
    trials = run_trials(
        TracedRecipe(defended.recipe.name, defended.recipe),
        plan.records,
        np.stack([division.roles for division in plan.divisions]),
        [LossCurve(), "probabilities"],
        seed=plan.seed,
        store=None if folder is None else folder / CURVES,
        workers=setting.workers,
        progress=telling(pool, setting, defended.name),
    )
    tasks = [_attack_of(plan, trials, number) for number in range(len(trials))]
    told = each(tasks, setting, f"{pool.setup.name}, {defended.name}: teaching attacks")
    return Traced(
        defended.name,
        np.asarray(trials.observations[LossCurve.name][:, 0]),
        np.stack([hits for hits, _ in told]),
        [asked for _, asked in told],
    )


def _attack_of(plan: Plan, trials: Trials, number: int) -> partial[tuple[Floats, int]]:
    """The attack on the model of one seed, with what it sees of whom."""
    seat = Seat.of(plan.records, plan.divisions[number], number, plan.seed)
    seen = np.asarray(trials.observations["probabilities"][number])[seat.division.asked]
    labels = np.unique(plan.records.y, return_inverse=True)[1][seat.division.asked]
    return partial(attack_curve, seen, labels, seat.membership, seat.folds, plan.seed)


def attack_curve(
    probabilities: Floats, labels: Any, membership: Any, folds: Folds, seed: int
) -> tuple[Floats, int]:
    """How many held-out records the inference network is right about after each epoch, (e,).

    And how many there are. probabilities (n, k), labels (n,) as class numbers, membership (n,).
    """
    seen = Records(seen_by_inference(probabilities, labels), membership.astype(int))
    shares = list[float]()
    # A gap that is never seen: held-out records are looked at, and nothing stops.
    recipe = inference_recipe(EPOCHS, stop_at_gap=1.0, hooks=_noting(shares))
    roles = np.where(folds.half, 1, 2).astype(np.int8)
    recipe.fit_many(seen, roles[None], [seed])
    asked = int((roles == 2).sum())
    return np.round(np.array(shares) * asked), asked


def _noting(shares: list[float]) -> Any:
    from leakscope.networks.training import Figures, Hooks

    def look(module: nn.Module, epoch: int, figures: Figures) -> None:
        assert figures.validation_accuracy is not None
        shares.append(figures.validation_accuracy)

    return Hooks(on_epoch=look)


def _rows(setup: str, one: Traced) -> Iterator[dict[str, Any]]:
    base = {"setup": setup, "defense": one.defense}
    for epoch, value in enumerate(one.losses.mean(axis=0).tolist(), start=1):
        yield {**base, "curve": LOSS, "epoch": epoch, "value": value, "low": None, "high": None}
    for epoch, hits in enumerate(one.hits.T.tolist(), start=1):
        share = pooled_share(hits, one.asked)
        ends = {key: getattr(share, key) / 100 for key in ("value", "low", "high")}
        yield {**base, "curve": ATTACK, "epoch": epoch, **ends}


def _notes(setup: str, made: Sequence[Traced], rows: Sequence[Row]) -> Iterator[str]:
    final = {one.defense: float(one.losses[:, -1].mean()) for one in made}
    highest = max(final, key=lambda name: final[name])
    told = ", ".join(f"{name} {value:.4f}" for name, value in final.items())
    pruned = made[1]
    yield (
        f"{setup}: the classification loss ends at {told}; the highest is that of {highest}, where "
        f"the paper has that of pruning."
    )
    settled = _settled(pruned.losses.mean(axis=0))
    yield (
        f"{setup}: the loss of {pruned.defense} stays within a tenth of its range from its last "
        f"value from epoch {settled} of {pruned.losses.shape[1]} on, where the paper has it "
        f"converge in less than 20."
    )
    for one in made:
        last = [row for row in rows if (row["defense"], row["curve"]) == (one.defense, ATTACK)][-1]
        above = "above chance" if last["low"] > 0.5 else "not surely above chance"
        yield (
            f"{setup}, {one.defense}: after {last['epoch']} epochs the inference network is right "
            f"about {last['value']:.3f} ({last['low']:.3f} to {last['high']:.3f}) of held-out "
            f"records, {above}."
        )
    yield "The inference network is one attack of several; Table 1 has the strongest of all."


def _settled(losses: Floats) -> int:
    """The epoch from which on a curve stays within a tenth of its range from its last value."""
    far = np.flatnonzero(np.abs(losses - losses[-1]) > 0.1 * np.ptp(losses))
    return int(far[-1]) + 2 if len(far) else 1


def _draw(rows: Sequence[Row]) -> Figure:
    from leakscope.papers.wang_pictures import curves

    return curves(rows, (LOSS, ATTACK))
