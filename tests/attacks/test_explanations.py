from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leakscope.attacks.explanations import (
    CONTRIBUTIONS,
    POWERS,
    SLOPES,
    NormalizedForest,
    PredictionVariance,
    VarianceTree,
    accuracy_of_gap,
    attacks_through,
)
from leakscope.auditing.choosing import attack_of
from leakscope.channels.explanations import Gradient, SmoothGrad
from leakscope.channels.outputs import Probabilities
from leakscope.channels.summaries import GradientSummary, summarize
from leakscope.evidence import Evidence, Folds
from leakscope.metrics.curves import auc_delong
from leakscope.metrics.intervals import Interval
from leakscope.registry import entries, lookup


def evidence(observations, membership, seed=0):
    n = len(observations)
    return Evidence(
        task="classification",
        observations=np.asarray(observations, float),
        labels=np.zeros(n, np.int64),
        classes=3,
        folds=Folds.draw(np.arange(n), membership, seed),
        seed=seed,
        knowledge="members of the other half",
        _membership=membership,
    )


def explained(seed, size=1.0, fit=0.0, n=1600, d=12):
    """Summaries of explanations: those of members smaller, or the fitter to their features."""
    rng = np.random.default_rng(seed)
    membership = np.arange(n) % 2 == 0
    X, noise = rng.normal(size=(2, n, d))
    sizes = np.where(membership, size, 1.0) * rng.lognormal(sigma=0.3, size=n)
    shapes = noise + np.where(membership, fit, 0.0)[:, None] * X
    explanations = sizes[:, None] * shapes / np.abs(shapes).sum(axis=1, keepdims=True)
    return evidence(summarize(explanations, X), membership), membership


def quick(attack):
    """With few trees, if it has any."""
    return replace(attack, trees=40) if hasattr(attack, "trees") else attack


def auc(attack, given, membership):
    return auc_delong(attack.score(given), membership, inflation=2.0)


def test_the_norm_and_the_sum_are_compared_with_a_threshold():
    given = evidence(
        summarize(np.array([[1.0, -3.0], [2.0, 0.5]]), np.ones((2, 2))), np.eye(2)[0] > 0
    )
    np.testing.assert_array_equal(attack_of("gradient-norm").score(given), [-4, -2.5])
    np.testing.assert_array_equal(attack_of("lrp-sum").score(given), [-2, 2.5])
    assert attack_of("gradient-norm").threshold(given) is None
    assert attack_of("lrp-sum").threshold(given) is None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["gradient-norm", "gradient-tree", "gradient-forest"])
def test_smaller_explanations_of_members_are_found(name, seed):
    given, membership = explained(seed, size=0.6)
    # Two normals ln(1/.6) / .3 = 1.7 apart: the best AUC is Φ(1.7 / √2) = .886.
    found = auc(quick(attack_of(name)), given, membership)
    assert 0.80 < found.value < 0.92


@pytest.mark.parametrize("seed", range(3))
def test_the_normalized_explanation_has_lost_its_size(seed):
    given, membership = explained(seed, size=0.6)
    found = auc_delong(
        NormalizedForest(trees=40).score(given),
        membership,
        inflation=2.0,
        confidence=1 - 1e-7,
    )
    assert found.low <= 0.5 <= found.high


@pytest.mark.parametrize("seed", range(3))
def test_a_forest_sees_what_the_norm_does_not(seed):
    given, membership = explained(seed, fit=0.5)
    assert auc(attack_of("gradient-norm"), given, membership).value < 0.58
    assert auc(quick(attack_of("gradient-forest")), given, membership).value > 0.65
    # How well an explanation fits the record is no size, and no part of the control.
    assert auc(NormalizedForest(trees=40), given, membership).value < 0.58


def test_the_control_is_the_summary_of_the_normalized_explanation():
    rng = np.random.default_rng(0)
    explanations, X = rng.normal(size=(2, 20, 5))
    explanations[3] = 0.0
    sizes = np.abs(explanations).sum(axis=1, keepdims=True)
    normalized = summarize(explanations / np.where(sizes > 0, sizes, 1.0), X)[:, list(POWERS)]
    given = evidence(summarize(explanations, X), np.arange(20) < 10)
    np.testing.assert_allclose(NormalizedForest().numbers(given), normalized, atol=1e-12)


