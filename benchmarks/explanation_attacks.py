"""What explanations of a network leak: attacks on Location-30 beside what they should come to.

usage: python benchmarks/explanation_attacks.py [--data DIR] [--seed 0] [--networks]

The set-up of Shokri, Strobel & Zick 2021 on the data at hand: a tanh network 446–512–256–128–30,
2,000 members and 2,000 others, Adagrad at a rate of .01, 50 epochs. Accuracy with 95 % intervals;
thresholds are chosen on a fifth of the records and taught attacks cross-fitted. The controls are
the predicted label alone, ½ + gap / 2, and gradients that have lost their size. --networks adds the
attack networks, minutes each, and whether gradient and prediction together beat the better of both.
Fails where a figure is outside what it should be.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from leakscope.attacks.explanations import (
    NormalizedForest,
    PredictionVariance,
    VarianceTree,
    accuracy_of_gap,
)
from leakscope.attacks.network import (
    GradientLabelNetwork,
    GradientNetwork,
    GradientPredictionNetwork,
    NetworkAttack,
    PredictionNetwork,
)
from leakscope.attacks.threshold import LabelGap, LossThreshold
from leakscope.auditing.battery import OF_MEMBERS, Shot, channel_of
from leakscope.auditing.choosing import attack_of
from leakscope.channels.explanations import SmoothGrad
from leakscope.channels.summaries import GradientSummary, SmoothGradSummary
from leakscope.datasets import load_dataset
from leakscope.evidence import Evidence, Folds
from leakscope.metrics import Roc, roc
from leakscope.metrics.intervals import Interval
from leakscope.metrics.paired import auc_difference
from leakscope.models import class_numbers
from leakscope.networks import network
from leakscope.protocols import Attack, Channel, Model
from leakscope.recipes.torch import TorchRecipe
from leakscope.records import Records, pool

MEMBERS = 2000
NETWORKS = (GradientNetwork, GradientLabelNetwork, PredictionNetwork, GradientPredictionNetwork)


@dataclass(frozen=True)
class Row:
    """One line of the table: an attack through a channel, and what its accuracy should be."""

    name: str
    attack: Attack
    channel: Channel
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True, eq=False)
class Setup:
    """A network, both sides in one order, and who was a member."""

    model: Model
    records: Records
    membership: np.ndarray
    folds: Folds

    @classmethod
    def train(cls, seed: int) -> Setup:
        """The network of the paper, trained on half of 4,000 records."""
        location = load_dataset("location30")
        order = np.random.default_rng(seed).permutation(len(location))
        members, others = (location.take(order[first : first + MEMBERS]) for first in (0, MEMBERS))
        recipe = TorchRecipe(
            "Location-30",
            partial(network, "shokri-location"),
            optimizer="adagrad",
            lr=0.01,
            decay=1e-7,
            epochs=50,
        )
        model = recipe.fit(members, seed)
        records, membership = pool(members, others)
        order = records.canonical_order()
        records, membership = records.take(order), membership[order]
        folds = Folds.draw(records.blocks(), membership, seed)
        return cls(model, records, membership, folds)

    def shoot(self, attack: Attack, channel: Channel, seed: int = 0) -> tuple[np.ndarray, Roc]:
        """The scores of an attack (n,), and what they come to."""
        evidence = Evidence(
            task="classification",
            observations=channel.observe(self.model, self.records),
            labels=class_numbers(self.model, self.records.y),
            classes=len(np.unique(self.records.y)),
            folds=self.folds,
            seed=seed,
            knowledge=attack.knowledge,
            _membership=self.membership if attack.knowledge in OF_MEMBERS else None,
        )
        shot = Shot(attack, attack.score(evidence), None)
        threshold = (
            attack.threshold(evidence) if shot.taught or attack.name == "label-gap" else None
        )
        found = roc(
            shot.scores,
            self.membership,
            threshold=threshold,
            calibration=self.folds.calibration if threshold is None else None,
            inflation=shot.inflation,
        )
        return shot.scores, found


def rows() -> Iterator[Row]:
    """The table: figures of the issue and of PAPERS, and what stands beside them."""
    probability = channel_of("gradient-probability-summary", 0)
    probabilities = channel_of("probabilities", 0)
    yield Row("label alone (control)", LabelGap(), channel_of("label", 0))
    yield Row("loss, threshold", LossThreshold(), channel_of("loss", 0), 0.77, 0.85)
    yield Row("Var(c), threshold", PredictionVariance(), probabilities)
    yield Row("Var(c), tree", VarianceTree(), probabilities)
    yield Row("‖∇logit‖₁, threshold", attack_of("gradient-norm"), GradientSummary(), 0.59, 0.67)
    yield Row("‖∇logit‖₁, tree", attack_of("gradient-tree"), GradientSummary(), 0.59, 0.67)
    yield Row("∇logit, forest", attack_of("gradient-forest"), GradientSummary())
    yield Row(
        "∇logit normalized, forest (control)", NormalizedForest(), GradientSummary(), 0.46, 0.56
    )
    yield Row(
        "‖∇prob‖₁, threshold", attack_of("gradient-probability-norm"), probability, 0.73, 0.81
    )
    yield Row("‖∇prob‖₁, tree", attack_of("gradient-probability-tree"), probability, 0.73, 0.81)
    yield Row("∇prob, forest", attack_of("gradient-probability-forest"), probability)
    yield Row("∇prob normalized, forest (control)", NormalizedForest(), probability, 0.46, 0.56)
    for sigma, least in ((0.2, 0.6), (0.5, 0.5), (1.0, 0.0)):
        smooth = SmoothGradSummary(SmoothGrad(sigma=sigma, samples=20))
        chance = (0.46, 0.54) if sigma >= 0.5 else (0.0, 1.0)
        yield Row(
            f"SmoothGrad σ = {sigma}, ‖·‖₁ threshold", attack_of("smoothgrad-norm"), smooth, *chance
        )
        yield Row(f"SmoothGrad σ = {sigma}, forest", attack_of("smoothgrad-forest"), smooth, least)


def through_networks(setup: Setup) -> bool:
    """Print what the attack networks come to; whether both together are no better than one."""
    normalized: NetworkAttack = GradientNetwork(normalized=True)
    scores = {}
    for kind in NETWORKS:
        attack: NetworkAttack = kind()
        scores[kind], found = setup.shoot(attack, channel_of(attack.channel, 0))
        show(attack.name, found.accuracy, found.auc)
    _, control = setup.shoot(normalized, channel_of(normalized.channel, 0))
    show("network-gradient, normalized (control)", control.accuracy, control.auc)
    both = scores[GradientPredictionNetwork]
    gains = [
        auc_difference(both, scores[alone], setup.membership, inflation=2.0)
        for alone in (GradientNetwork, PredictionNetwork)
    ]
    least = min(gains, key=lambda gain: gain.value)
    print(f"\n∇ + c less the better of the two, AUC: {told(least)}")
    return least.low <= 0 and control.accuracy.low <= 0.54


def told(figure: Interval) -> str:
    """A figure with its interval."""
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"


def show(name: str, accuracy: Interval, auc: Interval | None, limits: str = "") -> None:
    """Print one line of the table."""
    print(
        f"| {name} | {told(accuracy)} | {'' if auc is None else told(auc)} | {limits} |", flush=True
    )


def main() -> int:
    """Print the table; 0 if every figure is where it should be, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", help="the folder with location30.csv.xz")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--networks", action="store_true")
    options = parser.parse_args()
    if options.data:
        os.environ["LEAKSCOPE_DATA"] = options.data
    setup = Setup.train(options.seed)
    print("| attack | accuracy | AUC | should be |\n|---|---|---|---|")
    holds = True
    for row in rows():
        _, found = setup.shoot(row.attack, row.channel)
        limits = "" if (row.low, row.high) == (0.0, 1.0) else f"{row.low:.2f} – {row.high:.2f}"
        show(row.name, found.accuracy, found.auc, limits)
        holds &= row.low <= found.accuracy.value <= row.high
        if row.attack.name == "label-gap":
            show("½ + gap / 2 (control)", accuracy_of_gap(found.advantage), None)
    if options.networks:
        holds &= through_networks(setup)
    return int(not holds)


if __name__ == "__main__":
    raise SystemExit(main())
