from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import leakscope
from leakscope.auditing.additions import Ring, what_explanations_add
from leakscope.auditing.battery import Shot
from leakscope.auditing.choosing import attack_of
from leakscope.metrics.outcome import judge
from leakscope.metrics.paired import advantage_difference
from leakscope.report.build import load_schema

N = 600
MEMBERS = np.arange(2 * N) < N
CALIBRATION = np.arange(2 * N) // 20 % 5 == 0  # whole persons of 20 rows


def shots(rng: np.random.Generator, shifts: dict[str, float]) -> dict[str, Shot]:
    """Scores of these attacks, correlated, with members higher by a shift each."""
    common = rng.normal(size=2 * N)
    return {
        name: Shot(attack_of(name), common + rng.normal(size=2 * N) + by * MEMBERS, None, 1)
        for name, by in shifts.items()
    }


def added(found: dict[str, Shot], unit: Any = None) -> list[dict[str, Any]]:
    outcomes = [
        judge(
            shot.scores, MEMBERS, attack=name, channel=shot.attack.channel, paper="", summary="",
            knowledge="", calibration=CALIBRATION, unit=unit,
        )
        for name, shot in found.items()
    ]  # fmt: skip
    return what_explanations_add(found, outcomes, MEMBERS, CALIBRATION, unit)


def test_the_strongest_with_explanations_against_the_strongest_without() -> None:
    found = shots(
        np.random.default_rng(0),
        {"confidence": 0.2, "entropy": 0.5, "gradient-norm": 1.5, "lrp-sum": 0.4},
    )
    every, gradient, lrp = added(found)
    assert (every["explanation"], every["attack"], every["beside"]) == (
        "explanations", "gradient-norm", "entropy",
    )  # fmt: skip
    assert (every["attacks"], every["attacks_beside"]) == (2, 2)
    assert (gradient["explanation"], gradient["attack"], gradient["attacks"]) == (
        "gradient", "gradient-norm", 1,
    )  # fmt: skip
    assert (lrp["explanation"], lrp["attack"]) == ("lrp", "lrp-sum")
    assert every["increase"]["value"] == gradient["increase"]["value"]
    assert every["increase"]["low"] > 0
    assert lrp["increase"]["low"] < 0 < lrp["increase"]["high"]


def test_of_one_pair_it_is_the_paired_difference() -> None:
    found = shots(np.random.default_rng(1), {"confidence": 0.5, "gradient-norm": 0.8})
    (only,) = added(found)
    assert only["explanation"] == "gradient"
    judged = ~CALIBRATION
    called = [
        shot.scores[judged]
        >= judge(
            shot.scores, MEMBERS, attack="", channel="", paper="", summary="", knowledge="",
            calibration=CALIBRATION,
        ).threshold.value
        for shot in found.values()
    ]  # fmt: skip
    expected = advantage_difference(called[1], called[0], MEMBERS[judged])
    assert only["increase"] == pytest.approx(expected.to_dict(), abs=1e-12)


def width(entry: dict[str, Any]) -> float:
    return float(entry["increase"]["high"] - entry["increase"]["low"])


def test_persons_and_taught_attacks_widen_it() -> None:
    found = shots(np.random.default_rng(2), {"confidence": 0.5, "gradient-norm": 0.8})
    narrow = width(added(found)[0])
    taught = found | {"gradient-norm": Shot(attack_of("gradient-forest"),
                                            found["gradient-norm"].scores, None, 1)}  # fmt: skip
    assert width(added(taught)[0]) > 1.3 * narrow
    four = {name: Shot(shot.attack, np.repeat(shot.scores[::20], 20), None, 1)
            for name, shot in found.items()}  # fmt: skip
    assert width(added(four, unit=np.arange(2 * N) // 20)[0]) > 2 * narrow


@pytest.mark.parametrize("names", [["confidence", "entropy"], ["gradient-norm", "lrp-sum"], []])
def test_where_there_is_nothing_to_compare_nothing_is_said(names: list[str]) -> None:
    assert added(shots(np.random.default_rng(3), dict.fromkeys(names, 0.5))) == []


@pytest.mark.slow
def test_the_interval_allows_for_the_choice_of_the_strongest() -> None:
    """Ten attacks with explanations and three without, all worth the same: nothing is added."""
    rng, low, high, runs = np.random.default_rng(4), 0, 0, 400
    members = np.arange(600) < 300
    chances = np.where(members, 0.55, 0.45)
    names, beside = [f"e{at}" for at in range(10)], [f"p{at}" for at in range(3)]
    ones = dict.fromkeys([*names, *beside], 1.0)
    for _ in range(runs):
        called = {name: rng.random(600) < chances for name in ones}
        found = Ring(called, ones, members, None).increase(names, beside)
        assert found.low <= found.value <= found.high
        low += found.low > 0
        high += found.high < 0
    # At most 2.5 % each; 5 standard deviations above.
    assert max(low, high) / runs < 0.025 + 5 * (0.025 * 0.975 / runs) ** 0.5


def test_against_every_pair_by_hand() -> None:
    rng = np.random.default_rng(5)
    members = np.arange(200) < 100
    called = {name: rng.random(200) < 0.3 + 0.2 * members for name in ("a", "b", "p", "q")}
    found = Ring(called, dict.fromkeys(called, 1.0), members, None).increase("ab", "pq")
    pairs = {
        (one, two): advantage_difference(called[one], called[two], members, confidence=0.975)
        for one in "ab"
        for two in "pq"
    }
    low = max(min(pairs[one, two].low for two in "pq") for one in "ab")
    high = max(min(pairs[one, two].high for two in "pq") for one in "ab")
    assert (found.low, found.high) == (low, high)
    own = {name: one[members].mean() - one[~members].mean() for name, one in called.items()}
    assert found.value == pytest.approx(max(own["a"], own["b"]) - max(own["p"], own["q"]))


@pytest.mark.slow
def test_an_audit_tells_what_explanations_add() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(120, 8))
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    model = LogisticRegression(C=1e4).fit(X[:60], y[:60])
    report = leakscope.audit(model, (X[:60], y[:60]), (X[60:], y[60:]), channels=["explanations"])
    entries = report.to_dict()["additions"]
    assert entries[0]["explanation"] == "explanations"
    assert {"gradient", "lrp", "smoothgrad"} <= {one["explanation"] for one in entries[1:]}
    required = set(load_schema()["$defs"]["addition"]["required"])
    assert all(set(one) == required for one in entries)
    assert "What explanations add to predictions" in report.to_html()
    usual = leakscope.audit(model, (X[:60], y[:60]), (X[60:], y[60:]))
    assert usual.to_dict()["additions"] == []
