"""What gradients leak by overfitting: Figures 1 and 2 of Shokri, Strobel & Zick (2021).

Section 4.3.3: the attack network with several kinds of access, by the gap between the accuracies in
training and on others; and against it a decision tree that knows one number, the gradient's 1-norm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from leakscope.attacks.explanations import NormalizedForest, accuracy_of_gap
from leakscope.attacks.network import (
    GradientLabelNetwork,
    GradientNetwork,
    GradientPredictionNetwork,
    NetworkAttack,
    PredictionNetwork,
)
from leakscope.attacks.threshold import LabelGap, LossThreshold
from leakscope.auditing.battery import channel_of
from leakscope.auditing.choosing import attack_of
from leakscope.metrics.intervals import Interval, newcombe
from leakscope.metrics.paired import auc_difference
from leakscope.papers.experiment import Experiment, Row, Scale, Setting
from leakscope.papers.shokri_judging import (
    Attempt,
    attempt,
    ends,
    grouped,
    over_targets,
    places,
    told,
)
from leakscope.papers.shokri_parallel import each
from leakscope.papers.shokri_samples import PAPER
from leakscope.papers.shokri_targets import Pool, Target, pools, setup_of, targets_of
from leakscope.protocols import Attack
from leakscope.registry import register

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The paper does not say how large the batches of the attack network are.
BATCH: dict[Scale, int] = {"quick": 64, "full": 32}
EPOCHS = 15

NETWORKS: dict[str, type[NetworkAttack]] = {
    "gradient": GradientNetwork,
    "gradient + label": GradientLabelNetwork,
    "prediction": PredictionNetwork,
    "gradient + prediction": GradientPredictionNetwork,
}
HALF_GAP = "½ + gap/2"
CONTROLS = ("label right", HALF_GAP)
# What an earlier run of Location-30 had after 50 epochs; not the paper's.
REFERENCE = {
    "loss": (0.77, 0.85),
    "‖∇logit‖₁": (0.59, 0.67),
    "‖∇probability‖₁": (0.73, 0.81),
}


def simple_attacks() -> dict[str, Attack]:
    """The attacks that compare one number with a threshold."""
    return {
        "loss": LossThreshold(),
        "‖∇logit‖₁": attack_of("gradient-norm"),
        "‖∇probability‖₁": attack_of("gradient-probability-norm"),
        "label right": LabelGap(),
    }


def network_attacks(setting: Setting) -> dict[str, NetworkAttack]:
    """The attack network with each kind of access of Figure 1."""
    return {name: kind(**training_of(setting)) for name, kind in NETWORKS.items()}


@register("experiment", "shokri-fig1", paper=f"{PAPER}, figure 1")
def attacks_by_overfitting(setting: Setting) -> Experiment:
    """The accuracy of attacks through gradients and predictions, by overfitting."""
    found, missing = pools(setting)
    targets = targets_of(found, setting)
    results = _attempts(targets, {**network_attacks(setting), **simple_attacks()}, setting)
    pairs = list(zip(targets, results, strict=True))
    rows = [row for group in grouped(pairs, _level) for row in _rows(group)]
    return Experiment(
        experiment="shokri-fig1",
        paper=f"{PAPER}, figure 1",
        setup=setup_of(found, setting, attack_network=_told_training(setting)),
        rows=rows,
        paper_rows=[
            {"claim": "vulnerability grows linearly in the degree of overfitting",
             "source": "observation 4.1"},
            {"claim": "loss-based attacks offer the best performance", "source": "observation 4.2"},
            {"claim": "no significant gain from both the prediction vector and the gradient",
             "source": "observation 4.3"},
        ],
        notes=[*_notes(rows, found), *_substitution(pairs), *missing, *_fewer(found, setting)],
        draw=partial(_draw, rows, found),
    )  # fmt: skip


@register("experiment", "shokri-fig2", paper=f"{PAPER}, figure 2")
def network_against_tree(setting: Setting) -> Experiment:
    """A network on the whole gradient against a decision tree on its 1-norm, by overfitting."""
    found, missing = pools(setting, wide=True)
    targets = targets_of(found, setting)
    training = training_of(setting)
    attacks: dict[str, Attack] = {
        "network": GradientNetwork(**training),
        "tree on ‖∇‖₁": attack_of("gradient-tree"),
        "network, normalized": GradientNetwork(**training, normalized=True),
        "forest, normalized": NormalizedForest(),
    }
    results = _attempts(targets, attacks, setting)
    pairs = list(zip(targets, results, strict=True))
    rows = [row for group in grouped(pairs, _level) for row in _rows(group, by="attack")]
    return Experiment(
        experiment="shokri-fig2",
        paper=f"{PAPER}, figure 2",
        setup=setup_of(
            found, setting, attack_network=_told_training(setting), gradient="of the logit"
        ),
        rows=rows,
        paper_rows=[
            {"dataset": name, "claim": claim, "source": "figure 2 and section 4.3.3"}
            for name, claim in (
                ("purchase100", "the network slightly outperforms the tree"),
                ("texas100", "almost identical"),
                ("cifar100", "the tree outperforms the network"),
                ("all", "normalized gradients do not outperform the random baseline"),
            )
        ],
        notes=[*_tree_notes(rows, found), *missing, *_fewer(found, setting)],
        draw=partial(_draw, rows, found, by="attack"),
    )


def training_of(setting: Setting) -> dict[str, Any]:
    """How the attack network is trained at this scale, as its options."""
    return {"batch_size": BATCH[setting.scale], "epochs": EPOCHS}


def _told_training(setting: Setting) -> str:
    return (
        f"figure 11, Adagrad at a rate of 0.001, {EPOCHS} epochs, batches of "
        f"{BATCH[setting.scale]}; cross-fitted, each half taught by the other"
    )


def _level(pair: tuple[Target, Any]) -> tuple[str, float | None]:
    return pair[0].source.name, pair[0].level


def _attempts(
    targets: Sequence[Target], attacks: Mapping[str, Attack], setting: Setting
) -> list[dict[str, Attempt]]:
    """Each attack on each target, by name."""
    tasks = [
        partial(attempt, target, attack, channel_of(attack.channel, setting.seed))
        for target in targets
        for attack in attacks.values()
    ]
    results = each(tasks, setting, "attacking")
    size = len(attacks)
    return [
        dict(zip(attacks, results[at * size : (at + 1) * size], strict=True))
        for at in range(len(targets))
    ]


def _rows(
    group: Sequence[tuple[Target, Mapping[str, Attempt]]], by: str = "access"
) -> Iterator[dict[str, Any]]:
    """A row for each attack on the targets of one data set and level."""
    place = places([target for target, _ in group])
    for name in group[0][1]:
        yield {**place, by: name, **ends(over_targets([one[name].accuracy for _, one in group]))}
    if by == "access":
        control = over_targets([accuracy_of_gap(_gap(target)) for target, _ in group])
        yield {**place, by: HALF_GAP, **ends(control)}


def _gap(target: Target) -> Interval:
    """The difference of the accuracies on members and on others."""
    (train, test), n = target.accuracies, int(target.membership.sum())
    return newcombe(train, n, test, len(target.membership) - n)


def _sweeps(rows: Sequence[Row], pool: Pool, by: str) -> Iterator[tuple[str, list[Row]]]:
    """Each attack on a data set by its name, with its rows from the smallest gap on."""
    own = [row for row in rows if row["dataset"] == pool.source.name]
    for name in dict.fromkeys(row[by] for row in own):
        yield name, sorted((row for row in own if row[by] == name), key=lambda row: row["gap"])


def _notes(rows: Sequence[Row], found: Sequence[Pool]) -> Iterator[str]:
    """Which attacks gain by overfitting, what is best, and what an earlier run had."""
    for one in found:
        yield _growth(rows, one)
    for one in found:
        last = _last(rows, one)
        best = max((r for r in last if r["access"] not in CONTROLS), key=_accuracy)
        half = next(row for row in last if row["access"] == HALF_GAP)
        beats = "more than" if best["low"] > half["high"] else "not surely more than"
        yield (
            f"{one.source.title} after the last epoch: the best is {best['access']} with "
            f"{told(best)}, {beats} {HALF_GAP}, which is {told(half)}."
        )
        if one.source.name == "location30":
            yield from _against_reference(last)


def _growth(rows: Sequence[Row], pool: Pool) -> str:
    """From the smallest gap to the largest: each attack's accuracy, and whose surely rises."""
    moves, rising = list[str](), list[str]()
    for name, own in _sweeps(rows, pool, "access"):
        if name in CONTROLS:
            continue
        first, last = own[0], own[-1]
        moves.append(f"{name} {_accuracy(first):.3f} to {_accuracy(last):.3f}")
        if last["low"] > first["high"]:
            rising.append(name)
    gaps = sorted(row["gap"] for row in rows if row["dataset"] == pool.source.name)
    sure = f"surely for {', '.join(rising)}" if rising else "surely for none"
    return (
        f"{pool.source.title}, from a gap of {gaps[0]:.2f} to one of {gaps[-1]:.2f}: "
        f"{'; '.join(moves)}. Accuracy rises with the gap {sure}."
    )


