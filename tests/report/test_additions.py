from __future__ import annotations

from typing import Any

import pytest

from leakscope.report.additions import in_a_line, in_words, title

Additions = list[dict[str, Any]]


def test_more_is_given_away_only_if_the_interval_says_so(additions: Additions) -> None:
    assert in_words(additions) == (
        "Releasing explanations gives away more than releasing predictions does: the strongest "
        "attack that sees any, gradient-forest, has an advantage that is 0.062 (95% interval of "
        "the difference 0.021 to 0.103) above that of the strongest on predictions alone, loss."
    )
    additions[0]["increase"]["low"] = -0.001
    assert in_words(additions).startswith(
        "Whether releasing explanations adds to what predictions give away is not shown: the"
    )


@pytest.mark.parametrize("high", [-0.133, 0.0])
def test_less_adds_nothing(additions: Additions, high: float) -> None:
    additions[2]["increase"]["high"] = high
    said = in_words(additions[2:])
    assert said.startswith(
        "Releasing the explanation lrp beside predictions adds nothing for these attacks: the "
        "strongest attack that sees it, lrp-sum, has an advantage that is 0.183 (95% interval of "
        "the difference −0.233 to "
    )
    assert "below that of the strongest on predictions alone, loss. An adversary who has" in said


def test_what_was_not_measured_is_not_spoken_of() -> None:
    assert in_words([]) == ""
    assert in_a_line([]) == []


def test_each_in_a_line(additions: Additions) -> None:
    assert in_a_line(additions)[::2] == [
        (
            "all of these",
            "0.062 (0.021 to 0.103) in advantage, gradient-forest against loss",
        ),
        ("lrp", "−0.183 (−0.233 to −0.133) in advantage, lrp-sum against loss"),
    ]
    assert title(additions[1]) == "gradient"
