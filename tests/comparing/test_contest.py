from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leakscope.comparing.averaging import Figure
from leakscope.comparing.contest import Contest
from leakscope.comparing.judging import Judged


def steady(right, found):
    return [(right + move, found + move) for move in (-0.001, 0.0, 0.001)]


def test_who_is_significantly_better_in_both_beats_and_leaves_the_frontier_to_others(contest):
    found = contest(
        {
            "none": steady(0.7, 0.8),
            "better": steady(0.8, 0.6),
            "safer": steady(0.6, 0.5),
            "worse": steady(0.5, 0.9),
        }
    )
    assert found.frontier() == ["better", "safer"]
    assert found.beaten_by("none") == ["better"]
    assert set(found.beaten_by("worse")) == {"none", "better", "safer"}
    assert found.leaking("better", "none").value == pytest.approx(-0.2)
    assert found.accuracy("better", "none").value == pytest.approx(0.1)


def test_what_is_better_in_one_alone_or_not_significantly_beats_nobody(contest):
    noisy = [(0.9, 0.4), (0.6, 0.7), (0.9, 0.4)]
    other = [(0.8, 0.7), (0.799, 0.7005), (0.801, 0.6995)]
    found = contest({"none": steady(0.7, 0.7), "one": other, "noisy": noisy})
    assert found.frontier() == found.names
    assert found.undecided_against("none") == ["noisy", "one"]
    assert found.undecided_against("one") == ["noisy"]
    assert found.undecided() == ["noisy", "none", "one"]


def test_what_is_better_in_one_and_exactly_equal_in_the_other_beats(contest):
    figures = {"none": steady(0.7, 0.8), "safer": steady(0.7, 0.6), "accurate": steady(0.8, 0.8)}
    found = contest(figures | {"copy": steady(0.7, 0.6)})
    assert found.beaten_by("none") == ["safer", "accurate", "copy"]
    assert found.frontier() == ["safer", "accurate", "copy"]
    # Equal rows leave nothing to decide.
    assert found.undecided() == []


def test_what_beats_none_is_significantly_better_than_none_in_the_same_table(contest):
    """One level for all statements: at one of 95 % each, a row beat none without being better."""
    rng = np.random.default_rng(3)
    beaten = 0
    for _ in range(300):
        figures = {
            str(name): rng.normal((0.7, 0.7), 0.003, (3, 2)) + name * np.array([0.01, -0.01])
            for name in range(5)
        }
        found = contest({"none": figures.pop("0")} | figures)
        for other in found.beaten_by("none"):
            against = found.summary(other)["against_none"]
            assert (against["privacy"], against["accuracy"]) == ("better", "better")
            beaten += 1
    assert beaten > 20


def test_a_predicted_frontier_is_that_of_as_many_seeds_of_the_same_spread(contest):
    moves = np.array([-1.0, 0.0, 1.0])
    shifts = {"none": (0.0, 0.0), "a": (0.02, -0.02)}
    signs = {"none": 1, "a": -1}

    def made(times):
        # As many copies of the three seeds have the same mean; the spread is brought to theirs.
        spread = 0.01 * np.sqrt((3 * times - 1) / (2 * times))
        drawn = np.tile(moves, times) * spread
        return contest(
            {
                name: [(0.7 + right + signs[name] * move, 0.7 + found + signs[name] * move)
                       for move in drawn]
                for name, (right, found) in shifts.items()
            }
        )  # fmt: skip

    three = made(1)
    assert three.frontier() == ["none", "a"]
    for times in (2, 3, 5):
        wanted, predicted = made(times), replace(three, seeds=3 * times)
        assert predicted.frontier() == wanted.frontier()
        for difference in (Contest.accuracy, Contest.leaking):
            ours, theirs = (difference(one, "a", "none") for one in (predicted, wanted))
            np.testing.assert_allclose((ours.low, ours.high), (theirs.low, theirs.high))
    needed = three.seeds_needed(lambda more: not more.undecided())
    assert 3 < needed <= 30
    # Just enough for the observed means is an even chance; more are needed for 80 %.
    enough = next(n for n in range(4, 31) if not replace(three, seeds=n).undecided())
    assert enough < needed
    assert replace(three, seeds=enough - 1).undecided()
    one = contest({"none": [(0.7, 0.8)], "a": [(0.7, 0.79)]}, n=100)
    assert one.seeds_needed(lambda more: not more.undecided()) is None


