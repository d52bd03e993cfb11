from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leakscope.auditing.verdict import Limits, adjust, decide
from leakscope.controls import Control
from leakscope.metrics import Interval, judge
from leakscope.report.words import CONSTANT


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
LIMITS = Limits()


def test_a_clear_advantage_leaks_and_the_strongest_attack_is_named():
    outcomes = adjust([outcome("weak", 300, 200), outcome("strong", 400, 100)])
    verdict = decide(outcomes, FINE, LIMITS)
    assert verdict.level == "leaks"
    assert verdict.attack == "strong"
    assert "right about 80 of 100" in verdict.headline
    assert verdict.records_to_decide is None


def test_many_attacks_tried_raise_the_bar():
    borderline = outcome("borderline", 290, 249)  # p = .005 alone
    assert decide(adjust([borderline]), FINE, LIMITS).level == "leaks"
    others = [outcome(f"other{number}", 250, 250) for number in range(4)]
    assert decide(adjust([borderline, *others]), FINE, LIMITS).level == "undecided"


def test_no_leak_needs_every_upper_bound_below_the_limit():
    quiet = [outcome("a", 2500, 2500, 5000), outcome("b", 2510, 2500, 5000)]
    verdict = decide(adjust(quiet), FINE, LIMITS)
    assert verdict.level == "no_leak_found"
    assert "0.1" in verdict.headline
    loud = [*quiet, outcome("c", 55, 50, 100)]
    assert decide(adjust(loud), FINE, LIMITS).level == "undecided"


def test_an_attack_that_is_wrong_too_often_is_no_reassurance():
    turned = [outcome("turned", 1000, 4000, 5000)]
    verdict = decide(adjust(turned), FINE, LIMITS)
    assert verdict.level == "undecided"
    assert "swapped" in verdict.headline
    assert verdict.records_to_decide is None
    assert "−0.600" in verdict.reason


def test_an_attack_that_calls_nobody_is_not_reversed():
    """Its p-value is 1, because it shows nothing, and not because non-members are called more."""
    scores = np.random.default_rng(0).normal(size=10_000)
    quiet = judge(
        scores, np.arange(10_000) < 5000, attack="quiet", channel="loss", paper="", summary="",
        knowledge="none", threshold=9.0,
    )  # fmt: skip
    assert quiet.p_value == 1
    assert decide(adjust([quiet]), FINE, LIMITS).level == "no_leak_found"


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
    one = replace(one, tails=())  # the advantage alone
    verdict = decide(adjust([one]), FINE, LIMITS)
    assert verdict.level == "undecided"
    assert "swapped" in verdict.headline


def test_of_many_attacks_one_is_turned_by_chance():
    below = outcome("below", 240, 280)  # p = .006 alone, the other way round
    assert "swapped" in decide(adjust([below]), FINE, LIMITS).headline
    others = [outcome(f"other{number}", 250, 250) for number in range(20)]
    verdict = decide(adjust([below, *others]), FINE, LIMITS)
    assert verdict.level == "undecided"
    assert "swapped" not in verdict.headline


def test_undecided_says_how_many_records_would_decide():
    verdict = decide(adjust([outcome("a", 52, 50, 100)]), FINE, LIMITS)
    assert verdict.level == "undecided"
    assert verdict.records_to_decide > 100
    assert f"{verdict.records_to_decide:,}" in verdict.headline
    # With so many records and the same rates, it is decided.
    n = verdict.records_to_decide
    more = outcome("a", round(0.52 * n), round(0.50 * n), n)
    assert decide(adjust([more]), FINE, LIMITS).level in {"leaks", "no_leak_found"}


