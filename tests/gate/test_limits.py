from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gated import SIDES, attacked, audited
from leakscope.errors import InputError
from leakscope.gate.bounds import advantage_together, auc_low
from leakscope.gate.limits import (
    AdvantageLimit,
    AucLimit,
    DisclosureLimit,
    ReportLimit,
    Required,
    TprLimit,
    figure_limits,
)
from leakscope.metrics.intervals import NONE

TENTH = AdvantageLimit(0.1)


def test_an_advantage_is_decided_with_a_correction_for_the_attacks_tried() -> None:
    strong = attacked("lira", 0.6, 0.44)
    alone = TENTH.decide(audited(strong))
    assert (alone.decision, alone.low) == ("violated", strong.advantage.low)
    many = TENTH.decide(audited(strong, *(attacked(f"other-{i}") for i in range(19))))
    assert (many.decision, many.attack) == ("undecided", "lira")
    assert many.low == advantage_together(strong, 20).low < 0.1 < alone.low
    assert many.high == alone.high  # upper ends are those of the report


def test_an_advantage_holds_where_all_are_within() -> None:
    found = TENTH.decide(audited(attacked("loss", 0.52, 0.5), attacked("lira", 0.5, 0.5)))
    assert (found.decision, found.attack, found.limit) == ("holds", "loss", "advantage ≤ 0.1")


def test_no_advantage_is_sure_that_the_reports_own_test_does_not_confirm() -> None:
    one = attacked("loss", 0.6, 0.4, adjusted_p=0.03)
    found = TENTH.decide(audited(one))
    assert (found.decision, found.low) == ("undecided", 0.0)
    assert AdvantageLimit(0.0).decide(audited(replace(one, adjusted_p=0.025))).decision == (
        "violated"
    )
    assert TENTH.decide(audited(replace(one, adjusted_p=math.nan))).decision == "undecided"


@pytest.mark.parametrize(
    "one",
    [
        attacked(tpr=0.3, fpr=0.6),
        # The threshold calls nobody a member; the area shows that members score lower.
        attacked(tpr=0.0, fpr=0.0, auc=(0.3, 0.28, 0.32)),
    ],
)
def test_members_that_hide_are_not_called_safe(one) -> None:
    found = TENTH.decide(audited(attacked("other"), replace(one, attack="turned")))
    assert (found.decision, found.attack, found.records_to_decide) == ("undecided", "turned", None)
    assert "check that the sides are not swapped" in found.reason


def test_an_advantage_surely_below_0_and_within_the_limit_is_within() -> None:
    one = attacked(tpr=0.46, fpr=0.5, n=(10_000, 10_000), auc=(0.48, 0.47, 0.49))
    assert 1 - one.p_value < 0.001
    assert TENTH.decide(audited(one)).decision == "holds"


def test_an_area() -> None:
    low, high = attacked("a", auc=(0.52, 0.5, 0.54)), attacked("b", auc=(0.6, 0.57, 0.63))
    assert AucLimit(0.55).decide(audited(low)).decision == "holds"
    found = AucLimit(0.55).decide(audited(low, high))
    assert (found.decision, found.attack, found.limit) == ("violated", "b", "AUC ≤ 0.55")
    assert found.low == auc_low(high.auc, 2, (1000, 1000))
    assert AucLimit(0.55).decide(audited(attacked(auc=(0.5, 0.44, 0.54)))).decision == "undecided"
    turned = AucLimit(0.55).decide(audited(attacked(auc=(0.3, 0.28, 0.32))))
    assert turned.decision == "undecided"
    assert "swapped" in turned.reason


def test_a_figure_that_the_report_lacks_decides_nothing() -> None:
    lacking = replace(attacked("odd"), advantage=NONE, auc=NONE)
    for limit in (TENTH, AucLimit(0.55)):
        found = limit.decide(audited(attacked("fine"), lacking))
        assert (found.decision, found.attack) == ("undecided", "odd")
        assert "the report gives no figure for it" in found.reason


def found_at(rate, at=0.01, **more):
    return attacked(found={at: rate}, **more)


def test_the_share_found() -> None:
    limit = TprLimit(0.03, 0.01)
    assert limit.name == "TPR at 0.01 FPR ≤ 0.03"
    assert limit.decide(audited(found_at((0.01, 0.005, 0.03)))).decision == "holds"
    assert limit.decide(audited(found_at((0.06, 0.031, 0.1)))).decision == "violated"
    assert limit.decide(audited(found_at((0.06, 0.03, 0.1)))).decision == "undecided"
    # With two attacks the same figure is no longer sure.
    two = limit.decide(
        audited(found_at((0.06, 0.031, 0.1), attack="a"), found_at((0.0, 0.0, 0.01), attack="b"))
    )
    assert (two.decision, two.attack) == ("undecided", "a")


