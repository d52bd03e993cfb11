from __future__ import annotations

import numpy as np
import pytest

from leakscope.auditing.verdict import adjust, decide
from leakscope.controls import Control
from leakscope.metrics import judge


def outcome(name, found, accused, n=500):
    """An attack that calls `found` of n members and `accused` of n non-members members."""
    scores = np.r_[np.arange(n) < found, np.arange(n) < accused].astype(float)
    return judge(
        scores,
        np.arange(2 * n) < n,
        attack=name,
        channel="loss",
        paper="",
        summary="",
        knowledge="none",
        threshold=0.5,
    )


FINE = [Control("overlap", True, True, "")]


def test_a_clear_advantage_leaks_and_the_strongest_attack_is_named():
    outcomes = adjust([outcome("weak", 300, 200), outcome("strong", 400, 100)])
    verdict = decide(outcomes, FINE, 0.1)
    assert verdict.level == "leaks"
    assert verdict.attack == "strong"
    assert "right about 80 of 100" in verdict.headline
    assert verdict.records_to_decide is None


def test_many_attacks_tried_raise_the_bar():
    borderline = outcome("borderline", 285, 249)  # p = .011 alone
    assert decide(adjust([borderline]), FINE, 0.1).level == "leaks"
    others = [outcome(f"other{number}", 250, 250) for number in range(4)]
    assert decide(adjust([borderline, *others]), FINE, 0.1).level == "undecided"


def test_no_leak_needs_every_upper_bound_below_the_limit():
    quiet = [outcome("a", 2500, 2500, 5000), outcome("b", 2510, 2500, 5000)]
    verdict = decide(adjust(quiet), FINE, 0.1)
    assert verdict.level == "no_leak_found"
    assert "0.1" in verdict.headline
    loud = [*quiet, outcome("c", 55, 50, 100)]
    assert decide(adjust(loud), FINE, 0.1).level == "undecided"


def test_an_attack_that_is_wrong_too_often_is_no_reassurance():
    turned = [outcome("turned", 1000, 4000, 5000)]
    verdict = decide(adjust(turned), FINE, 0.1)
    assert verdict.level == "undecided"
    assert "swapped" in verdict.headline
    assert verdict.records_to_decide is None
    assert "−0.600" in verdict.reason


def test_a_threshold_that_is_wrong_beyond_chance_is_turned_even_where_the_area_is_not():
    """Most of the area is at chance; at the threshold used, non-members are called more often."""
    scores = np.r_[np.repeat([0.0, 2.0], [600, 400]), np.repeat([0.0, 1.0], [400, 600])]
    one = judge(
        scores,
        np.arange(2000) < 1000,
        attack="odd",
        channel="loss",
        paper="",
        summary="",
        knowledge="none",
        threshold=0.5,
    )
    assert one.auc.high > 0.45
    verdict = decide(adjust([one]), FINE, 0.1)
    assert verdict.level == "undecided"
    assert "swapped" in verdict.headline


def test_of_many_attacks_one_is_turned_by_chance():
    below = outcome("below", 240, 280)  # p = .006 alone, the other way round
    assert "swapped" in decide(adjust([below]), FINE, 0.1).headline
    others = [outcome(f"other{number}", 250, 250) for number in range(20)]
    verdict = decide(adjust([below, *others]), FINE, 0.1)
    assert verdict.level == "undecided"
    assert "swapped" not in verdict.headline


def test_undecided_says_how_many_records_would_decide():
    verdict = decide(adjust([outcome("a", 52, 50, 100)]), FINE, 0.1)
    assert verdict.level == "undecided"
    assert verdict.records_to_decide > 100
    assert f"{verdict.records_to_decide:,}" in verdict.headline
    # With so many records and the same rates, it is decided.
    n = verdict.records_to_decide
    more = outcome("a", round(0.52 * n), round(0.50 * n), n)
    assert decide(adjust([more]), FINE, 0.1).level in {"leaks", "no_leak_found"}


def test_one_attack_above_0_is_enough_to_decide():
    """The larger of two advantages decides before both are within the limit."""
    pair = [outcome("a", 175, 150, 300), outcome("b", 167, 150, 300)]
    verdict = decide(adjust(pair), FINE, 0.1)
    assert verdict.level == "undecided"
    n = verdict.records_to_decide
    more = [
        outcome("a", round(n * 175 / 300), n // 2, n),
        outcome("b", round(n * 167 / 300), n // 2, n),
    ]
    assert decide(adjust(more), FINE, 0.1).level == "leaks"
    half = [
        outcome("a", round(n * 175 / 600), n // 4, n // 2),
        outcome("b", round(n * 167 / 600), n // 4, n // 2),
    ]
    assert decide(adjust(half), FINE, 0.1).level == "undecided"


def test_where_no_number_decides_none_is_named():
    """A slight leaning to the wrong side, beyond a limit smaller than it."""
    verdict = decide(adjust([outcome("a", 50, 51, 100)]), FINE, 0.005)
    assert verdict.level == "undecided"
    assert verdict.records_to_decide is None
    assert "would decide" not in verdict.headline


def test_a_failed_control_voids_the_audit_and_a_warning_does_not():
    clear = adjust([outcome("strong", 400, 100)])
    failed = [Control("blind baseline", False, True, "They differ.")]
    verdict = decide(clear, failed, 0.1)
    assert (verdict.level, verdict.reason) == ("invalid", "They differ.")
    warned = [Control("constant scores", False, False, "Same."), Control("overlap", None, True, "")]
    assert decide(clear, warned, 0.1).level == "leaks"


def test_no_outcome_at_all_is_invalid():
    verdict = decide([], FINE, 0.1)
    assert verdict.level == "invalid"
    assert "no attack could run" in verdict.headline


def test_holm_is_applied_over_the_attacks():
    outcomes = adjust([outcome("a", 285, 249), outcome("b", 290, 249)])
    smaller = min(one.p_value for one in outcomes)
    assert min(one.adjusted_p for one in outcomes) == pytest.approx(2 * smaller)
