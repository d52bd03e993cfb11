from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import leakscope
from gated import attacked, audited, report_of
from leakscope import testing
from leakscope.errors import InputError
from leakscope.testing import assert_private

QUICK = {"attacks": ["loss", "label-gap"]}


def people(n: int, seed: int):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


@pytest.fixture
def heard() -> Iterator[list[Any]]:
    told: list[Any] = []
    listener = lambda *given: told.append(given)  # noqa: E731
    testing.listeners.append(listener)
    yield told
    testing.listeners.remove(listener)


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have the audit answer at once with these attacks; what it was asked is kept."""
    asked: dict[str, Any] = {}

    def answered(*attacks, **changes):
        def audit(*given, **options):
            asked.update(options, given=given)
            return report_of(audited(*attacks, **changes))

        monkeypatch.setattr(leakscope, "audit", audit)
        return asked

    return answered


def test_a_model_that_learns_by_heart_fails_with_the_strongest_attack() -> None:
    members, others = people(150, 0), people(150, 1)
    model = KNeighborsClassifier(1).fit(*members)
    with pytest.raises(AssertionError) as caught:
        assert_private(model, members, others, **QUICK)
    told = str(caught.value)
    assert told.startswith("Violated: advantage ≤ 0.1: the ")
    assert "The strongest attack is " in told


def test_a_model_that_learns_little_passes_and_the_report_comes_back(heard) -> None:
    members, others = people(2500, 0), people(2500, 1)
    model = LogisticRegression().fit(*members)
    report = assert_private(model, members, others, max_advantage=0.15, max_auc=0.6, **QUICK)
    assert report.verdict.limit == 0.15
    ((same, check),) = heard
    assert same is report
    assert check.decision == "holds"
    assert [one.limit for one in check.limits] == ["advantage ≤ 0.15", "AUC ≤ 0.6"]


def test_too_few_records_fail_unless_that_is_allowed(answer) -> None:
    answer(attacked("loss", 0.58, 0.5))
    with pytest.raises(AssertionError, match="Cannot decide: advantage") as caught:
        assert_private(None, None, None)
    assert "records on each side would decide" in str(caught.value)
    assert assert_private(None, None, None, allow_undecided=True).outcomes
    answer(attacked("loss", 0.9, 0.1))
    with pytest.raises(AssertionError, match="Violated"):
        assert_private(None, None, None, allow_undecided=True)


def test_an_invalid_audit_is_no_pass(answer) -> None:
    answer(level="invalid", reason="The sides overlap.")
    for allowed in (False, True):
        with pytest.raises(AssertionError) as caught:
            assert_private(None, None, None, allow_undecided=allowed)
        assert "the audit is invalid: The sides overlap." in str(caught.value)
        assert "strongest" not in str(caught.value)


def test_options_go_to_the_audit_and_limits_to_the_gate(answer) -> None:
    asked = answer(attacked("loss", 0.5, 0.5, found={0.01: (0.2, 0.15, 0.3)}))
    with pytest.raises(AssertionError, match=r"TPR at 0\.01 FPR ≤ 0\.1"):
        assert_private(1, 2, 3, max_advantage=0.3, max_tpr="0.1@0.01", label="y", seed=7, shadows=4)
    assert asked == {"given": (1, 2, 3), "limit": 0.3, "label": "y", "seed": 7, "shadows": 4}
    asked.clear()
    assert_private(1, 2, 3, max_advantage=None, max_auc=0.6)
    assert "limit" not in asked
    asked.clear()
    with pytest.raises(AssertionError):
        assert_private(1, 2, 3, max_advantage=0)  # no advantage at all is a limit too
    assert "limit" not in asked


def test_a_limit_that_makes_no_sense_is_no_failure_of_the_model(answer) -> None:
    answer(attacked())
    with pytest.raises(InputError, match=r"The max_auc is 0\.2"):
        assert_private(1, 2, 3, max_auc=0.2)
