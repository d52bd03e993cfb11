"""The mutual information of what models show: whether intervals hold the truth, and by recipe.

usage: python benchmarks/output_leakage.py [--worlds 100] [--recipes]

First simulated worlds of 40 records whose mutual information is known: Gaussians at several
distances, two-valued outputs, and Laplace's distribution. Printed is how often the lower end is at
most the truth (97.5 % is the aim) and how often the interval holds it (95 %). --recipes instead
makes the table of docs/leakage.md: 750 + 750 records in six dimensions with labels that are right
three times in four, and 32 shadow models.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import leakscope as ls
from leakscope.leakage import jensen_shannon, mutual_information, output_leakage
from leakscope.trials import random_halves

RECORDS, MODELS, SHIFTS = 40, (20, 32, 64, 128), (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)

# Smaller shares of 100 worlds have a chance of 1 in 80 each where 97.5 % and 95 % are right.
LOW, BOTH = 0.94, 0.90

RECIPES = {
    "constant": DummyClassifier(),
    "logistic regression": LogisticRegression(),
    "forest, 20 records a leaf": RandomForestClassifier(min_samples_leaf=20, random_state=0),
    "forest, 5 records a leaf": RandomForestClassifier(min_samples_leaf=5, random_state=0),
    "forest, grown to the end": RandomForestClassifier(random_state=0),
    "one tree, grown to the end": DecisionTreeClassifier(random_state=0),
    "one tree, labels shuffled": DecisionTreeClassifier(random_state=0),
}


def gaussian(shift: float, membership: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Numbers of variance 1, higher for members."""
    return rng.normal(size=membership.shape) + shift * membership


def votes(shift: float, membership: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """0 or 1, as a tree shows."""
    return (rng.random(membership.shape) < 0.5 + 0.12 * shift * membership).astype(float)


def laplace(shift: float, membership: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Numbers with heavier tails than a Gaussian, higher for members."""
    return rng.laplace(size=membership.shape) + shift * membership


def truth_of_laplace(shift: float) -> float:
    """The mutual information of ``laplace``, on a fine grid."""
    grid = np.linspace(-40, 40, 80_001)
    shares = [np.exp(-np.abs(grid - middle)) for middle in (shift, 0.0)]
    return jensen_shannon(*(one / one.sum() for one in shares))


def truth_of_votes(shift: float) -> float:
    """The mutual information of ``votes``."""
    share = 0.5 + 0.12 * shift
    return jensen_shannon([share, 1 - share], [0.5, 0.5])


WORLDS = {
    "Gaussian": (gaussian, lambda shift: mutual_information(shift, 1, 0, 1) if shift else 0.0),
    "votes": (votes, truth_of_votes),
    "Laplace": (laplace, truth_of_laplace),
}


def coverage(worlds: int) -> bool:
    """Print how often intervals hold the truth; whether that is as often as it should be."""
    print("| outputs | models | truth | mean estimate | low ≤ truth | interval holds | width |")
    print("|---|---|---|---|---|---|---|")
    holds = True
    for name, (draw, known) in WORLDS.items():
        for models in MODELS:
            for shift in SHIFTS:
                truth, rows = float(known(shift)), []
                for seed in range(worlds):
                    rng = np.random.default_rng([models, round(100 * shift), seed])
                    membership = random_halves(RECORDS, models, seed) == 1
                    seen = draw(shift, membership, rng)
                    found = output_leakage(seen, membership, permutations=9, seed=seed)
                    rows.append(found.mutual_information.mean)
                low = np.mean([row.low <= truth for row in rows])
                both = np.mean([row.low <= truth <= row.high for row in rows])
                width = np.mean([row.high - row.low for row in rows])
                mean = np.mean([row.value for row in rows])
                # Gaussians are fitted: of other shapes only the lower end is promised.
                holds &= bool(low >= LOW and (both >= BOTH or name == "Laplace"))
                print(f"| {name} | {models} | {truth:.4f} | {mean:.4f} | ", end="")
                print(f"{low:.2f} | {both:.2f} | {width:.3f} |", flush=True)
    return holds


def recipes() -> None:
    """Print the mutual information and the advantage of LiRA for each recipe."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    y = ((X[:, 0] + X[:, 1] > 0) ^ (rng.random(1500) < 0.25)).astype(int)
    print("| recipe | mutual information | p | it allows | LiRA on one model |")
    print("|---|---|---|---|---|")
    for name, estimator in RECIPES.items():
        labels = rng.permutation(y) if "shuffled" in name else y
        inside, outside = (X[:750], labels[:750]), (X[750:], labels[750:])
        report = ls.audit(
            estimator.fit(*inside), inside, outside, shadows=32, attacks=["lira"], workers=1
        ).to_dict()
        one = report["leakage"][0]
        ends = f"{one['value']:.3f} ({one['low']:.3f} to {one['high']:.3f})"
        allowed = "–" if one["bound"] is None else f"{one['bound']:.2f}"
        (lira,) = report["outcomes"]
        print(f"| {name} | {ends} | {one['null']['p_value']:.2f} | {allowed} | ", end="")
        print(f"{lira['advantage']['value']:.2f} |".replace("-", "−"), flush=True)


def main() -> int:
    """Print one of the tables; 0 if intervals hold the truth as often as they should, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--recipes", action="store_true", help="the table of docs/leakage.md")
    options = parser.parse_args()
    if options.recipes:
        recipes()
        return 0
    return int(not coverage(options.worlds))


if __name__ == "__main__":
    raise SystemExit(main())