@pytest.mark.parametrize(
    ("nonmembers", "needed"), [(100, 500), (499, 500), (500, 1000), (999, 1000), (1000, None)]
)
def test_a_share_that_the_report_does_not_resolve(nonmembers, needed) -> None:
    one = found_at((0.0, 0.0, 0.01), resolved=False)
    sides = (1000, nonmembers)
    found = TprLimit(0.5, 0.01).decide(audited(one, sides=sides, persons=sides))
    assert (found.decision, found.records_to_decide) == ("undecided", needed)
    assert f"{nonmembers:,} non-members are too few" in found.reason
    assert "about 500 are needed" in found.reason


@pytest.mark.parametrize(("fpr", "needed"), [(0.05, 100), (0.001, 5000), (0.03, 167)])
def test_five_non_members_must_be_expected_above_the_threshold(fpr, needed) -> None:
    one = found_at((0.0, 0.0, 0.01), fpr, resolved=False)
    found = TprLimit(0.5, fpr).decide(audited(one, sides=(50, 50)))
    assert found.records_to_decide == needed


@pytest.mark.parametrize(
    ("sides", "size", "persons", "text", "needed"),
    [
        (
            (2000, 2073),
            273.4,
            310,
            "2,073 non-members of 310 persons, which count as 273, ar",
            3792,
        ),
        ((2000, 900), 450.0, 900, "900 non-members, which count as 450, are too few", 1000),
        ((2000, 499), 499.0, 499, "499 non-members are too few", 500),
        ((2000, 600), 499.9, 600, "600 non-members, which count as 499, are too few", 601),
    ],
)
def test_what_non_members_count_as_is_told(sides, size, persons, text, needed) -> None:
    one = found_at((0.0, 0.0, 0.01), resolved=False)
    rate = replace(one.tpr_at_fpr[0], effective_nonmembers=size)
    audit = audited(replace(one, tpr_at_fpr=(rate,)), sides=sides, persons=(1000, persons))
    found = TprLimit(0.5, 0.01).decide(audit)
    assert text in found.reason
    assert "about 500 are needed" in found.reason
    assert (found.decision, found.records_to_decide) == ("undecided", needed)


def test_records_that_would_decide_are_told_with_their_persons() -> None:
    audit = audited(attacked("loss", 0.54, 0.5, (300, 300)), persons=(300, 250))
    found = TENTH.decide(audit)
    needed = found.records_to_decide
    assert f"about {needed:,} records of {math.ceil(0.3 * needed):,} persons on" in found.reason


def yes_or_no(tpr, fpr, n=SIDES, resolved=True):
    """An attack that answers yes for these shares of members and of non-members."""
    area = 0.5 + (tpr - fpr) / 2
    return attacked(
        "label-gap", tpr, fpr, n, auc=(area, max(area - 0.02, 0), min(area + 0.02, 1)),
        curve=((0.0, 0.0), (fpr, tpr), (1.0, 1.0)), found={0.01: (0.0, 0.0, 0.1)},
        resolved=resolved,
    )  # fmt: skip


@pytest.mark.parametrize("n", [(2000, 2000), (300, 300)])
@pytest.mark.parametrize(
    ("tpr", "fpr", "most", "decision"),
    [
        (0.95, 0.9, 0.02, "holds"),  # a random part of its calls finds hardly more than guessing
        (1.0, 0.75, 0.02, "holds"),
        (1.0, 0.75, 0.011, "violated"),  # 1.33 %
        (0.5, 0.05, 0.02, "violated"),  # 10 % of the members at 1 %, by every fifth call
        (0.5, 0.05, 0.2, "holds"),
        (0.5, 0.0, 0.3, "violated"),  # the call itself accuses nobody
        (0.0, 0.0, 0.05, "holds"),
        (0.0, 0.5, 0.05, "undecided"),  # swapped
    ],
)
def test_a_yes_or_no_is_judged_by_its_call(tpr, fpr, most, decision, n) -> None:
    one = yes_or_no(tpr, fpr, n, resolved=n[1] >= 500)
    assert one.call == (fpr, tpr)
    found = TprLimit(most, 0.01).decide(audited(one, sides=n, persons=n))
    assert found.decision == decision
    expected = tpr if fpr <= 0.01 else tpr * 0.01 / fpr
    assert found.value == pytest.approx(expected)


def test_a_curve_of_which_points_were_withheld_is_no_yes_or_no() -> None:
    one = attacked(auc=(0.6, 0.58, 0.62), curve=((0.0, 0.0), (0.5, 0.5), (1.0, 1.0)))
    assert one.call is None


def test_one_that_calls_nobody_is_not_turned_round() -> None:
    """Its p-value is 1, which is not evidence that members hide."""
    nobody = found_at((0.0, 0.0, 0.01), tpr=0.0, fpr=0.0, auc=(0.5, 0.48, 0.52))
    assert nobody.p_value == 1
    assert TprLimit(0.03, 0.01).decide(audited(nobody)).decision == "holds"


