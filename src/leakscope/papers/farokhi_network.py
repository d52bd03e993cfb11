"""Figure 2 of Farokhi & Kaafar (2020), section 6.3: a neural network on Adult.

Five hidden layers of fifty hyperbolic tangents have some 10,500 parameters, which exchanging
neurons changes and the model not: divergences of parameters are out of reach. Leakage is measured
at the outputs instead, and by data processing that is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from leakscope.datasets import load_dataset
from leakscope.leakage import OutputLeakage, output_leakage
from leakscope.metrics import membership_experiment
from leakscope.metrics.intervals import finite
from leakscope.papers.experiment import Experiment, Row, Scale, Setting
from leakscope.papers.farokhi import PAPER
from leakscope.papers.farokhi_notes import figure, trend
from leakscope.papers.farokhi_ridge import Point, box, repetitions
from leakscope.recipes import as_recipe
from leakscope.records import Records
from leakscope.registry import register
from leakscope.trials import Trials, random_halves, run_trials

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from leakscope.protocols import Recipe

NAME = "farokhi-fig2"
SIZES_SWEPT = (30, 100, 300, 1000)
FEATURES = 5
LAYERS = (50,) * 5

# Of Adam. As many for every n: as many passes would stop small training sets before they are
# learned, and what is not learned does not leak.
STEPS, BATCH = 600, 200

# Mutual information at equal priors, by n, with 128 models, measured by others than this code.
REFERENCE = {30: 0.524, 100: 0.316, 300: 0.154, 1000: 0.073}


@dataclass(frozen=True)
class Size:
    """How much is computed: models trained at each n, and shuffles of their membership."""

    models: int
    permutations: int


SIZES: dict[Scale, Size] = {"quick": Size(20, 49), "full": Size(128, 199)}


def network(n: int) -> Recipe:
    """Five hidden layers of fifty tanh units, no penalty, trained on n records for STEPS steps."""
    from sklearn.neural_network import MLPClassifier

    batch = min(BATCH, n)
    passes = math.ceil(STEPS / math.ceil(n / batch))
    estimator = MLPClassifier(
        LAYERS,
        activation="tanh",
        alpha=0.0,
        batch_size=batch,
        max_iter=passes,
        n_iter_no_change=passes,
    )
    return as_recipe(estimator, "tanh network")


@register("experiment", NAME, paper=f"{PAPER}, figure 2")
def network_by_size(setting: Setting) -> Experiment:
    """Leakage and advantage of a neural network by the number of training records."""
    setting.progress("reading the data set adult", 0, 0)
    adults = load_dataset("adult", encoding="pca", components=FEATURES, folder=setting.data)
    points = [measure(adults, n, setting) for n in SIZES_SWEPT]
    rows = [point.row for point in points]
    return Experiment(
        experiment=NAME,
        paper=f"{PAPER}, figure 2",
        setup=_setup(setting, len(adults)),
        rows=rows,
        paper_rows=[
            {
                "over": "n",
                "rho_kl": None,
                "advantage": "falls",
                "source": "section 6.3 on figure 2: the trend, no number is printed",
            }
        ],
        notes=_notes(rows),
        draw=partial(_draw, points),
    )


def measure(adults: Records, n: int, setting: Setting) -> Point:
    """What the outputs of networks trained on random halves of 2n records tell."""
    size = SIZES[setting.scale]
    # Of 2n records each model knows a random half: n, and every record is in half of the models.
    rng = np.random.default_rng(np.random.SeedSequence(setting.seed, spawn_key=(n,)))
    pool = unit_variance(adults).take(np.sort(rng.choice(len(adults), 2 * n, replace=False)))
    models = 2 * math.ceil(size.models * repetitions(setting) / 2)
    trials = run_trials(
        network(n),
        pool,
        random_halves(len(pool), models, setting.seed),
        ["margin", "loss"],
        seed=setting.seed,
        store=None if setting.store is None else setting.store / NAME / str(n),
        workers=setting.workers,
        keep_models=False,
        progress=lambda step, done, total: setting.progress(f"n = {n}: {step}", done, total),
    )
    setting.progress(f"n = {n}: measuring the outputs of {models} models", 0, 0)
    found = output_leakage(
        trials.observations["margin"],
        trials.membership,
        permutations=size.permutations,
        seed=setting.seed,
    )
    return Point(*_row(n, found, trials))


def unit_variance(records: Records) -> Records:
    """The records with components of variance 1 in place of norm 1, as a network needs them."""
    X = np.asarray(records.X, dtype=np.float64)
    return replace(records, X=X * math.sqrt(len(records)))


def _row(n: int, found: OutputLeakage, trials: Trials) -> tuple[dict[str, Any], Any]:
    """The row of the figure and the advantages (m,); None where outputs do not tell."""
    divergence, information, learned = found.divergence, found.mutual_information, found.advantage
    yeom = membership_experiment(trials.observations["loss"], trials.membership)
    row = {
        "n": n,
        "rho_kl": divergence.mean.value,
        "rho_kl_low": finite(divergence.mean.low),
        "rho_kl_high": finite(divergence.mean.high),
        "rho_kl_null_high": divergence.null.high,
        "rho_mi": None,
        "rho_mi_balanced": information.mean.value,
        "rho_mi_balanced_low": finite(information.mean.low),
        "rho_mi_balanced_high": finite(information.mean.high),
        "null_mean": information.null.mean,
        "null_high": information.null.high,
        "null_p_value": information.null.p_value,
        "rho_mi_underestimate": information.underestimate,
        "total_variation": None,
        "advantage_bound": finite(divergence.bound),
        **box(yeom.advantages),
        # Models share the records of the pool: their spread alone would be too sure.
        "advantage_signed_low": finite(yeom.mean.low),
        "advantage_signed_high": finite(yeom.mean.high),
        "advantage_learned": learned.mean.value,
        "advantage_learned_low": finite(learned.mean.low),
        "advantage_learned_high": finite(learned.mean.high),
    }
    return row, yeom.advantages


def _setup(setting: Setting, population: int) -> dict[str, Any]:
    size, times = SIZES[setting.scale], repetitions(setting)
    return {
        "model": f"neural network, {len(LAYERS)} hidden layers of {LAYERS[0]} tanh units, no "
        f"penalty, {STEPS} steps of Adam on batches of at most {BATCH} (the paper does not say how "
        "it trained)",
        "dataset": "adult: categories as integers, standardized, principal components of variance "
        "1",
        "population": population,
        "features": FEATURES,
        "pool": "2n records at each n; each model is trained on a random half",
        "models": 2 * math.ceil(size.models * times / 2),
        "permutations": size.permutations,
        "seen": "the log-odds of the true label",
        "adversary": "calls a member whoever has at most the average training loss (Yeom et al. "
        "2018, section 6.2); judged on the n members and the n others of the pool",
        "scale": setting.scale,
        "seed": setting.seed,
        "seeds": times,
        "reference_measured": {
            "what": "mutual information at equal priors with 128 models, by another estimator and "
            "training that is not known; not the paper's",
            "rho_mi_balanced": {str(n): value for n, value in REFERENCE.items()},
        },
    }


def _information(row: Row) -> str:
    """Mutual information with its interval, which has no ends for one record."""
    low, high = row["rho_mi_balanced_low"], row["rho_mi_balanced_high"]
    ends = "" if low is None else f" ({figure(low)} to {figure(high)})"
    return f"{figure(row['rho_mi_balanced'])}{ends}"


def _left_out(rows: Sequence[Row]) -> list[str]:
    """What a logarithmic axis cannot show."""
    below = [f"n = {row['n']}" for row in rows if row["rho_mi_balanced"] <= 0]
    if not below:
        return []
    return [f"Mutual information is not above 0 at {', '.join(below)}: the picture leaves it out."]


def _notes(rows: Sequence[Row]) -> list[str]:
    keys = ("rho_mi_balanced", "rho_kl", "advantage_median", "advantage_signed")
    above = [row for row in rows if row["null_p_value"] <= 0.05]
    estimates = ", ".join(f"{_information(row)} at n = {row['n']}" for row in rows)
    bounded = [row for row in rows if row["advantage_bound"] is not None]
    held = [row for row in bounded if (row["advantage_signed_low"] or 0) <= row["advantage_bound"]]
    return [
        *(trend(rows, "n", key) for key in keys),
        f"Mutual information is above what shuffled membership gives (p ≤ 0.05) in {len(above)} of "
        f"{len(rows)} rows: {estimates}.",
        f"The advantage of the threshold adversary is at most ½√ρ_KL, within its interval, in "
        f"{len(held)} of {len(bounded)} rows with a ρ_KL above 0.",
        "rho_kl is the nearest-neighbour divergence and rho_mi_balanced the cross-validated mutual "
        "information of the log-odds of the true label: lower bounds on what the parameters tell. "
        "With few models the second errs downwards, by about rho_mi_underestimate: its upper end "
        "allows for that, and its lower end is a lower bound.",
        *_left_out(rows),
        "rho_mi is empty because half of a pool is members, so that the prior is ½; "
        "total_variation is empty because it needs densities: advantage_learned, of a rule learned "
        "on other models, is a lower bound on it.",
    ]


def _draw(points: Sequence[Point]) -> Figure:
    from leakscope.papers.drawing import Line, boxes_and_lines

    rows = [point.row for point in points]

    def line(name: str, key: str, dashed: bool = False) -> Line:
        values, low, high = ([row[key + end] for row in rows] for end in ("", "_low", "_high"))
        return Line(name, values, low, high, dashed)

    lines = [
        line("divergence of outputs", "rho_kl"),
        line("mutual information", "rho_mi_balanced", dashed=True),
    ]
    ticks = [str(row["n"]) for row in rows]
    boxes = [point.advantages for point in points]
    return boxes_and_lines(ticks, boxes, lines, "size of the training set n")
