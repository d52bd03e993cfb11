from __future__ import annotations

from typing import Any

from leakscope.report import information


def test_each_measure_has_a_name_and_a_unit(leakage: list[dict[str, Any]]) -> None:
    assert [information.name(one) for one in leakage] == [
        "Mutual information",
        "Divergence",
        "Advantage, record by record",
        "Divergence of the parameters",
    ]
    assert [information.amount(one, 0.25) for one in leakage] == [
        "0.250 nats",
        "0.250 nats",
        "0.250",
        "0.250 nats",
    ]
    unknown = {"measure": "of tomorrow"}
    assert information.name(unknown) == "of tomorrow"
    assert information.amount(unknown, None) == "unknown"


def test_the_words_say_what_was_found_what_it_allows_and_what_it_does_not_say(
    leakage: list[dict[str, Any]],
) -> None:
    found, allowed, caution = information.in_words(leakage)
    assert found == (
        "What models made this way show of a record tells whether it was in their training data: "
        "on average 0.112 nats of the 0.693 that would settle it, estimated from below (95% "
        "interval 0.099 to 0.154; p 0.020 against shuffled membership)."
    )
    assert allowed == (
        "If that average, plus what the estimate lacks, were exactly right, no adversary who sees "
        "the same of each record could have an advantage above 0.464 (0.437 to 0.489). The "
        "strongest attack on this model, lira, achieved 0.377 (0.337 to 0.417)."
    )
    assert "lower bound on what the parameters tell" in caution
    assert "an attack on this one model, can do better" in caution
    assert information.in_words([]) == []


def test_what_chance_explains_is_said_to_be_chance(leakage: list[dict[str, Any]]) -> None:
    first = leakage[0] | {"value": 0.0, "low": 0.0, "bound": None, "best_attack": None}
    first["null"]["p_value"] = 0.4
    found, allowed, _ = information.in_words([first])
    assert "tells no more than chance whether it was in" in found
    assert "on average 0.000 nats of the 0.693" in found
    assert "(95% interval 0.000 to 0.154; p 0.400 against shuffled membership)" in found
    assert allowed == "So little cannot be turned into a bound on the advantage."
    ((_, line),) = information.in_a_line([first])
    assert line.startswith("0.000 nats (0.000 to 0.154), p 0.400; ")
    assert line.endswith("; too little for a bound on the advantage")
    # Another measure has no largest value to compare with.
    other = leakage[1] | {"null": first["null"] | {"p_value": None}}
    assert (
        "on average 0.760 nats (95% interval 0.710 to 0.810; p unknown against"
        in (information.in_words([other])[0])
    )
    # Of one record by itself nothing can be said.
    alone = other | {"value": None}
    assert information.in_words([alone])[0].endswith("was in their training data.")