def _accuracy(row: Row) -> float:
    return float(row["attack_accuracy"])


def _last(rows: Sequence[Row], pool: Pool) -> list[Row]:
    """The rows of a data set after its last epoch."""
    return [r for r in rows if r["dataset"] == pool.source.name and r["level"] is None]


def _against_reference(last: Sequence[Row]) -> Iterator[str]:
    for name, (low, high) in REFERENCE.items():
        row = next(row for row in last if row["access"] == name)
        inside = "inside" if low <= _accuracy(row) <= high else "outside"
        yield (
            f"Location-30 after the last epoch, {name}: {told(row)}, {inside} of {low:.2f} to "
            f"{high:.2f}, where an earlier run came out."
        )


def _substitution(pairs: Sequence[tuple[Target, Mapping[str, Attempt]]]) -> Iterator[str]:
    """Whether gradient and prediction together beat the better of the two, after the last epoch."""
    for group in grouped((pair for pair in pairs if pair[0].level is None), _level):
        gains = []
        for target, made in group:
            both = made["gradient + prediction"].scores
            alone = [
                auc_difference(both, made[name].scores, target.membership, inflation=2.0)
                for name in ("gradient", "prediction")
            ]
            gains.append(min(alone, key=lambda gain: gain.value))
        gain = over_targets(gains)
        holds = "does not hold" if gain.low > 0 else "holds"
        yield (
            f"{group[0][0].source.title}: the AUC of gradient + prediction less that of the better "
            f"of the two is {told(vars(gain), 'value')}; that both are no better {holds}."
        )


