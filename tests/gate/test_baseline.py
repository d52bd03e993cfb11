from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gated import attacked, audited
from leakscope.errors import InputError
from leakscope.gate.baseline import BaselineLimit, check_comparable
from leakscope.metrics.intervals import NONE
from leakscope.metrics.rates import Rates, excess

LARGE = (20_000, 20_000)


OTHER = {"columns": "c0", "members": "m1", "nonmembers": "n1"}


def change(now, before, tolerance=0.05):
    """With a baseline of other records of the same columns."""
    return BaselineLimit(replace(before, fingerprint=OTHER), tolerance, 0.1).decide(now)


def large(*attacks):
    return audited(*attacks, sides=LARGE, persons=LARGE)


def test_the_interval_of_a_change_is_that_of_two_independent_advantages() -> None:
    """For one attack it is MOVER's, as metrics.excess has it for two groups."""
    exact, _ = excess(Rates(0.6, 0.4, 1000, 1000), Rates(0.5, 0.45, 1000, 1000))
    found = change(audited(attacked(tpr=0.6, fpr=0.4)), audited(attacked(tpr=0.5, fpr=0.45)))
    assert (found.value, found.low, found.high) == pytest.approx(
        (exact.value, exact.low, exact.high), abs=1e-9
    )
    assert (found.decision, found.limit) == ("violated", "advantage ≤ baseline")
    many = [attacked(f"other-{i}") for i in range(9)]
    corrected, _ = excess(Rates(0.6, 0.4, 1000, 1000), Rates(0.5, 0.45, 1000, 1000), 1 - 0.05 / 10)
    found = change(
        audited(attacked(tpr=0.6, fpr=0.4), *many), audited(attacked(tpr=0.5, fpr=0.45), *many)
    )
    assert found.low == pytest.approx(corrected.low, abs=1e-7)
    assert found.high == pytest.approx(exact.high, abs=1e-9)


def test_it_holds_where_no_attack_can_be_better_by_more_than_the_tolerance() -> None:
    same = large(attacked("a", 0.6, 0.5, LARGE), attacked("b", 0.5, 0.5, LARGE))
    assert change(same, same).decision == "holds"
    assert change(same, same, tolerance=0.001).decision == "undecided"
    assert change(audited(attacked()), audited(attacked())).decision == "undecided"


def test_what_is_surely_worse_is_violated_within_the_tolerance_too() -> None:
    before = large(attacked("a", 0.50, 0.5, LARGE))
    now = large(attacked("a", 0.53, 0.5, LARGE))
    found = change(now, before, tolerance=0.5)
    assert (found.decision, found.attack) == ("violated", "a")
    assert change(before, now).decision == "holds"  # better than before is no violation


def test_more_records_are_asked_of_both_audits() -> None:
    found = change(audited(attacked()), audited(attacked(), sides=(3000, 500), persons=(3000, 500)))
    assert found.records_to_decide > 3000
    assert "records on each side of both audits would decide" in found.reason


def test_an_attack_that_is_gone_cannot_be_compared() -> None:
    now = large(attacked("a", 0.5, 0.5, LARGE), attacked("new", 0.5, 0.5, LARGE))
    before = large(attacked("a", 0.5, 0.5, LARGE), attacked("gone", 0.5, 0.5, LARGE))
    found = change(now, before)
    assert found.decision == "undecided"
    assert found.reason == "Some attacks of the baseline did not run: gone."
    worse = large(attacked("a", 0.7, 0.5, LARGE))
    assert change(worse, before).decision == "violated"  # sure whatever the other would say
    nothing = change(large(attacked("new", 0.5, 0.5, LARGE)), before)
    assert nothing.reason == "The attacks of the baseline did not run: a, gone."
    told = change(replace(now, not_run={"gone": "It failed."}), before).reason
    assert told == "Some attacks of the baseline did not run: gone. It failed."


def test_an_attack_that_the_baseline_lacks_must_be_within_an_absolute_limit() -> None:
    old = attacked("a", 0.5, 0.5, LARGE)
    safe = attacked("new", 0.52, 0.5, LARGE)
    for new, decision in (
        (safe, "holds"),
        (attacked("new", 0.9, 0.1, LARGE), "undecided"),  # surely above it
        (attacked("new", 0.6, 0.5, LARGE), "undecided"),  # may be above it
        (attacked("new", 0.1, 0.9, LARGE), "undecided"),  # swapped
        (replace(safe, advantage=NONE), "undecided"),
    ):
        found = change(large(old, new), large(old))
        assert found.decision == decision
        if decision == "undecided":
            assert "The baseline lacks some attacks (new)" in found.reason
            assert found.attack == "new"
    # A wider limit lets it pass; a shared attack that is worse is violated in any case.
    wide = BaselineLimit(replace(large(old), fingerprint=OTHER), 0.05, 0.9)
    assert wide.decide(large(old, attacked("new", 0.9, 0.1, LARGE))).decision == "holds"
    worse = large(attacked("a", 0.7, 0.5, LARGE), attacked("new", 0.9, 0.1, LARGE))
    assert change(worse, large(old)).decision == "violated"


def test_a_report_of_an_earlier_version_is_not_compared() -> None:
    new, old = large(attacked("a", 0.5, 0.5, LARGE)), large(attacked("a", 0.5, 0.5, LARGE))
    for now, before, which in (
        (new, replace(old, fingerprint=None), "baseline"),
        (replace(new, fingerprint=None), old, "report"),
        (replace(new, fingerprint=None), replace(old, fingerprint=None), "baseline"),
    ):
        assert check_comparable(now, before) == []
        found = BaselineLimit(before, 0.05, 0.1).decide(now)
        assert found.decision == "undecided"
        assert found.reason.startswith(f"The {which} does not say which records it is of")


