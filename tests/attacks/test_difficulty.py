from __future__ import annotations

import numpy as np
import pytest

from leakscope.attacks.difficulty import CalibratedLoss
from leakscope.errors import NotApplicableError
from leakscope.evidence import Evidence, Folds


def evidence(losses, membership, target, task="classification"):
    n = len(target)
    return Evidence(
        task=task,
        observations=np.asarray(target, float)[:, None],
        labels=np.zeros(n),
        classes=2 if task == "classification" else 0,
        folds=Folds(np.arange(n) % 2 == 0, np.arange(n) % 5 == 0),
        seed=0,
        shadow_membership=np.asarray(membership, bool),
        shadow_observations=np.asarray(losses, float)[:, :, None],
    )


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_score_is_the_usual_loss_without_the_record_minus_the_targets(task):
    given = evidence([[1, 5], [3, 6], [9, 7]], [[0, 1], [0, 0], [1, 0]], [0.5, 8.0], task)
    attack = CalibratedLoss()
    assert attack.score(given).tolist() == [1.5, -1.5]
    assert attack.threshold(given) is None
    assert task in attack.tasks


def test_it_agrees_with_a_loop_over_records():
    rng = np.random.default_rng(0)
    losses, target = rng.exponential(size=(9, 700)), rng.exponential(size=700)
    membership = rng.random((9, 700)) < 0.5
    membership[0] = False
    slow = [losses[~membership[:, i], i].mean() - target[i] for i in range(700)]
    np.testing.assert_allclose(
        CalibratedLoss().score(evidence(losses, membership, target)), slow, atol=1e-12
    )


def test_a_record_in_every_model_is_refused():
    given = evidence([[1, 5], [3, 6]], [[1, 1], [1, 0]], [0.5, 8.0])
    with pytest.raises(NotApplicableError, match="Of 2 records, 1 have fewer than 1 shadow models"):
        CalibratedLoss().score(given)
