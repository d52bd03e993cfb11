"""Where the claims of Farokhi & Kaafar (2020) hold and where not, said by the rows themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

from leakscope.papers.experiment import Row

# Values this near are on one level.
LEVEL = 0.02
LEVELS = "stays level"

NAMES = {
    "rho_kl": "ρ_KL",
    "rho_mi_balanced": "Mutual information at equal priors",
    "advantage_median": "The median of |advantage|",
    "advantage_signed": "The mean advantage",
}
SYMBOLS = {"l2": "λ", "sigma": "σ", "features": "p"}


def figure(value: float) -> str:
    """A number in three figures: 0.00190, 4.12, 158."""
    return f"{value:#.3g}".rstrip(".").replace("-", "−")


def trend(rows: Sequence[Row], over: str, key: str, *, rises: bool = False) -> str:
    """Whether what the paper says falls (or rises) along the swept quantity does, step by step."""
    name, symbol = NAMES[key], SYMBOLS.get(over, over)
    verb = "rise" if rises else "fall"
    first, last = rows[0], rows[-1]
    ends = f"from {_value_at(first, over, key)} to {_value_at(last, over, key)}"
    kinds = [_kind(one[key], other[key], rises) for one, other in pairwise(rows)]
    if set(kinds) == {"as said"}:
        return f"{name} {verb}s with {symbol} at every step, {ends}: as the paper says."
    contrary, at = dict[str, list[str]](), 0
    for kind, steps in groupby(kinds):
        start, at = at, at + len(list(steps))
        if kind != "as said":
            decided = "" if kind == LEVELS else _decided(rows[start : at + 1], key)
            where, how = _range(rows[start], rows[at], over), _span(rows[start], rows[at], key)
            contrary.setdefault(kind, []).append(f"{where} ({how}{decided})")
    but = "it " + " and ".join(f"{kind} from {', '.join(runs)}" for kind, runs in contrary.items())
    if _kind(first[key], last[key], rises) != "as said":
        return f"{name} does not {verb} with {symbol} as the paper says: {but}."
    return f"{name} {verb}s with {symbol} over all, {ends}, but not at every step: {but}."


def _kind(one: float, other: float, rises: bool) -> str:
    """What a step does: as the paper says, the contrary, or nothing to speak of."""
    if abs(other - one) <= LEVEL * max(abs(one), abs(other)):
        return LEVELS
    if (other > one) == rises:
        return "as said"
    return "falls" if rises else "rises"


def _span(one: Row, other: Row, key: str) -> str:
    return f"{figure(one[key])} to {figure(other[key])}"


def _range(one: Row, other: Row, over: str) -> str:
    return f"{_at(one, over)} to {other[over]:g}"


def _decided(rows: Sequence[Row], key: str) -> str:
    """Whether the intervals of all neighbours overlap, so that a step may be chance."""
    if f"{key}_low" not in rows[0]:
        return ""
    overlaps = [
        one[f"{key}_low"] <= other[f"{key}_high"] and other[f"{key}_low"] <= one[f"{key}_high"]
        for one, other in pairwise(rows)
    ]
    return ", within the intervals" if all(overlaps) else ""


def bounds(rows: Sequence[Row], over: str) -> list[str]:
    """Whether the bounds between the measures, and on the adversary, hold in every row."""
    checks: list[tuple[str, Callable[[Row], bool]]] = [
        (
            "ρ_MI ≤ α₀α₁ρ_KL at the true prior",
            lambda row: row["rho_mi"] <= row["prior"] * (1 - row["prior"]) * row["rho_kl"],
        ),
        ("ρ_MI ≤ ρ_KL/4 at equal priors", lambda row: row["rho_mi_balanced"] <= row["rho_kl"] / 4),
        (
            "total variation ≤ ½√ρ_KL",
            lambda row: row["total_variation"] <= row["advantage_bound"],
        ),
        (
            "advantage of the threshold adversary ≤ total variation, within its interval",
            lambda row: row["advantage_signed_low"] <= row["total_variation"],
        ),
    ]
    return [_holds(claim, rows, over, check) for claim, check in checks]


def plateau(rows: Sequence[Row], over: str) -> str:
    """From where on the leakage stays on the level of the last row."""
    level = rows[-1]["rho_kl"]
    start = len(rows) - 1
    while start > 0 and abs(rows[start - 1]["rho_kl"] / level - 1) <= LEVEL:
        start -= 1
    span = f"{LEVEL:.0%} of {figure(level)}"
    if start == len(rows) - 1:
        return f"No plateau: no row before the last has ρ_KL within {span}."
    return (
        f"Theorem 3 does not hold for parameters released in full precision: from "
        f"{_range(rows[start], rows[-1], over)} ρ_KL stays within {span}. A large λ divides the "
        f"parameters by a constant, and the divergence does not depend on their scale."
    )


def rounding(rows: Sequence[Row], over: str) -> str:
    """What rounding to a grid leaves of the leakage at the first and the last row."""
    first, last = rows[0], rows[-1]
    key = "rho_kl_rounded"
    ends = f"ρ_KL goes from {_value_at(first, over, key)} to {_value_at(last, over, key)}"
    gone = [row for row in rows if row[key] <= LEVEL * row["rho_kl"]]
    less = (
        f"at {_at(gone[0], over)} and above at most {LEVEL:.0%} is left of what full precision "
        "tells: there regularization protects, as theorem 3 means it"
        if gone and gone == list(rows[-len(gone) :])
        else f"full precision tells {figure(last['rho_kl'])} there"
    )
    return f"Rounded to multiples of {last['grid']:g}, {ends}; {less}."


def _at(row: Row, over: str) -> str:
    return f"{SYMBOLS.get(over, over)} = {row[over]:g}"


def _value_at(row: Row, over: str, key: str) -> str:
    return f"{figure(row[key])} at {_at(row, over)}"


def _holds(claim: str, rows: Sequence[Row], over: str, check: Callable[[Row], bool]) -> str:
    broken = [_at(row, over) for row in rows if not check(row)]
    if not broken:
        return f"Holds in every row: {claim}."
    return f"Does not hold in {len(broken)} of {len(rows)} rows ({', '.join(broken)}): {claim}."
