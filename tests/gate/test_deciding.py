from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from leakscope.gate.deciding import Bounds, Decision, Question, decide
from leakscope.metrics.intervals import newcombe
from leakscope.metrics.power import records_to_rule_out

ASKED = Question("advantage ≤ 0.1", "an advantage", 0.1, 0.1, 1000, least=-0.1)


def bounds(attack: str, value: float, low: float, high: float, **more) -> Bounds:
    return Bounds(attack, value, low, high, more.pop("alone", low), **more)


def test_it_is_violated_by_the_attack_that_is_surely_highest() -> None:
    found = decide(
        ASKED,
        [
            bounds("a", 0.3, 0.11, 0.5),
            bounds("b", 0.25, 0.2, 0.3),
            bounds("c", 0.0, -0.5, 0.5, doubt="nobody knows"),
        ],
    )
    assert found.decision is Decision.violated
    assert (found.attack, found.value, found.low, found.high) == ("b", 0.25, 0.2, 0.3)
    assert found.records_to_decide is None
    assert found.reason == (
        "The b attack has an advantage of 0.250, surely above 0.200 after correction for 3 attacks."
    )
    alone = decide(ASKED, [bounds("b", 0.25, 0.2, 0.3)])
    assert alone.reason == "The b attack has an advantage of 0.250, surely above 0.200."


def test_it_holds_where_every_upper_end_is_within_and_tells_the_nearest() -> None:
    found = decide(ASKED, [bounds("a", 0.02, 0.0, 0.1), bounds("b", 0.03, 0.02, 0.05)])
    assert (found.decision, found.attack) == (Decision.holds, "a")
    assert found.reason == (
        "The a attack has an advantage of 0.020, surely below 0.100; no attack comes nearer."
    )


@pytest.mark.parametrize(
    ("low", "high", "decision"),
    [
        (0.1, 0.3, "undecided"),  # at the limit is not above it
        (math.nextafter(0.1, 1), 0.3, "violated"),
        (0.0, 0.1, "holds"),  # at the limit is within it
        (0.0, math.nextafter(0.1, 1), "undecided"),
        (-0.1, 0.1, "holds"),
        (math.nextafter(-0.1, -1), 0.05, "undecided"),
    ],
)
def test_the_ends_decide_to_the_last_bit(low, high, decision) -> None:
    assert decide(ASKED, [bounds("a", (low + high) / 2, low, high)]).decision == decision


def test_what_is_far_below_is_no_less_open_than_what_is_above() -> None:
    found = decide(ASKED, [bounds("a", 0.0, -0.3, 0.05), bounds("b", 0.05, 0.0, 0.12)])
    assert (found.decision, found.attack) == (Decision.undecided, "a")


def test_a_doubt_keeps_it_open_and_the_largest_need_is_told() -> None:
    found = decide(
        ASKED,
        [
            bounds("a", 0.0, 0.0, 0.01, doubt="too few", needed=500),
            bounds("b", 0.0, 0.0, 0.01, doubt="too few", needed=1000),
        ],
    )
    assert (found.decision, found.attack) == (Decision.undecided, "b")
    assert found.records_to_decide == 1000
    assert found.reason == "Of the b attack nothing can be said: too few."
    hopeless = decide(ASKED, [bounds("a", 0.0, 0.0, 0.01, doubt="swapped")])
    assert hopeless.records_to_decide is None


def test_for_json_what_is_not_known_is_null() -> None:
    found = decide(ASKED, [bounds("a", math.nan, math.nan, math.nan, doubt="unknown")]).to_dict()
    assert found == {
        "limit": "advantage ≤ 0.1", "decision": "undecided", "attack": "a", "value": None,
        "low": None, "high": None, "records_to_decide": None,
        "reason": "Of the a attack nothing can be said: unknown.",
    }  # fmt: skip


def test_as_many_records_as_it_says_decide_with_the_power_it_claims() -> None:
    """The number is that of the verdict's own calculation, and four of five audits decide."""
    p1, p0, n = 0.5, 0.45, 300
    now = newcombe(p1, n, p0, n)
    asked = replace(ASKED, records=n)
    found = decide(asked, [Bounds("a", now.value, now.low, now.high, now.low)])
    needed = found.records_to_decide
    assert needed == pytest.approx(records_to_rule_out(p1, p0, 0.1), rel=0.02)
    assert f"about {needed:,} records on each side would decide" in found.reason
    rng = np.random.default_rng(0)
    hits = zip(rng.binomial(needed, p1, 1500), rng.binomial(needed, p0, 1500), strict=True)
    later = [newcombe(h1 / needed, needed, h0 / needed, needed) for h1, h0 in hits]
    assert 0.75 <= np.mean([one.high <= 0.1 and one.low >= -0.1 for one in later]) <= 0.87


def test_an_estimate_above_the_limit_is_decided_by_showing_it() -> None:
    p1, p0, n = 0.5, 0.35, 300
    now = newcombe(p1, n, p0, n)
    asked = replace(ASKED, records=n)
    low = newcombe(p1, n, p0, n, 1 - 0.05 / 8).low
    needed = decide(asked, [Bounds("a", now.value, low, now.high, now.low)]).records_to_decide
    rng = np.random.default_rng(0)
    hits = zip(rng.binomial(needed, p1, 1500), rng.binomial(needed, p0, 1500), strict=True)
    shown = [
        newcombe(h1 / needed, needed, h0 / needed, needed, 1 - 0.05 / 8).low > 0.1
        for h1, h0 in hits
    ]
    assert 0.75 <= np.mean(shown) <= 0.87


def test_the_attack_that_needs_most_says_when_all_are_within() -> None:
    near, far = bounds("near", 0.09, 0.0, 0.18), bounds("far", 0.0, -0.09, 0.09)
    both = decide(ASKED, [near, far])
    assert both.attack == "near"
    assert both.records_to_decide == decide(ASKED, [near]).records_to_decide > 50_000


def test_no_number_decides_an_estimate_at_the_limit() -> None:
    found = decide(ASKED, [bounds("a", 0.1, 0.0, 0.2)])
    assert found.records_to_decide is None
    assert found.reason == "The a attack has an advantage of 0.100, and may have 0.000 to 0.200."
    assert decide(ASKED, [bounds("a", 0.1 - 1e-9, 0.0, 0.2)]).records_to_decide is None