def test_one_attack_above_0_is_enough_to_decide():
    """The larger of two advantages decides before both are within the limit."""
    pair = [outcome("a", 175, 150, 300), outcome("b", 167, 150, 300)]
    verdict = decide(adjust(pair), FINE, LIMITS)
    assert verdict.level == "undecided"
    n = verdict.records_to_decide
    more = [
        outcome("a", round(n * 175 / 300), n // 2, n),
        outcome("b", round(n * 167 / 300), n // 2, n),
    ]
    assert decide(adjust(more), FINE, LIMITS).level == "leaks"
    half = [
        outcome("a", round(n * 175 / 600), n // 4, n // 2),
        outcome("b", round(n * 167 / 600), n // 4, n // 2),
    ]
    assert decide(adjust(half), FINE, LIMITS).level == "undecided"


def test_where_no_number_decides_none_is_named():
    """A slight leaning to the wrong side, beyond a limit smaller than it."""
    verdict = decide(adjust([outcome("a", 50, 51, 100)]), FINE, Limits(0.005))
    assert verdict.level == "undecided"
    assert verdict.records_to_decide is None
    assert "would decide" not in verdict.headline


def test_a_failed_control_voids_the_audit_and_a_warning_does_not():
    clear = adjust([outcome("strong", 400, 100)])
    failed = [Control("blind baseline", False, True, "They differ.")]
    verdict = decide(clear, failed, LIMITS)
    assert (verdict.level, verdict.reason) == ("invalid", "They differ.")
    warned = [Control("constant scores", False, False, "Same."), Control("overlap", None, True, "")]
    assert decide(clear, warned, LIMITS).level == "leaks"


def test_no_outcome_at_all_is_invalid():
    why = {"lira": "It needs shadow models; give --shadows 32."}
    verdict = decide([], FINE, LIMITS, why)
    assert verdict.level == "invalid"
    assert "no attack could run" in verdict.headline
    assert verdict.reason == "lira: It needs shadow models; give --shadows 32."


def test_holm_is_applied_over_the_attacks():
    outcomes = adjust([outcome("a", 285, 249), outcome("b", 290, 249)])
    smaller = min(one.p_value for one in outcomes)
    # A family of six: each attack has a test of its advantage and two of its highest scores.
    assert min(one.adjusted_p for one in outcomes) == pytest.approx(6 * smaller)


def scored(name, scores, channel="loss", n=None, **options):
    """An attack with these scores, the first half of them of members."""
    n = len(scores) // 2 if n is None else n
    options = {"knowledge": "none", "paper": "", "summary": ""} | options
    return judge(scores, np.arange(len(scores)) < n, attack=name, channel=channel, **options)


def quiet_with_few(few, n=4000, seed=0):
    """Scores of one distribution, but for the first few members, which are above all others."""
    scores = np.random.default_rng(seed).normal(size=2 * n)
    scores[:few] += 10
    return scores


def test_a_certain_leak_of_a_few_members_is_a_leak():
    verdict = decide(adjust([scored("loss", quiet_with_few(40), threshold=0.0)]), FINE, LIMITS)
    assert verdict.level == "leaks"
    assert (verdict.attack, verdict.attack_at_low_fpr) == ("loss", "loss")
    assert not verdict.within_limit
    assert verdict.headline == (
        "This model leaks a few training records: the loss attack, which sees the loss on each "
        "record, finds 41 of 4,000 members while accusing at most 4 of 4,000 non-members."
    )
    quiet = scored("loss", quiet_with_few(0), threshold=0.0)
    assert decide(adjust([quiet]), FINE, LIMITS).level == "no_leak_found"


def test_no_leak_found_requires_the_tail_to_be_within_its_limit():
    """The upper bound of the members found at 1 % FPR is compared with the limit."""
    n = 2000
    scores = np.r_[np.arange(n), np.arange(n) - 0.5]
    scores[n // 2 : n // 2 + 20] = 3 * n  # 20 members above all, and 20 by rank
    attack = adjust([replace(scored("loss", scores, threshold=n / 2), tails=())])
    rate = next(rate for rate in attack[0].tpr_at_fpr if rate.fpr == 0.01)
    assert decide(attack, FINE, Limits(tail=100 * rate.high + 0.1)).level == "no_leak_found"
    verdict = decide(attack, FINE, Limits(tail=100 * rate.high - 0.1))
    assert verdict.level == "undecided"
    assert "of members are found at 1% FPR" in verdict.headline
    assert f"up to {100 * rate.high:.1f}%" in verdict.reason


def test_records_that_would_bound_the_tail_do():
    alike = np.r_[np.arange(80), np.arange(80) + 0.5]
    few = adjust([scored("loss", alike, threshold=40.0)])
    verdict = decide(few, FINE, Limits(advantage=0.3))
    assert verdict.level == "undecided"
    assert "found at 1% FPR" in verdict.headline
    n = verdict.records_to_decide
    assert 80 < n < 3000
    decided = [
        decide(
            adjust([scored("loss", quiet_with_few(0, n, seed), threshold=0.0)]),
            FINE,
            Limits(advantage=0.3),
        ).level
        for seed in range(20)
    ]
    assert decided.count("no_leak_found") >= 14


def test_the_largest_significant_advantage_leads_not_the_narrowest_interval():
    """label-gap has the larger lower bound, the learned attack the larger advantage."""
    gap = outcome("label-gap", 650, 400, 1000)
    learned = replace(outcome("boosting", 900, 560, 1000), advantage=Interval(0.34, 0.2, 0.45))
    assert gap.advantage.low > learned.advantage.low
    verdict = decide(adjust([gap, learned]), FINE, LIMITS)
    assert verdict.attack == "boosting"


def test_both_leading_attacks_are_named_with_their_threat_models():
    n = 1000
    low = scored(
        "lira", quiet_with_few(60, n), "margin", models=33, knowledge="none", threshold=1e9
    )
    wide = outcome("label-gap", 700, 500, n)
    verdict = decide(adjust([wide, low]), FINE, LIMITS)
    assert (verdict.attack, verdict.attack_at_low_fpr) == ("label-gap", "lira")
    assert "label-gap attack, which sees the loss on each record, is right about 60" in (
        verdict.headline
    )
    assert "lira attack, which sees class probabilities and trains 32 shadow models, finds" in (
        verdict.headline
    )


def test_a_leak_within_the_limits_says_so():
    n = 20000
    small = outcome("loss", 10400, 10000, n)
    verdict = decide(adjust([small]), FINE, LIMITS)
    assert (verdict.level, verdict.within_limit) == ("leaks", True)
    assert verdict.headline.startswith("A small leak, within the limits:")
    large = decide(adjust([outcome("loss", 14000, 10000, n)]), FINE, LIMITS)
    assert (large.level, large.within_limit) == ("leaks", False)
    # A few members who are certainly found are not within a limit on averages.
    few = decide(adjust([small, scored("few", quiet_with_few(40))]), FINE, LIMITS)
    assert (few.level, few.within_limit) == ("leaks", False)


def test_constant_scores_leave_the_verdict_undecided():
    verdict = decide([], FINE, LIMITS, {"entropy": CONSTANT})
    assert verdict.level == "undecided"
    assert "Constant scores from entropy." in verdict.reason


@pytest.mark.parametrize(
    ("channels", "level"),
    [
        (["robustness"], "undecided"),
        (["gradient-summary", "records"], "undecided"),
        (["gradient+label"], "undecided"),
        (["robustness", "label"], "no_leak_found"),
        (["margin"], "no_leak_found"),
        (["label+probabilities"], "no_leak_found"),
    ],
)
def test_safety_needs_an_attack_on_labels_or_confidence(channels, level):
    scores = np.r_[np.arange(5000), np.arange(5000) - 0.5]
    quiet = [
        scored(f"attack{at}", scores, channel, threshold=2500.0)
        for at, channel in enumerate(channels)
    ]
    verdict = decide(adjust(quiet), FINE, LIMITS)
    assert verdict.level == level
    # A leak through any channel is a leak.
    loud = [replace(one, p_value=1e-9) for one in quiet]
    assert decide(adjust(loud), FINE, LIMITS).level == "leaks"


@pytest.mark.parametrize(
    "detail", ["fewer members than by guessing", "check that the sides are not swapped"]
)
def test_a_doubtful_accuracy_is_named_and_forbids_no_leak_found(detail):
    quiet = adjust([outcome("a", 2500, 2500, 5000)])
    doubt = [*FINE, Control("accuracy of the target", False, False, detail)]
    verdict = decide(quiet, doubt, LIMITS)
    assert (verdict.level, verdict.reason) == ("undecided", detail)
    leak = decide(adjust([outcome("a", 3500, 2500, 5000)]), doubt, LIMITS)
    assert leak.level == "leaks"
    assert detail in leak.reason


def test_mildly_swapped_sides_are_named_within_the_limit():
    """An advantage of −.03, significantly below 0 and within the limit of .1."""
    verdict = decide(adjust([outcome("a", 4850, 5150, 10000)]), FINE, LIMITS)
    assert verdict.level == "undecided"
    assert "swapped" in verdict.headline


@pytest.mark.parametrize("found", [2500, 3500])
def test_a_decisive_control_that_could_not_run_qualifies_the_headline(found):
    unchecked = [
        Control("overlap", None, True, "No features.", "no record is on both sides"),
        Control("blind baseline", None, True, "No features.", "both sides are of one population"),
    ]
    outcomes = adjust([outcome("a", found, 2500, 5000)])
    verdict = decide(outcomes, unchecked, LIMITS)
    assert verdict.headline.endswith(
        "This holds only if no record is on both sides and both sides are of one population; the "
        "audit could not check that."
    )
    assert len(verdict.conditions) == 2
    assert decide(outcomes, FINE, LIMITS).conditions == ()


def test_no_leak_found_does_not_claim_more_than_its_intervals():
    verdict = decide(adjust([outcome("a", 2500, 2500, 5000)]), FINE, LIMITS)
    assert "95% interval" in verdict.headline
    assert "can have" not in verdict.headline


def test_persons_are_counted_beside_records():
    few = adjust([outcome("a", 52, 50, 100)])
    verdict = decide(few, FINE, LIMITS, persons_per_record=0.25)
    n = verdict.records_to_decide
    assert f"about {n:,} records of {-(-n // 4):,} persons on each side" in verdict.headline


def test_a_small_leak_in_the_tail_alone_is_called_small():
    """Of 20,000 members 1.6 % are found at 1 % FPR: real, and within 5 times the rate."""
    n = 20000
    scores = np.random.default_rng(1).uniform(size=2 * n)
    scores[:120] = 2.0
    one = scored("loss", scores, threshold=0.5)
    one = replace(one, tails=one.tails[:1])  # at 0.1 % FPR it would be beyond the limit
    verdict = decide(adjust([one]), FINE, LIMITS)
    assert (verdict.level, verdict.within_limit) == ("leaks", True)
    assert verdict.headline.startswith("A small leak of a few training records, within the limits:")


def test_undecided_names_the_end_that_is_outside():
    low = replace(outcome("a", 250, 250), advantage=Interval(-0.06, -0.15, 0.03))
    assert "cannot rule out an advantage below −0.1" in decide(adjust([low]), FINE, LIMITS).headline
    high = replace(outcome("a", 250, 250), advantage=Interval(0.06, -0.03, 0.15))
    assert "cannot rule out an advantage above 0.1" in decide(adjust([high]), FINE, LIMITS).headline


def test_members_singled_out_in_one_group_alone_keep_the_verdict_open():
    """15 of the 100 members of a group are above everyone; overall, 15 of 4,000 hardly show."""
    n = 4000
    scores = np.random.default_rng(3).normal(size=2 * n)
    small = np.arange(2 * n) % n < 100
    scores[:15] = scores.max() + 1
    scores[n + 100 : n + 108] = scores.max() + 1  # some non-members of everyone else are as high
    groups = {"ward": np.where(small, "east", "west")}
    one = scored("loss", scores, threshold=0.0, groups=groups)
    verdict = decide(adjust([one]), FINE, LIMITS)
    assert verdict.level == "undecided"
    assert "members of one group are singled out (ward: east)" in verdict.headline
    assert "of 100 members of this group while accusing at most" in verdict.reason
    plain = scored("loss", scores, threshold=0.0)
    assert decide(adjust([plain]), FINE, LIMITS).level == "no_leak_found"
