from __future__ import annotations

from typing import Any

import pytest

from leakscope.papers.wang_comparing import Compared
from leakscope.papers.wang_notes import between, kind_of, notes_on, reduced, surely
from leakscope.papers.wang_printed import printed


def row(defense: str, found: float, change: tuple[float, float] | None, **more: Any) -> Any:
    low, high = change or (None, None)
    middle = None if change is None else sum(change) / 2
    return {
        "setup": "MNIST-LeNet-5", "defense": defense, "attack": "loss", "test_accuracy": 0.96,
        "attack_accuracy": found, "low": found - 0.02, "high": found + 0.02,
        "threshold_attack": "entropy", "threshold_accuracy": found, "threshold_low": found - 0.02,
        "network_accuracy": found, "attack_change": middle, "attack_change_low": low,
        "attack_change_high": high, "test_change": middle, "test_change_low": low,
        "test_change_high": high,
    } | more  # fmt: skip


def notes(*rows: Any, baselines: list[dict[str, Any]] | None = None) -> list[str]:
    found = Compared("MNIST-LeNet-5", list(rows), baselines or [])
    return [*notes_on([found], printed("wang-table1"))]


def test_the_baseline_of_the_paper_reproduces_or_not() -> None:
    (note,) = notes(row("none", 0.55, None))
    assert note == (
        "MNIST-LeNet-5, no defense: the strongest attack (loss) is right about 0.550 (0.530 to "
        "0.570) of members and others at a test accuracy of 0.960; the paper prints 0.670 at "
        "0.993, which does not reproduce."
    )
    (note,) = notes(row("none", 0.66, None))
    assert note.endswith("prints 0.670 at 0.993, which is within the interval.")
    (note,) = notes(row("none", 0.66, None, setup="elsewhere"))
    assert "the paper" not in note


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((-0.03, -0.01), "lower than none by 0.020 (0.010 to 0.030)"),
        ((0.01, 0.03), "higher than none by 0.020 (0.010 to 0.030)"),
        ((-0.03, 0.01), "not surely different from none (−0.030 to 0.010)"),
    ],
)
def test_lower_and_higher_only_where_it_is_sure(change: tuple[float, float], said: str) -> None:
    _, note = notes(row("none", 0.55, None), row("prune:16", 0.53, change))
    assert note == (
        f"MNIST-LeNet-5, prune:16: attack accuracy 0.530 (0.510 to 0.550), {said}; test accuracy "
        f"0.960, {said}."
    )


def test_a_defense_is_held_against_its_baselines() -> None:
    plain, pruned = row("none", 0.6, None), row("prune:16", 0.53, (-0.08, -0.06))
    longer = row("equal-compute:39", 0.62, (0.01, 0.03))
    early = row("early-stop (accuracy 0.98)", 0.5, (-0.12, -0.1))
    told = notes(plain, pruned, longer, early)
    assert told[1].endswith(
        "; it leaks surely less than equal-compute:39, surely more than early-stop (accuracy 0.98)."
    )
    assert told[2].startswith("MNIST-LeNet-5, the baseline equal-compute:39: attack accuracy 0.620")
    near = row("equal-compute:39", 0.54, (-0.07, -0.05))
    assert notes(plain, pruned, near)[1].endswith("; against the baselines nothing is sure.")


def test_a_baseline_that_is_not_there_has_a_reason() -> None:
    none = [{"defense": None, "reason": reason} for reason in ("No epochs.", "It cannot be")]
    told = notes(row("none", 0.6, None), baselines=none)
    assert told[1:] == [
        "MNIST-LeNet-5: a baseline is not there. No epochs.",
        "MNIST-LeNet-5: a baseline is not there. It cannot be.",
    ]


def test_an_attack_network_that_finds_less_than_a_threshold_is_told() -> None:
    pruned = row("prune:16", 0.8, (-0.2, -0.1), network_accuracy=0.79)
    told = notes(row("none", 0.9, None, network_accuracy=0.6), pruned)
    assert told[2:] == [
        "MNIST-LeNet-5: the inference network, by which the paper judges, finds less than a plain "
        "threshold on none (0.600 and 0.900 by entropy)."
    ]
    assert len(notes(row("none", 0.9, None, network_accuracy=None))) == 1


def test_which_of_two_leaks_more() -> None:
    low, middle, high = (row(str(at), 0.5, (at, at + 0.1)) for at in (0.0, 0.05, 0.2))
    assert surely(low, high) == "less"
    assert surely(high, low) == "more"
    assert surely(low, middle) is None


def test_kinds_are_told_without_their_settings() -> None:
    names = {
        "prune:16+minmax:0.3": "prune+minmax",
        "prune:4 (epochs 1; retrain 1)+minmax:0.3": "prune+minmax",
        "early-stop (accuracy 0.98)": "early-stop",
        "none": "none",
    }
    assert {name: kind_of({"defense": name}) for name in names} == names


def test_claims_are_counted_by_set_up() -> None:
    rows = [
        row("none", 0.6, None), row("prune:16", 0.5, (-0.1, -0.05)),
        row("minmax:1", 0.55, (-0.02, 0.01)), row("none", 0.9, None, setup="b"),
        row("prune:16", 0.9, (-0.01, 0.01), setup="b"),
        row("minmax:1", 0.8, (-0.2, -0.1), setup="b"),
    ]  # fmt: skip
    assert reduced(rows, "prune") == "1 of 2 set-ups: MNIST-LeNet-5"
    assert reduced(rows[3:], "prune") == "0 of 1 set-ups"
    assert list(between(rows, "prune", "minmax")) == [
        "MNIST-LeNet-5: prune:16 leaks surely less than minmax:1 (0.500 and 0.550).",
        "b: prune:16 leaks surely more than minmax:1 (0.900 and 0.800).",
    ]
    rows[4] |= {"attack_change_low": -0.15}
    assert list(between(rows, "prune", "minmax"))[1] == (
        "b: prune:16 cannot be told apart from minmax:1 (0.900 and 0.800)."
    )