def test_the_verdict_has_the_last_word_on_the_reports_own_limit() -> None:
    safe = attacked("loss", 0.51, 0.5)
    own = ReportLimit(0.1)
    assert own.name == TENTH.name
    for level, within, decision in (
        ("no_leak_found", False, "holds"), ("leaks", True, "holds"),
        ("leaks", False, "undecided"), ("undecided", False, "undecided"),
    ):  # fmt: skip
        audit = audited(safe, level=level, within_limit=within)
        assert own.decide(audit).decision == decision
        assert TENTH.decide(audit).decision == "holds"
    strong = audited(attacked("loss", 0.9, 0.1), within_limit=False)
    assert own.decide(strong).decision == "violated"


def test_a_share_found_by_members_that_hide_is_not_small() -> None:
    limit = TprLimit(0.03, 0.01)
    rate = (0.0, 0.0, 0.01)
    turned = limit.decide(audited(found_at(rate, tpr=0.4, fpr=0.5)))
    assert turned.decision == "undecided"
    assert "swapped" in turned.reason
    by_area = limit.decide(audited(found_at(rate, auc=(0.4, 0.38, 0.42))))
    assert by_area.decision == "undecided"
    assert limit.decide(audited(found_at(rate, auc=(0.49, 0.47, 0.51)))).decision == "holds"


def test_a_false_positive_rate_that_the_report_does_not_have() -> None:
    limit = TprLimit(0.5, 0.02)
    with pytest.raises(InputError, match=r"'run' has no TPR .* of 0\.02, only at 0\.01; choose"):
        limit.decide(audited(found_at((0.0, 0.0, 0.1))))
    with pytest.raises(InputError, match="only at no false positive rate"):
        limit.decide(audited(attacked()))
    some = limit.decide(audited(found_at((0.0, 0.0, 0.1), 0.02), attacked("without")))
    assert (some.decision, some.attack) == ("undecided", "without")


def test_records_that_were_recovered_are_counted_not_estimated() -> None:
    audit = audited(attacked(), recovered=(("static", 3), ("self-reveal", 8), ("walk", 5)))
    found = DisclosureLimit(7).decide(audit)
    assert (found.decision, found.attack, found.value) == ("violated", "self-reveal", 8)
    assert found.limit == "records recovered ≤ 7"
    assert (found.low, found.high) == (8, 8)
    assert DisclosureLimit(8).decide(audit).decision == "holds"
    none = DisclosureLimit(0).decide(audited(attacked()))
    assert (none.decision, none.attack) == ("undecided", None)
    assert none.reason.startswith("No extraction ran")


def test_what_must_run() -> None:
    audit = audited(
        attacked("loss"), recovered=(("static", 0),), not_run={"lira": "There are no shadows."}
    )
    assert Required("loss").decide(audit).decision == "holds"
    assert Required("static").decide(audit).decision == "holds"
    told = Required("lira").decide(audit)
    assert (told.limit, told.decision, told.attack) == ("lira must run", "undecided", "lira")
    assert told.reason == "lira did not run. There are no shadows."
    assert Required("rmia").decide(audit).reason == "rmia did not run. It is not in the report."


def test_limits_are_made_in_the_order_of_their_options() -> None:
    assert figure_limits(None, None, None) == []
    assert figure_limits(0.1, 0.55, "0.02@0.01") == [
        AdvantageLimit(0.1), AucLimit(0.55), TprLimit(0.02, 0.01),
    ]  # fmt: skip
    assert figure_limits(0, None, ["0.1@0.05", " 1e-2 @ 1e-3 "]) == [
        AdvantageLimit(0.0), TprLimit(0.1, 0.05), TprLimit(0.01, 0.001),
    ]  # fmt: skip


@pytest.mark.parametrize("value", [-0.1, 1, 1.5, math.nan, True, "0.1", None])
def test_an_advantage_or_an_area_out_of_range_is_refused(value) -> None:
    if value is not None:
        with pytest.raises(InputError, match=r"The max_advantage is .*; choose a number from 0 to"):
            figure_limits(value, None, None)
    with pytest.raises(InputError, match=r"The max_auc is .*; choose a number from 0\.5 to"):
        figure_limits(None, 0.4 if value is None else value, None)


@pytest.mark.parametrize("text", ["0.02@", "@0.01", "0.02", "", "a@b", "0.1@0.2@0.3", "0,1@0.01"])
def test_a_share_that_is_written_wrongly_is_refused(text) -> None:
    with pytest.raises(InputError, match=r"write the TPR, @ and the FPR, such as 0\.02@0\.01"):
        figure_limits(None, None, [text])


@pytest.mark.parametrize("text", ["0.005@0.01", "1@0.01", "0.1@0", "0.1@-0.1", "nan@0.1", "2@3"])
def test_a_share_that_means_nothing_is_refused(text) -> None:
    with pytest.raises(InputError, match="choose an FPR above 0"):
        figure_limits(None, None, text)
