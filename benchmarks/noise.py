"""Leakage against ε: output perturbation of ridge and logistic regression on Adult.

usage: python benchmarks/noise.py [--models 1000] [--draws 1000] [--ridge 0.3] [--delta 1e-5]

Five principal components of Adult, scaled to variance 1, cut to a norm of 3, and a constant in
place of an intercept. The principal components are those of all of Adult and are taken for public;
the sensitivity is proven for any records of that norm. Ridge regression by paired draws
(``exact.ridge_leakage``): its advantage is that of the best adversary who sees the parameters, on
average over records, and the interval is for other records. Logistic regression by training models
on random halves of 100 records, seen through the parameters channel: its advantage is that of a
threshold on the loss (Yeom et al. 2018). Beside them stands the most that (ε, δ) allows any
adversary against any record, and how well the models predict records they were not trained on.
Fails where a figure exceeds what is allowed, or where less noise leaks significantly less.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from leakscope import Records, load_dataset
from leakscope.defenses import OutputPerturbation
from leakscope.exact import ridge_leakage
from leakscope.leakage import (
    logistic_sensitivity,
    parameter_leakage,
    ridge_sensitivity,
)
from leakscope.metrics import membership_experiment
from leakscope.metrics.intervals import Interval
from leakscope.models.parameters import parameters_of
from leakscope.protocols import Recipe
from leakscope.recipes import as_recipe
from leakscope.trials import fixed_size, independent_halves, run_trials

EPSILONS = (math.inf, 64.0, 16.0, 8.0, 4.0, 2.0, 1.0, 0.5)
CUT = 3.0
RADIUS = math.sqrt(CUT**2 + 1)
# λ in mean loss + λ‖θ‖²: without it one record could move a regression anywhere.
RIDGE, LOGISTIC = 0.3, 1.0


@dataclass(frozen=True)
class Row:
    """What is known of one amount of noise."""

    epsilon: float
    sigma: float
    rho_kl: Interval
    advantage: Interval
    utility: float

    def allowed(self, delta: float) -> float:
        """The most that (ε, δ) allows as TPR − FPR, whatever the adversary."""
        if math.isinf(self.epsilon):
            return 1.0
        return math.tanh(self.epsilon / 2) + 2 * delta / (math.exp(self.epsilon) + 1)


def adult() -> tuple[np.ndarray, np.ndarray]:
    """Features (N, 6) of bounded norm, the last a constant, and labels 0 or 1."""
    records = load_dataset("adult", encoding="pca", components=5)
    X = np.asarray(records.X) * math.sqrt(len(records))
    norm = np.linalg.norm(X, axis=1)
    X = X * np.minimum(1, CUT / norm)[:, None]
    return np.column_stack([X, np.ones(len(X))]), records.y


def defended(recipe: Recipe, epsilon: float, delta: float, sensitivity: float) -> Recipe:
    """The recipe with the noise that ε asks for; itself where ε is infinite."""
    if math.isinf(epsilon):
        return recipe
    defense = OutputPerturbation(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    assert defense.budget(recipe, 1) == (epsilon, delta)
    return defense.wrap_recipe(recipe)


def of_ridge(X: np.ndarray, y: np.ndarray, epsilon: float, options: argparse.Namespace) -> Row:
    """Ridge regression on 1,000 records; R² on others, averaged over 50 models."""
    n, rng = 1000, np.random.default_rng(0)
    asked = rng.choice(len(X), 500, replace=False)
    sensitivity = ridge_sensitivity(n, options.ridge, RADIUS, 1.0).value
    recipe = as_recipe(Ridge(alpha=n * options.ridge, fit_intercept=False), prepare=False)
    noisy = defended(recipe, epsilon, options.delta, sensitivity)
    sigma = getattr(noisy, "sigma", 0.0)
    found = ridge_leakage(X, y, n, options.ridge, noise=sigma, draws=options.draws, records=asked)
    pool = Records(X[:5000], y[:5000].astype(float))
    models = noisy.fit_many(pool, fixed_size(5000, n, 50, seed=0), range(50))
    errors = [np.square(X[5000:] @ parameters_of(one) - y[5000:]).mean() for one in models]
    utility = 1 - float(np.mean(errors)) / float(np.var(y[5000:]))
    tv = found.total_variation
    half = 1.96 * tv.std(ddof=1) / math.sqrt(len(tv))
    advantage = Interval(float(tv.mean()), float(tv.mean() - half), float(tv.mean() + half))
    return Row(epsilon, sigma, found.mean, advantage, utility)


def of_logistic(X: np.ndarray, y: np.ndarray, epsilon: float, options: argparse.Namespace) -> Row:
    """Logistic regression on 50 of 100 records; accuracy on 5,000 others, over all models."""
    n = 50
    pool = Records(X[5000:], y[5000:]).sample(2 * n, seed=0)
    sensitivity = logistic_sensitivity(n, LOGISTIC, RADIUS).value
    estimator = LogisticRegression(C=1 / (2 * n * LOGISTIC), fit_intercept=False, tol=1e-10)
    recipe = as_recipe(estimator, prepare=False)
    noisy = defended(recipe, epsilon, options.delta, sensitivity)
    # What models show by chance is known for independent ones.
    roles = independent_halves(2 * n, options.models, seed=0)
    channels = ["parameters", "loss"]
    trials = run_trials(noisy, pool, roles, channels, workers=1, keep_models=False)
    theta = trials.observations["parameters"][:, 0]
    leakage = parameter_leakage(theta, trials.membership)
    experiment = membership_experiment(trials.observations["loss"], trials.membership)
    right = [((X[:5000] @ one > 0) == y[:5000]).mean() for one in theta]
    sigma = getattr(noisy, "sigma", 0.0)
    return Row(epsilon, sigma, leakage.mean, experiment.mean, float(np.mean(right)))


def show(rows: list[Row], delta: float, utility: str) -> bool:
    """Print the table; whether nothing exceeds what is allowed and noise never adds leakage."""
    print(f"| ε | σ | ρ_KL | advantage | allowed by (ε, δ) | {utility} |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        rho, advantage = (
            f"{one.value:.3g} ({one.low:.3g} to {one.high:.3g})"
            for one in (row.rho_kl, row.advantage)
        )
        print(f"| {row.epsilon:g} | {row.sigma:.3g} | {rho} | {advantage} | ", end="")
        print(f"{row.allowed(delta):.3f} | {row.utility:.3f} |")
    kept = all(row.advantage.low <= row.allowed(delta) for row in rows)
    return kept and all(less.rho_kl.high >= more.rho_kl.low for less, more in pairwise(rows))


def main() -> int:
    """Print both tables; 0 if what is allowed is kept and noise never adds leakage, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=1000, help="logistic regressions per row")
    parser.add_argument("--draws", type=int, default=1000, help="training sets of ridge per row")
    parser.add_argument("--ridge", type=float, default=RIDGE, help="the λ of ridge regression")
    parser.add_argument("--delta", type=float, default=1e-5)
    options = parser.parse_args()
    X, y = adult()
    holds = True
    for name, utility, of in (
        (f"ridge regression, n = 1000, λ = {options.ridge:g}", "R² on other records", of_ridge),
        (
            f"logistic regression, n = 50, λ = {LOGISTIC:g}",
            "accuracy on other records",
            of_logistic,
        ),
    ):
        start = time.perf_counter()
        rows = [of(X, y, epsilon, options) for epsilon in EPSILONS]
        print(f"\n{name}, δ = {options.delta:g}\n")
        holds &= show(rows, options.delta, utility)
        print(f"\n{time.perf_counter() - start:.0f} s; the more frequent label is ", end="")
        print(f"{max(y.mean(), 1 - y.mean()):.3f} of all")
    return int(not holds)


if __name__ == "__main__":
    raise SystemExit(main())
