from __future__ import annotations

from typing import Any

import pytest

from leakscope.papers.farokhi_notes import bounds, figure, plateau, rounding, trend


def rows_of(over: str, **columns: list[float]) -> list[dict[str, Any]]:
    count = len(next(iter(columns.values())))
    return [
        {over: 10.0**at, **{key: values[at] for key, values in columns.items()}}
        for at in range(count)
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0019, "0.00190"), (4.118, "4.12"), (158.2, "158"), (0.0, "0.00"), (-0.5, "−0.500")],
)
def test_numbers_have_three_figures(value: float, text: str) -> None:
    assert figure(value) == text


def test_a_trend_that_holds_is_said_with_its_ends() -> None:
    rows = rows_of("n", rho_kl=[4.0, 2.0, 1.0])
    assert trend(rows, "n", "rho_kl") == (
        "ρ_KL falls with n at every step, from 4.00 at n = 1 to 1.00 at n = 100: as the paper says."
    )
    assert trend(rows[::-1], "n", "rho_kl", rises=True).startswith("ρ_KL rises with n at every")


def test_steps_that_stay_level_or_go_the_other_way_are_named() -> None:
    rows = rows_of("l2", rho_kl=[4.0, 2.0, 1.99, 1.98, 2.5, 1.0])
    assert trend(rows, "l2", "rho_kl") == (
        "ρ_KL falls with λ over all, from 4.00 at λ = 1 to 1.00 at λ = 100000, but not at every "
        "step: it stays level from λ = 10 to 1000 (2.00 to 1.98) and rises from λ = 1000 to 10000 "
        "(1.98 to 2.50)."
    )


def test_steps_of_one_kind_are_told_together() -> None:
    rows = rows_of("features", rho_kl=[1.0, 1.0, 2.0, 2.0])
    assert trend(rows, "features", "rho_kl", rises=True).endswith(
        "it stays level from p = 1 to 10 (1.00 to 1.00), p = 100 to 1000 (2.00 to 2.00)."
    )


def test_a_claim_that_fails_from_end_to_end_is_said_to_fail() -> None:
    rows = rows_of("sigma", advantage_median=[0.1, 0.1])
    assert trend(rows, "sigma", "advantage_median") == (
        "The median of |advantage| does not fall with σ as the paper says: it stays level from "
        "σ = 1 to 10 (0.100 to 0.100)."
    )
    falling = trend(rows_of("features", rho_kl=[2.0, 1.0]), "features", "rho_kl", rises=True)
    assert "does not rise with p as the paper says: it falls from p = 1 to 10" in falling


@pytest.mark.parametrize(("width", "said"), [(0.3, True), (0.1, False)])
def test_a_step_within_the_intervals_is_said_to_be(width: float, said: bool) -> None:
    rows = rows_of("n", rho_kl=[1.0, 1.5])
    rows = [
        {**row, "rho_kl_low": row["rho_kl"] - width, "rho_kl_high": row["rho_kl"] + width}
        for row in rows
    ]
    assert (", within the intervals" in trend(rows, "n", "rho_kl")) is said


def held(**changed: float) -> dict[str, float]:
    return {
        "n": 5,
        "prior": 0.1,
        "rho_kl": 1.0,
        "rho_mi": 0.09,
        "rho_mi_balanced": 0.25,
        "total_variation": 0.4,
        "advantage_bound": 0.5,
        "advantage_signed_low": 0.4,
        **changed,
    }


def test_bounds_that_hold() -> None:
    assert all(note.startswith("Holds in every row: ") for note in bounds([held()], "n"))


@pytest.mark.parametrize(
    ("at", "changed"),
    [
        (0, {"rho_mi": 0.091}),
        (1, {"rho_mi_balanced": 0.26}),
        (2, {"total_variation": 0.51}),
        (3, {"advantage_signed_low": 0.41}),
    ],
)
def test_each_bound_can_fail_alone(at: int, changed: dict[str, float]) -> None:
    notes = bounds([held(), held(**changed, n=7)], "n")
    failed = [note for note in notes if note.startswith("Does not hold in 1 of 2 rows (n = 7): ")]
    assert failed == [notes[at]]


def test_a_plateau_starts_where_the_level_of_the_end_is_reached() -> None:
    rows = rows_of("l2", rho_kl=[4.0, 0.57, 0.61, 0.605, 0.6])
    assert "from λ = 100 to 10000 ρ_KL stays within 2% of 0.600" in plateau(rows, "l2")
    assert plateau(rows_of("l2", rho_kl=[4.0, 2.0]), "l2") == (
        "No plateau: no row before the last has ρ_KL within 2% of 2.00."
    )
    assert "from λ = 1 to 10" in plateau(rows_of("l2", rho_kl=[2.0, 2.0]), "l2")


def test_rounding_says_from_where_on_next_to_nothing_is_left() -> None:
    exact = [4.0, 1.0, 1.0]
    gone = rows_of("l2", rho_kl=exact, rho_kl_rounded=[4.0, 0.02, 0.0], grid=[1.0] * 3)
    assert rounding(gone, "l2") == (
        "Rounded to multiples of 1, ρ_KL goes from 4.00 at λ = 1 to 0.00 at λ = 100; at λ = 10 and "
        "above at most 2% is left of what full precision tells: there regularization protects, as "
        "theorem 3 means it."
    )
    left = rows_of("l2", rho_kl=exact, rho_kl_rounded=[0.0, 0.5, 0.5], grid=[1.0] * 3)
    assert rounding(left, "l2").endswith("full precision tells 1.00 there.")
