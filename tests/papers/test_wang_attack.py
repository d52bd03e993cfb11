from __future__ import annotations

import numpy as np
import pytest

from leakscope.evidence import Evidence, Folds
from leakscope.papers.wang_attack import InferenceAttack, inference_recipe, seen_by_inference

N = 600


def evidence(shift: float, membership: np.ndarray) -> Evidence:
    """A model of three classes that is surer of members by a shift of the true class's logit."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, N)
    logits = rng.normal(size=(N, 3))
    logits[np.arange(N), labels] += shift * membership
    odds = np.exp(logits)
    return Evidence(
        task="classification",
        observations=odds / odds.sum(axis=1, keepdims=True),
        labels=labels,
        classes=3,
        folds=Folds.draw(np.arange(N), membership, 0),
        seed=0,
        knowledge=InferenceAttack.knowledge,
        _membership=membership,
    )


def accuracy(shift: float) -> float:
    membership = np.arange(N) % 2 == 0
    called = InferenceAttack().score(evidence(shift, membership)) >= 0
    return float((called == membership).mean())


@pytest.mark.slow
def test_it_finds_members_by_the_true_label_and_nobody_where_nothing_is_to_be_found() -> None:
    assert accuracy(8.0) > 0.95
    # Guessing is right about half of 600; a tenth away from that is rarer than 1e-6.
    assert abs(accuracy(0.0) - 0.5) < 0.1


def test_members_are_expected_to_be_surer() -> None:
    given = evidence(8.0, np.arange(N) % 2 == 0)
    expected = InferenceAttack().expected(given)
    own = given.observations[np.arange(N), given.labels]
    assert (np.argsort(expected) == np.argsort(own)).all()


def test_it_sees_probabilities_beside_true_labels() -> None:
    shown = seen_by_inference(np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([1, 0]))
    np.testing.assert_array_equal(shown, np.float32([[0.2, 0.8, 0, 1], [0.5, 0.5, 1, 0]]))
    # Nasr's layers: 1024, 512, 64 for the one, 512, 64 for the other, and 256, 64 for both.
    module = inference_recipe(1).factory(4, 2)
    widths = [weight.shape[0] for weight in module.parameters() if weight.ndim == 2]
    assert widths == [1024, 512, 64, 512, 64, 256, 64, 1]
    assert inference_recipe(7, stop_at_gap=1.0).epochs == pytest.approx(7)
