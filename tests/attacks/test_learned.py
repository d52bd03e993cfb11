from __future__ import annotations

import numpy as np
import pytest

from leakscope.attacks.learned import GradientBoosting, NeuralNetwork, truth_first
from leakscope.errors import NotApplicableError
from leakscope.evidence import Evidence, Folds

LEARNED = [GradientBoosting(), NeuralNetwork()]


def evidence(probabilities, labels, membership, seed=0):
    n = len(labels)
    blocks = np.arange(n)
    return Evidence(
        task="classification",
        observations=np.asarray(probabilities, float),
        labels=np.asarray(labels),
        classes=np.shape(probabilities)[1],
        folds=Folds.draw(blocks, np.asarray(membership), seed),
        seed=seed,
        knowledge="members of the other half",
        _membership=np.asarray(membership),
    )


def test_the_true_class_comes_first_and_the_others_fall():
    given = evidence([[0.2, 0.5, 0.3], [0.1, 0.3, 0.6]], [1, 0], [True, False])
    odds = 1 / (1 + np.exp(-truth_first(given)))
    np.testing.assert_allclose(odds, [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]], atol=1e-12)


def test_many_classes_are_cut_to_ten_numbers():
    rng = np.random.default_rng(0)
    given = evidence(rng.dirichlet(np.ones(50), 8), rng.integers(0, 50, 8), np.arange(8) < 4)
    assert truth_first(given).shape == (8, 10)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("attack", LEARNED, ids=lambda attack: attack.name)
def test_it_learns_what_no_single_threshold_sees(attack, seed):
    """Members have a confidence near ½, others near 0 or 1: neither high nor low is telling."""
    rng = np.random.default_rng(seed)
    membership = rng.random(1200) < 0.5
    extreme = np.where(rng.random(1200) < 0.5, 0.05, 0.95)
    confidence = np.where(membership, 0.5, extreme) + rng.uniform(-0.04, 0.04, 1200)
    given = evidence(np.column_stack([confidence, 1 - confidence]), np.zeros(1200, int), membership)
    called = attack.score(given) >= attack.threshold(given)
    assert called[membership].mean() > 0.95
    assert called[~membership].mean() < 0.05


@pytest.mark.parametrize("attack", LEARNED, ids=lambda attack: attack.name)
def test_members_are_those_the_model_is_surer_about(attack):
    rng = np.random.default_rng(4)
    membership = rng.random(800) < 0.5
    confidence = np.clip(rng.normal(np.where(membership, 0.8, 0.6), 0.1), 0.01, 0.99)
    vectors, labels = np.column_stack([confidence, 1 - confidence]), np.zeros(800, int)
    scores = attack.score(evidence(vectors, labels, membership))
    assert scores[membership].mean() > scores[~membership].mean()
    swapped = attack.score(evidence(vectors, labels, ~membership))
    np.testing.assert_array_equal(scores, swapped)


@pytest.mark.parametrize("attack", LEARNED, ids=lambda attack: attack.name)
def test_more_members_than_others_are_not_called_members_for_it(attack):
    rng = np.random.default_rng(1)
    membership = rng.random(1000) < 0.8
    given = evidence(rng.dirichlet([1, 1], 1000), rng.integers(0, 2, 1000), membership)
    called = attack.score(given) >= 0
    assert 0.3 < called.mean() < 0.7


def test_one_side_only_cannot_teach():
    rng = np.random.default_rng(0)
    given = evidence(rng.dirichlet([1, 1], 10), np.zeros(10, int), np.ones(10, bool))
    with pytest.raises(NotApplicableError, match="gradient-boosting attack has members or"):
        GradientBoosting().score(given)