def test_the_tree_is_small():
    tree = attack_of("gradient-tree")
    learner = tree.learner(0).fit(
        np.random.default_rng(0).normal(size=(1000, 1)), np.arange(1000) % 2
    )
    assert learner.get_depth() <= 4
    assert learner.tree_.n_node_samples.min() >= 50


def test_contributions_of_members_add_up_to_more():
    rng = np.random.default_rng(0)
    membership = np.arange(1000) % 2 == 0
    explanations = rng.normal(size=(1000, 6)) + np.where(membership, 0.3, 0.0)[:, None]
    summaries = summarize(explanations, np.ones((1000, 6)))
    given, swapped = evidence(summaries, membership), evidence(summaries, ~membership)
    for name in ("integrated-gradients-sum", "integrated-gradients-forest"):
        attack = quick(attack_of(name))
        scores = attack.score(given)
        assert auc_delong(scores, membership).value > 0.6
        np.testing.assert_array_equal(attack.score(swapped), scores)


def test_the_variance_of_the_prediction():
    probabilities = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    given = evidence(probabilities, np.arange(3) < 1)
    np.testing.assert_allclose(PredictionVariance().score(given), [2 / 9, 1 / 18, 0], atol=1e-15)
    assert PredictionVariance.channel == VarianceTree.channel == Probabilities.name


@pytest.mark.parametrize("seed", range(3))
def test_surer_predictions_of_members_are_found(seed):
    rng = np.random.default_rng(seed)
    membership = np.arange(1600) % 2 == 0
    surer = rng.normal(np.where(membership, 2.0, 0.0))
    rest = np.exp(rng.normal(size=(1600, 2)))
    odds = np.column_stack([np.exp(surer + 1), rest])
    given = evidence(odds / odds.sum(axis=1, keepdims=True), membership)
    for attack in (PredictionVariance(), VarianceTree()):
        assert auc(attack, given, membership).value > 0.75


def test_half_and_half_the_gap():
    assert accuracy_of_gap(Interval(0.46, 0.44, 0.48)) == Interval(0.73, 0.72, 0.74)


def test_every_explanation_has_its_attacks_and_says_so():
    channels = {entry.name for entry in entries("channel")}
    for name in sorted(channels):
        if not name.endswith("-summary"):
            continue
        forest = lookup("attack", f"{name.removesuffix('-summary')}-forest")
        assert forest.thing.channel == name
        assert forest.thing.on_request
    assert lookup("attack", "gradient-norm").summary == (
        "A member where the gradient of the predicted class's logit is small: its 1-norm is below "
        "a threshold."
    )


def test_the_same_attack_is_entered_once_however_often_it_is_made():
    (norm, tree, forest) = attacks_through("gradient", "the gradient", SLOPES)
    assert [one.name for one in (norm, tree, forest)] == [
        "gradient-norm",
        "gradient-tree",
        "gradient-forest",
    ]
    attacks_through("gradient", "the gradient of the predicted class's logit", SLOPES)
    assert set(CONTRIBUTIONS) == {"sum", "forest"}


@pytest.mark.slow
def test_location_30_at_small_size(data_folder, monkeypatch):
    """A third of the set-up of benchmarks/explanation_attacks.py: gradients tell members."""
    from functools import partial

    from leakscope.datasets import load_dataset
    from leakscope.networks import network
    from leakscope.recipes.torch import TorchRecipe
    from leakscope.records import pool

    monkeypatch.setenv("LEAKSCOPE_DATA", str(data_folder))
    location = load_dataset("location30")
    order = np.random.default_rng(0).permutation(len(location))
    members, others = (location.take(order[first : first + 600]) for first in (0, 600))
    recipe = TorchRecipe(
        "location", partial(network, "shokri-location"), optimizer="adagrad", lr=0.01, epochs=40
    )
    records, membership = pool(members, others)
    model = recipe.fit(members, 0)
    found = {}
    for explanation in (Gradient(), Gradient("probability"), SmoothGrad(sigma=1.0, samples=5)):
        seen = GradientSummary(explanation).observe(model, records)
        given = evidence(seen, membership)
        found[explanation] = auc(attack_of("gradient-norm"), given, membership)
    logit, probability, smooth = found.values()
    assert logit.low > 0.5
    assert probability.low > 0.6
    assert smooth.value < logit.value
