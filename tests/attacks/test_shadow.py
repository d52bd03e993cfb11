from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier

from leakscope.attacks.shadow import ShadowModels
from leakscope.errors import NotApplicableError
from leakscope.evidence import Evidence, Folds
from leakscope.metrics import roc


def predict(inside, labels, level, rng, gain=1.5):
    """Probabilities (…, n, k) that are surer of the true class where the model was taught it."""
    k = level.shape[1]
    logits = level + rng.normal(size=(*inside.shape, k))
    logits[..., np.arange(len(labels)), labels] += gain * inside
    odds = np.exp(logits)
    return odds / odds.sum(axis=-1, keepdims=True)


def evidence(m=12, n=600, k=3, share=0.5, seed=0, labels=None, gain=1.5):
    """Evidence, and the truth about the target."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, n) if labels is None else labels
    level = rng.normal(size=(n, k))
    inside = rng.random((m, n)) < share
    membership = rng.random(n) < 0.5
    given = Evidence(
        task="classification",
        observations=predict(membership, labels, level, rng, gain),
        labels=labels,
        classes=k,
        folds=Folds(np.arange(n) % 2 == 0, np.arange(n) % 5 == 0),
        seed=seed,
        shadow_membership=inside,
        shadow_observations=predict(inside, labels, level, rng, gain),
    )
    return given, membership


def test_members_are_found_and_even_odds_decide():
    given, membership = evidence()
    attack = ShadowModels()
    scores = attack.score(given)
    found = roc(scores, membership, threshold=attack.threshold(given))
    assert found.auc.low > 0.6
    assert found.advantage.low > 0.15
    np.testing.assert_array_equal(scores, attack.score(given))


def test_a_target_that_knows_nobody_is_at_chance():
    given, _ = evidence(n=4000, gain=0.0)
    sides = np.random.default_rng(5).random(4000) < 0.5
    found = roc(ShadowModels().score(given), sides, confidence=1 - 1e-6)
    assert found.auc.low < 0.5 < found.auc.high


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("rows", [20_000, 1200])
def test_the_share_of_members_among_the_shadows_moves_no_odds(share, rows):
    """Every prediction is as likely on either side: the log-odds are near 0 at any share."""
    given, _ = evidence(m=20, n=900, share=share, gain=0.0)
    scores = ShadowModels(rows=rows, rounds=10).score(given)
    assert abs(scores.mean()) < 0.1


def test_the_log_odds_are_those_of_the_truth():
    """One number decides: N(1, 1) in the log-odds of members, N(0, 1) in those of others."""
    rng = np.random.default_rng(3)
    m, n = 40, 1000
    inside, membership = rng.random((m, n)) < 0.3, rng.random(n) < 0.5
    margins, own = inside + rng.normal(size=(m, n)), membership + rng.normal(size=n)

    def vectors(values):
        return np.stack([1 - expit(values), expit(values)], axis=-1)

    given = Evidence(
        task="classification",
        observations=vectors(own),
        labels=np.ones(n, dtype=np.int64),
        classes=2,
        folds=Folds(np.arange(n) % 2 == 0, np.arange(n) % 5 == 0),
        seed=0,
        shadow_membership=inside,
        shadow_observations=vectors(margins),
    )
    scores = ShadowModels().score(given)
    truth = own - 0.5
    usual = np.abs(truth) < 1.5
    assert np.abs(scores - truth)[usual].mean() < 0.15


def test_rows_are_drawn_evenly_and_no_more_than_asked_for(monkeypatch):
    taught = []

    class Watched(HistGradientBoostingClassifier):
        def fit(self, X, y):
            taught.append((X.shape, int(y.sum())))
            return super().fit(X, y)

    monkeypatch.setattr("leakscope.attacks.shadow.HistGradientBoostingClassifier", Watched)
    given, _ = evidence(m=10, n=600, k=2)
    ShadowModels(rows=1000).score(given)
    assert taught == [((1000, 2), 500)] * 2
    taught.clear()
    ShadowModels().score(given)
    rows = [int((given.labels == label).sum()) * 10 for label in (0, 1)]
    assert [shape for shape, _ in taught] == [(count, 2) for count in rows]


def test_rare_classes_share_one_classifier():
    labels = np.repeat([0, 1, 2, 3], [400, 380, 5, 5])
    given, membership = evidence(m=10, n=790, k=5, labels=labels)  # nobody is of the fifth
    scores, shared = ShadowModels().score(given), ShadowModels(least=10**9).score(given)
    rare = labels >= 2
    np.testing.assert_array_equal(scores[rare], shared[rare])
    assert (scores[~rare] != shared[~rare]).mean() > 0.9
    assert roc(shared, membership).auc.low > 0.6


def test_so_many_classes_that_each_is_rare():
    labels = np.tile(np.arange(400), 3)
    given, membership = evidence(m=4, n=1200, k=400, labels=labels, gain=4.0)
    assert roc(ShadowModels().score(given), membership).auc.low > 0.6


def test_a_stack_of_files_is_asked_for_the_rows_it_needs():
    given, _ = evidence(m=6, n=300)
    whole = given.shadow_observations

    class Files:
        shape = whole.shape
        asked = 0

        def __getitem__(self, index):
            model, records = index
            Files.asked += len(records)
            return whole[model, records]

    scores = ShadowModels(rows=400).score(replace(given, shadow_observations=Files()))
    np.testing.assert_array_equal(scores, ShadowModels(rows=400).score(given))
    assert Files.asked == 3 * 400


@pytest.mark.parametrize("everybody", [True, False])
def test_shadows_trained_on_all_or_none_are_refused(everybody):
    given, _ = evidence(m=4, n=60, share=1.0 if everybody else 0.0)
    with pytest.raises(NotApplicableError, match="4 shadow models were trained on all of the"):
        ShadowModels().score(given)
