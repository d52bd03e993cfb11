"""Gradients by dimension: Figures 5 and 14 of Shokri, Strobel & Zick (2021).

Section 4.4 and appendix E: made-up records of n features in k classes, half of them members, and
the correlation of membership with the 1-norm of the gradient, for networks of three sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from leakscope.datasets import load_dataset
from leakscope.metrics.intervals import Interval
from leakscope.models.attributions import Output
from leakscope.papers.experiment import Experiment, Row, Scale, Setting
from leakscope.papers.shokri_judging import correlation, grouped, over_targets, told
from leakscope.papers.shokri_parallel import each
from leakscope.papers.shokri_samples import PAPER, columns
from leakscope.papers.shokri_signals import gradient_norms
from leakscope.registry import register

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEATURES = (
    1, 2, 5, 10, 14, 20, 50, 100, 127, 200, 500, 600, 1000, 2000, 3072, 5000, 6000, 10_000,
)  # fmt: skip
CLASSES = (2, 100)
EPOCHS = 100
SEEDS: dict[Scale, int] = {"quick": 1, "full": 3}
# The corners of a cube are the centres: 100 classes need seven dimensions.
LEAST = {2: 1, 100: 7}
# Below this size a correlation is called none; from the second on, at 1,000 features, it is there.
NOTHING, THERE = 0.1, {2: 0.3, 100: 0.5}


@dataclass(frozen=True)
class Study:
    """What a figure sweeps: the networks, the numbers of features, and how many records."""

    networks: tuple[str, ...]
    features: tuple[int, ...]
    records: int = 20_000


FIGURE_5: dict[Scale, Study] = {
    "quick": Study(("base",), (10, 100, 1000)),
    "full": Study(("base",), FEATURES),
}
FIGURE_14: dict[Scale, Study] = {
    "quick": Study(("small", "base", "big"), (100, 1000), 10_000),
    "full": Study(("small", "base", "big"), FEATURES),
}
LAYERS = {"small": "5", "base": "50, 50", "big": "100, 100, 100"}


@dataclass(frozen=True)
class Case:
    """One network on one set of made-up records."""

    network: str
    features: int
    classes: int
    records: int
    seed: int

    @property
    def kind(self) -> tuple[str, int, int]:
        """All but the seed and the number of records."""
        return self.network, self.features, self.classes


@dataclass(frozen=True)
class Measured:
    """What came out: the shares of members and others predicted right, and the correlations."""

    train_accuracy: float
    test_accuracy: float
    correlations: Mapping[Output, Interval]


@register("experiment", "shokri-fig5", paper=f"{PAPER}, figure 5")
def correlation_by_dimension(setting: Setting) -> Experiment:
    """How membership goes with the gradient's norm, by the number of features and of classes."""
    return _experiment("shokri-fig5", "figure 5", FIGURE_5[setting.scale], setting)


@register("experiment", "shokri-fig14", paper=f"{PAPER}, figure 14")
def correlation_by_capacity(setting: Setting) -> Experiment:
    """How membership goes with the gradient's norm, by features, for networks of three sizes."""
    return _experiment("shokri-fig14", "figure 14", FIGURE_14[setting.scale], setting)


def _experiment(name: str, figure: str, study: Study, setting: Setting) -> Experiment:
    seeds = SEEDS[setting.scale] if setting.seeds is None else setting.seeds
    cases = [
        Case(network, features, classes, study.records, setting.seed + number)
        for network in study.networks
        for classes in CLASSES
        for features in study.features
        if features >= LEAST[classes]
        for number in range(seeds)
    ]
    measured = _measure_all(cases, setting)
    pairs = zip(cases, measured, strict=True)
    rows = [_row(group) for group in grouped(pairs, lambda pair: pair[0].kind)]
    return Experiment(
        experiment=name,
        paper=f"{PAPER}, {figure}",
        setup=_setup(study, setting, seeds),
        rows=rows,
        paper_rows=[
            {"features": "at most 100", "claim": "almost no correlation"},
            {"features": "1,000 to 10,000", "claim": "there is a correlation"},
            {"features": "beyond", "claim": "it starts to decrease"},
        ],
        notes=[*_notes(rows), *_left_out(study)],
        draw=partial(_draw, rows),
    )


def _measure_all(cases: Sequence[Case], setting: Setting) -> list[Measured]:
    """Each case, those of most features first: they take longest."""
    order = sorted(range(len(cases)), key=lambda at: -cases[at].features)
    found = each([partial(measure, cases[at]) for at in order], setting, "training networks")
    return [one for _, one in sorted(zip(order, found, strict=True), key=lambda pair: pair[0])]


