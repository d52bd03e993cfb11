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


def change(now, before, tolerance=0.05):
    return BaselineLimit(before, tolerance).decide(now)


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
    found = change(audited(attacked()), audited(attacked(), sides=(3000, 500)))
    assert found.records_to_decide > 3000
    assert "records on each side of both audits would decide" in found.reason


def test_an_attack_that_is_gone_cannot_be_compared() -> None:
    now = large(attacked("a", 0.5, 0.5, LARGE), attacked("new", 0.9, 0.1, LARGE))
    before = large(attacked("a", 0.5, 0.5, LARGE), attacked("gone", 0.5, 0.5, LARGE))
    found = change(now, before)
    assert found.decision == "undecided"
    assert found.reason == "Some attacks of the baseline did not run: gone."
    worse = large(attacked("a", 0.7, 0.5, LARGE))
    assert change(worse, before).decision == "violated"  # sure whatever the other would say
    nothing = change(large(attacked("new", 0.5, 0.5, LARGE)), before)
    assert nothing.reason == "The attacks of the baseline did not run: a, gone."


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
    assert check_comparable(adult, adult) == []


def test_what_else_differs_is_said() -> None:
    now = audited(attacked("loss"), attacked("lira", models=65), dataset="adult")
    before = audited(
        attacked("loss"), attacked("lira", models=33), version="0.0.9", limit=0.2, sides=(9, 9)
    )
    notes = " ".join(check_comparable(now, before))
    assert "Only one of the two reports names its data set" in notes
    assert "made by leakscope 0.0.9 and the report by 0.1.0" in notes
    assert "a limit of 0.2 and the report with 0.1" in notes
    assert "Not with as many shadow models as in the baseline: lira." in notes