def test_the_same_figures_on_the_same_data_do_not_differ() -> None:
    few = audited(attacked("a", 0.55, 0.5), attacked("b", 0.5, 0.5))
    found = BaselineLimit(few, 0.0, 0.1).decide(few)
    assert (found.decision, found.value, found.low, found.high) == ("holds", 0, 0, 0)
    hidden = {"columns": "c0", "members": None, "nonmembers": None}
    redacted = replace(few, fingerprint=hidden, redacted=True)
    assert BaselineLimit(redacted, 0.0, 0.1).decide(redacted).decision == "holds"
    assert len(check_comparable(redacted, redacted)) == 1
    other = replace(few, attacks=(attacked("a", 0.551, 0.5), attacked("b", 0.5, 0.5)))
    assert BaselineLimit(few, 0.05, 0.1).decide(other).decision == "undecided"


def test_a_baseline_that_is_invalid_decides_nothing() -> None:
    broken = audited(attacked(), level="invalid", reason="The sides overlap.")
    found = change(audited(attacked()), broken)
    assert found.decision == "undecided"
    assert found.reason == "The baseline is not a valid audit: The sides overlap."


def test_a_figure_that_is_missing_decides_nothing() -> None:
    lacking = replace(attacked(), advantage=NONE)
    for now, before in ((attacked(), lacking), (lacking, attacked())):
        found = change(audited(now), audited(before))
        assert found.decision == "undecided"
        assert math.isnan(found.value)


def test_an_unchanged_model_is_called_worse_in_no_more_than_one_of_forty_builds() -> None:
    rng = np.random.default_rng(5)
    runs, n = 500, 500

    def build():
        hits = rng.binomial(n, [0.55, 0.45], (4, 2)) / n
        return audited(*(attacked(str(i), *rates, (n, n)) for i, rates in enumerate(hits)))

    worse = [change(build(), build()).decision == "violated" for _ in range(runs)]
    # A share of 500 has a standard deviation of 0.7 points.
    assert 0 < np.mean(worse) <= 0.065


def test_audits_of_something_else_are_refused() -> None:
    adult = audited(attacked(), dataset="adult")
    with pytest.raises(InputError, match=r"has the dataset 'digits' and .* has 'adult'; compare"):
        check_comparable(adult, replace(adult, dataset="digits"))
    with pytest.raises(InputError, match="has the task 'regression'"):
        check_comparable(adult, replace(adult, task="regression"))
    with pytest.raises(InputError, match=r"has the classes \('0', '2'\) and"):
        check_comparable(adult, replace(adult, classes=("0", "2")))
    with pytest.raises(InputError, match="has the features 3 and"):
        check_comparable(adult, replace(adult, features=3))
    assert check_comparable(adult, replace(adult, version="0.1.0")) == [SAME]
    # A redacted report may lack a rare class.
    check_comparable(adult, replace(adult, classes=("0",), redacted=True))


SAME = "Every figure of the two reports is the same, on the same data."


def fingerprinted(columns="c0", members="m0", nonmembers="n0", **more):
    digests = {"columns": columns, "members": members, "nonmembers": nonmembers}
    return audited(attacked("loss", 0.52, 0.5), fingerprint=digests, **more)


@pytest.mark.parametrize(
    ("digests", "why"),
    [
        ({"columns": "c1", "members": "m1"}, "has other columns than the report"),
        ({"columns": "c1", "members": "m1", "nonmembers": "n1"}, "has other columns"),
        ({"members": "m1", "nonmembers": "n1"}, "is of other records than the report"),
        ({"members": "m1"}, "is of other records than the report"),
        ({"nonmembers": "n1"}, "is of other records than the report"),
        ({"members": "n0", "nonmembers": "m0"}, "check that the sides are not swapped"),
        ({"members": "m1", "nonmembers": "m0"}, "check that the sides are not swapped"),
        ({"members": None, "nonmembers": None}, "does not say which records it is of, being redac"),
        ({"sides": (900, 1000), "persons": (900, 1000)}, "the same digests of"),
    ],
)
def test_a_baseline_of_other_data_is_refused(digests, why) -> None:
    now, before = audited(attacked("loss", 0.51, 0.5)), fingerprinted(**digests)
    with pytest.raises(InputError, match=why):
        check_comparable(now, before)


def test_other_records_are_compared_where_the_user_or_the_data_set_says_so() -> None:
    now, before = audited(attacked("loss", 0.51, 0.5)), fingerprinted("c0", "m1", "n1")
    (note,) = check_comparable(now, before, other_records=True)
    assert "compared as independent samples of one population" in note
    named = [replace(one, dataset="adult") for one in (now, before)]
    assert check_comparable(*named) == [note]
    with pytest.raises(InputError, match="has other columns"):
        check_comparable(now, fingerprinted("c1", "m1", "n1"), other_records=True)
    with pytest.raises(InputError, match="swapped"):
        check_comparable(now, fingerprinted("c0", "n0", "m0"), other_records=True)
    # The same records in an array and in a table.
    (unpaired,) = check_comparable(now, fingerprinted("c1"))
    assert "records.csv" in unpaired


def test_what_else_differs_is_said() -> None:
    now = audited(attacked("loss"), attacked("lira", models=65), dataset="adult")
    before = audited(attacked("loss"), attacked("lira", models=33), version="0.0.9", limit=0.2)
    notes = " ".join(check_comparable(now, before))
    assert "Only one of the two reports names its data set" in notes
    assert "made by leakscope 0.0.9 and the report by 0.1.0" in notes
    assert "a limit of 0.2 and the report with 0.1" in notes
    assert "Not with as many shadow models as in the baseline: lira." in notes