def measure(case: Case) -> Measured:
    """Train one network on half of the records, and look at all of them."""
    from leakscope.networks import network
    from leakscope.recipes.torch import TorchRecipe

    records = load_dataset(
        "synthetic", n=case.records, features=case.features, classes=case.classes, seed=case.seed
    )
    roles = (np.arange(len(records)) < len(records) // 2).astype(np.int8)  # they come shuffled
    recipe = TorchRecipe(
        case.network,
        partial(network, f"shokri-{case.network}"),
        optimizer="adagrad",
        lr=0.01,
        decay=1e-7,
        epochs=EPOCHS,
        classes=tuple(range(case.classes)),
    )
    (model,) = recipe.fit_many(records, roles[None], [case.seed])
    X, membership = np.asarray(records.X), roles == 1
    right = model.predict(X) == records.y
    members = membership.astype(np.float64)
    return Measured(
        float(right[membership].mean()),
        float(right[~membership].mean()),
        {
            output: correlation(members, gradient_norms(model, X, output))
            for output in get_args(Output)
        },
    )


def _row(group: Sequence[tuple[Case, Measured]]) -> dict[str, Any]:
    """The mean over seeds."""
    (network, features, classes), made = group[0][0].kind, [one for _, one in group]
    return {
        "network": network,
        "features": features,
        "classes": classes,
        **{
            key: value
            for output in get_args(Output)
            for key, value in columns(
                f"correlation_{output}", over_targets([one.correlations[output] for one in made])
            ).items()
        },
        "train_accuracy": float(np.mean([one.train_accuracy for one in made])),
        "test_accuracy": float(np.mean([one.test_accuracy for one in made])),
    }


def _setup(study: Study, setting: Setting, seeds: int) -> dict[str, Any]:
    return {
        "networks": {name: f"hidden layers of {LAYERS[name]}, tanh" for name in study.networks},
        "training": f"Adagrad at a rate of 0.01, decay 1e-7, {EPOCHS} epochs, batches of 32, first "
        "weights from N(0, 0.01²)",
        "records": f"{study.records:,}, half of them members; Gaussian clusters at corners of a "
        "cube, one per class, all features informative, one label of a hundred drawn at random",
        "features": list(study.features),
        "classes": list(CLASSES),
        "scale": setting.scale,
        "seed": setting.seed,
        "seeds": seeds,
    }


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    """Where the claims about few and about 1,000 features hold."""
    for network in dict.fromkeys(row["network"] for row in rows):
        for classes in CLASSES:
            own = [r for r in rows if (r["network"], r["classes"]) == (network, classes)]
            yield from (
                f"{network.capitalize()}, {classes} classes, the {output}: {_told(own, output)}."
                for output in get_args(Output)
            )


def _told(rows: Sequence[Row], output: Output) -> str:
    key = f"correlation_{output}"
    few = [row for row in rows if row["features"] <= 100]
    parts = []
    if few:
        most = max(few, key=lambda row: abs(row[key]))
        holds = "holds" if abs(most[key]) < NOTHING else "does not hold"
        parts.append(
            f"the largest correlation up to 100 features is {told(most, key, f'{key}_low')}, at "
            f"{most['features']}; that it is below {NOTHING} in size {holds}"
        )
    for row in (row for row in rows if row["features"] == 1000):
        least = THERE[row["classes"]]
        holds = "holds" if abs(row[key]) > least else "does not hold"
        parts.append(
            f"at 1,000 features it is {told(row, key, f'{key}_low')}; that it is above {least} in "
            f"size {holds}"
        )
    beyond = [row for row in rows if row["features"] >= 1000]
    if len(beyond) > 1:
        largest = max(beyond, key=lambda row: abs(row[key]))
        last = beyond[-1]
        parts.append(
            f"from 1,000 features on it is largest at {largest['features']:,} "
            f"({told(largest, key, f'{key}_low')}) and {told(last, key, f'{key}_low')} at "
            f"{last['features']:,}"
        )
    return "; ".join(parts)


def _left_out(study: Study) -> list[str]:
    notes = []
    if study.features != FEATURES:
        told = ", ".join(f"{n:,}" for n in study.features)
        notes.append(f"The paper has 18 numbers of features up to 10,000; here are {told}.")
    if study.records < 20_000:
        notes.append(f"The paper has 20,000 records; here are {study.records:,}.")
    if min(study.features) < LEAST[100]:
        notes.append("100 classes need at least 7 features: fewer are left out for them.")
    return notes


def _draw(rows: Sequence[Row]) -> Figure:
    from leakscope.papers.shokri_pictures import Sweep, curve, picture

    networks = list(dict.fromkeys(row["network"] for row in rows))

    def panel(classes: int, output: Output) -> Sweep:
        key = f"correlation_{output}"
        curves = [
            curve(
                [r for r in rows if (r["network"], r["classes"]) == (network, classes)],
                network,
                "features",
                key,
                (f"{key}_low", f"{key}_high"),
            )
            for network in networks
        ]
        title = f"k = {classes}, gradient of the {output}"
        label = "correlation with membership"
        return Sweep(title, curves, "number of features n", label, level=0.0, xlog=True)

    return picture([panel(classes, output) for classes in CLASSES for output in get_args(Output)])