def _tree_notes(rows: Sequence[Row], found: Sequence[Pool]) -> Iterator[str]:
    """Network against tree, and whether normalized gradients fail, after the last epoch."""
    for one in found:
        last = {row["attack"]: row for row in _last(rows, one)}
        network, tree = last["network"], last["tree on ‖∇‖₁"]
        yield (
            f"{one.source.title} after the last epoch: network {told(network)}, tree on the 1-norm "
            f"{told(tree)}; that one number does as well as the whole gradient "
            f"{'does not hold' if tree['high'] < network['low'] else 'holds'}."
        )
        for name in ("network, normalized", "forest, normalized"):
            control = last[name]
            chance = "at chance, as the paper says" if control["low"] <= 0.5 else "above chance"
            yield f"{one.source.title}, {name}: {told(control)}, {chance}."


def _fewer(found: Sequence[Pool], setting: Setting) -> list[str]:
    """Where there are fewer members than in the paper."""
    sizes = {one.source.title: one.source.members[setting.scale] for one in found}
    fewer = [f"{size:,} of {title}" for title, size in sizes.items() if size < 10_000]
    if not fewer:
        return []
    return [f"The paper has 10,000 members and 10,000 others; here are {', '.join(fewer)} a side."]


def _draw(rows: Sequence[Row], found: Sequence[Pool], by: str = "access") -> Figure:
    from leakscope.papers.shokri_pictures import Sweep, curve, picture

    def panel(pool: Pool) -> Sweep:
        curves = [
            replace(
                curve(own, name, "gap", "attack_accuracy", ("low", "high")),
                dashed=name == HALF_GAP or name.endswith("normalized"),
            )
            for name, own in _sweeps(rows, pool, by)
            if name != "label right"  # which is ½ + gap/2 where there are as many others
        ]
        title = pool.source.title
        return Sweep(title, curves, "train–test accuracy gap", "attack accuracy", level=0.5)

    return picture([panel(one) for one in found])
