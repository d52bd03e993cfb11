from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import leakscope
from leakscope.attacks.shown import Shown
from leakscope.channels.influence import FARTHEST
from leakscope.evidence import Evidence, Folds
from leakscope.exact import leave_one_out
from leakscope.metrics import roc
from leakscope.records import Records


def evidence(observations):
    n = len(observations)
    half = np.arange(n) % 2 == 0
    return Evidence("classification", observations, np.zeros(n, np.int64), 2, Folds(half, half), 0)


def test_only_the_record_itself_is_a_member():
    seen = np.array([[0.0, 3.0, 0.0], [0.5, 0.5, 2.0], [FARTHEST, FARTHEST, FARTHEST]])
    scores = Shown().score(evidence(seen))
    np.testing.assert_array_equal(scores, [0.0, -1.0, -1.0])
    assert Shown().threshold(evidence(seen)) == 0.0


def test_members_found_without_accusing_anybody_are_those_shown_to_themselves():
    distances = np.array([0, 0, 0, 1.5, 2.5, 1, 2, 3, 4, 5.0])
    membership = np.arange(10) < 5
    found = roc(Shown().score(evidence(distances[:, None])), membership, threshold=0.0)
    assert found.advantage.value == pytest.approx(3 / 5)
    assert found.curve.tpr[found.curve.fpr == 0].max() == pytest.approx(3 / 5)


def test_it_runs_on_request_on_both_kinds_of_model():
    assert Shown.on_request
    assert Shown.tasks == {"classification", "regression"}
    assert (Shown.knowledge, Shown.shadows) == ("none", 0)


def draw(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    signal = X[:, 0] + rng.normal(size=n)
    return Records(X, (np.argsort(np.argsort(signal)) >= n // 2).astype(int))


def outcome(members, nonmembers):
    model = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(members.X, members.y)
    (found,) = leakscope.audit(model, members, nonmembers, attacks=["shown"]).outcomes
    return found


def test_its_advantage_is_the_share_of_members_shown_to_themselves():
    members = draw(200, 0)
    share = float((leave_one_out(members.X, members.y).self_ranks() <= 5).mean())
    found = outcome(members, draw(200, 1))
    assert share > 0.2
    assert found["advantage"]["value"] == pytest.approx(share, abs=1e-12)
    assert found["auc"]["value"] == pytest.approx((1 + share) / 2, abs=1e-12)
    assert found["ppv"]["value"] == 1.0
    assert found["threshold"] == {"value": 0.0, "source": "fixed by the attack"}


def test_near_duplicates_on_the_other_side_are_not_taken_for_members():
    members = draw(200, 0)
    others = draw(200, 1)
    # A hundredth of a standard deviation beside members: another person, and nearly the same.
    beside = Records(members.X[:100] + 0.01 * others.X[:100], members.y[:100])
    mixed = Records(
        np.concatenate([beside.X, others.X[100:]]), np.concatenate([beside.y, others.y[100:]])
    )
    apart, near = outcome(members, others), outcome(members, mixed)
    assert near["advantage"] == apart["advantage"]
    assert near["auc"]["value"] == apart["auc"]["value"]


def test_the_features_of_a_member_with_another_label_are_taken_for_the_member():
    members, others = draw(200, 0), draw(200, 1)
    ranks = leave_one_out(members.X, members.y).self_ranks()
    copied = np.flatnonzero(ranks <= 5)[:20]
    X, y = others.X.copy(), others.y.copy()
    X[:20], y[:20] = members.X[copied], 1 - members.y[copied]
    found = outcome(members, Records(X, y))
    assert found["advantage"]["value"] == pytest.approx((ranks <= 5).mean() - 20 / 200, abs=1e-12)
