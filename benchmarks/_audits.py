"""Whole audits where the truth is known, one function per kind, registered in ``KINDS``.

Part of benchmarks/validity.py. A leak-free audit has a model that was trained on a third set, so
that neither side are members. A planted leak is one that the audit must find.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression

import leakscope
from leakscope.recipes import named_recipe, train
from leakscope.records import Records
from leakscope.registry import entries
from leakscope.report import Report

SIDE = 500
NUMERIC = 6  # the first columns of Adult; the others are indicators
MEMORIZED = 0.01
SUBGROUP = ("race", "Black")


@dataclass(frozen=True)
class Kind:
    """One kind of audit: run(seed), and the share of ``leaks`` it must reach if planted."""

    run: Callable[[int], Report]
    planted: bool = False
    power: float = 0.0


def deal(pool: Records, seed: int, sizes: list[int]) -> list[Records]:
    """Disjoint random sets of about these sizes; equal records and units stay together."""
    blocks = pool.blocks()
    order = np.random.default_rng(seed).permutation(blocks.max() + 1)[blocks]
    bounds = np.cumsum(sizes) / sum(sizes) * (blocks.max() + 1)
    sides = np.searchsorted(bounds, order, side="right")
    return [pool.take(np.flatnonzero(sides == side)) for side in range(len(sizes))]


def adult(seed: int, sides: int, size: int = SIDE) -> list[Records]:
    """Disjoint random sets of Adult records."""
    pool = leakscope.load_dataset("adult").sample(sides * size, seed)
    return deal(pool, seed, [size] * sides)


def forest(third: Records, seed: int) -> RandomForestClassifier:
    """A small random forest of trees grown to the end."""
    return RandomForestClassifier(20, random_state=seed).fit(third.X, third.y)


def simulated(seed: int) -> Report:
    """Saved predictions of one distribution, whose sharpness, classes and sizes vary."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 11))
    sizes = rng.integers(100, 1000, size=2)
    sharpness = rng.choice([0.3, 1.0, 5.0])

    def side(n: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(0, k, n)
        return rng.dirichlet(np.ones(k) * sharpness, n) * 0.5 + 0.5 * (
            np.arange(k) == y[:, None]
        ), y

    (p1, y1), (p0, y0) = side(sizes[0]), side(sizes[1])
    return leakscope.audit_predictions(p1, y1, p0, y0, seed=seed)


def real(seed: int) -> Report:
    """A random forest of Adult records."""
    third, members, nonmembers = adult(seed, 3)
    model = train(named_recipe("forest"), third, seed)
    return leakscope.audit(model, members, nonmembers, seed=seed)


def shadowed(seed: int) -> Report:
    """A tree of Adult records, by the attacks on shadow models alone."""
    third, members, nonmembers = adult(seed, 3)
    recipe = named_recipe("tree")
    return leakscope.audit(
        train(recipe, third, seed),
        members,
        nonmembers,
        attacks=[entry.name for entry in entries("attack") if entry.thing.shadows],
        recipe=recipe,
        shadows=16,
        workers=1,
        seed=seed,
    )


def regression(seed: int) -> Report:
    """A regression forest: of Adult's first column, or of Friedman's function for odd seeds."""
    if seed % 2:
        pool = Records(*make_friedman1(3 * SIDE, noise=1.0, random_state=seed))
    else:
        sample = leakscope.load_dataset("adult").sample(3 * SIDE, seed)
        pool = Records(sample.X[:, 1:], sample.X[:, 0])
    third, members, nonmembers = deal(pool, seed, [SIDE] * 3)
    model = RandomForestRegressor(20, random_state=seed).fit(third.X, third.y)
    return leakscope.audit(model, members, nonmembers, seed=seed)


def ten_classes(seed: int) -> Report:
    """A forest of the other 297 digits, 300 records against 1,200."""
    pool = leakscope.load_dataset("digits")
    third, members, nonmembers = deal(pool, seed, [297, 300, 1200])
    return leakscope.audit(forest(third, seed), members, nonmembers, seed=seed)


def persons(seed: int) -> Report:
    """A forest of persons with 1 to 5 rows each; their rows differ in the numeric columns only."""
    rng = np.random.default_rng(seed)
    sample = leakscope.load_dataset("adult").sample(3 * SIDE // 2, seed)
    person = np.repeat(np.arange(len(sample)), rng.integers(1, 6, len(sample)))
    X = sample.X[person].copy()
    X[:, :NUMERIC] += rng.normal(scale=0.02, size=(len(X), NUMERIC))
    pool = Records(X, sample.y[person], unit=person)
    third, members, nonmembers = deal(pool, seed, [SIDE // 2] * 3)
    return leakscope.audit(forest(third, seed), members, nonmembers, seed=seed)


def rare(seed: int) -> Report:
    """A forest of Adult records of which 3 % are positive."""
    rng = np.random.default_rng(seed)
    pool = leakscope.load_dataset("adult")
    positives = round(0.03 * 3 * SIDE)
    chosen = [
        rng.choice(np.flatnonzero(pool.y == label), size, replace=False)
        for label, size in ((0, 3 * SIDE - positives), (1, positives))
    ]
    third, members, nonmembers = deal(pool.take(np.concatenate(chosen)), seed, [SIDE] * 3)
    return leakscope.audit(forest(third, seed), members, nonmembers, seed=seed)


def nearest(seed: int) -> Report:
    """One nearest neighbour, which keeps its members."""
    members, nonmembers = adult(seed, 2)
    model = train(named_recipe("nearest"), members, seed)
    return leakscope.audit(model, members, nonmembers, seed=seed)


def memorized(seed: int, *, size: int, subgroup: bool = False) -> Report:
    """A logistic regression of a third set that gives 1 % of the members' labels probability 1."""
    third, members, nonmembers = adult(seed, 3, size)
    honest = LogisticRegression(max_iter=1000).fit(third.X, third.y)
    column, value = SUBGROUP
    candidates = np.flatnonzero(members.groups[column] == value) if subgroup else len(members)
    rng = np.random.default_rng(seed)
    chosen = rng.choice(candidates, round(MEMORIZED * len(members)), replace=False)
    labels = {members.X[row].tobytes(): int(members.y[row]) for row in chosen}

    def model(X: np.ndarray) -> np.ndarray:
        probabilities = honest.predict_proba(X)
        for row, features in enumerate(np.ascontiguousarray(X)):
            label = labels.get(features.tobytes())
            if label is not None:
                probabilities[row] = np.arange(2) == label
        return probabilities

    return leakscope.audit(model, members, nonmembers, seed=seed)


KINDS: dict[str, Kind] = {
    "simulated": Kind(simulated),
    "real": Kind(real),
    "shadowed": Kind(shadowed),
    "regression": Kind(regression),
    "ten-classes": Kind(ten_classes),
    "persons": Kind(persons),
    "rare": Kind(rare),
    "nearest": Kind(nearest, planted=True, power=1.0),
} | {
    f"memorized-{size}{'-subgroup' if subgroup else ''}": Kind(
        partial(memorized, size=size, subgroup=subgroup),
        planted=True,
        power=0.95 if size == 4000 else 0.0,
    )
    for subgroup in (False, True)
    for size in (500, 2000, 4000)
}
