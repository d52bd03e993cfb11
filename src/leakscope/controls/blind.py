"""The blind baseline: a classifier that sees the records and never the model.

If it tells members from non-members, the two sides differ before the model enters, and no attack's
success means anything. One half of the records teaches it, the other is judged, so the permutation
test is exact for honest splits; only the upper side counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from sklearn.random_projection import GaussianRandomProjection

from leakscope.controls import Control
from leakscope.evidence import Folds
from leakscope.protocols import Bools, Floats
from leakscope.records import Records
from leakscope.records.checks import as_floats, holds_numbers

LEVEL = 0.001
ONE_POPULATION = "members and non-members were drawn from one population"
PERMUTATIONS = 4999
# Permutations that differ as much: p is then far above the level, and known well enough.
ENOUGH = 20
DRAWN = 100  # permutations at a time
MOST_RECORDS = 5000  # per half: enough to see a difference worth the name
LARGEST = 1e100  # beyond, squares overflow
MOST_FEATURES = 200  # beyond that, projections of them: trees over images would take minutes


def blind_control(records: Records, membership: Bools, folds: Folds, seed: int) -> Control:
    """Whether a classifier that never sees the model can tell; records in canonical order."""
    blocks = records.blocks()
    taught = np.flatnonzero(folds.half)[:MOST_RECORDS]
    judged = np.flatnonzero(~folds.half)[:MOST_RECORDS]
    for part in (taught, judged):
        if membership[part].all() or not membership[part].any():
            detail = "Too few records to train a blind classifier."
            return Control("blind baseline", None, True, detail, ONE_POPULATION)
    # Nobody else is looked at: a million records need not become numbers for these.
    chosen = np.sort(np.concatenate([taught, judged]))
    records, membership, blocks = records.take(chosen), membership[chosen], blocks[chosen]
    taught, judged = np.searchsorted(chosen, taught), np.searchsorted(chosen, judged)
    features = _features(records, membership, taught, seed)
    scores = _blind_scores(features[taught], membership[taught], features[judged], seed)
    auc, p = _permutation_test(scores, membership[judged], blocks[judged], seed)
    told = (
        f"A classifier that sees the records and never the model has AUC {auc:.3f} "
        f"(permutation p = {p:.4f})"
    )
    if p >= LEVEL:
        return Control(
            "blind baseline", True, True, f"{told}: the two sides are alike, as they must be."
        )
    return Control(
        "blind baseline",
        False,
        True,
        f"{told}: the two sides differ before the model enters, so no attack's success means "
        "anything; draw members and non-members at random from one population.",
    )


def _features(records: Records, membership: Bools, taught: NDArray[np.intp], seed: int) -> Floats:
    """Features and label as numbers, text as ordinal codes, (n, ≤ 201).

    Of more features, those in which the sides of the taught half differ most are kept, because
    one giveaway is lost in projections, and projections of all, because many small ones are not.
    """
    X = _numbers(records)
    if X.shape[1] > MOST_FEATURES:
        scaled = StandardScaler().fit_transform(np.nan_to_num(X))
        half = MOST_FEATURES // 2
        apart = scaled[taught][membership[taught]].mean(axis=0)
        apart -= scaled[taught][~membership[taught]].mean(axis=0)
        telling = np.sort(np.argsort(-np.abs(apart), kind="stable")[:half])
        projected = GaussianRandomProjection(half, random_state=seed).fit_transform(scaled)
        X = np.column_stack([scaled[:, telling], projected])
    label = np.unique(records.y, return_inverse=True)[1]
    return np.column_stack([X, label.astype(np.float64)])


def _numbers(records: Records) -> Floats:
    """Features as numbers that can be squared and summed without overflow, (n, d)."""
    X: NDArray[Any]
    if isinstance(records.X, pd.DataFrame):
        columns = [
            as_floats(records.X[name])
            if holds_numbers(records.X[name])
            else OrdinalEncoder().fit_transform(records.X[[name]].astype(str))[:, 0]
            for name in records.X.columns
        ]
        X = np.column_stack(columns)
    else:
        X = np.asarray(records.X, dtype=np.float64).reshape(len(records), -1)
    return np.clip(X, -LARGEST, LARGEST)


def _blind_scores(X: Floats, membership: Bools, asked: Floats, seed: int) -> Floats:
    """The mean rank under boosted trees and logistic regression: steps and slopes, (n,)."""
    trees = HistGradientBoostingClassifier(
        max_iter=50, max_leaf_nodes=8, early_stopping=False, random_state=seed
    )
    line = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=500))
    seen = ~np.isnan(X).all(axis=0)  # trees cannot bin a column of nothing
    X, asked = X[:, seen], asked[:, seen]
    scores = np.zeros(len(asked))
    for learner in (trees, line):
        learner.fit(X, membership)
        scores += rankdata(learner.predict_proba(asked)[:, 1])
    return scores


def _permutation_test(
    scores: Floats, membership: Bools, blocks: NDArray[np.intp], seed: int
) -> tuple[float, float]:
    """AUC, and the share of permutations of whole blocks with at least as large a difference.

    Drawn until enough have one (Besag & Clifford 1991): p is then valid as well, and whether it is
    below the level is the same as after all of them.
    """
    ranks = rankdata(scores)
    n, members = len(ranks), int(membership.sum())
    auc = (ranks[membership].sum() - members * (members + 1) / 2) / (members * (n - members))
    _, first, block = np.unique(blocks, return_index=True, return_inverse=True)
    sums, counts = np.bincount(block, ranks), np.bincount(block)

    def difference(sides: NDArray[np.float64]) -> Floats:
        chosen, size = sides @ sums, sides @ counts
        # Blocks of unequal size could leave a side empty: that draw shows no difference.
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = chosen / size - (sums.sum() - chosen) / (n - size)
        return np.asarray(np.nan_to_num(apart))

    own = membership[first].astype(np.float64)
    observed = difference(own[None])[0]
    rng = np.random.default_rng(seed)
    reached = 0
    for start in range(0, PERMUTATIONS, DRAWN):
        rows = min(DRAWN, PERMUTATIONS - start)
        sides = rng.permuted(np.tile(own, (rows, 1)), axis=1)
        alike = np.flatnonzero(difference(sides) >= observed - 1e-9)
        if reached + len(alike) >= ENOUGH:
            return float(auc), ENOUGH / (start + int(alike[ENOUGH - reached - 1]) + 1)
        reached += len(alike)
    return float(auc), (1 + reached) / (1 + PERMUTATIONS)