def test_differences_hold_together_for_all_defenses(contest):
    figures = {"none": [(0.7, 0.8), (0.71, 0.8), (0.7, 0.79)]}
    figures |= {str(one): [(0.7, 0.6), (0.7, 0.61), (0.69, 0.6)] for one in range(4)}
    few = contest({name: figures[name] for name in ("none", "0")})
    many = contest(figures)
    assert many.tail == pytest.approx(few.tail / 4)
    assert many.leaking("0", "none").high > few.leaking("0", "none").high
    assert many.leaking("0", "none", few.tail) == few.leaking("0", "none")


def test_a_summary_has_the_means_and_the_lower_end_of_the_rows(contest):
    found = contest({"none": steady(0.7, 0.8), "other": steady(0.6, 0.5)})
    rows = found.judged["none"]
    for one, attack, low in zip(rows, ("b", "a", "b"), (0.3, 0.4, 0.5), strict=True):
        leakage = {"js": {"value": low}}
        one.row.update(attack=attack, low=low, bytes=None, leakage=leakage)
    told = found.summary("none")
    assert told["attack"] == "b"
    assert told["attack_accuracy"]["value"] == pytest.approx(0.8)
    assert told["attack_accuracy"]["low"] == pytest.approx(0.4)
    assert told["js"] == pytest.approx(0.4)
    assert told["bytes"] is None
    assert told["against_none"] is None
    assert told["seeds"] == 3
    other = found.summary("other")
    assert other["js"] is None
    assert other["against_none"]["attack_accuracy"]["value"] == pytest.approx(-0.3)
    assert other["against_none"]["privacy"] == "better"
    assert other["against_none"]["accuracy"] == "worse"
    assert other["guarantee"] == "no formal guarantee"


def test_a_summary_has_every_attack_that_ran_under_all_seeds(contest):
    found = contest({"none": steady(0.7, 0.8), "other": steady(0.6, 0.5)})
    still = np.zeros(3)
    rows = [
        replace(
            one,
            row=one.row | {"by_attack": {"loss": {"low": low}, "rare": {"low": 0.1}}},
            by_attack={"loss": Figure(value, still, 1e-8)}
            | ({"rare": Figure(0.5, still, 1e-8)} if low < 0.5 else {}),
        )
        for one, value, low in zip(
            found.judged["none"], (0.6, 0.61, 0.62), (0.3, 0.4, 0.5), strict=True
        )
    ]
    told = Contest({"none": rows}).summary("none")["by_attack"]
    assert set(told) == {"loss"}
    assert told["loss"]["value"] == pytest.approx(0.61)
    # The rows' lower ends allow for the choice among attacks, and so does that of the mean.
    assert told["loss"]["low"] == pytest.approx(0.4)
    assert 0.62 < told["loss"]["high"] < 0.65
    assert found.summary("other")["by_attack"] == {}


def idle(rng, n=80, seeds=3):
    """None and a defense that does nothing: other models of the same records, as good and bad."""
    right, known = 0.4 + 0.5 * rng.random(3 * n), 0.3 + 0.5 * rng.random(3 * n)
    judged = {"none": [], "idle": []}
    for seed in range(seeds):
        order = rng.permutation(3 * n)
        members, others = order[:n], order[n : 2 * n]
        place, membership = np.concatenate([members, others]), np.arange(2 * n) < n
        for name, rows in judged.items():
            attack = rng.random((6, 2 * n)) < known[place] + 0.1 * membership + 0.02 * rng.normal()
            figures = [Figure.accuracy(one, membership, place, 3 * n) for one in attack]
            rows.append(
                Judged(
                    name,
                    {"seed": seed},
                    Figure.rate(rng.random(n) < right[others], others, 3 * n),
                    max(figures, key=lambda one: one.value),
                    {},
                )
            )
    return Contest(judged)


@pytest.mark.slow
def test_a_defense_that_does_nothing_is_not_significantly_different_from_none():
    rng = np.random.default_rng(7)
    contests = [idle(rng) for _ in range(400)]
    for difference in (Contest.accuracy, Contest.leaking):
        intervals = [difference(one, "idle", "none") for one in contests]
        # At 5 % more than 42 of 400 are rarer than 1e-6.
        assert sum(not one.low <= 0 <= one.high for one in intervals) <= 42
    # Both by chance: at 2.5 % of one side each and independent, more than 7 are.
    assert sum(len(one.frontier()) < 2 for one in contests) <= 7


def test_seeds_are_told_by_their_rows(contest):
    assert [one.seed for one in contest({"none": steady(0.7, 0.8)}).judged["none"]] == [0, 1, 2]
